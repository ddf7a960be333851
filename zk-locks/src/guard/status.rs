//! What is known of a lock that was acquired, in one word.

use std::time::Duration;

use crate::error::Lost;

/// What is known locally about a lock that was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Held.
    Held,
    /// Held, as long as the servers keep the session although they cannot be reached now: at least for
    /// this long.
    Suspect {
        /// Time left until the lock counts as lost.
        lease_left: Duration,
    },
    /// Not held any more, for good.
    Lost(Lost),
}
