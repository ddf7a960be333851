//! Locks that many programs carry, copied from articles and textbooks: what each of them asks servers for, what it
//! makes of the names that it sees, and nothing else.

use std::cmp::Ordering;

use zk_client::{
    Client, CreateMode, EventType, Rejection, WriteError,
    path::{join, name},
};

/// Whether the lock is to be shared with other readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// A class, by the name it has where it is described, or by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// `SimpleLock`: the creator of the one node has the lock. Others await its deletion, which one `exists` reports.
    SimpleLock,
    /// The same below a path whose children are watched.
    ExclusiveLock,
    /// `DistributedLock`: `x-<session>-<n>`, in the order of `LockNode`, each behind the one in front.
    /// `DistributedReentrantLock` is that behind a mutex of the process.
    DistributedLock,
    /// `ZooKeeperLock`: `<name>_lock_<n>`, of which those count that split at `_lock_` into the name. Whose predecessor
    /// is gone has the lock.
    ZooKeeperLock,
    /// `<guid>-lock-<n>`: the lowest number has the lock, and all waiters watch all nodes.
    GuidHerd,
    /// The same, but each watches the one in front.
    GuidNearest,
    /// Curator's `InterProcessMutex`.
    InterProcessMutex,
    /// Curator's `InterProcessReadWriteLock`: readers watch the first writer.
    InterProcessReadWriteLock,
    /// kazoo's `ReadLock` and `WriteLock`, of which the latter's nodes are those of its `Lock`.
    KazooLocks,
    /// go-zookeeper's `Lock`.
    GoLock,
    /// `<host>-R-<n>` and `<host>-W-<n>`, all watch all.
    HostHerd,
    /// The same, but readers watch the nearest writer, and writers the nearest node.
    HostNearest,
    /// `read_<n>` and `write_<n>`, in the same way.
    BareReadWrite,
    /// `lock-<n>`, in the order of the names as texts.
    BareText,
}

/// A node by which a lock is held.
pub(crate) struct Node {
    zk: Client,
    path: String,
}

impl Node {
    /// Whatever its version, as all of them do.
    pub(crate) async fn release(self) {
        self.zk.delete(&self.path).await.unwrap();
    }
}

/// What a listing means for a waiter.
enum Decision<'a> {
    Held,
    /// Wait for the end of this node, or for any change of the path's children.
    BehindNode(&'a str),
    BehindAnybody,
}

impl Class {
    /// Whether there is an order in which the lock is had.
    pub(crate) const fn has_queue(self) -> bool {
        !matches!(self, Self::SimpleLock | Self::ExclusiveLock)
    }

    /// Whether it can tell readers from writers.
    pub(crate) const fn has_readers(self) -> bool {
        matches!(
            self,
            Self::HostHerd | Self::HostNearest | Self::InterProcessReadWriteLock | Self::KazooLocks
        )
    }

    /// Waits for the lock; for ever, if the class would.
    pub(crate) async fn acquire(self, zk: &Client, path: &str, mode: Mode) -> Node {
        match self {
            Self::SimpleLock => simple(zk, path).await,
            Self::ExclusiveLock => exclusive(zk, path).await,
            _ => self.queue_up(zk, path, mode).await,
        }
    }

    /// What its nodes are called, up to their number.
    fn node_name(self, zk: &Client, mode: Mode) -> String {
        let session = zk.session().id().0;
        let hex = || zk.unique_id().unwrap().replace('-', "");
        match self {
            Self::SimpleLock | Self::ExclusiveLock => String::new(),
            Self::DistributedLock => format!("x-{session}-"),
            Self::ZooKeeperLock => format!("{NAME}_lock_"),
            Self::GuidHerd | Self::GuidNearest => format!("{}-lock-", zk.unique_id().unwrap()),
            Self::InterProcessMutex => format!("_c_{}-lock-", zk.unique_id().unwrap()),
            Self::GoLock => format!("_c_{}-lock-", hex()),
            Self::BareText => "lock-".to_owned(),
            Self::BareReadWrite if mode == Mode::Read => "read_".to_owned(),
            Self::BareReadWrite => "write_".to_owned(),
            Self::KazooLocks if mode == Mode::Read => hex() + "__rlock__",
            Self::KazooLocks => hex() + "__lock__",
            Self::InterProcessReadWriteLock => {
                let kind = if mode == Mode::Read { "__READ__" } else { "__WRIT__" };
                format!("_c_{}-{kind}", zk.unique_id().unwrap())
            }
            Self::HostHerd | Self::HostNearest if mode == Mode::Read => "web1-R-".to_owned(),
            Self::HostHerd | Self::HostNearest => "web1-W-".to_owned(),
        }
    }

    async fn queue_up(self, zk: &Client, path: &str, mode: Mode) -> Node {
        let prefix = join(path, &self.node_name(zk, mode));
        loop {
            let create = zk.create(&prefix, b"\x12\x34").mode(CreateMode::EphemeralSequential);
            let created = create.await.unwrap().path;
            if self.wait(zk, path, name(&created), mode).await.is_some() {
                return Node { zk: zk.clone(), path: created };
            }
        }
    }

    /// `None` if the node is gone.
    async fn wait(self, zk: &Client, path: &str, own: &str, mode: Mode) -> Option<()> {
        loop {
            let ((names, _), changed) = zk.children(path).watch().await.unwrap();
            if !names.iter().any(|name| name == own) {
                return None;
            }
            match self.decide(&names, own, mode) {
                Decision::Held => return Some(()),
                Decision::BehindAnybody => {
                    changed.await.unwrap();
                }
                Decision::BehindNode(ahead) => {
                    let (stat, gone) = zk.exists(&join(path, ahead)).watch().await.unwrap();
                    if stat.is_some() {
                        let event = gone.await.unwrap();
                        match self {
                            // It counts down when a node is deleted, and goes on without having looked.
                            Self::ZooKeeperLock if event.kind == EventType::NODE_DELETED => {
                                return Some(());
                            }
                            Self::ZooKeeperLock => std::future::pending().await,
                            _ => {}
                        }
                    } else if self == Self::ZooKeeperLock {
                        return Some(());
                    }
                }
            }
        }
    }

    fn decide<'a>(self, names: &'a [String], own: &str, mode: Mode) -> Decision<'a> {
        let nearest = |mut ahead: Vec<&'a str>, order: fn(&str, &str) -> Ordering| {
            ahead.sort_by(|a, b| order(a, b));
            ahead.last().map_or(Decision::Held, |name| Decision::BehindNode(name))
        };
        let in_front = |counts: &dyn Fn(&str) -> bool, order: fn(&str, &str) -> Ordering| {
            let names = names.iter().map(String::as_str);
            names.filter(|name| counts(name) && order(name, own).is_lt()).collect::<Vec<_>>()
        };
        match self {
            Self::SimpleLock | Self::ExclusiveLock => Decision::Held,
            Self::DistributedLock => nearest(in_front(&|_| true, by_lock_node), by_lock_node),
            Self::ZooKeeperLock => nearest(
                in_front(&|name| name.split("_lock_").next() == Some(NAME), str::cmp),
                str::cmp,
            ),
            Self::GuidNearest => nearest(in_front(&is_numbered, by_number), by_number),
            Self::GuidHerd if in_front(&is_numbered, by_number).is_empty() => Decision::Held,
            Self::GuidHerd => Decision::BehindAnybody,
            Self::InterProcessMutex => nearest(in_front(&|_| true, by_curator), by_curator),
            Self::GoLock => nearest(in_front(&is_numbered, by_number), by_number),
            Self::InterProcessReadWriteLock if mode == Mode::Write => {
                nearest(in_front(&|_| true, by_curator_kind), by_curator_kind)
            }
            Self::InterProcessReadWriteLock => {
                let mut ahead = in_front(&|name| name.contains("__WRIT__"), by_curator_kind);
                ahead.sort_by(|a, b| by_curator_kind(a, b));
                ahead.first().map_or(Decision::Held, |name| Decision::BehindNode(name))
            }
            Self::KazooLocks => {
                let is_waited_for = |name: &str| {
                    by_kazoo("__lock__", name).is_some()
                        || mode == Mode::Write && by_kazoo("__rlock__", name).is_some()
                };
                nearest(in_front(&is_waited_for, by_end), by_end)
            }
            Self::BareText => nearest(in_front(&|_| true, str::cmp), str::cmp),
            Self::BareReadWrite => {
                let is_waited_for = |name: &str| mode == Mode::Write || name.starts_with("write");
                nearest(in_front(&is_waited_for, by_end), by_end)
            }
            Self::HostNearest | Self::HostHerd => {
                let is_waited_for =
                    |name: &str| mode == Mode::Write || name.split('-').nth(1) == Some("W");
                let ahead = in_front(&is_waited_for, by_number);
                match self {
                    Self::HostHerd if !ahead.is_empty() => Decision::BehindAnybody,
                    _ => nearest(ahead, by_number),
                }
            }
        }
    }
}

/// The name of the lock, for the class that shares its path with others.
pub(crate) const NAME: &str = "report";

/// What follows the last dash, if that is a number.
fn number(name: &str) -> Option<i32> {
    name.rsplit_once('-')?.1.parse().ok()
}

fn is_numbered(name: &str) -> bool {
    number(name).is_some()
}

fn by_number(a: &str, b: &str) -> Ordering {
    number(a).cmp(&number(b))
}

/// Nodes without a number come first.
fn by_lock_node(a: &str, b: &str) -> Ordering {
    let number = |name| number(name).unwrap_or(-1);
    match (number(a), number(b)) {
        (-1, -1) => a.cmp(b),
        (-1, _) => Ordering::Less,
        (_, -1) => Ordering::Greater,
        (a, b) => a.wrapping_sub(b).cmp(&0),
    }
}

/// By what follows `lock-`, or by the whole name, as text.
fn by_curator(a: &str, b: &str) -> Ordering {
    let key = |name: &str| name.rsplit_once("lock-").map_or(name, |(_, number)| number).to_owned();
    key(a).cmp(&key(b))
}

/// The same behind the kinds of its read/write lock.
fn by_curator_kind(a: &str, b: &str) -> Ordering {
    let after = |name: &str, kind| name.rsplit_once(kind).map(|(_, number)| number.to_owned());
    let key = |name: &str| {
        after(name, "__READ__")
            .or_else(|| after(name, "__WRIT__"))
            .unwrap_or_else(|| name.to_owned())
    };
    key(a).cmp(&key(b))
}

/// The number behind a kind of kazoo's.
fn by_kazoo<'a>(kind: &str, name: &'a str) -> Option<&'a str> {
    name.rsplit_once(kind).map(|(_, number)| number).filter(|number| number.len() == 10)
}

/// By the last ten characters, as text.
fn by_end(a: &str, b: &str) -> Ordering {
    let end = |name: &str| name.get(name.len().saturating_sub(10)..).map(str::to_owned);
    end(a).cmp(&end(b))
}

async fn simple(zk: &Client, path: &str) -> Node {
    loop {
        match zk.create(path, b"client 1").mode(CreateMode::Ephemeral).await {
            Ok(_) => return Node { zk: zk.clone(), path: path.to_owned() },
            Err(WriteError::Rejected(Rejection::NodeExists)) => {}
            Err(error) => panic!("{error}"),
        }
        let (stat, watch) = zk.exists(path).watch().await.unwrap();
        if stat.is_some() && watch.await.unwrap().kind != EventType::NODE_DELETED {
            // The semaphore is only released for a deletion, and the watch has fired.
            std::future::pending::<()>().await;
        }
    }
}

async fn exclusive(zk: &Client, path: &str) -> Node {
    let node = join(path, "lock");
    loop {
        match zk.create(&node, b"").mode(CreateMode::Ephemeral).await {
            Ok(_) => return Node { zk: zk.clone(), path: node },
            Err(WriteError::Rejected(Rejection::NodeExists)) => {}
            Err(error) => panic!("{error}"),
        }
        let ((names, _), changed) = zk.children(path).watch().await.unwrap();
        if names.iter().any(|name| name == "lock") {
            changed.await.unwrap();
        }
    }
}
