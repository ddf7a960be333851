//! Creates that are carried through a lost reply, by the session and not by their caller.
//!
//! The node's name begins with an id that nobody else has. If the reply is lost, the session, once it is
//! back, asks for a `sync` and then for the siblings: if a node with that id is among them, that is the
//! one; if none is, none will ever appear, and the node is created again. The `sync` is not optional: a
//! create that the leader has accepted but not committed is invisible to a client that reconnects, and
//! without waiting for it a second node would be made.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use zk_proto::{
    AclList, CreateFlags, ErrorCode, OpCode, Request, SessionId, Stat, Str,
    frame::RequestFrame,
    jute::decode_prefix,
    path::{join, name, parse_sequence},
    planted,
    request::{
        Create2Request, Create2Response, CreateRequest, CreateResponse, ExistsRequest,
        ExistsResponse, GetChildrenRequest, GetChildrenResponse, SyncRequest,
    },
    session::{Answer, Cause as Lost, LinkError, OnLoss, Outcome, Outgoing},
};

use crate::{
    call::{CallError as _, Command, Token, Verdict},
    chroot::Chroot,
    error::{Cause, WriteError},
    level::{Level, stat_at_birth},
    node::OwnedNode,
    session::Published,
    sweep::Sweep,
    watch::Listener,
};

/// A create with an id in its name, and who waits for the node.
#[derive(Debug)]
pub(crate) struct ProtectedCreate {
    /// Absolute.
    pub(crate) parent: Arc<str>,
    /// The name as requested, with the id in front.
    pub(crate) name: String,
    pub(crate) data: Bytes,
    pub(crate) acl: AclList,
    pub(crate) flags: CreateFlags,
    pub(crate) chroot: Chroot,
    pub(crate) done: oneshot::Sender<Result<OwnedNode, WriteError>>,
}

/// How many replies of a search may break the connection before it is given up: each costs a new one.
const UNREAD_MAX: u32 = 8;

/// What an attempt is waiting for.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The reply to the create.
    Create,
    /// The reply to the `sync` in front of the listing.
    Sync,
    /// The listing; whether the `sync` in front of it was answered well.
    List { synced: bool },
    /// The [`Stat`] of the node that was found, of that sequence number.
    Check { sequence: Option<i32> },
}

#[derive(Debug)]
struct Attempt {
    create: ProtectedCreate,
    step: Step,
    /// Which of the two creates was sent last.
    legacy: bool,
    /// How many replies of the search could not be read.
    unread: u32,
    level: Arc<Level>,
}

/// All creates under way.
#[derive(Debug)]
pub(crate) struct Attempts {
    running: BTreeMap<u64, Attempt>,
    next: u64,
    /// For the nodes that come of it. Weak, or the driver would keep itself alive.
    commands: mpsc::WeakUnboundedSender<Command>,
    level: Arc<Level>,
    published: watch::Receiver<Published>,
}

/// What an attempt wants next.
#[derive(Debug)]
pub(crate) enum Next {
    Submit(Outgoing<Token, Listener>),
    Sweep(Sweep),
    /// Call [`Attempts::retry`] with this a little later.
    Later(u64),
}

impl Attempts {
    pub(crate) const fn new(
        commands: mpsc::WeakUnboundedSender<Command>,
        level: Arc<Level>,
        published: watch::Receiver<Published>,
    ) -> Self {
        Self { running: BTreeMap::new(), next: 0, commands, level, published }
    }

    /// Whether all have come to their end.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn start(&mut self, create: ProtectedCreate) -> Outgoing<Token, Listener> {
        let id = self.next;
        self.next += 1;
        let level = self.level.clone();
        let mut attempt = Attempt { create, step: Step::Create, legacy: false, unread: 0, level };
        let request = attempt.create_request(id);
        self.running.insert(id, attempt);
        request
    }

    /// A server was not able to resolve the doubt when it was asked; ask again.
    pub(crate) fn retry(&mut self, id: u64) -> Vec<Next> {
        match self.running.get_mut(&id) {
            Some(attempt) => attempt.search(id),
            None => Vec::new(),
        }
    }

    /// One of an attempt's requests has come to its end.
    pub(crate) fn advance(&mut self, id: u64, session: SessionId, outcome: Outcome) -> Vec<Next> {
        let Some(mut attempt) = self.running.remove(&id) else { return Vec::new() };
        let progress = match attempt.step {
            Step::Create => attempt.created(id, session, outcome),
            Step::Sync => attempt.synced(outcome),
            Step::List { synced } => attempt.listed(id, synced, outcome),
            Step::Check { sequence } => attempt.checked(id, session, sequence, outcome),
        };
        match progress {
            Progress::Go(next) => {
                self.running.insert(id, attempt);
                next
            }
            Progress::Done(result) => {
                self.finish(attempt.create, result);
                Vec::new()
            }
        }
    }

    fn finish(&self, create: ProtectedCreate, result: Result<Found, WriteError>) {
        let result = match result {
            Ok(Found { name, stat, sequence }) => {
                // Without a client the session is being closed, and takes the node along.
                let Some(commands) = self.commands.upgrade() else { return };
                Ok(OwnedNode {
                    absolute: Arc::from(join(&create.parent, &name)),
                    stat,
                    sequence,
                    chroot: create.chroot,
                    commands: Some(commands),
                    published: self.published.clone(),
                })
            }
            Err(error) => Err(error),
        };
        // If nobody waits any more, the node deletes itself in being dropped.
        let unwanted = create.done.send(result);
        if planted!(CancelLeavesNode) {
            std::mem::forget(unwanted);
        }
    }
}

/// The node of an attempt.
struct Found {
    name: String,
    stat: Stat,
    sequence: Option<i32>,
}

enum Progress {
    Go(Vec<Next>),
    Done(Result<Found, WriteError>),
}

fn harmless<R: Request>(id: u64, request: &R) -> Next {
    Next::Submit(Outgoing {
        frame: RequestFrame::of(request),
        token: Token::Attempt(id),
        watch: None,
        on_loss: OnLoss::Resend,
    })
}

impl Attempt {
    fn path(&self) -> String {
        join(&self.create.parent, &self.create.name)
    }

    fn create_request(&mut self, id: u64) -> Outgoing<Token, Listener> {
        self.legacy = self.level.lacks_create2();
        let path = self.path();
        let create = CreateRequest {
            path: Str::from(&*path),
            data: Some(&self.create.data),
            acl: self.create.acl.clone(),
            flags: self.create.flags,
        };
        let frame = if self.legacy {
            RequestFrame::of(&create)
        } else {
            RequestFrame::of(&Create2Request(create))
        };
        Outgoing { frame, token: Token::Attempt(id), watch: None, on_loss: OnLoss::Report }
    }

    fn again(&mut self, id: u64) -> Progress {
        if self.create.done.is_closed() {
            // Nobody waits for the node, and there is none.
            return failed(over());
        }
        self.step = Step::Create;
        Progress::Go(vec![Next::Submit(self.create_request(id))])
    }

    fn search(&mut self, id: u64) -> Vec<Next> {
        self.step = Step::Sync;
        let parent = Str::from(&*self.create.parent);
        let mut next = vec![
            harmless(id, &SyncRequest { path: parent }),
            harmless(id, &GetChildrenRequest { path: parent, watch: false }),
        ];
        if planted!(ListsWithoutSync) {
            self.step = Step::List { synced: true };
            next.remove(0);
        }
        next
    }

    fn created(&mut self, id: u64, session: SessionId, outcome: Outcome) -> Progress {
        let answer = match outcome {
            Outcome::Answered(answer) => answer,
            Outcome::NotSent(cause) => return failed(cause),
            Outcome::Unknown(cause @ Lost::SessionOver(_)) => return failed(cause),
            Outcome::Unknown(cause) => {
                tracing::debug!(name = self.create.name, %cause, "create in doubt");
                if planted!(CreatesAgain) {
                    return self.again(id);
                }
                return Progress::Go(self.search(id));
            }
        };
        match answer.code {
            ErrorCode::OK => match self.read_created(session, &answer) {
                Some(found) => Progress::Done(Ok(found)),
                None => Progress::Go(self.search(id)),
            },
            ErrorCode::UNIMPLEMENTED if !self.legacy => {
                self.level.learn_no_create2();
                self.again(id)
            }
            code => match Verdict::of(code) {
                Verdict::InDoubt(_) => Progress::Go(self.search(id)),
                _ => Progress::Done(Err(WriteError::answered(OpCode::CREATE2, code))),
            },
        }
    }

    /// The node that a create has answered with; `None` if the answer makes no sense.
    fn read_created(&self, session: SessionId, answer: &Answer) -> Option<Found> {
        let (path, stat) = if self.legacy {
            let CreateResponse { path } = decode_prefix(&answer.body).ok()?;
            (path, stat_at_birth(answer.zxid, session, self.create.data.len()))
        } else {
            let Create2Response { path, stat } = decode_prefix(&answer.body).ok()?;
            (path, stat)
        };
        let name = name(&path.lossy()).to_owned();
        let sequence = self.sequence(&name);
        Some(Found { name, stat, sequence })
    }

    /// The number that a server has put behind the name that was asked for.
    fn sequence(&self, name: &str) -> Option<i32> {
        name.strip_prefix(&*self.create.name).and_then(parse_sequence)
    }

    fn synced(&mut self, outcome: Outcome) -> Progress {
        let synced = match outcome {
            Outcome::Answered(answer) => answer.code.is_ok(),
            // The listing behind it shares its fate, and reports it.
            Outcome::NotSent(_) | Outcome::Unknown(_) => false,
        };
        self.step = Step::List { synced };
        Progress::Go(Vec::new())
    }

    fn listed(&mut self, id: u64, synced: bool, outcome: Outcome) -> Progress {
        let answer = match outcome {
            Outcome::Answered(answer) => answer,
            Outcome::NotSent(cause) | Outcome::Unknown(cause) => return self.unread(id, cause),
        };
        let listing = match answer.code {
            _ if !synced => return Progress::Go(vec![Next::Later(id)]),
            ErrorCode::THROTTLED_OP => return Progress::Go(vec![Next::Later(id)]),
            ErrorCode::OK => decode_prefix::<GetChildrenResponse>(&answer.body),
            // No parent, no node; the next create will say so.
            ErrorCode::NO_NODE => return self.again(id),
            code => return unresolved(code),
        };
        let Ok(GetChildrenResponse { children }) = listing else {
            return Progress::Go(vec![Next::Later(id)]);
        };
        let ours = if planted!(FindsAnyNode) { "_c_" } else { &*self.create.name };
        let mut found: Vec<(Option<i32>, String)> = children
            .strs()
            .filter(|name| name.starts_with(ours))
            .map(|name| (self.sequence(&name), name.into_owned()))
            .collect();
        found.sort();
        let mut found = found.into_iter();
        let Some((sequence, first)) = found.next() else { return self.again(id) };
        self.step = Step::Check { sequence };
        let path = join(&self.create.parent, &first);
        let mut next = vec![harmless(id, &ExistsRequest { path: Str::from(&*path), watch: false })];
        // There should never be a second one; if there is, it is ours to remove.
        next.extend(found.map(|(_, twin)| {
            let path = Arc::from(join(&self.create.parent, &twin));
            Next::Sweep(Sweep { path, done: None })
        }));
        Progress::Go(next)
    }

    /// A question of the search has no answer: the session is over, or the reply could not be read and broke
    /// the connection. It may have been spoilt on its way; if it is always so, the search has to end.
    fn unread(&mut self, id: u64, cause: Lost) -> Progress {
        if matches!(cause, Lost::SessionOver(_)) {
            return failed(cause);
        }
        self.unread += 1;
        if self.unread > UNREAD_MAX {
            return Progress::Done(Err(WriteError::unknown(OpCode::CREATE2, cause.into())));
        }
        Progress::Go(vec![Next::Later(id)])
    }

    fn checked(
        &mut self,
        id: u64,
        session: SessionId,
        sequence: Option<i32>,
        outcome: Outcome,
    ) -> Progress {
        let answer = match outcome {
            Outcome::Answered(answer) => answer,
            Outcome::NotSent(cause) | Outcome::Unknown(cause) => return self.unread(id, cause),
        };
        let stat = answer.code.is_ok().then(|| decode_prefix::<ExistsResponse>(&answer.body));
        match (answer.code, stat) {
            (_, Some(Ok(ExistsResponse { stat })))
                if stat.ephemeral_owner == session || planted!(AdoptsOldNode) =>
            {
                let digits = sequence.map(|sequence| format!("{sequence:010}"));
                let name = self.create.name.clone() + &digits.unwrap_or_default();
                Progress::Done(Ok(Found { name, stat, sequence }))
            }
            // Somebody has deleted it between listing and look.
            (ErrorCode::NO_NODE, _) => self.again(id),
            (code @ ErrorCode::NO_AUTH, _) => unresolved(code),
            _ => Progress::Go(vec![Next::Later(id)]),
        }
    }
}

/// The servers do not let us look for our own node.
fn unresolved(code: ErrorCode) -> Progress {
    let refused = LinkError::Other(format!("search for the node refused: {code}"));
    Progress::Done(Err(WriteError::unknown(OpCode::CREATE2, Cause::Disconnected(refused))))
}

const fn over() -> Lost {
    Lost::SessionOver(zk_proto::session::Over::Closed)
}

/// Without its session the node cannot outlive the doubt.
fn failed(cause: Lost) -> Progress {
    Progress::Done(Err(WriteError::NotApplied(Cause::from(cause))))
}
