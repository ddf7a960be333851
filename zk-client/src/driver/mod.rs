//! The task that owns the session, and its commands.
//!
//! | module | concern |
//! |---|---|
//! | `command`, `token` | commands of clients, and work that must be done before the session is left; recipients of replies |
//! | `task` | the task: it moves requests, bytes, time and tokens, and decides nothing |
//! | `commands`, `outputs` | carrying out commands, and what is due; carrying out the session's outputs |
//! | `later` | delayed tasks |
//! | `proof`, `proving` | state of the SASL exchange; its steps |
//! | `frames` | where requests are encoded |

pub(crate) mod command;
mod commands;
pub(crate) mod frames;
mod later;
mod outputs;
mod proof;
mod proving;
mod task;
pub(crate) mod token;

pub(crate) use self::task::{Driver, Parts};
