//! The task that owns the session, and its commands.
//!
//! | module | concern |
//! |---|---|
//! | `command`, `token` | commands of clients; recipients of replies |
//! | `cleanup` | work that must be done before the session is left |
//! | `task` | the task: it moves bytes, time and tokens, and decides nothing |
//! | `commands`, `outputs` | carrying out commands; carrying out the session's outputs |
//! | `later`, `timers` | delayed tasks; waiting for deadlines |
//! | `proof`, `proving` | state of the SASL exchange; its steps |
//! | `frames` | where requests are encoded |

pub(crate) mod cleanup;
pub(crate) mod command;
mod commands;
pub(crate) mod frames;
mod later;
mod outputs;
mod proof;
mod proving;
mod task;
mod timers;
pub(crate) mod token;

pub(crate) use self::task::{Driver, Parts};
