//! The previous holder.

use tokio::time::Instant;
use zk_client::{Created, Pending, Stat, WriteError, Zxid, bytes::Bytes};

use super::asked::Asked;

/// The reads that show what became of the previous holder, until all is known.
#[derive(Debug)]
pub(super) struct LookingBack {
    pub(super) path: Asked<Option<Stat>>,
    pub(super) record: Asked<(Bytes, Stat)>,
    /// The node for records is missing.
    pub(super) creating: Option<Pending<Created, WriteError>>,
}

/// What is known of the previous holder.
#[derive(Debug)]
pub(super) struct PreviousHolder {
    /// The transaction that created the path: under another one, numbers have begun anew.
    pub(super) incarnation: Zxid,
    /// The time from which on the lock may be used; `None` if that is now.
    pub(super) begins: Option<Instant>,
    /// Whether the queue is to be listed anew when the time has come.
    pub(super) is_settled: bool,
}
