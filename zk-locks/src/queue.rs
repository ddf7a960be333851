//! Inspecting a queue from outside, and interfering with it.

use zk_client::{Client, ReadError, Rejection, WriteError, path::join};

use crate::{
    contender::{Contender, REVOKE, read_all},
    error::nothing_written,
    follow::Follow,
    front::Front,
    layout::Filter,
    token::FencingToken,
};

/// The queue of a lock, seen from outside, whatever implementations its contenders use.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// # let _held = zk_locks::Lock::new(&zk, "/locks/report").acquire().await?;
/// let queue = zk_locks::Queue::new(&zk, "/locks/report");
/// if let Some(holder) = queue.contenders().await?.first() {
///     println!("{} has it, with token {}", holder.description(), holder.token);
///     queue.revoke(holder).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Queue {
    client: Client,
    path: String,
    filter: Filter,
}

impl Queue {
    /// The queue under a path.
    #[must_use]
    pub fn new(client: &Client, path: &str) -> Self {
        Self::filtered(client, path, Filter::default())
    }

    pub(crate) fn filtered(client: &Client, path: &str, filter: Filter) -> Self {
        Self { client: client.patient(), path: path.to_owned(), filter }
    }

    /// Lists the contenders, the earliest first. Two round trips; contenders that leave in between are left out.
    ///
    /// # Errors
    /// [`ReadError`] if the queue cannot be read. A missing path is an empty queue.
    pub async fn contenders(&self) -> Result<Vec<Contender>, ReadError> {
        Ok(self.first(usize::MAX).await?.0)
    }

    /// Lists the first contenders, at most `most` of them, and counts all: one listing and that many reads, in two round
    /// trips, however long the queue is. Contenders that leave in between are counted, and left out.
    ///
    /// # Errors
    /// As [`contenders`](Queue::contenders).
    pub async fn first(&self, most: usize) -> Result<(Vec<Contender>, usize), ReadError> {
        let names = match self.client.children(&self.path).await {
            Ok((names, _)) => names,
            Err(ReadError::Rejected(Rejection::NoNode)) => return Ok((Vec::new(), 0)),
            Err(error) => return Err(error),
        };
        let mut queue = self.filter.queue(names);
        let count = queue.len();
        queue.truncate(most);
        let there = read_all(&self.client, &self.path, queue, |entry| &entry.name).await?;
        let contender = |(entry, data, stat)| Contender::new(&self.filter, entry, data, &stat);
        Ok((there.into_iter().map(contender).collect(), count))
    }

    /// Follows the holders of the lock: at most one for an exclusive lock, all present readers for a
    /// [`RwLock`](crate::RwLock), the earliest first; none if the lock is free. An exclusive holder
    /// that is [asked](Queue::revoke) for the lock back is returned again. That is not followed for readers, as no change of
    /// their data is: it shows with the next one that comes or goes. Sends no request before the first
    /// [`next`](Follow::next).
    ///
    /// The contender at the front of the queue counts as a holder, whether or not it has noticed: act on its
    /// [token](Contender::token), which orders older and newer holders.
    ///
    /// Each observer costs two reads, one after the other, and one notification for each change of an exclusive holder;
    /// contenders that join or leave behind it wake no observer. While readers hold it, and while it is free, every
    /// change of the queue costs each observer a notification, a listing or two, and a read for each reader.
    #[must_use]
    pub fn follow(&self) -> Follow<Vec<Contender>> {
        Follow::new(Front::new(&self.client, &self.path, self.filter.clone()))
    }

    /// Asks a contender to give the lock back: [`Guard::revoked`](crate::Guard::revoked) resolves, and Curator's
    /// revocable locks understand it too. The contender decides whether it does. One write.
    ///
    /// Returns `false` if it has left, or if another node, with another token, has its name by now. Where a name has no id, as
    /// with [`Lock::named`](crate::Lock::named) and [`Layout::Bare`](crate::Layout::Bare), that costs a read, and one that
    /// gets the name between the two is asked instead.
    ///
    /// # Errors
    /// [`WriteError`]. Asking twice does no harm.
    pub async fn revoke(&self, contender: &Contender) -> Result<bool, WriteError> {
        let path = join(&self.path, &contender.name);
        let is_unique = self.filter.has_id(&contender.name);
        if !is_unique && !self.is_there(&path, contender.token).await? {
            return Ok(false);
        }
        match self.client.set(&path, REVOKE).await {
            Ok(_) => Ok(true),
            Err(WriteError::Rejected(Rejection::NoNode)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes a contender's node, and so takes the lock away if it holds that: for contenders that cannot release it.
    ///
    /// The contender is notified ([`Lost::NodeDeleted`](crate::Lost::NodeDeleted)) at once if it is reachable and watches its
    /// node, as it does once it has waited or held for a second. Otherwise it may continue, for up to that second or until its
    /// lease runs out: only the token protects the next holder from it then. Of a [`Ticket`](crate::Ticket) or a
    /// [`MultiLock`](crate::MultiLock) it may even begin to hold within that second, and continue for another one.
    ///
    /// Returns `false` if it has left, or if another node, with another token, has its name by now.
    ///
    /// A read and a delete. Where a name has no id, as with [`Lock::named`](crate::Lock::named) and
    /// [`Layout::Bare`](crate::Layout::Bare), a path that is made anew in between brings the name back, and no request deletes
    /// by token. So there the node's data is first written again, which makes its version one that a new node does not have.
    /// What remains: a new node may have its data replaced by that of the old one; and without the permission to write, it is
    /// the version that was seen that is deleted, which a new node may share.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn evict(&self, contender: &Contender) -> Result<bool, WriteError> {
        let (path, token) = (join(&self.path, &contender.name), contender.token);
        loop {
            let delete = self.client.delete(&path);
            let delete = match self.filter.has_id(&contender.name) {
                true => self.is_there(&path, token).await?.then_some(delete),
                false => self.marked(&path, token).await?.map(|version| delete.version(version)),
            };
            let Some(delete) = delete else { return Ok(false) };
            match delete.await {
                Ok(()) => {
                    tracing::warn!(path, token = token.get(), "contender evicted");
                    return Ok(true);
                }
                Err(WriteError::Rejected(Rejection::NoNode)) => return Ok(false),
                Err(WriteError::Rejected(Rejection::BadVersion)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn is_there(&self, path: &str, token: FencingToken) -> Result<bool, WriteError> {
        let stat = self.client.exists(path).await.map_err(nothing_written)?;
        Ok(stat.is_some_and(|stat| stat.czxid.0 == token.get()))
    }

    /// Gives the node with this token a version of its own, as far as that is permitted; `None` if it is not there.
    async fn marked(&self, path: &str, token: FencingToken) -> Result<Option<i32>, WriteError> {
        loop {
            let (data, seen) = match self.client.get(path).await {
                Ok((data, stat)) if stat.czxid.0 == token.get() => (data, stat),
                Ok(_) | Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(None),
                Err(error) => return Err(nothing_written(error)),
            };
            match self.client.set(path, &data).version(seen.version).await {
                Ok(stat) if stat.czxid == seen.czxid => return Ok(Some(stat.version)),
                Ok(_) | Err(WriteError::Rejected(Rejection::NoNode)) => return Ok(None),
                Err(WriteError::Rejected(Rejection::BadVersion)) => {}
                Err(WriteError::Rejected(Rejection::NoAuth)) => return Ok(Some(seen.version)),
                Err(error) => return Err(error),
            }
        }
    }
}
