//! The task that owns the session, and what it is asked for.
//!
//! | module | concern |
//! |---|---|
//! | `command`, `token` | what clients ask for; what waits for a reply |
//! | `cleanup` | what keeps the session from being left |
//! | `task` | the task: it moves bytes, time and tokens, and decides nothing |
//! | `commands`, `outputs` | commands obeyed; what the session wants carried out |
//! | `later`, `timers` | what has its time; the wait for it |
//! | `proof`, `proving` | the SASL exchange under way; its steps |
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
