//! A node of a copy, and the states of a cache.

use std::sync::Arc;

use bytes::Bytes;
use zk_proto::Stat;

use crate::error::{ReadError, SessionEnd};

/// A node in a [`Cache`](super::Cache).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachedNode {
    /// Its path, relative to the client's chroot.
    pub path: Arc<str>,
    /// Its data; empty if the cache [leaves data out](super::CacheBuilder::without_data).
    pub data: Bytes,
    /// Its metadata as of the read that returned the data. The number of children and related fields may be older than
    /// the cache's children.
    pub stat: Stat,
}

/// The state of a [`Cache`](super::Cache).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheState {
    /// Not everything has been read yet.
    Loading,
    /// Everything has been read and all watches are armed. What has changed since is being read, one change at a time: the
    /// copy lags behind the session's server by a round trip, or by more while that server refuses reads because of load;
    /// and that server may itself lag behind the leader.
    Following,
    /// The connection was lost, or changes came too fast: everything is being read again. After a lost connection, servers
    /// before 3.6 tell which of the watched nodes have changed, and only those are read.
    Behind,
    /// A server refuses to let some of the nodes be read; they are missing from the copy. The cache asks again when
    /// this session is notified of a write to them or of their deletion, and when it reads everything again; then not what
    /// has cost three connections, such as by a reply that is [too long](crate::ConnectOptions::reply_len_max).
    Refused(ReadError),
    /// The session is over; nothing changes any more.
    Ended(SessionEnd),
}
