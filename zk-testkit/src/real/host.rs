use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

/// Where a member of an ensemble runs, if not on loopback beside the test: in a network namespace of its own, for
/// instance. There it uses the ports 2181 for clients, 2888 and 3888.
///
/// The test has to reach the address as well, as it asks members how they are.
#[derive(Clone, Debug)]
pub struct Host {
    /// What the member listens on.
    pub addr: IpAddr,
    /// What Java is started by, as `ip netns exec NAME`: it must become Java, and not start it as a child.
    pub command: Vec<OsString>,
    /// The folder for the member's files, such as one on a file system that can be full.
    pub files: PathBuf,
}
