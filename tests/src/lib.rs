//! What the test binaries in the folders beside this one share.

pub mod register;
pub mod sim;
pub mod site;
