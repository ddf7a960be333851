//! A worker that arms watches, and holds them against all that it finds.

use std::ops::{Deref, DerefMut};

use zk_client::{SessionState, Stat, Watch, Zxid};

use super::{Worker, stream::Streamed};
use crate::sim::{
    check::{Armed, Kind},
    pass,
};

pub(super) struct Watcher {
    worker: Worker,
    /// The root of its client.
    root: &'static str,
    armed: Vec<Armed>,
    streams: Vec<Streamed>,
}

impl Deref for Watcher {
    type Target = Worker;
    fn deref(&self) -> &Worker {
        &self.worker
    }
}

impl DerefMut for Watcher {
    fn deref_mut(&mut self) -> &mut Worker {
        &mut self.worker
    }
}

impl Watcher {
    pub(super) const fn new(worker: Worker, root: &'static str) -> Self {
        Self { worker, root, armed: Vec::new(), streams: Vec::new() }
    }

    pub(super) fn arm(&mut self, path: String, kind: Kind, known: Zxid, watch: Watch) {
        let state = self.client.session().state();
        // Its server may be gone by now, and have been one of a minority.
        let read_only = state != SessionState::Connected { read_only: false };
        self.armed.push(Armed { path, root: self.root, kind, known, watch, read_only });
    }

    /// From now on it hears of all changes by a stream as well.
    pub(super) fn follow(&mut self, stream: Streamed) {
        self.ctx.count("streams of events");
        self.streams.push(stream);
    }

    /// Drops one of the streams.
    pub(super) fn leave_one(&mut self) {
        let one = self.worker.rng.index(self.streams.len().max(1));
        if one < self.streams.len() {
            self.streams.swap_remove(one);
        }
    }

    pub(super) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// A node was found like this, or missing: what is armed on an older state of it must have fired.
    pub(super) fn saw(&mut self, path: &str, stat: Option<&Stat>) {
        let Self { worker, armed, streams, .. } = self;
        for stream in &mut *streams {
            let goes_on = stream.goes_on();
            let now = worker.ctx.now();
            stream.found(path, stat, now);
            match stream.missed(now) {
                Some((path, known)) if goes_on => {
                    let text = format!("is not told of {path} by a stream since {known:?}");
                    worker.shown_wrong("W1", &text);
                }
                _ => worker.ctx.count("reads beside streams"),
            }
        }
        streams.retain_mut(Streamed::goes_on);
        let ctx = &worker.ctx;
        let mut checker = ctx.check();
        for watch in std::mem::take(armed) {
            if watch.path == path {
                armed.extend(checker.watched(ctx.number, watch, stat));
            } else {
                armed.push(watch);
            }
        }
    }

    /// What is still armed waits for something, unless the session is over.
    pub(super) async fn finish(self) {
        let Self { worker: Worker { ctx, client, .. }, armed, .. } = self;
        if matches!(client.session().state(), SessionState::Ended(_)) {
            // Those that wait for answers hear of it first, a few at a time.
            pass(1).await;
            let mut checker = ctx.check();
            armed.into_iter().for_each(|armed| checker.session_over(ctx.number, armed));
        }
    }
}
