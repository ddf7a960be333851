//! Reads whatever may have changed until the copy is up to date.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use zk_proto::{EventType, Stat, path};

use super::{
    copy_state::{CopyState, Stop},
    events::CacheEvent,
    node::{CacheState, CachedNode},
    source::{Reads, Source, Wants},
};
use crate::{
    carry::{published::SessionState, session::Session},
    error::{ReadError, Rejection, SessionEnd},
    request::client::Client,
    watch::{Queued, WatchEnd},
};

/// Nodes read concurrently: enough to fill a connection, few enough to leave room for other requests.
const AT_ONCE: usize = 256;

/// Pause before asking again for a watch that a server has refused.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// What to read of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Dirty {
    node: bool,
    /// The set of its children, if they belong to the copy.
    children: bool,
}

/// Follows one client.
pub(super) struct Work<'a> {
    of: &'a CopyState,
    client: Client,
    dirty: BTreeMap<Arc<str>, Dirty>,
    /// During a full read: the nodes found so far.
    loading: Option<BTreeSet<Arc<str>>>,
    /// What a server has refused, by path.
    refused: BTreeMap<Arc<str>, ReadError>,
    /// Whether a server has answered a request since this was last reset.
    answered: bool,
}

impl<'a> Work<'a> {
    pub(super) fn new(of: &'a CopyState, client: Client) -> Self {
        let (dirty, refused) = (BTreeMap::new(), BTreeMap::new());
        Self { of, client, dirty, loading: None, refused, answered: false }
    }

    pub(super) async fn run(mut self) -> Stop {
        match self.go_on().await {
            Err(stop) => stop,
        }
    }

    async fn go_on(&mut self) -> Result<Infallible, Stop> {
        let mut source = self.open().await?;
        let mut session = self.client.session();
        self.load_all();
        loop {
            let connection = session.epoch();
            self.answered = false;
            self.read_dirty(&mut source).await?;
            if !self.answered && !self.of.is_standing(&session) && is_connected(&session) {
                self.hear().await?;
            }
            self.take_news(&mut source);
            if !self.dirty.is_empty() {
                continue;
            }
            // A reply on a connection comes after the server has set that connection's watches and sent their events.
            if self.answered && session.epoch() == connection {
                self.of.stands_on(connection);
            }
            if self.of.is_standing(&session) {
                self.of.is_up_to_date(self.refused.values().next());
            } else if is_connected(&session) {
                continue;
            }
            self.wait(&mut source, &mut session).await?;
        }
    }

    async fn open(&self) -> Result<Source, Stop> {
        loop {
            let error = match Source::open(&self.client, &self.of.root, self.of.scope).await {
                Ok(source) => return Ok(source),
                Err(error) => still_following(error)?,
            };
            self.of.show(CacheState::Refused(error));
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Makes the server answer a request when there is nothing to read.
    async fn hear(&mut self) -> Result<(), Stop> {
        if let Err(error) = self.client.exists(&self.of.root).await {
            still_following(error)?;
        }
        self.answered = true;
        Ok(())
    }

    /// Waits for something to do.
    async fn wait(&mut self, source: &mut Source, session: &mut Session) -> Result<(), Stop> {
        let mut changed = pin!(session.changed());
        let waited = poll_fn(|cx| match source.poll_news(cx) {
            Poll::Ready(news) => Poll::Ready(Some(news)),
            Poll::Pending => changed.as_mut().poll(cx).map(|_| None),
        })
        .await;
        match waited {
            Some(Some(news)) => self.note(news, source),
            Some(None) => match source.end() {
                // The session has moved to an older server.
                Some(WatchEnd::Unsupported) => {
                    *source = Source::singles(&self.client);
                    self.load_all();
                }
                end => return Err(end.unwrap_or(WatchEnd::Session(SessionEnd::Closed)).into()),
            },
            // The state of the connection has changed.
            None => {}
        }
        Ok(())
    }

    fn take_news(&mut self, source: &mut Source) {
        while let Some(news) = source.try_news() {
            self.note(news, source);
        }
    }

    fn note(&mut self, news: Queued, source: &mut Source) {
        let event = match news {
            Queued::Event(event) => event,
            Queued::Resync(_) => {
                self.of.is_behind();
                if source.is_of_singles() {
                    // It is unknown which of the watches have fired.
                    *source = Source::singles(&self.client);
                }
                self.load_all();
                return;
            }
        };
        let path: Arc<str> = self.client.handle.chroot.relative(&event.path).into();
        if !self.of.scope.contains(&self.of.root, &path) {
            return;
        }
        source.fired(event.kind, &path);
        let of_children = event.kind == EventType::NODE_CHILDREN_CHANGED;
        // A watch of the whole subtree reports each child itself.
        let lists =
            source.is_of_singles() && (of_children || event.kind == EventType::NODE_CREATED);
        let dirty = self.dirty.entry(path).or_default();
        dirty.node |= !of_children;
        dirty.children |= lists;
    }

    fn load_all(&mut self) {
        self.loading = Some(BTreeSet::new());
        self.refused.clear();
        self.dirty = BTreeMap::from([(self.of.root.clone(), Dirty { node: true, children: true })]);
    }

    /// Reads the nodes that may have changed, and the nodes discovered by those reads.
    async fn read_dirty(&mut self, source: &mut Source) -> Result<(), Stop> {
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
                self.finish(source, path, wants, reads).await?;
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
        let is_root = *path == self.of.root;
        let (watch_node, watch_children) = source.lacks(path);
        Wants {
            existence: dirty.node && (singles && is_root || !singles && !self.of.with_data),
            data: dirty.node && (singles || self.of.with_data),
            children: dirty.children && self.goes_below(path),
            watch_node,
            watch_children,
        }
    }

    fn goes_below(&self, path: &str) -> bool {
        self.of.scope.goes_below(&self.of.root, path)
    }

    /// Awaits the reads of a node.
    async fn finish(
        &mut self,
        source: &mut Source,
        path: Arc<str>,
        wants: Wants,
        reads: Reads,
    ) -> Result<(), Stop> {
        let Reads { existence, data, children } = reads;
        let was_refused = self.refused.contains_key(&path);
        let mut node = None;
        if let Some(existence) = existence {
            let answer = existence.await;
            source.armed(&path, answer.is_ok() && wants.watch_node, false);
            node = Some(answer.map(|stat| stat.map(|stat| (Bytes::new(), stat))));
        }
        if let Some(data) = data {
            let answer = data.await;
            // Either of the two watches.
            source.armed(&path, answer.is_ok() && wants.watch_node && !wants.existence, false);
            node = Some(match (node, there(answer)) {
                (None, answer) => answer,
                // The watched read is authoritative: the other may be older, if a busy server turned away the first
                // one.
                (Some(Ok(Some((_, known)))), Ok(data)) => {
                    if data.as_ref().is_none_or(|(_, stat)| stat.mzxid < known.mzxid) {
                        self.dirty.entry(path.clone()).or_default().node = true;
                    }
                    Ok(data)
                }
                (Some(Ok(Some(_))), error) => error,
                (Some(missing_or_error), _) => missing_or_error,
            });
        }
        let is_there = match node {
            Some(node) => self.found(source, &path, node)?,
            None => false,
        };
        if let Some(children) = children {
            let answer = children.await;
            source.armed(&path, false, answer.is_ok() && wants.watch_children);
            let answer = there(answer);
            if is_there && matches!(answer, Ok(None)) {
                // If a busy server turned one away, either may be the older.
                self.dirty.insert(path, Dirty { node: true, children: true });
            } else {
                self.listed(source, &path, answer)?;
            }
        } else if is_there && self.goes_below(&path) && (was_refused || source.lacks(&path).1) {
            // The node is back, and no events of its children were received: another node has replaced it, and the old
            // watches are gone, or it was not readable until now.
            self.dirty.entry(path).or_default().children = true;
        }
        Ok(())
    }

    /// Returns whether it is in the copy.
    fn found(
        &mut self,
        source: &mut Source,
        path: &Arc<str>,
        node: Result<Option<(Bytes, Stat)>, ReadError>,
    ) -> Result<bool, Stop> {
        match node {
            Ok(Some((data, stat))) => {
                self.answered = true;
                self.refused.remove(path);
                let is_root = *path == self.of.root;
                if !is_root && !path::parent(path).is_some_and(|it| self.of.contents.has(it)) {
                    // Its parent was created only after that read, of which there will be an event, or may not be read.
                    return Ok(false);
                }
                if let Some(found) = &mut self.loading {
                    found.insert(path.clone());
                }
                let data = if self.of.with_data { data } else { Bytes::new() };
                self.of.contents.put(CachedNode { path: path.clone(), data, stat });
                return Ok(true);
            }
            Ok(None) => self.gone(source, path),
            Err(error) => {
                self.refused.insert(path.clone(), still_following(error)?);
                self.of.contents.remove(path);
            }
        }
        Ok(false)
    }

    fn listed(
        &mut self,
        source: &mut Source,
        path: &Arc<str>,
        children: Result<Option<(Vec<String>, Stat)>, ReadError>,
    ) -> Result<(), Stop> {
        let names = match children {
            Ok(Some((names, _))) => names,
            Ok(None) => {
                self.gone(source, path);
                return Ok(());
            }
            Err(error) => {
                self.refused.insert(path.clone(), still_following(error)?);
                return Ok(());
            }
        };
        self.answered = true;
        let now: BTreeSet<Arc<str>> =
            names.iter().map(|name| path::join(path, name).into()).collect();
        let before = self.of.contents.children(path);
        for node in before.iter().filter(|node| !now.contains(&node.path)) {
            self.gone(source, &node.path);
        }
        self.refused
            .retain(|refused, _| path::parent(refused) != Some(&**path) || now.contains(refused));
        let known: BTreeSet<&Arc<str>> = before.iter().map(|node| &node.path).collect();
        for path in now {
            if self.loading.is_some() || !known.contains(&path) {
                self.dirty.insert(path, Dirty { node: true, children: true });
            }
        }
        Ok(())
    }

    fn gone(&mut self, source: &mut Source, path: &Arc<str>) {
        self.answered = true;
        for path in self.of.contents.paths_from(path).iter().chain([path]) {
            // The watch on the copy's own root waits for the node to be created again.
            if *path != self.of.root {
                source.forget(path);
            }
            self.refused.remove(path);
        }
        self.of.contents.remove(path);
    }
}

fn is_connected(session: &Session) -> bool {
    matches!(session.state(), SessionState::Connected { .. })
}

/// Treats an error as final only if the session is over.
fn still_following(error: ReadError) -> Result<ReadError, Stop> {
    match error.session_end() {
        Some(end) => Err(Stop::Session(end)),
        None => Ok(error),
    }
}

/// Treats a missing node as an answer.
fn there<T>(answer: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
        Err(error) => Err(error),
    }
}
