//! The semaphore: so many at a time.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use zk_client::{
    Cause, Client, CreateMode, Pending, PendingNodes, ReadError, Rejection, Stat, Watch,
    WriteError, bytes::Bytes, join, planted,
};

use crate::{
    builder::Builder,
    error::AcquireError,
    guard::{Guard, Guards},
    layout::Role,
    line::{Lent, Line, Place, THROTTLE_PAUSE},
    queue::Contender,
};

/// A number of permits, each of which one at a time may have, given out in the order of asking.
///
/// Nodes are those of Curator's `InterProcessSemaphoreV2`: `<path>/locks` is a queue in which the one in front
/// may add to `<path>/leases`, where there is a node for each permit that is taken. Its users share the
/// semaphore on the same path. Whatever else is under `leases` counts as a permit that is taken.
///
/// Only the one in front watches the permits: a permit that is given back wakes nobody else.
///
/// A permit is a value: it can be sent to another task, and is given back by whoever has it last. Those who have
/// permits at the same time have different [tokens](Guard::token), of which the largest means nothing: a
/// resource that is to refuse holders of the past needs a lock for each slot instead.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::Semaphore;
///
/// let downloads = Semaphore::new(&zk, "/limits/downloads", 3);
/// let permit = downloads.acquire().await?;
/// // ... one of three at a time ...
/// permit.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Cost and losses
///
/// Four requests in two round trips if there is a permit; one more while waiting, and two for each change that is
/// waited for; one to give it back. A permit that is [lost](Guard::lost) may be somebody else's already: ask anew.
///
/// # How many there are
///
/// That is for all who share the semaphore to agree on: everybody says it for itself, or all read it from a
/// [node](Semaphore::counted_at). It can [change](Semaphore::resize) while the semaphore is in use. Fewer
/// permits take nothing from anybody; they are given out again when enough have been given back.
#[derive(Clone, Debug)]
pub struct Semaphore {
    mutex: Arc<Line>,
    leases: Arc<Line>,
    permits: Arc<watch::Sender<u32>>,
    /// The node that tells how many permits there are.
    count: Option<Arc<str>>,
}

/// Settings of a [`Semaphore`].
pub type SemaphoreBuilder = Builder<Semaphore>;

/// Questions about the leases that are under way.
struct Asked {
    leases: Pending<(Vec<String>, Stat), ReadError>,
    count: Option<Pending<(Bytes, Stat), ReadError>>,
}

/// What there is.
struct Look {
    /// How many permits are taken; `None` if nobody has ever taken one.
    taken: Option<usize>,
    permits: u32,
    /// Of the node that tells how many there are.
    version: Option<i32>,
}

/// What comes of a trade.
enum Outcome {
    Granted(Vec<Guard>),
    /// Something has changed on the way. The place is still there.
    Changed(Box<Place>),
}

impl Look {
    /// Whether there is room for so many.
    fn has_room(&self, wanted: usize) -> bool {
        let permits = usize::try_from(self.permits).unwrap_or(usize::MAX);
        let permits = if planted!(OnePermitTooMany) { permits.saturating_add(1) } else { permits };
        self.taken.unwrap_or(0).saturating_add(wanted) <= permits
    }
}

impl Semaphore {
    /// A semaphore on `path` with so many permits, with default settings. Paths that are missing are created
    /// as for a [`Lock`](crate::Lock::new).
    #[must_use]
    pub fn new(client: &Client, path: &str, permits: u32) -> Self {
        Self::builder(client, path).build().with_permits(permits)
    }

    /// A semaphore on `path`, with settings. It has one permit until it is [told](Semaphore::with_permits)
    /// otherwise.
    pub fn builder(client: &Client, path: &str) -> SemaphoreBuilder {
        Builder::new(client, path, |line| Self::over(&line))
    }

    pub(crate) fn over(line: &Line) -> Self {
        let below = |name| {
            let path = join(&line.path, name);
            Arc::new(Line::new(line.client.clone(), path, line.settings.clone()))
        };
        let (mutex, leases) = (below("locks"), below("leases"));
        Self { mutex, leases, permits: Arc::new(watch::Sender::new(1)), count: None }
    }

    /// The same with so many permits, for this value and its clones. Where they are
    /// [counted](Semaphore::counted_at) by a node, this is how many there are as long as there is no node.
    #[must_use]
    pub fn with_permits(mut self, permits: u32) -> Self {
        self.permits = Arc::new(watch::Sender::new(permits));
        self
    }

    /// The same with as many permits as a node says: in four bytes, as Curator's `SharedCount` writes them. A
    /// negative number is none.
    ///
    /// A permit is given out only if the node is at that moment as it was when it was read. Costs one read
    /// more for each acquire, in no round trip of its own.
    #[must_use]
    pub fn counted_at(mut self, path: &str) -> Self {
        self.count = Some(Arc::from(path));
        self
    }

    /// Changes the number of permits: at the [node](Semaphore::counted_at) for everybody, creating it if it is
    /// missing (but not what is above it), or else for this value and its clones. Those who wait hear of it.
    ///
    /// # Errors
    /// [`WriteError`] if the node cannot be written; never without a node.
    pub async fn resize(&self, permits: u32) -> Result<(), WriteError> {
        let Some(path) = &self.count else {
            self.permits.send_replace(permits);
            return Ok(());
        };
        let count = encoded(i32::try_from(permits).unwrap_or(i32::MAX));
        let client = &self.leases.client;
        loop {
            match client.set(path, &count).await {
                Err(WriteError::Rejected(Rejection::NoNode)) => {}
                written => return written.map(drop),
            }
            match client.create(path, &count).acl(&self.leases.settings.acl).await {
                Err(WriteError::Rejected(Rejection::NodeExists)) => {}
                created => return created.map(drop),
            }
        }
    }

    /// Waits for a permit, behind all who asked before.
    ///
    /// Two round trips if there is one, and four requests: the place in the queue with two listings, and a
    /// transaction that trades it for the permit. Waiting for one to be given back costs one listing for each
    /// change.
    ///
    /// Dropping the future gives up, wherever it was: no node stays behind.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        let mut guards = self.lease(1).await?;
        guards.pop().ok_or(AcquireError::NodeDeleted)
    }

    /// As [`acquire`](Semaphore::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; nodes are removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<Guard, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Waits for so many permits at once, and gets all of them in one transaction or none. It costs as much as
    /// one. To ask for none is to get none, at once.
    ///
    /// Who asks for many is not passed by others who ask for few: nobody is granted behind it. That is so
    /// too if more are asked for than there are, until there are more.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire_many(&self, permits: usize) -> Result<Guards, AcquireError> {
        self.lease(permits).await.map(Guards::new)
    }

    /// As [`acquire_many`](Semaphore::acquire_many), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; nodes are removed in the background.
    pub async fn acquire_many_timeout(
        &self,
        permits: usize,
        time: Duration,
    ) -> Result<Guards, AcquireError> {
        timeout(time, self.acquire_many(permits)).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes so many permits if there are as many and nobody waits. Looks first: as long as there are not,
    /// this is one round trip and no write.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire_many(&self, permits: usize) -> Result<Option<Guards>, AcquireError> {
        let asked = self.ask(&self.leases.client);
        let busy = self.mutex.is_busy(Role::Lock).await?;
        if busy || !self.answered(asked).await?.has_room(permits) {
            return Ok(None);
        }
        Ok(self.granted(permits, false).await?.map(Guards::new))
    }

    /// Takes a permit if there is one and nobody waits: see
    /// [`try_acquire_many`](Semaphore::try_acquire_many).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let guards = self.try_acquire_many(1).await?;
        Ok(guards.and_then(|guards| guards.into_guards().pop()))
    }

    /// Who has permits: those who got theirs first first, once for each.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn holders(&self) -> Result<Vec<Contender>, ReadError> {
        self.leases.queue().contenders().await
    }

    /// Who waits for permits: the one in front first.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn waiters(&self) -> Result<Vec<Contender>, ReadError> {
        self.mutex.queue().contenders().await
    }

    async fn lease(&self, wanted: usize) -> Result<Vec<Guard>, AcquireError> {
        // There is always something to be granted where room is waited for.
        Ok(self.granted(wanted, true).await?.unwrap_or_default())
    }

    /// So many permits; `None` if there are not as many and they are not to be waited for.
    async fn granted(
        &self,
        wanted: usize,
        waits: bool,
    ) -> Result<Option<Vec<Guard>>, AcquireError> {
        if wanted == 0 {
            return Ok(Some(Vec::new()));
        }
        let data = self.mutex.settings.description.as_bytes();
        let join = self.mutex.join_and(Role::Lock, None, data, |cork| self.ask(cork));
        let (mut place, asked) = join.await?;
        if place.ahead() == Some(0) {
            // Asked behind the listing of the queue: it shows what those who are gone from that have done.
            let look = self.answered(asked).await?;
            if look.has_room(wanted) {
                match self.take(wanted, place, &look).await? {
                    Outcome::Granted(guards) => return Ok(Some(guards)),
                    Outcome::Changed(back) => place = *back,
                }
            }
        } else if waits {
            self.mutex.wait(&mut place).await?;
        } else if self.mutex.look(&mut place).await?.ahead() > 0 {
            return Ok(None);
        }
        self.in_front(wanted, waits, place).await
    }

    /// The same for the one in front, which stays there however often something changes.
    async fn in_front(
        &self,
        wanted: usize,
        waits: bool,
        mut place: Place,
    ) -> Result<Option<Vec<Guard>>, AcquireError> {
        let mut resized = self.permits.subscribe();
        loop {
            resized.mark_unchanged();
            let (look, leases, count) = self.look_and_watch().await?;
            if look.has_room(wanted) {
                match self.take(wanted, place, &look).await? {
                    Outcome::Granted(guards) => return Ok(Some(guards)),
                    Outcome::Changed(back) => place = *back,
                }
                continue;
            }
            if !waits {
                return Ok(None);
            }
            let recheck = self.mutex.settings.recheck;
            tokio::select! {
                biased;
                event = fired(leases) => event?,
                event = fired(count) => event?,
                // The sender lives as long as this does.
                _ = resized.changed(), if self.count.is_none() => {}
                () = sleep(recheck.unwrap_or(Duration::MAX)) => {}
            }
        }
    }

    /// Submits the questions.
    fn ask(&self, client: &Client) -> Asked {
        let leases = client.children(&self.leases.path).submit();
        let count = self.count.as_ref().map(|path| client.get(path).submit());
        Asked { leases, count }
    }

    async fn answered(&self, asked: Asked) -> Result<Look, AcquireError> {
        let taken = match asked.leases.await {
            Ok((names, _)) => Some(names.len()),
            Err(ReadError::Rejected(Rejection::NoNode)) => None,
            Err(error) => return Err(error.into()),
        };
        let count = match asked.count {
            Some(count) => match count.await {
                Ok(count) => Some(count),
                Err(ReadError::Rejected(Rejection::NoNode)) => None,
                Err(error) => return Err(error.into()),
            },
            None => None,
        };
        self.look(taken, count)
    }

    fn look(
        &self,
        taken: Option<usize>,
        count: Option<(Bytes, Stat)>,
    ) -> Result<Look, AcquireError> {
        let Some((count, stat)) = count else {
            return Ok(Look { taken, permits: *self.permits.borrow(), version: None });
        };
        let path = self.count.as_deref().unwrap_or_default();
        let count = decoded(&count).ok_or_else(|| AcquireError::NotACount { path: path.into() })?;
        Ok(Look { taken, permits: u32::try_from(count).unwrap_or(0), version: Some(stat.version) })
    }

    /// Looks, and arms watches on whatever may make a difference.
    async fn look_and_watch(&self) -> Result<(Look, Option<Watch>, Option<Watch>), AcquireError> {
        let client = &self.leases.client;
        let leases = client.children(&self.leases.path).watch().submit();
        let count = self.count.as_ref().map(|path| client.get(path).watch().submit());
        let (taken, leases) = match leases.await {
            Ok(((names, _), watch)) => (Some(names.len()), Some(watch)),
            // Nobody can take any meanwhile.
            Err(ReadError::Rejected(Rejection::NoNode)) => (None, None),
            Err(error) => return Err(error.into()),
        };
        let (count, watch) = match count {
            Some(count) => match count.await {
                Ok((count, watch)) => (Some(count), Some(watch)),
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    let path = self.count.as_deref().unwrap_or_default();
                    let (_, watch) = client.exists(path).watch().await?;
                    (None, Some(watch))
                }
                Err(error) => return Err(error.into()),
            },
            None => (None, None),
        };
        Ok((self.look(taken, count)?, leases, watch))
    }

    /// Trades the place in front for permits, in one transaction: so whoever has lost its place gets nothing,
    /// and a lost reply leaves both or neither.
    async fn take(
        &self,
        wanted: usize,
        place: Place,
        look: &Look,
    ) -> Result<Outcome, AcquireError> {
        let Line { client, settings, .. } = &*self.leases;
        let paths = (0..wanted).map(|_| self.leases.node_path(Role::Lease));
        let paths = paths.collect::<Result<Vec<_>, _>>()?;
        let (node, rest) = place.lend();
        let cork = client.cork();
        let is_new = look.taken.is_none();
        let parents = if is_new { self.leases.create_parents(&cork) } else { Vec::new() };
        let creates = paths.iter().map(|path| {
            let create = cork.create(path, settings.description.as_bytes());
            let create = create.mode(CreateMode::EphemeralSequential).acl(&settings.acl);
            create.protected_by_its_name()
        });
        let mut create = cork.create_all_protected(creates).replacing(node);
        if let (Some(path), Some(version)) = (&self.count, look.version) {
            if !planted!(CountNotChecked) {
                create = create.check_version(path, version);
            }
        }
        let mut nodes = create.submit();
        drop(cork);

        if let Some(refusal) = self.leases.parents_refused(parents).await {
            return Err(refusal.into());
        }
        let failed = match (&mut nodes).await {
            Ok(Ok(nodes)) => {
                let waited = rest.traded();
                let guards = nodes
                    .into_iter()
                    .map(|node| Guard::of_node(&self.leases, node, (None, false), waited));
                return Ok(Outcome::Granted(guards.collect::<Result<_, _>>()?));
            }
            Ok(Err(failed)) => failed,
            Err(WriteError::NotApplied(Cause::Throttled)) => {
                sleep(THROTTLE_PAUSE).await;
                return changed(nodes, rest);
            }
            Err(error) => return Err(error.into()),
        };
        match failed.rejection {
            // The path of the leases is gone.
            Rejection::NoNode if failed.index < wanted => changed(nodes, rest),
            // The number of permits has changed, or is not told any more.
            Rejection::BadVersion => changed(nodes, rest),
            Rejection::NoNode if look.version.is_some() && failed.index == wanted => {
                changed(nodes, rest)
            }
            Rejection::NoNode => Err(AcquireError::NodeDeleted),
            rejection => Err(AcquireError::Rejected(rejection)),
        }
    }
}

/// Nothing has come of a trade, and the place is to be had back.
fn changed(mut nodes: PendingNodes, rest: Lent) -> Result<Outcome, AcquireError> {
    let node = nodes.take_back().ok_or(AcquireError::NodeDeleted)?;
    Ok(Outcome::Changed(Box::new(rest.back(node))))
}

/// Waits for a watch; for ever, if there is none.
async fn fired(watch: Option<Watch>) -> Result<(), AcquireError> {
    match watch {
        Some(watch) => watch.await.map(drop).map_err(AcquireError::SessionEnded),
        None => std::future::pending().await,
    }
}

/// A count as four bytes, the most significant first.
fn encoded(count: i32) -> Vec<u8> {
    [24, 16, 8, 0].map(|shift| u8::try_from(count >> shift & 0xFF).unwrap_or_default()).to_vec()
}

fn decoded(bytes: &[u8]) -> Option<i32> {
    let [first, rest @ ..] = bytes else { return None };
    let sign = if *first < 0x80 { 0 } else { -1 };
    let count =
        rest.iter().fold(sign << 8 | i32::from(*first), |n, byte| n << 8 | i32::from(*byte));
    (bytes.len() == 4).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_four_bytes_the_most_significant_first() {
        for (count, bytes) in
            [(3, [0, 0, 0, 3]), (-2, [255, 255, 255, 254]), (i32::MAX, [127, 255, 255, 255])]
        {
            assert_eq!((encoded(count), decoded(&bytes)), (bytes.to_vec(), Some(count)));
        }
        assert_eq!(decoded(b""), None);
        assert_eq!(decoded(b"127.0.0.1"), None);
    }
}
