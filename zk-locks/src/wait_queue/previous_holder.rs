//! The previous holder.

use tokio::time::Instant;
use zk_client::Zxid;

/// What is known of the previous holder.
#[derive(Debug)]
pub(super) struct PreviousHolder {
    /// The transaction that created the path: under another one, numbers have begun anew.
    pub(super) incarnation: Zxid,
    /// The time from which on the lock may be used; `None` if that is now.
    pub(super) begins: Option<Instant>,
}
