//! What the test binaries in the folders beside this one share.

pub mod busy;
pub mod cli;
pub mod core_sim;
#[cfg(feature = "real")]
pub mod differential;
pub mod durations;
#[cfg(feature = "real")]
pub mod faults;
pub mod feature;
pub mod fenced;
pub mod fuzz;
mod history;
mod hostile;
mod input;
pub mod interleavings;
#[cfg(feature = "real")]
pub mod interop;
#[cfg_attr(
    not(feature = "real"),
    expect(dead_code, reason = "some operations are only those of clients of real servers")
)]
mod linear;
pub mod log;
pub mod network;
#[cfg(feature = "real")]
pub mod patience;
pub mod paused;
pub mod polls;
#[cfg(feature = "real")]
pub mod pretender;
pub mod scale;
pub mod share;
mod shrink;
pub mod sim;
#[cfg(feature = "real")]
pub mod site;
#[cfg(feature = "real")]
pub mod soak;
#[cfg(feature = "real")]
pub mod transcript;
pub mod wire;

pub use zk_tests_attributes::test_with;
