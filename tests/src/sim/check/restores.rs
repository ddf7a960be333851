//! W2: a new connection arms each watch again that the session has, once, and none that it has not.

use std::collections::{BTreeMap, BTreeSet};

use zk_proto::{
    AddWatchMode, ErrorCode, EventType, OpCode, SessionId,
    request::{AnyRequest, WatcherEvent},
    traffic::{Reply, SentRequest},
};
use zk_testkit::sim::{ConnectorId, LinkId, Seen};

use super::Checker;

/// The kinds of which a new connection is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Data,
    Missing,
    Children,
    Persistent,
    Recursive,
}

/// All kinds, those that fire once first.
const SORTS: [Sort; 5] =
    [Sort::Data, Sort::Missing, Sort::Children, Sort::Persistent, Sort::Recursive];

#[derive(Default)]
pub(super) struct Restores {
    sessions: BTreeMap<SessionId, Watched>,
    /// Sessions that a minority serves: they have other names there than later.
    unnamed: BTreeMap<ConnectorId, SessionId>,
    /// What has been armed again on each connection.
    links: BTreeMap<LinkId, BTreeSet<(Sort, String)>>,
}

/// What a session has watches on, as its answers and events tell.
#[derive(Default)]
struct Watched {
    armed: BTreeMap<(Sort, String), State>,
    /// Where a persistent watch has been asked for: reads of the same path need no watch of the server's own there.
    persistent: BTreeSet<String>,
    /// Nothing can be concluded any more.
    odd: bool,
}

enum State {
    Armed,
    /// Has fired, or was removed, at that time. A connection that ended then may have taken the news along.
    Gone(u64),
}

impl Watched {
    fn end(&mut self, now: u64, sorts: &[Sort], path: &str) {
        for sort in sorts {
            let state = self.armed.get_mut(&(*sort, path.to_owned()));
            if let Some(state @ State::Armed) = state {
                *state = State::Gone(now);
            }
        }
    }

    /// A request that may have armed a watch, or removed some, is answered.
    fn answered(&mut self, now: u64, request: &AnyRequest<'_>, err: ErrorCode) {
        let (sort, path, asks) = match (request, err) {
            (AnyRequest::GetData(it), ErrorCode::OK) => (Sort::Data, it.path, it.watch),
            (AnyRequest::Exists(it), ErrorCode::OK) => (Sort::Data, it.path, it.watch),
            (AnyRequest::Exists(it), ErrorCode::NO_NODE) => (Sort::Missing, it.path, it.watch),
            (AnyRequest::GetChildren(it), ErrorCode::OK) => (Sort::Children, it.path, it.watch),
            (AnyRequest::GetChildren2(it), ErrorCode::OK) => (Sort::Children, it.path, it.watch),
            (AnyRequest::AddWatch(it), ErrorCode::OK) => {
                self.persistent.insert(it.path.to_owned_lossy());
                let is_recursive = it.mode != AddWatchMode::PERSISTENT;
                (if is_recursive { Sort::Recursive } else { Sort::Persistent }, it.path, true)
            }
            (AnyRequest::RemoveWatches(it), ErrorCode::OK) => {
                return self.end(now, &SORTS, &it.0.path.lossy());
            }
            _ => return,
        };
        let path = path.to_owned_lossy();
        if asks || self.persistent.contains(&path) {
            self.armed.insert((sort, path), State::Armed);
        }
    }

    fn has(&self, sort: Sort, path: &str) -> bool {
        matches!(self.armed.get(&(sort, path.to_owned())), Some(State::Armed))
    }
}

impl Checker {
    /// A session is taken in.
    pub(super) fn is_named(
        &mut self,
        connector: ConnectorId,
        session: SessionId,
        by_minority: bool,
    ) {
        let Restores { sessions, unnamed, .. } = &mut self.restores;
        let before = unnamed.remove(&connector).and_then(|before| sessions.remove(&before));
        if let Some(before) = before {
            sessions.insert(session, before);
        }
        if by_minority {
            unnamed.insert(connector, session);
        }
    }

    /// A reply has come to a client.
    pub(super) fn arms(&mut self, seen: &Seen, session: SessionId, reply: &Reply) {
        let Some(request) = &reply.request else { return };
        let concerns = matches!(
            request.header.op,
            OpCode::GET_DATA
                | OpCode::EXISTS
                | OpCode::GET_CHILDREN
                | OpCode::GET_CHILDREN2
                | OpCode::ADD_WATCH
                | OpCode::REMOVE_WATCHES
        );
        if !concerns {
            return;
        }
        let watched = self.restores.sessions.entry(session).or_default();
        watched.odd |= seen.forged;
        if let Ok(request) = request.decode() {
            watched.answered(seen.at, &request, reply.header.err);
        }
    }

    /// An event has come to a client.
    pub(super) fn fires(&mut self, seen: &Seen, session: SessionId, event: &WatcherEvent) {
        let watched = self.restores.sessions.entry(session).or_default();
        watched.odd |= seen.forged;
        let ends: &[Sort] = match event.kind {
            EventType::NODE_CREATED | EventType::NODE_DATA_CHANGED => &[Sort::Data, Sort::Missing],
            EventType::NODE_DELETED => &[Sort::Data, Sort::Missing, Sort::Children],
            EventType::NODE_CHILDREN_CHANGED => &[Sort::Children],
            _ => return,
        };
        watched.end(seen.at, ends, &event.path.lossy());
    }

    /// A client makes a new connection arm its watches.
    pub(super) fn restores(&mut self, seen: &Seen, session: SessionId, request: &SentRequest) {
        let lists = match request.decode() {
            Ok(AnyRequest::SetWatches(it)) => {
                vec![it.data_watches, it.exist_watches, it.child_watches]
            }
            Ok(AnyRequest::SetWatches2(it)) => vec![
                it.data_watches,
                it.exist_watches,
                it.child_watches,
                it.persistent_watches,
                it.persistent_recursive_watches,
            ],
            _ => return,
        };
        let lists = SORTS.into_iter().zip(&lists);
        let watched = self.restores.sessions.entry(session).or_default();
        watched.odd |= seen.forged;
        let on_link = self.restores.links.entry(seen.link).or_default();
        let (mut paths, mut wrong) = (0_u64, Vec::new());
        for (sort, path) in lists.flat_map(|(sort, list)| list.iter().map(move |it| (sort, it))) {
            let path = path.lossy().into_owned();
            paths += 1;
            if !watched.has(sort, &path) {
                wrong.push(format!("{path} ({sort:?}), which it has no watch on"));
            } else if !on_link.insert((sort, path.clone())) {
                wrong.push(format!("{path} ({sort:?}) twice"));
            }
        }
        if watched.odd || self.was_damaged(session) {
            return;
        }
        *self.counts.entry("paths watched again").or_default() += paths;
        for wrong in wrong {
            self.violated("W2", format!("c{} arms {wrong}", seen.client));
        }
    }

    /// A client that stands still may lose what has come to it.
    pub(super) fn loses_news(&mut self, session: SessionId) {
        if let Some(watched) = self.restores.sessions.get_mut(&session) {
            watched.odd = true;
        }
    }

    /// A connection ends, perhaps with what has just come.
    pub(super) fn takes_news_along(&mut self, at: u64, session: SessionId, link: LinkId) {
        self.restores.links.remove(&link);
        let Some(watched) = self.restores.sessions.get_mut(&session) else { return };
        watched.armed.retain(|_, state| {
            let stays =
                matches!(state, State::Armed) || matches!(state, State::Gone(gone) if *gone == at);
            *state = State::Armed;
            stays
        });
    }
}
