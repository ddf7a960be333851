//! The board of locks and elections: what has been read of them, and which one is looked at.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use zk_locks::{Contender, Kind};

use super::cursor::Motion;
use crate::found;

/// Contenders of one queue that are read and shown; all are counted.
pub(crate) const SHOWN_MAX: usize = 50;

/// How far back hand-overs are counted: one rare release should not read as a rate.
const WINDOW: Duration = Duration::from_secs(10);

/// What a lock is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Contenders in a queue: locks, read/write locks, elections.
    Queue,
    /// Curator's semaphore: a queue of permits, and one of who waits for them.
    Semaphore,
    /// kazoo's semaphore: permits, and beside its path the queue of who waits for them.
    Kazoo,
    /// A durable lock: a grant, and a queue of who waits for it.
    Durable,
    /// A node that is the lock.
    Single,
}

/// What has been read of a lock.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) path: String,
    pub(crate) shape: Shape,
    /// Of holders and of waiters the first [`SHOWN_MAX`], holders first.
    pub(crate) entries: Vec<Entry>,
    pub(crate) held: usize,
    pub(crate) waiting: usize,
    pub(crate) departures: Option<Departures>,
}

/// One of a lock's holders or waiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The path of the queue that it stands in.
    pub(crate) queue: String,
    pub(crate) contender: Contender,
    pub(crate) holds: bool,
}

/// How many nodes have left a queue since its path was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departures {
    /// Which path of that name: the transaction that made it.
    pub(crate) made_by: i64,
    /// Wraps around.
    pub(crate) count: u32,
}

/// How far the search for locks has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Searched {
    pub(crate) nodes: usize,
    /// Nodes of these that are refused: without permission, or gone meanwhile.
    pub(crate) hidden: usize,
    /// Whether that is all there are.
    pub(crate) is_complete: bool,
    /// Locks that were found and are not followed, because there are too many.
    pub(crate) left_out: usize,
    /// Nodes without a number that may be locks, and were not read, because there are too many.
    pub(crate) unread: usize,
}

/// A lock on the board.
#[derive(Debug)]
pub(crate) struct Lock {
    pub(crate) reading: Reading,
    /// When the holder was first seen to hold it; `None` if it did before this began to look.
    pub(crate) granted_at: Option<Instant>,
    departures: VecDeque<(Instant, Departures)>,
}

/// In which order locks are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Path,
    /// The longest wait first.
    Wait,
}

/// Which list the cursor is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Focus {
    #[default]
    Locks,
    /// Holders and waiters of the selected lock.
    Queue,
}

/// All locks that have been found.
#[derive(Debug, Default)]
pub(crate) struct Board {
    locks: BTreeMap<String, Lock>,
    pub(crate) order: Order,
    pub(crate) focus: Focus,
    pub(crate) searched: Searched,
    /// When it was last read.
    pub(crate) read_at: Option<Instant>,
    /// Why it could not be read since.
    pub(crate) error: Option<String>,
    /// Where the cursor is, by names, since lists change under it.
    selected: Option<String>,
    /// The node. Several may have one token.
    chosen: Option<String>,
}

impl Lock {
    /// Departures per second: grants that have ended, and contenders that gave up. `None` until it has been seen for a
    /// while.
    pub(crate) fn handovers(&self) -> Option<f64> {
        let ((first, then), (last, now)) = (self.departures.front()?, self.departures.back()?);
        let between = last.saturating_duration_since(*first).as_secs_f64();
        let count = now.count.wrapping_sub(then.count);
        // Half the numbers away is a counter that has wrapped around, which does not happen in one step.
        (between > 0.0 && count < 1 << 30).then(|| f64::from(count) / between)
    }

    /// The holder, or the first of several.
    pub(crate) fn holder(&self) -> Option<&Entry> {
        self.reading.entries.first().filter(|entry| entry.holds)
    }

    /// Who has waited for longest.
    pub(crate) fn first_waiter(&self) -> Option<&Entry> {
        self.reading.entries.iter().find(|entry| !entry.holds)
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self.reading.shape {
            Shape::Semaphore | Shape::Kazoo => "semaphore",
            Shape::Durable => found::DURABLE,
            Shape::Single => "node",
            Shape::Queue => match self.reading.entries.first().map(|entry| entry.contender.kind) {
                Some(Kind::Lead) => "election",
                Some(Kind::Lease) => "permits",
                Some(kind) => found::name(kind),
                None => "-",
            },
        }
    }

    fn update(&mut self, reading: Reading, now: Instant) {
        if let Some(departures) = reading.departures {
            let is_same =
                |(_, before): &(Instant, Departures)| before.made_by == departures.made_by;
            self.departures.retain(is_same);
            let is_old =
                |(at, _): &(Instant, Departures)| now.saturating_duration_since(*at) > WINDOW;
            // Two at least, however rarely they come.
            while self.departures.len() > 1 && self.departures.front().is_some_and(is_old) {
                self.departures.pop_front();
            }
            self.departures.push_back((now, departures));
        }
        let holder = |reading: &Reading| {
            let first = reading.entries.first().filter(|entry| entry.holds);
            first.map(|entry| entry.contender.token)
        };
        if holder(&self.reading) != holder(&reading) {
            self.granted_at = Some(now);
        }
        self.reading = reading;
    }
}

impl Board {
    /// All locks have been read: those that are not among them are gone.
    pub(crate) fn read(&mut self, readings: Vec<Reading>, searched: Searched, now: Instant) {
        let mut before = std::mem::take(&mut self.locks);
        for reading in readings {
            let path = reading.path.clone();
            let mut lock = before.remove(&path).unwrap_or_else(|| Lock {
                reading: reading.clone(),
                granted_at: None,
                departures: VecDeque::new(),
            });
            lock.update(reading, now);
            self.locks.insert(path, lock);
        }
        (self.searched, self.read_at, self.error) = (searched, Some(now), None);
        if self.selected().is_none() {
            self.focus = Focus::Locks;
        }
    }

    /// The locks in the order of the list.
    pub(crate) fn locks(&self) -> Vec<&Lock> {
        let mut locks: Vec<&Lock> = self.locks.values().collect();
        if self.order == Order::Wait {
            let since =
                |lock: &&Lock| lock.first_waiter().map_or(i64::MAX, |it| it.contender.since);
            locks.sort_by_key(since);
        }
        locks
    }

    /// Where the cursor is in the list of locks.
    pub(crate) fn place(&self) -> usize {
        let is_selected = |lock: &&Lock| Some(&lock.reading.path) == self.selected.as_ref();
        self.locks().iter().position(is_selected).unwrap_or_default()
    }

    pub(crate) fn selected(&self) -> Option<&Lock> {
        self.locks().get(self.place()).copied()
    }

    /// Where the cursor is in the selected lock's queue.
    pub(crate) fn queue_place(&self) -> usize {
        let entries = self.selected().map_or(&[][..], |lock| &lock.reading.entries);
        let is_chosen = |entry: &Entry| Some(&entry.contender.name) == self.chosen.as_ref();
        entries.iter().position(is_chosen).unwrap_or_default()
    }

    /// Whom keys like revoke are about: the holder of the selected lock, or whoever is chosen in its queue.
    pub(crate) fn target(&self) -> Option<(&Lock, &Entry)> {
        let lock = self.selected()?;
        let entry = match self.focus {
            Focus::Locks => lock.holder()?,
            Focus::Queue => lock.reading.entries.get(self.queue_place())?,
        };
        Some((lock, entry))
    }

    pub(crate) fn step(&mut self, motion: Motion) {
        match self.focus {
            Focus::Locks => {
                let place = motion.of(self.place(), self.locks.len());
                let path = self.locks().get(place).map(|lock| lock.reading.path.clone());
                (self.selected, self.chosen) = (path, None);
            }
            Focus::Queue => {
                let Some(lock) = self.selected() else { return };
                let place = motion.of(self.queue_place(), lock.reading.entries.len());
                let entry = lock.reading.entries.get(place);
                self.chosen = entry.map(|entry| entry.contender.name.clone());
            }
        }
    }

    /// Into the queue of the selected lock.
    pub(crate) fn enter(&mut self) {
        let Some(lock) = self.selected() else { return };
        self.selected = Some(lock.reading.path.clone());
        self.focus = Focus::Queue;
    }

    pub(crate) fn leave(&mut self) {
        (self.focus, self.chosen) = (Focus::Locks, None);
    }

    pub(crate) fn reorder(&mut self) {
        // The cursor stays with its lock.
        self.selected = self.selected().map(|lock| lock.reading.path.clone());
        self.order = match self.order {
            Order::Path => Order::Wait,
            Order::Wait => Order::Path,
        };
    }
}
