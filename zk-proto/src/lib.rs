//! ZooKeeper's client protocol, without I/O.
//!
//! Two layers, usable apart:
//!
//! * **Codec**: every record of the client protocol, in both directions, so that clients, servers,
//!   proxies and fuzzers can be built on it. Start at [`request`] and [`frame`]; [`traffic`]
//!   reads both directions of a connection.
//! * **Session**: the state that survives a socket (timers, in-flight requests, watches,
//!   credentials, server rotation) as one plain value that takes events and returns actions:
//!   [`session`].
//!
//! The crate is `no_std` with `alloc`: no sockets, no clocks, no threads.
//!
//! # Features
//! * `proptest`: strategies for every record, for paths, frames and malformed frames.
//! * `serde`: `Serialize` for every record, in a form for wire inspection.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
#![cfg_attr(test, expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic"))]

extern crate alloc;

mod code;
mod data;
pub mod frame;
mod identity;
#[cfg(feature = "serde")]
mod inspect;
pub mod jute;
mod list;
mod numbered;
mod op;
pub mod path;
mod record;
pub mod request;
mod rng;
pub mod session;
#[cfg(feature = "proptest")]
pub mod strategy;
mod text;
mod time;
pub mod traffic;
mod wipe;

pub use self::{
    code::ErrorCode,
    data::{
        Acl, AclList, AddWatchMode, ClientInfo, CreateFlags, EventType, Id, KeeperState, Perms,
        SessionId, Stat, WatcherType, Xid, Zxid,
    },
    list::{Iter, List},
    op::OpCode,
    request::Request,
    text::{Secret, Str, Text},
    time::Time,
};
