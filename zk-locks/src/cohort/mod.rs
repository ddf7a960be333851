//! The cohort lock: one node for all tasks of a process, which pass the lock on among themselves.
//!
//! | module | concern |
//! |---|---|
//! | `lock` | the lock, for those who ask for it |
//! | `passing` | how long it stays in the process |
//! | `guard` | the lock in the hands of one task |
//! | `ask` | asking for it, and waiting for it in memory |
//! | `runner` | the task that gets the lock for the process, and watches over it |
//! | `turns` | passing it on, and losing it |
//! | `local` | where a cohort stands: who is next, and whether the lock stays in the process |

mod ask;
mod guard;
mod local;
mod lock;
mod passing;
mod runner;
mod turns;

pub use self::{
    local::CohortGuard,
    lock::{CohortLock, CohortLockBuilder},
    passing::{OnLoss, Passing},
};
