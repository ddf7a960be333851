//! What the test binaries in the folders beside this one share.

pub mod busy;
pub mod cli;
pub mod core_sim;
pub mod differential;
pub mod durations;
pub mod faults;
pub mod feature;
pub mod fenced;
pub mod fuzz;
mod history;
mod hostile;
mod input;
pub mod interleavings;
pub mod interop;
mod linear;
pub mod log;
pub mod network;
pub mod patience;
pub mod paused;
pub mod polls;
pub mod pretender;
pub mod scale;
pub mod share;
mod shrink;
pub mod sim;
pub mod site;
pub mod soak;
pub mod transcript;
pub mod wire;

pub use zk_tests_attributes::test_with;
