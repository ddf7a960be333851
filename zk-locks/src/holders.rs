//! Following the front of a queue, from outside.

use zk_client::{Client, ReadError, Rejection, Stat, Watch, Zxid, bytes::Bytes, path::join};

use crate::{
    contender::Contender,
    entry::{Entry, Kind},
    layout::Filter,
};

/// Follows the holders of a lock: see [`Queue::follow`](crate::Queue::follow). Costs nothing while nothing changes.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// # let lock = zk_locks::Lock::new(&zk, "/locks/report");
/// let mut holders = lock.queue().follow();
/// loop {
///     match holders.next().await?.first() {
///         Some(holder) => println!("{} holds it: {}", holder.description, holder.token),
///         None => println!("it is free"),
///     }
///     # break;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Holders {
    front: Front,
}

impl Holders {
    pub(crate) const fn new(front: Front) -> Self {
        Self { front }
    }

    /// Waits until the holders change, and returns them: at most one for an exclusive lock, all present readers for a
    /// [`RwLock`](crate::RwLock), the earliest first; none if the lock is free. The first call returns at once. A
    /// holder that is [asked](crate::Queue::revoke) for the lock back may be returned again.
    ///
    /// Returns the newest state; a hold that was over between two looks is skipped. The contender at the front of the
    /// queue counts as a holder, whether or not it has noticed: act on its [token](Contender::token), which orders
    /// older and newer holders.
    ///
    /// Each observer costs two reads, one after the other, and one notification for each change of an exclusive holder;
    /// contenders that join or leave behind it wake no observer. While readers hold it, and while it is free, every
    /// change of the queue costs each observer a notification, a listing or two, and a read for each reader. The future
    /// can be dropped and recreated at will; lost connections and servers that throttle cost nothing but time.
    ///
    /// # Errors
    /// [`ReadError`] if the path cannot be read, or the session has ended: then all further calls fail as well. In
    /// other cases ask again.
    pub async fn next(&mut self) -> Result<Vec<Contender>, ReadError> {
        let there = self.front.next().await?;
        let filter = &self.front.filter;
        let contender = |(entry, data, stat): Read| Contender::new(filter, entry, &data, &stat);
        Ok(there.into_iter().map(contender).collect())
    }
}

/// A contender at the front, as it was read.
type Read = (Entry, Bytes, Stat);

/// Follows the front of a queue: one contender, or several that share the lock.
#[derive(Debug)]
pub(crate) struct Front {
    client: Client,
    path: String,
    filter: Filter,
    /// On the state that was last seen.
    watch: Option<Watch>,
    /// The state that was last returned: the transactions that created each node and wrote it last.
    told: Option<Vec<(Zxid, Zxid)>>,
}

impl Front {
    pub(crate) fn new(client: &Client, path: &str, filter: Filter) -> Self {
        let (client, path) = (client.patient(), path.to_owned());
        Self { client, path, filter, watch: None, told: None }
    }

    /// Waits until the front differs from the one last returned.
    pub(crate) async fn next(&mut self) -> Result<Vec<Read>, ReadError> {
        loop {
            if let Some(watch) = &mut self.watch {
                let heard = watch.await;
                self.watch = None;
                heard.map_err(|end| ReadError::Unavailable(zk_client::Cause::SessionEnded(end)))?;
            }
            let (there, watch) = self.look().await?;
            self.watch = Some(watch);
            let seen = there.iter().map(|(_, _, stat)| (stat.czxid, stat.mzxid)).collect();
            if self.told.as_ref() != Some(&seen) {
                self.told = Some(seen);
                return Ok(there);
            }
        }
    }

    /// Reads the present front, with a watch for the next change. A single exclusive contender is watched itself;
    /// several, or none, by the path.
    async fn look(&self) -> Result<(Vec<Read>, Watch), ReadError> {
        loop {
            let names = match self.client.children(&self.path).await {
                Err(ReadError::Rejected(Rejection::NoNode)) => Vec::new(),
                children => children?.0,
            };
            let looked = match self.first(names).as_slice() {
                [first] if !shares(first.kind) => self.look_at(first).await?,
                _ => self.look_at_all().await?,
            };
            if let Some(looked) = looked {
                return Ok(looked);
            }
        }
    }

    /// `None` if it is gone.
    async fn look_at(&self, first: &Entry) -> Result<Option<(Vec<Read>, Watch)>, ReadError> {
        match self.client.get(&join(&self.path, &first.name)).watch().await {
            Ok(((data, stat), watch)) => Ok(Some((vec![(first.clone(), data, stat)], watch))),
            Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `None` if there is an exclusive contender by now, or the path was deleted or created.
    async fn look_at_all(&self) -> Result<Option<(Vec<Read>, Watch)>, ReadError> {
        let ((names, _), watch) = match self.client.children(&self.path).watch().await {
            Ok(children) => children,
            Err(ReadError::Rejected(Rejection::NoNode)) => {
                let (path, watch) = self.client.exists(&self.path).watch().await?;
                return Ok(path.is_none().then_some((Vec::new(), watch)));
            }
            Err(error) => return Err(error),
        };
        let first = self.first(names);
        if first.iter().any(|entry| !shares(entry.kind)) {
            return Ok(None);
        }
        let cork = self.client.cork();
        let read = |entry: Entry| {
            let read = cork.get(&join(&self.path, &entry.name)).submit();
            (entry, read)
        };
        let reads: Vec<_> = first.into_iter().map(read).collect();
        drop(cork);
        let mut there = Vec::with_capacity(reads.len());
        for (entry, read) in reads {
            match read.await {
                Ok((data, stat)) => there.push((entry, data, stat)),
                // The watch reports it.
                Err(ReadError::Rejected(Rejection::NoNode)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some((there, watch)))
    }

    /// The first contender, or all at the front that share the lock.
    fn first(&self, names: Vec<String>) -> Vec<Entry> {
        let mut entries: Vec<Entry> =
            names.into_iter().filter_map(|name| self.filter.read(name).ok()).collect();
        entries.sort_by(Entry::order);
        let together = entries.iter().take_while(|entry| shares(entry.kind)).count();
        entries.truncate(together.max(1));
        entries
    }
}

/// Whether several contenders of this kind share the lock.
fn shares(kind: Kind) -> bool {
    matches!(kind, Kind::Read | Kind::Lease)
}
