//! Where locks are below a path, and who has them. What that costs is bounded whatever is there.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use zk_client::{
    Client, ReadError, Rejection, SessionId, Stat,
    path::{join, name, parent},
};
use zk_locks::{Contender, Kind, Queue, SimpleLock};

use super::board::{Departures, Entry, Reading, SHOWN_MAX, Searched, Shape};
use crate::{
    found::{self, BESIDE, Found, holding, is_numbered},
    tree,
};

/// Nodes that one search lists. A tree that has more is searched in part, which is said.
const NODES_MAX: usize = 2_000;

/// Between two searches. In between only the locks that were found are asked about.
const SEARCH_EVERY: Duration = Duration::from_secs(15);

/// Locks that are followed, each at the cost of one small read per round while it does not change.
pub(crate) const LOCKS_MAX: usize = 200;

/// Requests on their way at once: far fewer than a client lets wait.
const BATCH: usize = 250;

/// Locks that are read at once, with as many contenders each as are shown.
const READ_AT_ONCE: usize = 8;

/// The locks that have been found, and what is known of them.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    locks: BTreeMap<String, Followed>,
    searched: Searched,
    searched_at: Option<Instant>,
}

#[derive(Debug)]
struct Followed {
    shape: Shape,
    /// What its queues were when it was read.
    seen: Option<Vec<Option<Mark>>>,
    reading: Reading,
}

/// What differs when children have come or gone.
type Mark = (i64, i32, i64);

impl Follower {
    /// Has the next round search again.
    pub(crate) fn search_again(&mut self) {
        self.searched_at = None;
    }

    /// Looks at all locks: reads those that have changed.
    pub(crate) async fn round(
        &mut self,
        client: &Client,
        top: &str,
        now: Instant,
    ) -> Result<(Vec<Reading>, Searched), ReadError> {
        let is_due = |at: Instant| now.saturating_duration_since(at) >= SEARCH_EVERY;
        if self.searched_at.is_none_or(is_due) {
            self.search(client, top).await?;
            self.searched_at = Some(now);
        }
        let stats = self.stats(client).await?;
        let mut changed = Vec::new();
        for (path, stats) in stats {
            let Some(lock) = self.locks.get_mut(&path) else { continue };
            if stats.iter().all(Option::is_none) {
                self.locks.remove(&path);
                continue;
            }
            lock.reading.departures = departures(lock.shape, &stats);
            let marks: Vec<_> = stats.iter().map(|stat| stat.as_ref().map(mark)).collect();
            if lock.seen.as_ref() != Some(&marks) {
                lock.seen = Some(marks);
                changed.push((path, lock.shape));
            }
        }
        self.read(client, changed).await?;
        let is_lock = |reading: &&Reading| is_lock(reading);
        let readings = self.locks.values().map(|lock| &lock.reading).filter(is_lock);
        Ok((readings.cloned().collect(), self.searched))
    }

    async fn search(&mut self, client: &Client, top: &str) -> Result<(), ReadError> {
        let (found, mut searched) = found(client, top).await?;
        // What was taken for a lock may have turned out to be a part of one.
        let all: BTreeSet<_> =
            found.iter().flat_map(|(path, shape)| queues(path, *shape)).collect();
        self.locks.retain(|path, lock| {
            found.get(path).map_or_else(|| !all.contains(path), |shape| *shape == lock.shape)
        });
        for (path, shape) in found {
            if let Some(lock) = self.locks.get_mut(&path) {
                // What a contender says of itself may change without its coming or going.
                lock.seen = None;
                continue;
            }
            if self.locks.len() >= LOCKS_MAX {
                searched.left_out += 1;
                continue;
            }
            let reading = Reading {
                path: path.clone(),
                shape,
                entries: Vec::new(),
                held: 0,
                waiting: 0,
                departures: None,
            };
            self.locks.insert(path, Followed { shape, seen: None, reading });
        }
        self.searched = searched;
        Ok(())
    }

    /// What all queues are now.
    async fn stats(&self, client: &Client) -> Result<Vec<(String, Vec<Option<Stat>>)>, ReadError> {
        let mut all = Vec::new();
        let asked: Vec<_> =
            self.locks.iter().map(|(path, lock)| (path, queues(path, lock.shape))).collect();
        for batch in asked.chunks(BATCH) {
            let cork = client.cork();
            let submitted: Vec<_> = batch
                .iter()
                .map(|(path, queues)| {
                    let stats: Vec<_> =
                        queues.iter().map(|queue| cork.exists(queue).submit()).collect();
                    (*path, stats)
                })
                .collect();
            drop(cork);
            for (path, answers) in submitted {
                let mut stats = Vec::new();
                for answer in answers {
                    stats.push(or_none(answer.await)?.flatten());
                }
                all.push((path.clone(), stats));
            }
        }
        Ok(all)
    }

    async fn read(
        &mut self,
        client: &Client,
        changed: Vec<(String, Shape)>,
    ) -> Result<(), ReadError> {
        for some in changed.chunks(READ_AT_ONCE) {
            let mut reading = JoinSet::new();
            for (path, shape) in some.iter().cloned() {
                let client = client.clone();
                reading.spawn(async move {
                    let read = read(&client, &path, shape).await;
                    (path, read)
                });
            }
            while let Some(read) = reading.join_next().await {
                let Ok((path, read)) = read else { continue };
                let Some(lock) = self.locks.get_mut(&path) else { continue };
                match read {
                    Ok((entries, held, waiting)) => {
                        lock.reading = Reading { entries, held, waiting, ..lock.reading.clone() };
                    }
                    // Of others there may be more to see.
                    Err(ReadError::Rejected(_)) => lock.seen = None,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// The answer, unless the server refuses it: there may be nodes that we may not see.
fn or_none<T>(answer: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ReadError::Rejected(_)) => Ok(None),
        // The path of a node whose name is not UTF-8 cannot be asked for.
        Err(ReadError::Unavailable(zk_client::Cause::InvalidPath(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The paths whose children are a lock's holders and waiters.
fn queues(path: &str, shape: Shape) -> Vec<String> {
    match shape {
        Shape::Queue | Shape::Single => vec![path.to_owned()],
        Shape::Semaphore => vec![join(path, "leases"), join(path, "locks")],
        Shape::Kazoo => vec![path.to_owned(), format!("{path}{BESIDE}")],
        Shape::Durable => vec![join(path, "grants"), join(path, "locks")],
    }
}

fn mark(stat: &Stat) -> Mark {
    (stat.czxid.0, stat.cversion, stat.pzxid.0)
}

/// A node's count of changes of its children is of creates and deletes, and what was not deleted is there.
fn departures(shape: Shape, stats: &[Option<Stat>]) -> Option<Departures> {
    let stat = stats.first()?.as_ref().filter(|_| shape != Shape::Single)?;
    let count = stat.cversion.wrapping_sub(stat.num_children) as u32 / 2;
    Some(Departures { made_by: stat.czxid.0, count })
}

/// Whether this is for the board: a queue of persistent nodes that no known lock has is a queue of something else.
fn is_lock(reading: &Reading) -> bool {
    reading.entries.first().is_none_or(|Entry { contender, .. }| {
        contender.kind != Kind::Unknown || contender.session != SessionId(0)
    })
}

/// Holders and waiters, as far as they are shown, and how many of each there are.
async fn read(
    client: &Client,
    path: &str,
    shape: Shape,
) -> Result<(Vec<Entry>, usize, usize), ReadError> {
    match shape {
        Shape::Single => {
            let holder = SimpleLock::new(client, path).holder().await?;
            let above = parent(path).unwrap_or("/");
            let entries: Vec<_> = holder.into_iter().map(|it| entry(above, it, true)).collect();
            let held = entries.len();
            Ok((entries, held, 0))
        }
        Shape::Queue => {
            let (there, count) = Queue::new(client, path).first(SHOWN_MAX).await?;
            let held = holding(there.iter().map(|contender| contender.kind));
            let entries = there.into_iter().enumerate();
            let entries = entries.map(|(index, contender)| entry(path, contender, index < held));
            Ok((entries.collect(), held, count.saturating_sub(held)))
        }
        Shape::Semaphore => {
            let leases = join(path, "leases");
            let (held, holding) = Queue::new(client, &leases).first(SHOWN_MAX).await?;
            let held = held.into_iter().map(|it| entry(&leases, it, true)).collect();
            with_waiters(client, (held, holding), &join(path, "locks")).await
        }
        Shape::Kazoo => {
            let (permits, count) = found::permits(client, path, SHOWN_MAX).await?;
            let held = permits.into_iter().map(of_found).collect();
            with_waiters(client, (held, count), &format!("{path}{BESIDE}")).await
        }
        Shape::Durable => {
            let held = found::durable(client, path, SHOWN_MAX).await?;
            let held: Vec<_> = held.into_iter().map(of_found).collect();
            let count = held.len();
            with_waiters(client, (held, count), &join(path, "locks")).await
        }
    }
}

fn entry(queue: &str, contender: Contender, holds: bool) -> Entry {
    Entry { queue: queue.to_owned(), contender, holds }
}

fn of_found(found: Found) -> Entry {
    let Found { queue, mut contender, holds, description, .. } = found;
    contender.data = description.into_bytes().into();
    Entry { queue, contender, holds }
}

/// Holders, and behind them who waits in a queue of its own.
async fn with_waiters(
    client: &Client,
    (mut entries, held): (Vec<Entry>, usize),
    queue: &str,
) -> Result<(Vec<Entry>, usize, usize), ReadError> {
    let (there, waiting) = Queue::new(client, queue).first(SHOWN_MAX).await?;
    entries.extend(there.into_iter().map(|it| entry(queue, it, false)));
    Ok((entries, held, waiting))
}

/// All that look like locks below a path, level by level.
async fn found(
    client: &Client,
    top: &str,
) -> Result<(BTreeMap<String, Shape>, Searched), ReadError> {
    let (mut found, mut single) = (BTreeMap::new(), Vec::new());
    let (mut permits, mut beside) = (BTreeSet::new(), BTreeSet::new());
    let (mut nodes, mut hidden, mut is_complete) = (0, 0, true);
    let mut level = vec![top.to_owned()];
    while !level.is_empty() {
        let mut next = Vec::new();
        for batch in level.chunks(BATCH) {
            // What is below those in front of it counts as well, once the level is through.
            let room = NODES_MAX.saturating_sub(nodes);
            is_complete &= batch.len() <= room;
            let batch = batch.get(..room).unwrap_or(batch);
            nodes += batch.len();
            let cork = client.cork();
            let asked: Vec<_> =
                batch.iter().map(|path| (path, cork.children(path).packed().submit())).collect();
            drop(cork);
            for (path, answer) in asked {
                let Some((names, stat)) = or_none(answer.await)? else {
                    hidden += 1;
                    continue;
                };
                let has = |is_so: fn(&str) -> bool| names.iter().any(|name| is_so(&name));
                found.extend(shape(path, has));
                if has(found::is_permit) {
                    permits.insert(path.clone());
                }
                beside.extend(path.strip_suffix(BESIDE).map(str::to_owned));
                if names.is_empty() && stat.ephemeral_owner != SessionId(0) {
                    single.push(path.clone());
                }
                // No more than can be looked at.
                let room = NODES_MAX.saturating_sub(nodes + next.len());
                let below = names.iter().filter(|name| !is_numbered(name));
                let below = below
                    .map(|name| join(path, &name))
                    .filter(|path| !tree::is_reserved(client, path));
                let before = next.len();
                next.extend(below.take(room + 1));
                if next.len() - before > room {
                    next.pop();
                    is_complete = false;
                }
            }
        }
        level = next;
    }
    found.extend(permits.intersection(&beside).map(|path| (path.clone(), Shape::Kazoo)));
    let mut parts = BTreeSet::new();
    for (path, shape) in &found {
        parts.extend(queues(path, *shape).into_iter().filter(|part| part != path));
    }
    found.retain(|path, _| !parts.contains(path));
    let is_permit = |path: &str| {
        parent(path).and_then(|above| found.get(above)).is_some_and(|it| *it == Shape::Kazoo)
    };
    single.retain(|path| !is_permit(path));
    let unread = single.len().saturating_sub(LOCKS_MAX);
    single.truncate(LOCKS_MAX);
    for path in held_singly(client, single).await? {
        found.insert(path, Shape::Single);
    }
    Ok((found, Searched { nodes, hidden, is_complete, left_out: 0, unread }))
}

/// Of these nodes those that are locks: their data names a process, as that of simple locks does. Members of groups and
/// other registrations are of the same kind otherwise.
async fn held_singly(client: &Client, paths: Vec<String>) -> Result<Vec<String>, ReadError> {
    let cork = client.cork();
    let asked: Vec<_> = paths
        .into_iter()
        .map(|path| {
            let read = cork.get(&path).submit();
            (path, read)
        })
        .collect();
    drop(cork);
    let mut held = Vec::new();
    for (path, answer) in asked {
        if let Some((data, _)) = or_none(answer.await)? {
            if host_and_process(&String::from_utf8_lossy(&data)).is_some() {
                held.push(path);
            }
        }
    }
    Ok(held)
}

/// The lock that a node is, or is a part of, by the names of its children.
fn shape(path: &str, has: impl Fn(fn(&str) -> bool) -> bool) -> Option<(String, Shape)> {
    let above = parent(path).filter(|above| *above != path).map(str::to_owned);
    match (name(path), above) {
        ("grants", Some(above)) if has(found::is_grant) => Some((above, Shape::Durable)),
        _ if !has(is_numbered) => None,
        ("leases", Some(above)) => Some((above, Shape::Semaphore)),
        _ => Some(match path.strip_suffix(BESIDE) {
            Some(path) => (path.to_owned(), Shape::Kazoo),
            None => (path.to_owned(), Shape::Queue),
        }),
    }
}

/// The host and the process that a description names, as ours do unless told otherwise.
pub(crate) fn host_and_process(description: &str) -> Option<(&str, u32)> {
    let (host, pid) = description.trim().rsplit_once(" pid ")?;
    Some((host.rsplit_once(' ').map_or(host, |(_, host)| host), pid.parse().ok()?))
}

/// Whether this says that there is no such node.
pub(crate) fn is_gone(error: &ReadError) -> bool {
    matches!(error, ReadError::Rejected(Rejection::NoNode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_read_from_descriptions() {
        assert_eq!(host_and_process("web-7 pid 12"), Some(("web-7", 12)));
        let with_id = "3b5f6a0e-0000-4000-8000-0123456789ab web-7 pid 12\n";
        assert_eq!(host_and_process(with_id), Some(("web-7", 12)));
        for text in ["", "web-7", "10.0.0.7", "web pid x", "pid 7"] {
            assert_eq!(host_and_process(text), None, "{text}");
        }
    }

    #[test]
    fn departures_are_deletes_of_children() {
        let stat =
            |cversion, num_children| Some(Stat { cversion, num_children, ..Stat::default() });
        let count = |stat| departures(Shape::Queue, &[stat]).map(|it| it.count);
        // Five creates and three deletes.
        assert_eq!(count(stat(8, 2)), Some(3));
        assert_eq!(count(stat(2, 2)), Some(0));
        assert_eq!(count(None), None);
        assert_eq!(departures(Shape::Single, &[stat(8, 2)]), None);
    }
}
