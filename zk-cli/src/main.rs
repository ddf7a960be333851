//! The `zk` command.
fn main() {}
