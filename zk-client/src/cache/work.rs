//! Reads whatever may have changed until the copy is up to date.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    future::{Future, poll_fn},
    mem,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use zk_proto::EventType;

use super::{
    copy_state::{CopyState, NO_CONNECTION, Stop},
    costly::Costly,
    events::CacheEvent,
    flight::{Dirty, Flight},
    node::CacheState,
    source::Source,
};
use crate::{
    carry::{published::SessionState, session::Session},
    error::ReadError,
    request::client::Client,
    watch::{Queued, Resync, WatchEnd},
};

/// Pause before asking again for a watch that a server has refused.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Follows one client.
pub(super) struct Work<'a> {
    pub(super) of: &'a CopyState,
    pub(super) client: Client,
    /// What is to be read, parents before their children.
    pub(super) dirty: BTreeMap<Arc<str>, Dirty>,
    pub(super) flight: Flight,
    /// What has happened since the first of the reads under way was submitted.
    meanwhile: Meanwhile,
    /// During a full read: the nodes of the copy that have not been found so far.
    pub(super) loading: Option<BTreeSet<Arc<str>>>,
    /// Until everything has been read: whether the copy is of another session, or of a member without a quorum, and what is
    /// read takes its place, though it be older. The servers may have been restored from a backup, or may never have agreed
    /// on what that member had logged.
    pub(super) replaces: bool,
    /// The connection since which what such members had shown is replaced.
    agreed: u64,
    /// What a server has refused, by path.
    pub(super) refused: BTreeMap<Arc<str>, ReadError>,
    /// Reads that cost their connections.
    pub(super) costly: Costly,
    /// Whether a server has answered a request since this was last reset.
    pub(super) answered: bool,
}

/// Changes while reads are under way.
#[derive(Default)]
struct Meanwhile {
    changed: BTreeSet<Arc<str>>,
    /// Bytes of `changed`, about.
    len: usize,
    /// Why everything has to be read anew.
    resync: Option<Resync>,
}

/// Limit on the bytes of changes while reads are under way. More are left in the watch's queue, which tells of a gap when
/// it is full.
const MEANWHILE_LEN_MAX: usize = 8 << 20;

/// Bytes of a change beside its path.
const CHANGE_LEN: usize = 64;

impl Meanwhile {
    const fn has_room(&self) -> bool {
        self.len < MEANWHILE_LEN_MAX && self.resync.is_none()
    }

    fn note(&mut self, path: Arc<str>) {
        let len = path.len().saturating_add(CHANGE_LEN);
        if self.changed.insert(path) {
            self.len = self.len.saturating_add(len);
        }
    }
}

impl<'a> Work<'a> {
    pub(super) fn new(of: &'a CopyState, client: Client) -> Self {
        let (dirty, refused) = (BTreeMap::new(), BTreeMap::new());
        let (flight, meanwhile) = (Flight::new(), Meanwhile::default());
        let costly = Costly::default();
        Self {
            of,
            client,
            dirty,
            flight,
            meanwhile,
            loading: None,
            replaces: false,
            agreed: NO_CONNECTION,
            refused,
            costly,
            answered: false,
        }
    }

    pub(super) async fn run(mut self) -> Stop {
        match self.go_on().await {
            Err(stop) => stop,
        }
    }

    async fn go_on(&mut self) -> Result<Infallible, Stop> {
        let mut source = self.open().await?;
        let mut session = self.client.session();
        // A copy that was loaded, and has no nodes, knows that there are none.
        let was_loaded = *self.of.state.borrow() != CacheState::Loading;
        if was_loaded || !self.of.contents.is_empty() {
            self.replaces = self.catches_up().await?;
        }
        self.load_all();
        loop {
            self.leave_readers(&mut source, &session).await?;
            let connection = session.epoch();
            self.answered = false;
            let was_settled = self.loading.is_none() && self.of.is_standing(&session);
            self.read_dirty(&mut source).await?;
            if !self.answered && !self.of.is_standing(&session) && is_connected(&session) {
                self.hear().await?;
            }
            self.take_news(&mut source);
            self.outlive(&mut source)?;
            let is_read = self.loading.is_none();
            // A reply on a connection comes after the server has set that connection's watches and sent their events.
            if is_read && self.answered && session.epoch() == connection {
                self.of.stands_on(connection);
            }
            let is_standing = self.of.is_standing(&session);
            // What has changed before all watches stood is read first. What has changed since does not count: where much does,
            // there is always something.
            if is_read && is_standing && (self.dirty.is_empty() || was_settled) {
                self.of.is_up_to_date(self.refused.values().next());
            }
            if self.dirty.is_empty() && (is_standing || !is_connected(&session)) {
                self.wait(&mut source, &mut session).await?;
            }
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

    /// Lets the server learn what other servers may have told another session. Returns whether it has: one that serves only
    /// readers does not, and what it has may be older for that.
    async fn catches_up(&self) -> Result<bool, Stop> {
        match self.client.sync(&self.of.root).await {
            Ok(()) => Ok(true),
            Err(error) => still_following(error).map(|_| false),
        }
    }

    /// Reads everything anew if a member without a quorum has served the session since that was last done, and another one
    /// does now. No watch tells of what is undone.
    async fn leave_readers(&mut self, source: &mut Source, session: &Session) -> Result<(), Stop> {
        let serves_all = || session.state() == SessionState::Connected { read_only: false };
        while serves_all() && session.read_only_epoch() > self.agreed {
            self.of.is_behind();
            let connection = session.epoch();
            // Otherwise the connection may be another one by now, perhaps to such a member again.
            if self.catches_up().await? || session.epoch() == connection {
                (self.agreed, self.replaces) = (connection, true);
                self.read_anew(source);
            }
        }
        Ok(())
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
            Some(None) => self.outlive(source)?,
            // The state of the connection has changed.
            None => {}
        }
        Ok(())
    }

    /// Goes on without a watch that has ended, if the session has moved to an older server: with those of single nodes.
    fn outlive(&mut self, source: &mut Source) -> Result<(), Stop> {
        match source.end() {
            None => {}
            Some(WatchEnd::Unsupported) => {
                self.of.is_behind();
                *source = Source::singles(&self.client);
                self.load_all();
            }
            Some(end) => return Err(end.into()),
        }
        Ok(())
    }

    fn take_news(&mut self, source: &mut Source) {
        let Meanwhile { changed, resync, .. } = mem::take(&mut self.meanwhile);
        for path in changed {
            self.costly.forget(&path);
            self.again(path, Dirty::CHANGED);
        }
        if let Some(resync) = resync {
            self.note(Queued::Resync(resync), source);
        }
        while let Some(news) = source.try_news() {
            self.note(news, source);
        }
    }

    /// Takes events while reads are under way: reading everything may take long, and their queue is short.
    ///
    /// What has changed is read when all those reads have been answered. Meanwhile it may not have a parent in the copy.
    fn hear_meanwhile(&mut self, source: &Source) {
        if source.is_of_singles() {
            return;
        }
        while self.meanwhile.has_room() {
            match source.try_news() {
                Some(Queued::Event(event)) => {
                    let path = self.client.handle.chroot.relative(&event.path);
                    let tells = event.kind != EventType::NODE_CHILDREN_CHANGED;
                    if tells && self.of.scope.contains(&self.of.root, path) {
                        self.meanwhile.note(path.into());
                    }
                }
                Some(Queued::Resync(resync)) => {
                    self.of.is_behind();
                    // Whatever is still to be read will be read anew.
                    self.meanwhile.resync = Some(resync);
                    self.dirty.clear();
                }
                None => return,
            }
        }
    }

    fn note(&mut self, news: Queued, source: &mut Source) {
        let event = match news {
            Queued::Event(event) => event,
            Queued::Resync(_) => return self.read_anew(source),
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
        if !of_children || lists {
            self.costly.forget(&path);
            self.again(path, Dirty { node: !of_children, children: lists, alone: false });
        }
    }

    /// Reads everything, since watches have not told of all changes.
    fn read_anew(&mut self, source: &mut Source) {
        self.of.is_behind();
        if source.is_of_singles() {
            // It is unknown which of the watches have fired.
            *source = Source::singles(&self.client);
        }
        self.load_all();
    }

    fn load_all(&mut self) {
        self.loading = Some(self.of.contents.paths_from("/").into_iter().collect());
        self.refused.clear();
        self.dirty.clear();
        self.again(self.of.root.clone(), Dirty::NEW);
    }

    /// Reads the nodes that may have changed, and the nodes discovered by those reads.
    async fn read_dirty(&mut self, source: &mut Source) -> Result<(), Stop> {
        loop {
            if self.meanwhile.resync.is_none() {
                self.submit(source);
            }
            let Some(reading) = self.flight.pop() else { break };
            self.finish(source, reading).await?;
            self.hear_meanwhile(source);
        }
        if self.meanwhile.resync.is_some() {
            return Ok(());
        }
        if let Some(unseen) = self.loading.take() {
            unseen.iter().for_each(|path| self.of.contents.remove(path));
            self.of.contents.tell(&CacheEvent::Loaded);
            self.replaces = false;
        }
        Ok(())
    }

    pub(super) fn goes_below(&self, path: &str) -> bool {
        self.of.scope.goes_below(&self.of.root, path)
    }
}

fn is_connected(session: &Session) -> bool {
    matches!(session.state(), SessionState::Connected { .. })
}

/// Treats an error as final only if the session is over.
pub(super) fn still_following(error: ReadError) -> Result<ReadError, Stop> {
    match error.session_end() {
        Some(end) => Err(Stop::Session(end)),
        None => Ok(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_changes_of_a_node_take_room_once() {
        let mut meanwhile = Meanwhile::default();
        let path: Arc<str> = "x".repeat(MEANWHILE_LEN_MAX / 2).into();
        for _ in 0..3 {
            meanwhile.note(path.clone());
            assert!(meanwhile.has_room());
        }
        meanwhile.note(format!("{path}/below").into());
        assert!(!meanwhile.has_room());
    }
}
