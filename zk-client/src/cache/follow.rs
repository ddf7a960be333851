//! Reading what may have changed, until it has not.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use tokio::sync::watch;
use zk_proto::{EventType, path};

use super::{
    CacheEvent, CacheState, CachedNode,
    contents::Contents,
    scope::Scope,
    source::{Reads, Source, Wants},
};
use crate::{
    Client,
    error::{Cause, ReadError, Rejection, SessionEnd},
    session::SessionState,
    watch::{News, WatchEnd},
};

/// Nodes read at once: enough to fill a connection, few enough to leave room for others.
const AT_ONCE: usize = 256;

/// How long to wait before asking a server again that could not be bothered.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Keeps one copy in step.
pub(super) struct Follower {
    pub(super) contents: Arc<Contents>,
    pub(super) root: Arc<str>,
    pub(super) scope: Scope,
    pub(super) with_data: bool,
    pub(super) clear_at_end: bool,
    pub(super) state: watch::Sender<CacheState>,
    /// Whom to ask. Closed when nobody has the cache any more.
    pub(super) clients: watch::Receiver<Client>,
}

/// Why to stop following one client.
enum Stop {
    /// Its session is over.
    Session(SessionEnd),
    /// There is another client.
    Moved,
    /// Nobody has the cache any more.
    Dropped,
}

impl From<WatchEnd> for Stop {
    fn from(end: WatchEnd) -> Self {
        match end {
            WatchEnd::Session(end) => Self::Session(end),
            WatchEnd::Unsupported | WatchEnd::Removed => Self::Moved,
        }
    }
}

impl Follower {
    pub(super) async fn run(mut self) {
        loop {
            let client = self.clients.borrow_and_update().clone();
            match self.follow(client).await {
                Stop::Dropped => return,
                Stop::Moved => {
                    self.state.send_replace(CacheState::Behind);
                    continue;
                }
                Stop::Session(end) => {
                    if self.clear_at_end {
                        self.contents.remove("/");
                    }
                    self.state.send_replace(CacheState::Ended(end));
                    self.contents.tell(&CacheEvent::Ended(end));
                }
            }
            if self.clients.changed().await.is_err() {
                return;
            }
            self.state.send_replace(CacheState::Behind);
        }
    }

    /// Until there is a reason to stop, in whatever it is just waiting.
    async fn follow(&self, client: Client) -> Stop {
        let mut clients = self.clients.clone();
        let mut left = pin!(async move {
            match clients.changed().await {
                Ok(()) => Stop::Moved,
                Err(_) => Stop::Dropped,
            }
        });
        let mut work = pin!(Work::new(self, client).run());
        poll_fn(|cx| match left.as_mut().poll(cx) {
            Poll::Ready(stop) => Poll::Ready(stop),
            Poll::Pending => work.as_mut().poll(cx),
        })
        .await
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.contents.end();
    }
}

/// What may have changed of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Dirty {
    node: bool,
    children: bool,
}

/// Which watches of a node have not fired.
#[derive(Clone, Copy, Debug, Default)]
struct Armed {
    node: bool,
    children: bool,
}

/// Following one client.
struct Work<'a> {
    of: &'a Follower,
    client: Client,
    dirty: BTreeMap<Arc<str>, Dirty>,
    /// While everything is being read: what has been found.
    loading: Option<BTreeSet<Arc<str>>>,
    armed: BTreeMap<Arc<str>, Armed>,
    /// What a server has refused, and where.
    refused: BTreeMap<Arc<str>, ReadError>,
}

impl<'a> Work<'a> {
    fn new(of: &'a Follower, client: Client) -> Self {
        let (dirty, armed, refused) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { of, client, dirty, loading: None, armed, refused }
    }

    async fn run(mut self) -> Stop {
        let mut source = match self.open().await {
            Ok(source) => source,
            Err(stop) => return stop,
        };
        let mut session = self.client.session();
        self.load_all();
        loop {
            if let Err(stop) = self.read_dirty(&source).await {
                return stop;
            }
            self.take_news(&source);
            if !self.dirty.is_empty() {
                continue;
            }
            if matches!(session.state(), SessionState::Connected { .. }) {
                self.up_to_date();
            }
            match self.wait(&source, &mut session).await {
                Waited::News(news) => self.note(news),
                // Older servers have joined the ensemble.
                Waited::End(WatchEnd::Unsupported) => {
                    source = Source::singles(&self.client);
                    self.load_all();
                }
                Waited::End(end) => return end.into(),
                Waited::State(SessionState::Connected { .. }) => {
                    // Behind whatever a new connection is told of the watches.
                    let barrier = self.client.exists(&self.of.root).await;
                    if let Some(stop) = barrier.err().and_then(|error| self.stop(&error)) {
                        return stop;
                    }
                }
                Waited::State(SessionState::Ended(end)) => return Stop::Session(end),
                Waited::State(_) => {
                    self.of.state.send_replace(CacheState::Behind);
                }
            }
        }
    }

    async fn open(&self) -> Result<Source, Stop> {
        loop {
            let error = match Source::open(&self.client, &self.of.root, self.of.scope).await {
                Ok(source) => return Ok(source),
                Err(error) => error,
            };
            if let Some(stop) = self.stop(&error) {
                return Err(stop);
            }
            self.of.state.send_replace(CacheState::Refused(error));
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Whether an error is the end.
    fn stop(&self, error: &ReadError) -> Option<Stop> {
        error.session_end().map(Stop::Session)
    }

    fn up_to_date(&self) {
        let state = match self.refused.values().next() {
            Some(error) => CacheState::Refused(error.clone()),
            None => CacheState::Following,
        };
        self.of.state.send_if_modified(|now| {
            let changed = *now != state;
            *now = state;
            changed
        });
    }

    /// Waits for something to do.
    async fn wait(&self, source: &Source, session: &mut crate::Session) -> Waited {
        let mut changed = pin!(session.changed());
        poll_fn(|cx| match source.poll_news(cx) {
            Poll::Ready(Some(news)) => Poll::Ready(Waited::News(news)),
            Poll::Ready(None) => {
                let end = source.end().unwrap_or(WatchEnd::Session(SessionEnd::Closed));
                Poll::Ready(Waited::End(end))
            }
            Poll::Pending => changed.as_mut().poll(cx).map(Waited::State),
        })
        .await
    }

    fn take_news(&mut self, source: &Source) {
        while let Some(news) = source.try_news() {
            self.note(news);
        }
    }

    fn note(&mut self, news: News) {
        match news {
            News::Resync(_) => {
                self.of.state.send_if_modified(|state| {
                    let follows = *state == CacheState::Following;
                    if follows {
                        *state = CacheState::Behind;
                    }
                    follows
                });
                // Nobody knows which of them have fired. One that is armed twice fires twice, and that is all.
                self.armed.clear();
                self.load_all();
            }
            News::Event(event) => {
                let path: Arc<str> = self.client.handle.chroot.relative(&event.path).into();
                if !self.of.scope.contains(&self.of.root, &path) {
                    return;
                }
                let of_children = event.kind == EventType::NODE_CHILDREN_CHANGED;
                if let Some(armed) = self.armed.get_mut(&path) {
                    armed.children &= !of_children;
                    armed.node &= of_children;
                    if event.kind == EventType::NODE_DELETED {
                        *armed = Armed::default();
                    }
                }
                let dirty = self.dirty.entry(path).or_default();
                dirty.node |= !of_children;
                dirty.children |= of_children || event.kind == EventType::NODE_CREATED;
            }
        }
    }

    fn load_all(&mut self) {
        self.loading = Some(BTreeSet::new());
        self.refused.clear();
        self.dirty = BTreeMap::from([(self.of.root.clone(), Dirty { node: true, children: true })]);
    }

    /// Reads what may have changed, and what turns up over it.
    async fn read_dirty(&mut self, source: &Source) -> Result<(), Stop> {
        while !self.dirty.is_empty() {
            let mut some = std::mem::take(&mut self.dirty);
            if let Some(rest) = some.keys().nth(AT_ONCE).cloned() {
                self.dirty = some.split_off(&rest);
            }
            let asked: Vec<_> = some
                .into_iter()
                .map(|(path, dirty)| {
                    let wants = self.wants(source, &path, dirty);
                    let reads = source.read(&self.client, &path, wants);
                    (path, wants, reads)
                })
                .collect();
            for (path, wants, reads) in asked {
                self.answered(path, wants, reads).await?;
            }
        }
        if let Some(found) = self.loading.take() {
            for path in self.of.contents.paths_from("/") {
                if !found.contains(&path) {
                    self.of.contents.remove(&path);
                }
            }
            self.of.contents.tell(&CacheEvent::Loaded);
        }
        Ok(())
    }

    fn wants(&self, source: &Source, path: &Arc<str>, dirty: Dirty) -> Wants {
        let singles = source.is_of_singles();
        let armed = self.armed.get(path).copied().unwrap_or_default();
        let is_root = *path == self.of.root;
        let goes_below = self.of.scope.goes_below(&self.of.root, path);
        // A watch of all tells of children by themselves, but not of those that were there before.
        let lists = goes_below && dirty.children && (singles || self.loading.is_some());
        Wants {
            existence: dirty.node && (singles && is_root || !singles && !self.of.with_data),
            data: dirty.node && (singles || self.of.with_data),
            children: lists,
            watch_node: singles && !armed.node,
            watch_children: singles && !armed.children,
        }
    }

    async fn answered(&mut self, path: Arc<str>, wants: Wants, reads: Reads) -> Result<(), Stop> {
        let Reads { existence, data, children } = reads;
        let mut node = None;
        if let Some(existence) = existence {
            let answer = existence.await;
            if answer.is_ok() && wants.watch_node {
                self.armed.entry(path.clone()).or_default().node = true;
            }
            node = Some(answer.map(|stat| stat.map(|stat| (bytes::Bytes::new(), stat))));
        }
        if let Some(data) = data {
            let answer = data.await;
            if answer.is_ok() && wants.watch_node {
                self.armed.entry(path.clone()).or_default().node = true;
            }
            node = Some(there(answer));
        }
        if let Some(node) = node {
            self.found(&path, node).await?;
        }
        if let Some(children) = children {
            let answer = children.await;
            if answer.is_ok() && wants.watch_children {
                self.armed.entry(path.clone()).or_default().children = true;
            }
            self.listed(&path, there(answer)).await?;
        }
        Ok(())
    }

    async fn found(
        &mut self,
        path: &Arc<str>,
        node: Result<Option<(bytes::Bytes, zk_proto::Stat)>, ReadError>,
    ) -> Result<(), Stop> {
        match node {
            Ok(Some((data, stat))) => {
                self.refused.remove(path);
                if let Some(found) = &mut self.loading {
                    found.insert(path.clone());
                }
                let data = if self.of.with_data { data } else { bytes::Bytes::new() };
                self.of.contents.put(CachedNode { path: path.clone(), data, stat });
            }
            Ok(None) => self.gone(path),
            Err(error) => self.failed(path, Dirty { node: true, children: false }, error).await?,
        }
        Ok(())
    }

    async fn listed(
        &mut self,
        path: &Arc<str>,
        children: Result<Option<(Vec<String>, zk_proto::Stat)>, ReadError>,
    ) -> Result<(), Stop> {
        let names = match children {
            Ok(Some((names, _))) => names,
            Ok(None) => {
                self.gone(path);
                return Ok(());
            }
            Err(error) => {
                return self.failed(path, Dirty { node: false, children: true }, error).await;
            }
        };
        let now: BTreeSet<Arc<str>> =
            names.iter().map(|name| path::join(path, name).into()).collect();
        let before = self.of.contents.children(path);
        for node in before.iter().filter(|node| !now.contains(&node.path)) {
            self.gone(&node.path);
        }
        self.refused
            .retain(|refused, _| path::parent(refused) != Some(&**path) || now.contains(refused));
        let known: BTreeSet<&Arc<str>> = before.iter().map(|node| &node.path).collect();
        let is_new = |path: &&Arc<str>| self.loading.is_some() || !known.contains(path);
        let new: Vec<Arc<str>> = now.iter().filter(is_new).cloned().collect();
        for path in new {
            self.dirty.insert(path, Dirty { node: true, children: true });
        }
        Ok(())
    }

    fn gone(&mut self, path: &Arc<str>) {
        for path in self.of.contents.paths_from(path).iter().chain([path]) {
            // The watch of the copy's own root waits for it to come back.
            if *path != self.of.root {
                self.armed.remove(path);
            }
            self.refused.remove(path);
        }
        self.of.contents.remove(path);
    }

    /// What could not be read is not there for us. It is tried again when something happens there.
    async fn failed(
        &mut self,
        path: &Arc<str>,
        dirty: Dirty,
        error: ReadError,
    ) -> Result<(), Stop> {
        if let Some(stop) = self.stop(&error) {
            return Err(stop);
        }
        if let ReadError::Unavailable(Cause::Throttled | Cause::Disconnected(_)) = error {
            self.dirty.insert(path.clone(), dirty);
            tokio::time::sleep(RETRY_PAUSE).await;
            return Ok(());
        }
        if dirty.node {
            self.of.contents.remove(path);
        }
        self.refused.insert(path.clone(), error);
        Ok(())
    }
}

/// What there was to do.
enum Waited {
    News(News),
    End(WatchEnd),
    State(SessionState),
}

/// A node that is not there is an answer too.
fn there<T>(answer: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
        Err(error) => Err(error),
    }
}
