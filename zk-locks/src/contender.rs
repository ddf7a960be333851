//! A contender for a lock, as others see it.

use std::borrow::Cow;

use zk_client::{Client, ReadError, Rejection, SessionId, Stat, bytes::Bytes, path::join};

use crate::{
    entry::{Entry, Kind},
    layout::Filter,
    token::FencingToken,
};

/// The data that a contender writes to a node to ask for the lock back, as Curator's `Revoker` does.
pub(crate) const REVOKE: &[u8] = b"__REVOKE__";

/// A holder of a lock, or a contender for it, as others see it; in an [`Election`](crate::Election), the leader or a
/// candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contender {
    /// The name of its node.
    pub name: String,
    /// What it wants.
    pub kind: Kind,
    /// Its number in the queue; `None` for the holder of a [`SimpleLock`](crate::SimpleLock), which has no queue.
    /// Numbers have gaps.
    pub sequence: Option<i32>,
    /// The session that owns it.
    pub session: SessionId,
    /// When it joined: milliseconds since 1970 on the clock of the leader.
    pub since: i64,
    /// What its fencing token is, or will be: larger than those of all holders before. Of a reader that was a
    /// [writer](crate::WriteGuard::downgrade) it is that of the read node, while the guard keeps the writer's, which is smaller.
    /// One that waits for a [`Semaphore`](crate::Semaphore) or a [`DurableLock`](crate::DurableLock) trades its node for the
    /// grant, and the token is larger then.
    pub token: FencingToken,
    /// The data of its node, without the id: a description, or what a candidate publishes.
    pub data: Bytes,
}

impl Contender {
    pub(crate) fn new(filter: &Filter, entry: Entry, data: Bytes, stat: &Stat) -> Self {
        let Entry { name, sequence, kind } = entry;
        let data = filter.said(&name, data);
        Self {
            name,
            kind,
            sequence: Some(sequence),
            session: stat.ephemeral_owner,
            since: stat.ctime,
            token: FencingToken::new(stat.czxid),
            data,
        }
    }

    /// Its description of itself: the [data](Contender::data), as text.
    #[must_use]
    pub fn description(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.data)
    }

    /// Whether another client has asked it to give the lock back, by [`Queue::revoke`](crate::Queue::revoke) or
    /// Curator's `Revoker`. The request has replaced its description.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.data == REVOKE
    }
}

/// Reads these children of a path, in one round trip. Those that are gone are left out.
pub(crate) async fn read_all<C>(
    client: &Client,
    path: &str,
    children: impl IntoIterator<Item = C>,
    name: impl Fn(&C) -> &str,
) -> Result<Vec<(C, Bytes, Stat)>, ReadError> {
    let cork = client.cork();
    let read = |child: C| {
        let read = cork.get(&join(path, name(&child))).submit();
        (child, read)
    };
    let reads: Vec<_> = children.into_iter().map(read).collect();
    drop(cork);
    let mut there = Vec::with_capacity(reads.len());
    for (child, read) in reads {
        match read.await {
            Ok((data, stat)) => there.push((child, data, stat)),
            Err(ReadError::Rejected(Rejection::NoNode)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(there)
}
