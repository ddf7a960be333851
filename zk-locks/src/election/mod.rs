//! Elections: one leader at a time, and the next one known.
//!
//! | module | concern |
//! |---|---|
//! | `campaign` | an election: standing in it, watching it |
//! | `leadership` | the lead, in its holder's hands |
//! | `latch` | standing again and again |
//! | `leaders` | following who leads |

mod campaign;
mod latch;
mod leaders;
mod leadership;

pub use self::{
    campaign::{Election, ElectionBuilder},
    latch::{LatchState, LeaderLatch},
    leaders::{Leader, Leaders},
    leadership::Leadership,
};
