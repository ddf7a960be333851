//! What a copy holds, and where it stands.

use std::sync::Arc;

use bytes::Bytes;
use zk_proto::Stat;

use crate::error::{ReadError, SessionEnd};

/// A node as a [`Cache`](super::Cache) has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachedNode {
    /// Its path, relative to the client's chroot.
    pub path: Arc<str>,
    /// Its data; empty if the cache [leaves data out](super::CacheBuilder::without_data).
    pub data: Bytes,
    /// Its metadata as of the read that gave the data. The number of children and what goes with it may be
    /// older than the children that the cache has.
    pub stat: Stat,
}

/// Where a [`Cache`](super::Cache) stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheState {
    /// Not everything has been read yet.
    Loading,
    /// Everything has been read, all watches stand, and nothing is known to be missing.
    Following,
    /// The connection was lost, or changes came too fast: everything is being read anew.
    Behind,
    /// A server refuses to let some of the nodes be read, which are not in the copy then. It is asked again when
    /// something happens to them that this session may hear of, and when everything is read anew.
    Refused(ReadError),
    /// The session is over; nothing changes any more.
    Ended(SessionEnd),
}
