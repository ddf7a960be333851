//! What tests of ZooKeeper clients, and of services that use ZooKeeper, need.
//!
//! * [`TestServer`]: a ZooKeeper in the test's own process, up in a millisecond, with faults on demand.
//!   The [`guide`] shows how to test a service with it.
//! * [`server`]: what is behind it, an ensemble without I/O, for simulations.
//! * [`proxy`]: stands in front of any server, knows the protocol, and breaks it off as instructed.
//! * [`real`]: real servers, alone or as an ensemble, found, installed, started and killed. On Unix only; everything else
//!   is for Windows too.
#![cfg_attr(
    feature = "sim",
    doc = "* [`sim`]: a network in virtual time between the two, for whole systems from a seed."
)]
#![cfg_attr(
    feature = "tls",
    doc = "* [`tls`]: certificates made up on the spot, and TLS in front of any server."
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc = include_str!("guide.md")]
pub mod guide {}
mod port;
pub mod proxy;
#[cfg(unix)]
pub mod real;
/// Releases of real servers. To start one takes Unix.
#[cfg(not(unix))]
pub mod real {
    pub use crate::release::{Release, ReleaseError, Version, Wanted};
}
mod release;
mod rng;
pub mod server;
#[cfg(feature = "sim")]
pub mod sim;
mod test_server;
#[cfg(feature = "tls")]
pub mod tls;

pub use test_server::TestServer;
