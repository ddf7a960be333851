//! The state of a lock that was acquired, in one word.

use std::time::Duration;

use crate::error::Lost;

/// The state of an acquired lock, as known locally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Held.
    Held,
    /// Held, as long as the servers keep the session although they are unreachable now: at least for this long. A
    /// [`DurableLock`](crate::DurableLock) is held for this long whatever becomes of the session.
    Suspect {
        /// Time left until the lock counts as lost.
        lease_left: Duration,
    },
    /// Not held any more, for good.
    Lost(Lost),
}
