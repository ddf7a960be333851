//! A lock that is held: how to know that it still is, and how to give it back.
//!
//! | module | concern |
//! |---|---|
//! | `status` | what is known of a lock, in one word |
//! | `node` | a node that stands for a lock, and what is known of it |
//! | `keeper` | the task that watches over it |
//! | `upkeep` | who is watched over, and from when on |
//! | `held` | a lock that is held, for all who ask |
//! | `hold` | telling of it from its grant to its release |
//! | `one`, `many`, `shared` | a lock in its holder's hands; several together; one several times |

mod held;
mod hold;
mod keeper;
mod many;
mod node;
mod one;
mod shared;
mod status;
mod upkeep;

pub(crate) use self::held::{Held, Keeping};
pub use self::{many::Guards, one::Guard, shared::SharedGuard, status::Status};
