//! Real ZooKeeper servers in processes of their own: find one, start it, hurt it. On Unix only, since that takes signals.
//!
//! | module | concern |
//! |---|---|
//! | `locator` | where to look, and what may be done to get one |
//! | `locate` | in which order places are tried; the error that lists them |
//! | `maven`, `debian`, `install` | the places |
//! | `relay` | ways between members that can be cut |
//! | `distribution` | what was found |
//! | `config` | `zoo.cfg`, Java's arguments |
//! | `process`, `life` | the child process, and the watchdog that cleans up after us |
//! | `server`, `builder` | one server |
//! | `host` | where it runs, if not on loopback |
//! | `ensemble`, `ensemble_builder` | several that elect a leader |
//! | `kdc` | Kerberos for servers and their clients: a realm of its own, on loopback |
//! | `four_letter` | asking a server how it is |
//!
//! Waiting for another process is done by asking it again and again; every such wait has a
//! limit, after which the error carries the end of the server's log.

mod builder;
mod command;
mod config;
mod debian;
mod distribution;
mod ensemble;
mod ensemble_builder;
mod error;
mod four_letter;
mod host;
mod install;
mod journal;
mod kdc;
mod life;
mod locate;
mod locator;
mod maven;
mod process;
mod relay;
mod server;

pub use crate::release::{Release, ReleaseError, Version, Wanted};
pub use builder::ServerBuilder;
pub use distribution::{Distribution, Source};
pub use ensemble::Ensemble;
pub use ensemble_builder::EnsembleBuilder;
pub use error::Error;
pub use four_letter::Mode;
pub use host::Host;
pub use kdc::{Kdc, Service};
pub use locate::{Attempt, LocateError};
pub use locator::{Install, Locator};
pub use server::Server;
