//! Typed requests and their answers.
//!
//! | module | concern |
//! |---|---|
//! | `operations`, `create`, `multi` | the builders |
//! | `call`, `target` | from a builder to a request under way |
//! | `pending` | a request under way, as its caller has it |
//! | `answer`, `asked` | what to make of an answer; what it is held against |
//! | `watch_stream` | watches that go on |
//! | `client`, `handle` | the client as requests see it; the way to the driver |
//! | `call_options` | how requests are made |

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
