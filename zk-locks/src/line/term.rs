//! The one who had the lock before.

use tokio::time::Instant;
use zk_client::Zxid;

/// What is known of the one who had the lock before.
#[derive(Debug)]
pub(super) struct Term {
    /// The transaction that made the path: with another one, numbers have begun anew.
    pub(super) incarnation: Zxid,
    /// From when on the lock may be used; `None` if that is now.
    pub(super) begins: Option<Instant>,
}
