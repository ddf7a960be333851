//! Caches of nodes that come and go, held against what was committed, and moved from session to session.

use std::collections::BTreeMap;

use zk_client::{Cache, CacheEvent, CacheEvents, CachedNode, SessionState, Zxid, path::parent};

use super::Worker;
use crate::sim::{
    check::{Copied, Scope},
    life::REQUESTS_MIN,
    pass,
};

/// What caches are of: nodes that clients write, and nodes that come and go at all depths.
pub(crate) const ROOTS: [&str; 4] = ["/kv", "/kv/r1", "/history", "/watched"];

/// Within how many milliseconds a listener is told what has happened already.
const LATE: u64 = 1_000;

/// A cache, and what a listener has made of its events.
pub(crate) struct Followed {
    cache: Cache,
    events: CacheEvents,
    /// Another listener, which hears the same.
    twin: CacheEvents,
    told: BTreeMap<String, CachedNode>,
    /// What it had when another session took it over.
    inherited: BTreeMap<String, CachedNode>,
    root: String,
    scope: Scope,
    with_data: bool,
    clears_at_end: bool,
    /// Whether it has told that all was read, since its session follows it.
    was_loaded: bool,
}

impl Followed {
    fn start(worker: &mut Worker) -> Self {
        let root = *worker.rng.pick(&ROOTS);
        Self::of(worker, root)
    }

    /// A cache of a node, or of some below it, in one of the ways there are.
    pub(super) fn of(worker: &mut Worker, root: &str) -> Self {
        let Worker { client, rng, .. } = worker;
        let scope = *rng.pick(&[Scope::Node, Scope::Children, Scope::Subtree]);
        let mut cache = match scope {
            Scope::Node => Cache::node(client, root),
            Scope::Children => Cache::children(client, root),
            Scope::Subtree => Cache::subtree(client, root),
        };
        let with_data = !rng.one_in(4);
        if !with_data {
            cache = cache.without_data();
        }
        if rng.one_in(4) {
            cache = cache.events_max(rng.scaled(1, 16) as usize);
        }
        let clears_at_end = rng.one_in(4);
        if clears_at_end {
            cache = cache.clear_at_end();
        }
        let cache = cache.start().expect("it is a path");
        let events = cache.events_from_the_start();
        let twin = cache.events_from_the_start();
        let (told, inherited) = (BTreeMap::new(), BTreeMap::new());
        Self {
            cache,
            events,
            twin,
            told,
            inherited,
            root: root.to_owned(),
            scope,
            with_data,
            clears_at_end,
            was_loaded: false,
        }
    }

    /// Goes on in another session, which may begin on a member that is behind.
    fn move_to(&mut self, worker: &Worker) {
        worker.ctx.count("caches moved to another session");
        self.cache.move_to(&worker.client);
        self.inherited = self.told.clone();
        self.was_loaded = false;
    }

    /// Takes part in all events, each of which must fit the ones before, and tells of nothing that has not happened.
    ///
    /// Takes part in all even if one is wrong: a session may be excused for it, and the next one is not.
    fn listen(&mut self, worker: &Worker) -> Result<(), String> {
        let heard: Vec<_> = std::iter::from_fn(|| self.events.try_next()).collect();
        let by_twin: Vec<_> = std::iter::from_fn(|| self.twin.try_next()).collect();
        let mut all_fit = match heard == by_twin {
            true => Ok(()),
            false => Err(format!("tells one of {heard:?}, and another of {by_twin:?}")),
        };
        // One goes, and another comes.
        if worker.ctx.now() % 4 == 0 {
            self.twin = self.cache.events();
        }
        let mut lagged = false;
        for event in heard {
            lagged |= event == CacheEvent::Lagged;
            self.was_loaded |= event == CacheEvent::Loaded;
            let fits = self.takes_part_in(worker, &event, lagged);
            all_fit = all_fit.and(fits);
        }
        all_fit
    }

    fn takes_part_in(
        &mut self,
        worker: &Worker,
        event: &CacheEvent,
        lagged: bool,
    ) -> Result<(), String> {
        let deleted = match event {
            CacheEvent::Deleted(node) if !self.may_forget(worker, node) => Some(node),
            _ => None,
        };
        // What is taken from the cache knows of what comes behind that already.
        if !self.fits(event) && !lagged {
            return Err(format!("tells of {event:?} after {:?}", self.told.keys()));
        }
        if deleted.is_some_and(|node| !worker.ctx.check().was_deleted(node)) {
            return Err(format!("tells of {event:?}, which is there"));
        }
        Ok(())
    }

    /// Whether a node can be gone from it that is there: what only reads can be had from may be behind, as may be what a
    /// session begins with.
    fn may_forget(&self, worker: &Worker, node: &CachedNode) -> bool {
        let before = self.inherited.get(&*node.path);
        self.clears_at_end
            || worker.ctx.check().was_hidden(&node.path)
            || worker.ctx.options.reads_alone(worker.ctx.number)
            || before.is_some_and(|before| before.stat.mzxid == node.stat.mzxid)
    }

    fn fits(&mut self, event: &CacheEvent) -> bool {
        let is = |one: &CachedNode, other: &CachedNode| one.stat.mzxid == other.stat.mzxid;
        match event {
            CacheEvent::Created(node) => {
                let above = parent(&node.path).filter(|_| *node.path != *self.root);
                let below_others = above.is_none_or(|above| self.told.contains_key(above));
                self.told.insert(node.path.to_string(), node.clone()).is_none() && below_others
            }
            CacheEvent::Changed { old, new } => {
                let later = old.stat.mzxid < new.stat.mzxid;
                let before = self.told.insert(new.path.to_string(), new.clone());
                before.is_some_and(|before| is(&before, old)) && later
            }
            CacheEvent::Deleted(node) => {
                self.told.remove(&*node.path).is_some_and(|before| is(&before, node))
            }
            CacheEvent::Lagged => {
                let nodes = self.cache.nodes().into_iter();
                self.told = nodes.map(|node| (node.path.to_string(), node)).collect();
                true
            }
            _ => true,
        }
    }

    /// Whether what was told is what there is.
    fn adds_up(&self, nodes: &[CachedNode]) -> bool {
        let seen = |node: &CachedNode| (node.path.clone(), node.stat.mzxid, node.data.clone());
        self.told.values().map(seen).eq(nodes.iter().map(seen))
    }

    /// What must hold at any moment.
    pub(super) fn look(&mut self, worker: &Worker) {
        let copied = self.copied(worker);
        let heard = self.listen(worker);
        let adds_up = heard.and_then(|()| match self.adds_up(&copied.nodes) {
            true => Ok(()),
            false => Err(format!("has told of {:?}, and has {:?}", self.told, copied.nodes)),
        });
        if let Some(wrong) = adds_up.err().or_else(|| worker.ctx.check().copied(&copied)) {
            self.wrong(worker, &wrong);
        }
        if copied.follows() && !self.was_loaded {
            self.wrong(worker, "follows, and has not told that all was read");
        }
    }

    /// What it tells from now on.
    pub(super) fn events(&self) -> CacheEvents {
        self.cache.events()
    }

    /// Its nodes, and the last change of each.
    pub(super) fn versions(&self) -> Vec<(String, Zxid)> {
        let nodes = self.cache.nodes().into_iter();
        nodes.map(|node| (node.path.to_string(), node.stat.mzxid)).collect()
    }

    /// What it shows.
    pub(super) fn copied(&self, worker: &Worker) -> Copied {
        // Before the nodes: it may stop following in between.
        let state = self.cache.state();
        Copied {
            client: worker.ctx.number,
            root: self.root.clone(),
            scope: self.scope,
            with_data: self.with_data,
            nodes: self.cache.nodes(),
            state,
            session: worker.client.session().state(),
        }
    }

    /// Whether it asks for more than that nodes exist.
    pub(super) const fn reads_data(&self) -> bool {
        self.with_data
    }

    pub(super) fn wrong(&self, worker: &Worker, what: &str) {
        let Self { root, scope, .. } = self;
        worker.shown_wrong("W4", &format!("has a cache of {root} ({scope:?}) that {what}"));
    }

    /// Its session is over, which listeners hear that come later.
    async fn has_ended(&self, worker: &Worker) {
        let mut late = self.cache.events();
        let stalled = worker.ctx.stalled();
        let is_told = tokio::select! {
            biased;
            _ = late.next() => true,
            () = pass(LATE) => false,
        };
        if !is_told && worker.ctx.stalled() == stalled {
            self.wrong(worker, "does not tell that its session is over");
        }
    }

    /// When all faults are over, and nothing happens to the connection, it follows before long.
    async fn settles(&self, worker: &Worker) {
        let Worker { ctx, client, .. } = worker;
        let connection = || (client.session().epoch(), client.session().state(), ctx.stalled());
        let before = connection();
        if ctx.check().room_of(ctx.number).is_some_and(|room| room.is_of_gaps()) {
            return;
        }
        // Two reads for each node, as many at once as the session may have, and half of them are others'.
        let nodes = ctx.check().history.begin_with(&self.root).count() as u64;
        let reads = 4 * nodes / REQUESTS_MIN * 2 * ctx.options.latency.1;
        let bound = ctx.options.session_timeouts[ctx.number as usize] + 10_000 + reads;
        let late = tokio::select! {
            biased;
            _ = self.cache.ready() => false,
            () = pass(bound) => true,
        };
        let sound = before.1 == SessionState::Connected { read_only: false };
        if late && sound && connection() == before {
            self.wrong(worker, &format!("is {:?} for {bound} ms", self.cache.state()));
        }
    }
}

/// Follows something for a while, and goes on with it in the next session.
pub(super) async fn work(mut worker: Worker) {
    let kept = worker.ctx.kept_cache().take();
    let mut followed = match kept {
        Some(mut followed) => {
            followed.move_to(&worker);
            followed
        }
        None => Followed::start(&mut worker),
    };
    loop {
        let stalled = worker.ctx.stalled();
        let pause = worker.rng.scaled(100, 20_000);
        let goes_on = worker.think(pause).await;
        // While the process stands still the cache hears of nothing.
        if worker.ctx.stalled() == stalled {
            followed.look(&worker);
        }
        if worker.ctx.now() > worker.ctx.options.duration {
            followed.settles(&worker).await;
        }
        if !goes_on {
            break;
        }
        if worker.rng.one_in(16) {
            followed = Followed::start(&mut worker);
        }
    }
    if matches!(worker.client.session().state(), SessionState::Ended(_)) {
        followed.has_ended(&worker).await;
    }
    if worker.rng.one_in(2) {
        *worker.ctx.kept_cache() = Some(followed);
    }
}
