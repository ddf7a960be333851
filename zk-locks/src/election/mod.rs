//! Elections: one leader at a time, known to observers.
//!
//! | module | concern |
//! |---|---|
//! | `campaign` | an election: standing in it, watching it |
//! | `leadership` | the lead while it is held |
//! | `latch` | standing again and again |

mod campaign;
mod latch;
mod leadership;

pub use self::{
    campaign::Election,
    latch::{LatchState, LeaderLatch},
    leadership::Leadership,
};
