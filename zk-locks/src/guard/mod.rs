//! A held lock: checking that it still is, and releasing it.
//!
//! | module | concern |
//! |---|---|
//! | `status` | the state of a lock, in one word |
//! | `node` | a node that stands for a lock, and its state |
//! | `owned`, `owner` | what a guard has of it, and who deletes it |
//! | `recorded` | releases that are recorded for the next contender |
//! | `keeper` | the task that watches it |
//! | `upkeep` | which nodes are watched, and from when on |
//! | `held` | a view of a held lock |
//! | `hold` | reporting it from its grant to its release |
//! | `one`, `many`, `shared` | guards: of one lock; of several together; of one lock several times |

mod held;
mod hold;
mod keeper;
mod many;
mod node;
mod one;
mod owned;
mod owner;
mod recorded;
mod shared;
mod status;
mod upkeep;

pub(crate) use self::held::{Held, Keeping};
pub use self::{many::Guards, one::Guard, shared::SharedGuard, status::Status};
