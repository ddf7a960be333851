//! A lock that stays locked when its holder dies.
//!
//! | module | concern |
//! |---|---|
//! | `lock` | the lock: where it is, whose, on what terms |
//! | `acquire` | waiting for it |
//! | `holder` | who has it, seen from outside |
//! | `guard` | the lock in a holder's hands |
//! | `take` | from a place in front to a grant, over whatever gets lost |
//! | `tenure` | what is known of a grant that is held; renewing it |
//! | `record` | what a grant says of itself |

mod acquire;
mod guard;
mod holder;
mod lock;
mod record;
mod take;
mod tenure;

pub use self::{
    guard::DurableGuard,
    holder::DurableHolder,
    lock::{DurableLock, DurableLockBuilder},
};
