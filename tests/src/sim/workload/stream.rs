//! A stream of events, held against all that is read: what changes without an event was not to be missed.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use zk_client::{Stat, WatchItem, WatchStream, Zxid};
use zk_testkit::sim::State;

use super::{ClientContext, Worker};

/// How a stream is read.
enum Reader {
    /// Whenever something is found.
    Looking(WatchStream),
    /// By a task that waits, and hands on what has come.
    Waiting { path: String, items: mpsc::UnboundedReceiver<WatchItem> },
}

/// A stream, and what its client knows.
pub(super) struct Streamed {
    reader: Reader,
    recursive: bool,
    /// Each node as it was read last, or missing, since the stream has been there.
    known: BTreeMap<String, Option<Zxid>>,
    /// Whether events were left out since the last node was found.
    gap: bool,
    /// How many events there were of each node, but for one for each change that was read.
    events: BTreeMap<String, u64>,
    /// Nodes that have changed without an event so far, what was known of them, and when they were found.
    suspects: Vec<(String, Option<Zxid>, u64)>,
}

impl Reader {
    fn waiting(ctx: &ClientContext, mut stream: WatchStream) -> Self {
        let path = stream.path().to_owned();
        let (hand_on, items) = mpsc::unbounded_channel();
        ctx.tasks.spawn(State::process(ctx.number), async move {
            loop {
                let item = tokio::select! {
                    biased;
                    item = stream.next() => item,
                    () = hand_on.closed() => None,
                };
                if item.is_none_or(|item| hand_on.send(item).is_err()) {
                    return;
                }
            }
        });
        Self::Waiting { path, items }
    }

    fn path(&self) -> &str {
        match self {
            Self::Looking(stream) => stream.path(),
            Self::Waiting { path, .. } => path,
        }
    }

    /// What has come, or whether more may come.
    fn next(&mut self) -> Result<WatchItem, bool> {
        match self {
            Self::Looking(stream) => stream.try_next().ok_or_else(|| stream.end().is_none()),
            Self::Waiting { items, .. } => {
                items.try_recv().map_err(|error| error == mpsc::error::TryRecvError::Empty)
            }
        }
    }
}

impl Streamed {
    pub(super) fn new(worker: &mut Worker, stream: WatchStream, recursive: bool) -> Self {
        let reader = match worker.rng.one_in(2) {
            true => Reader::Looking(stream),
            false => Reader::waiting(&worker.ctx, stream),
        };
        let (known, events, suspects) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { reader, recursive, known, gap: false, events, suspects }
    }

    fn covers(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.reader.path());
        below.is_some_and(|below| below.is_empty() || self.recursive && below.starts_with('/'))
    }

    /// Takes in what has come, and says whether more may.
    pub(super) fn goes_on(&mut self) -> bool {
        loop {
            match self.reader.next() {
                Ok(WatchItem::Event(event)) => *self.events.entry(event.path).or_default() += 1,
                // Any of them may have changed.
                Ok(_) => {
                    self.known.clear();
                    self.suspects.clear();
                    self.gap = true;
                }
                Err(goes_on) => return goes_on,
            }
        }
    }

    /// A node that has changed without an event, and what was known of it. A task that waits may need a moment.
    pub(super) fn missed(&mut self, now: u64) -> Option<(String, Option<Zxid>)> {
        let needs_time = matches!(self.reader, Reader::Waiting { .. });
        let (due, later) = std::mem::take(&mut self.suspects)
            .into_iter()
            .partition::<Vec<_>, _>(|(.., at)| !needs_time || *at < now);
        self.suspects = later;
        due.into_iter()
            .find(|(path, ..)| !self.takes_event(path))
            .map(|(path, known, _)| (path, known))
    }

    /// Whether there was an event that has not been counted yet.
    fn takes_event(&mut self, path: &str) -> bool {
        match self.events.get_mut(path).filter(|events| **events > 0) {
            Some(events) => {
                *events -= 1;
                true
            }
            None => false,
        }
    }

    /// A node was found like this, or missing.
    pub(super) fn found(&mut self, path: &str, stat: Option<&Stat>, at: u64) {
        if !self.covers(path) {
            return;
        }
        if std::mem::take(&mut self.gap) {
            // One of what was left out may be later than this state.
            return;
        }
        let now = stat.map(|stat| stat.mzxid);
        let before = self.known.insert(path.to_owned(), now);
        // What came with the answer, or right behind it, may be about a later change.
        if let Some(before) = before.filter(|before| *before != now) {
            if !self.takes_event(path) {
                self.suspects.push((path.to_owned(), before, at));
            }
        }
    }
}
