//! Typed requests and their replies.
//!
//! | module | concern |
//! |---|---|
//! | `operations`, `create`, `multi` | the builders |
//! | `call`, `target` | from a builder to a request in flight |
//! | `pending` | a request in flight, as its caller has it |
//! | `answer`, `asked` | interpreting a reply; checking it against its request |
//! | `watch_stream` | persistent watches |
//! | `client`, `handle` | the client as requests use it; the connection to the driver |
//! | `call_options` | options of requests |

pub(crate) mod answer;
pub(crate) mod asked;
pub(crate) mod call;
pub(crate) mod call_options;
pub(crate) mod client;
pub(crate) mod create;
pub(crate) mod handle;
pub(crate) mod multi;
pub(crate) mod operations;
pub(crate) mod pending;
pub(crate) mod target;
pub(crate) mod watch_stream;
