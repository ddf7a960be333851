//! Typed requests and their replies.
//!
//! | module | concern |
//! |---|---|
//! | `client` | the client as requests use it |
//! | `read`, `write`, `multi`, `watches`, `config` | methods of the client, their options, how their replies are read |
//! | `create` | creating nodes: the same |
//! | `builder` | a request that has not been submitted |
//! | `ask`, `ops` | what requests ask for, and their encoding; several operations in one request |
//! | `pending` | a request in flight, as its caller has it |
//! | `answer`, `asked` | interpreting a reply; checking it against its request |
//! | `watch_stream` | persistent watches |
//! | `handle`, `held`, `call_options` | the connection to the driver; what a cork holds back; options of requests |

mod answer;
mod ask;
mod asked;
mod builder;
pub(crate) mod call_options;
pub(crate) mod client;
mod config;
mod create;
pub(crate) mod handle;
mod held;
mod multi;
mod ops;
pub(crate) mod pending;
mod read;
mod span;
pub(crate) mod watch_stream;
mod watches;
mod write;

pub use self::{
    builder::Request,
    config::{EnsembleConfig, EnsembleMember},
    create::{Create, CreateAllProtected, CreateMode, Created},
    multi::{OpResult, ReadResult},
    read::ChildNames,
    watches::WatchKind,
};
