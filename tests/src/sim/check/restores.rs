//! W2: a new connection arms each watch again that the session has, once, and none that it has not.

use std::collections::{BTreeMap, BTreeSet};

use zk_proto::{
    AddWatchMode, ErrorCode, EventType, OpCode, SessionId, Str,
    request::{AnyRequest, WatcherEvent},
    traffic::{Reply, SentRequest},
};
use zk_testkit::sim::{LinkId, Seen};

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

/// Kinds that fire once.
const ONE_SHOT: [Sort; 3] = [Sort::Data, Sort::Missing, Sort::Children];

#[derive(Default)]
pub(super) struct Restores {
    sessions: BTreeMap<SessionId, Watched>,
    /// Clients that a minority serves: their sessions have other names there than later.
    unnamed: BTreeMap<u32, SessionId>,
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
    fn arm(&mut self, sort: Sort, path: String) {
        self.armed.insert((sort, path), State::Armed);
    }

    fn end(&mut self, now: u64, sorts: &[Sort], path: &str) {
        for sort in sorts {
            if let Some(state) = self.armed.get_mut(&(*sort, path.to_owned())) {
                if matches!(state, State::Armed) {
                    *state = State::Gone(now);
                }
            }
        }
    }

    /// A request that may have armed a watch, or removed some, is answered.
    fn answered(&mut self, now: u64, request: &AnyRequest<'_>, err: ErrorCode) {
        let leans = |path: &Str<'_>| self.persistent.contains(&*path.lossy());
        let (sort, path) = match (request, err) {
            (AnyRequest::GetData(it), ErrorCode::OK) if it.watch || leans(&it.path) => {
                (Sort::Data, it.path)
            }
            (AnyRequest::Exists(it), ErrorCode::OK) if it.watch || leans(&it.path) => {
                (Sort::Data, it.path)
            }
            (AnyRequest::Exists(it), ErrorCode::NO_NODE) if it.watch || leans(&it.path) => {
                (Sort::Missing, it.path)
            }
            (AnyRequest::GetChildren(it), ErrorCode::OK) if it.watch || leans(&it.path) => {
                (Sort::Children, it.path)
            }
            (AnyRequest::GetChildren2(it), ErrorCode::OK) if it.watch || leans(&it.path) => {
                (Sort::Children, it.path)
            }
            (AnyRequest::AddWatch(it), ErrorCode::OK) => {
                self.persistent.insert(it.path.to_owned_lossy());
                match it.mode {
                    AddWatchMode::PERSISTENT => (Sort::Persistent, it.path),
                    _ => (Sort::Recursive, it.path),
                }
            }
            (AnyRequest::RemoveWatches(it), ErrorCode::OK) => {
                let path = it.0.path.lossy();
                self.end(now, &ONE_SHOT, &path);
                return self.end(now, &[Sort::Persistent, Sort::Recursive], &path);
            }
            _ => return,
        };
        self.arm(sort, path.to_owned_lossy());
    }

    fn has(&self, sort: Sort, path: &str) -> bool {
        matches!(self.armed.get(&(sort, path.to_owned())), Some(State::Armed))
    }
}

impl Checker {
    /// A client is taken in.
    pub(super) fn is_named(&mut self, client: u32, session: SessionId, by_minority: bool) {
        let Restores { sessions, unnamed, .. } = &mut self.restores;
        let before = unnamed.remove(&client).and_then(|before| sessions.remove(&before));
        if let Some(before) = before {
            sessions.insert(session, before);
        }
        if by_minority {
            unnamed.insert(client, session);
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
            EventType::NODE_DELETED => &ONE_SHOT,
            EventType::NODE_CHILDREN_CHANGED => &[Sort::Children],
            _ => return,
        };
        watched.end(seen.at, ends, &event.path.lossy());
    }

    /// A client makes a new connection arm its watches.
    pub(super) fn restores(&mut self, seen: &Seen, session: SessionId, request: &SentRequest) {
        let lists = match request.decode() {
            Ok(AnyRequest::SetWatches(it)) => {
                vec![
                    (Sort::Data, it.data_watches),
                    (Sort::Missing, it.exist_watches),
                    (Sort::Children, it.child_watches),
                ]
            }
            Ok(AnyRequest::SetWatches2(it)) => vec![
                (Sort::Data, it.data_watches),
                (Sort::Missing, it.exist_watches),
                (Sort::Children, it.child_watches),
                (Sort::Persistent, it.persistent_watches),
                (Sort::Recursive, it.persistent_recursive_watches),
            ],
            _ => return,
        };
        let watched = self.restores.sessions.entry(session).or_default();
        watched.odd |= seen.forged;
        let on_link = self.restores.links.entry(seen.link).or_default();
        let (mut paths, mut wrong) = (0_u64, Vec::new());
        for (sort, path) in lists.iter().flat_map(|(sort, list)| list.iter().map(|it| (*sort, it)))
        {
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
        watched.armed.retain(|_, state| match state {
            State::Gone(gone) if *gone == at => {
                *state = State::Armed;
                true
            }
            State::Gone(_) => false,
            State::Armed => true,
        });
    }
}
