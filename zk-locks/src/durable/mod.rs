//! A lock that stays locked when its holder dies.
//!
//! | module | concern |
//! |---|---|
//! | `lock` | the lock: its path, its owner, its lease |
//! | `acquire` | waiting for it |
//! | `holder` | the holder, seen from outside |
//! | `guard` | the lock while it is held |
//! | `take` | from the head of the queue to a grant, through any loss of replies |
//! | `tenure` | the state of a held grant, and its renewal |
//! | `doubt` | questions that have to be answered |
//! | `record` | the data of a grant |

mod acquire;
mod doubt;
mod guard;
mod holder;
mod lock;
mod record;
mod take;
mod tenure;

pub use self::{guard::DurableGuard, holder::DurableHolder, lock::DurableLock};
