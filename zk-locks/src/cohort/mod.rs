//! The cohort lock: one node for all tasks of a process, which pass the lock on among themselves.
//!
//! | module | concern |
//! |---|---|
//! | `lock` | the public side of the lock |
//! | `settings` | how long it stays in the process |
//! | `guard` | the lock held by one task |
//! | `ask` | asking for it, and waiting for it in memory |
//! | `attempt` | what observers are told of that |
//! | `runner` | the task that gets the lock for the process, and watches it |
//! | `turns` | passing it on, and losing it |
//! | `local` | the state of a cohort: the next waiter, and whether the lock stays in the process |

mod ask;
mod attempt;
mod guard;
mod local;
mod lock;
mod runner;
mod settings;
mod turns;

pub use self::{local::CohortGuard, lock::CohortLock};
