//! Creates that are carried through a lost reply, by the session and not by their caller.
//!
//! The node's name begins with an id that nobody else has. If the reply is lost, the session, once it is
//! back, asks for a `sync` and then for the siblings: if a node with that id is among them, that is the
//! one; if none is, none will ever appear, and the node is created again. The `sync` is not optional: a
//! create that the leader has accepted but not committed is invisible to a client that reconnects, and
//! without waiting for it a second node would be made.
//!
//! Several nodes can be created together, in one transaction: then all are found, or none.
//!
//! | module | concern |
//! |---|---|
//! | `wanted` | a node to create, and what it is known by |
//! | `search` | what the answers to a search mean |

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::{oneshot, watch};
use zk_proto::{
    ErrorCode, OpCode, Request, SessionId, Str,
    frame::RequestFrame,
    jute::decode_prefix,
    planted,
    request::{
        CheckVersionRequest, Create2Request, Create2Response, CreateResponse, DeleteRequest,
        GetChildrenRequest, GetDataRequest, MultiOp, MultiRequest, MultiResponse, MultiResult,
        SetDataRequest, SetDataResponse, SyncRequest,
    },
    session::{Answer, Cause as Lost, OnLoss, Outcome, Outgoing, Patience},
};

mod search;
mod wanted;

use self::wanted::{Candidate, Found};
pub(crate) use self::wanted::{KnownBy, Wanted};
use crate::{
    call::{CallError as _, Token, Verdict},
    chroot::Chroot,
    error::{Cause, Rejection, WriteError},
    inbox::{Cost, WeakCommands},
    level::{Level, stat_at_birth},
    node::{Disowned, OwnedNode},
    operations::ANY_VERSION,
    session::{Lease, LeaseKeeper, Published},
    sweep::Sweep,
    transaction::{MultiError, failure},
    watch::Listener,
};

/// Creates with ids in their names, all or nothing, and who waits for the nodes.
#[derive(Debug)]
pub(crate) struct ProtectedCreate {
    /// At least one.
    pub(crate) nodes: Vec<Wanted>,
    /// A node of the same session that goes in the same transaction.
    pub(crate) replaced: Option<Disowned>,
    /// The absolute paths of nodes that must have these versions.
    pub(crate) checked: Vec<(Arc<str>, i32)>,
    pub(crate) chroot: Chroot,
    pub(crate) done: oneshot::Sender<Concluded>,
}

impl ProtectedCreate {
    /// Bytes that it takes up: about as many as its request.
    pub(crate) fn len(&self) -> usize {
        let nodes = self.nodes.iter().map(Wanted::len);
        let checked = self.checked.iter().map(|(path, _)| path.len());
        nodes.chain(checked).fold(0, usize::saturating_add)
    }
}

/// What has come of creates.
#[derive(Debug)]
pub(crate) struct Concluded {
    pub(crate) nodes: CreatedNodes,
    /// The node that was to be replaced, if it was not.
    pub(crate) kept: Option<OwnedNode>,
    /// How many of the operations, from the first one on, may have lacked nothing but a node above.
    pub(crate) creates: usize,
}

impl Concluded {
    pub(crate) const fn new(nodes: CreatedNodes, kept: Option<OwnedNode>) -> Self {
        Self { nodes, kept, creates: 0 }
    }

    /// As if it had been tried.
    pub(crate) const fn lacking(kept: Option<OwnedNode>) -> Self {
        let lacking = MultiError { index: 0, rejection: Rejection::NoNode };
        Self { nodes: Ok(Err(lacking)), kept, creates: 1 }
    }
}

/// What comes of creates: all the nodes, in order, or none of them.
pub(crate) type CreatedNodes = Result<Result<Vec<OwnedNode>, MultiError>, WriteError>;

/// What an attempt is waiting for.
#[derive(Debug)]
enum Step {
    /// The reply to the create.
    Create,
    /// The replies to the `sync`, and to the listings or the look behind it.
    Search,
    /// The [`Stat`](zk_proto::Stat)s of the nodes that were found, and the data where that has to tell.
    Check { candidates: Vec<Candidate> },
}

#[derive(Debug)]
struct Attempt {
    create: ProtectedCreate,
    /// The room that it takes up, whatever it is just waiting for.
    cost: Option<Cost>,
    step: Step,
    /// Replies of this step that are still to come, and those that have; they come in order.
    missing: usize,
    outcomes: Vec<Outcome>,
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
    commands: WeakCommands,
    level: Arc<Level>,
    published: watch::Receiver<Published>,
    /// The room that the last one to end took up.
    freed: Option<Cost>,
    lease: Arc<Lease>,
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
        commands: WeakCommands,
        level: Arc<Level>,
        published: watch::Receiver<Published>,
        lease: Arc<Lease>,
    ) -> Self {
        let running = BTreeMap::new();
        Self { running, next: 0, commands, level, published, lease, freed: None }
    }

    /// Whether all have come to their end.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn start(
        &mut self,
        create: ProtectedCreate,
        cost: Option<Cost>,
    ) -> Outgoing<Token, Listener> {
        let id = self.next;
        self.next += 1;
        let mut attempt = Attempt {
            create,
            cost,
            step: Step::Create,
            missing: 1,
            outcomes: Vec::new(),
            legacy: false,
            unread: 0,
            level: self.level.clone(),
        };
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
        match attempt.heard(id, session, outcome) {
            Progress::Go(next) => {
                self.running.insert(id, attempt);
                next
            }
            Progress::Done(result) => {
                self.freed = attempt.cost;
                self.finish(attempt.create, result, true);
                Vec::new()
            }
            Progress::Incomplete { index, left } => {
                // As if the creates had been too late: whoever tries again asks for new names. But they have
                // happened, and the node that they replaced is gone.
                attempt.create.replaced = None;
                self.freed = attempt.cost;
                let missing = MultiError { index, rejection: Rejection::NoNode };
                self.finish(attempt.create, Ok(Err(missing)), false);
                left
            }
        }
    }

    /// The room that has become free, once.
    pub(crate) const fn take_freed(&mut self) -> Option<Cost> {
        self.freed.take()
    }

    fn finish(
        &self,
        create: ProtectedCreate,
        result: Result<Result<Vec<Found>, MultiError>, WriteError>,
        may_lack_parents: bool,
    ) {
        let ProtectedCreate { nodes: wanted, replaced, chroot, done, .. } = create;
        // Without a client the session is being closed, and takes the nodes along.
        let Some(commands) = self.commands.upgrade() else { return };
        let own = |Disowned { absolute, stat, sequence, is_shared }| OwnedNode {
            absolute,
            stat,
            sequence,
            is_shared,
            chroot: chroot.clone(),
            commands: Some(commands.clone()),
            published: self.published.clone(),
            _lease: LeaseKeeper::new(&self.lease),
        };
        let creates = if may_lack_parents { wanted.len() } else { 0 };
        let created = matches!(result, Ok(Ok(_)));
        let nodes = result.map(|found| {
            let pairs = found.map(|found| wanted.into_iter().zip(found));
            pairs.map(|pairs| pairs.map(|(wanted, found)| own(found.of(&wanted))).collect())
        });
        let kept = replaced.filter(|_| !created).map(own);
        // If nobody waits any more, the nodes delete themselves in being dropped.
        let unwanted = done.send(Concluded { nodes, kept, creates });
        if planted!(CancelLeavesNode) {
            std::mem::forget(unwanted);
        }
    }
}

enum Progress {
    Go(Vec<Next>),
    Done(Result<Result<Vec<Found>, MultiError>, WriteError>),
    /// Somebody has deleted this one of several nodes meanwhile.
    Incomplete {
        index: usize,
        left: Vec<Next>,
    },
}

fn harmless<R: Request>(id: u64, request: &R) -> Next {
    Next::Submit(Outgoing {
        frame: RequestFrame::of(request),
        token: Token::Attempt(id),
        watch: None,
        on_loss: OnLoss::Resend,
        // What stands behind it would be answered before it.
        patience: Patience::Connections,
    })
}

impl Attempt {
    /// Whether this is one plain create, and not a transaction.
    fn is_plain(&self) -> bool {
        let ProtectedCreate { nodes, replaced, checked, .. } = &self.create;
        nodes.len() == 1 && replaced.is_none() && checked.is_empty() && !self.is_shared()
    }

    /// Whether others use the name of the (only) node too.
    fn is_shared(&self) -> bool {
        self.create.nodes.iter().any(Wanted::shares_its_name)
    }

    fn op(&self) -> OpCode {
        if self.is_plain() { OpCode::CREATE2 } else { OpCode::MULTI }
    }

    fn create_request(&mut self, id: u64) -> Outgoing<Token, Listener> {
        self.legacy = self.level.lacks_create2();
        let frame = match &*self.create.nodes {
            [node] if self.is_plain() => {
                let path = node.path();
                let create = node.request(&path);
                if self.legacy {
                    RequestFrame::of(&create)
                } else {
                    RequestFrame::of(&Create2Request(create))
                }
            }
            nodes => {
                // The plain create: every server knows it, and not every one can tell the stat here.
                let paths: Vec<String> = nodes.iter().map(Wanted::path).collect();
                let creates = nodes.iter().zip(&paths).map(|(node, path)| node.request(path));
                let checks = self.create.checked.iter().map(|(path, version)| {
                    let path = Str::from(&**path);
                    MultiOp::Check(CheckVersionRequest { path, version: *version })
                });
                let deletes = self.create.replaced.iter().map(|node| {
                    let path = Str::from(&*node.absolute);
                    MultiOp::Delete(DeleteRequest { path, version: ANY_VERSION })
                });
                // Written once before anybody can see it: see `protected_by_its_data`.
                let sets =
                    nodes.iter().zip(&paths).filter(|_| self.is_shared()).map(|(node, path)| {
                        let (path, data) = (Str::from(&**path), Some(&*node.data));
                        MultiOp::SetData(SetDataRequest { path, data, version: 0 })
                    });
                let ops = creates.map(MultiOp::Create).chain(sets).chain(checks).chain(deletes);
                let multi: MultiRequest = ops.collect();
                RequestFrame::of(&multi)
            }
        };
        let (token, on_loss) = (Token::Attempt(id), OnLoss::Report);
        Outgoing { frame, token, watch: None, on_loss, patience: Patience::Throttling }
    }

    /// One of the replies that this step waits for.
    fn heard(&mut self, id: u64, session: SessionId, outcome: Outcome) -> Progress {
        self.outcomes.push(outcome);
        self.missing -= 1;
        if self.missing > 0 {
            return Progress::Go(Vec::new());
        }
        let mut outcomes = std::mem::take(&mut self.outcomes);
        match std::mem::replace(&mut self.step, Step::Create) {
            Step::Create => match outcomes.pop() {
                Some(outcome) => self.created(id, session, outcome),
                None => Progress::Go(Vec::new()),
            },
            Step::Search if self.is_shared() => self.looked(id, session, outcomes),
            Step::Search => self.searched(id, outcomes),
            Step::Check { candidates } => self.checked(id, session, candidates, outcomes),
        }
    }

    fn wait_for(&mut self, step: Step, replies: usize) {
        self.step = step;
        self.missing = replies;
    }

    fn again(&mut self, id: u64) -> Progress {
        if self.create.done.is_closed() {
            // Nobody waits for the nodes, and there are none.
            return failed(over());
        }
        self.wait_for(Step::Create, 1);
        Progress::Go(vec![Next::Submit(self.create_request(id))])
    }

    /// The parents, each once.
    fn parents(&self) -> Vec<Arc<str>> {
        let mut parents: Vec<Arc<str>> = Vec::new();
        for node in &self.create.nodes {
            if !parents.contains(&node.parent) {
                parents.push(node.parent.clone());
            }
        }
        parents
    }

    fn search(&mut self, id: u64) -> Vec<Next> {
        let parents = self.parents();
        let sync = parents.first().filter(|_| !planted!(ListsWithoutSync));
        let sync = sync.map(|path| harmless(id, &SyncRequest { path: Str::from(&**path) }));
        if self.is_shared() {
            let look = |node: &Wanted| {
                let path = node.path();
                harmless(id, &GetDataRequest { path: Str::from(&*path), watch: false })
            };
            let next: Vec<Next> =
                sync.into_iter().chain(self.create.nodes.iter().map(look)).collect();
            self.wait_for(Step::Search, next.len());
            return next;
        }
        let list = |parent: &Arc<str>| {
            harmless(id, &GetChildrenRequest { path: Str::from(&**parent), watch: false })
        };
        let next: Vec<Next> = sync.into_iter().chain(parents.iter().map(list)).collect();
        self.wait_for(Step::Search, next.len());
        next
    }

    fn created(&mut self, id: u64, session: SessionId, outcome: Outcome) -> Progress {
        let answer = match outcome {
            Outcome::Answered(answer) => answer,
            Outcome::NotSent(cause) => return failed(cause),
            Outcome::Unknown(cause @ Lost::SessionOver(_)) => return failed(cause),
            Outcome::Unknown(cause) => {
                tracing::debug!(name = self.create.nodes[0].name, %cause, "create in doubt");
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
            ErrorCode::UNIMPLEMENTED if self.is_plain() && !self.legacy => {
                self.level.learn_no_create2();
                self.again(id)
            }
            code => match Verdict::of(code) {
                Verdict::InDoubt(_) => Progress::Go(self.search(id)),
                _ => Progress::Done(match WriteError::answered(self.op(), code) {
                    // One or several: what was refused is one of the nodes.
                    WriteError::Rejected(rejection) if self.is_plain() => {
                        Ok(Err(MultiError { index: 0, rejection }))
                    }
                    error => Err(error),
                }),
            },
        }
    }

    /// The nodes that a create has answered with, or what has stopped the transaction; `None` if the answer
    /// makes no sense.
    fn read_created(
        &self,
        session: SessionId,
        answer: &Answer,
    ) -> Option<Result<Vec<Found>, MultiError>> {
        let nodes = &self.create.nodes;
        let at_birth = |node: &Wanted| stat_at_birth(answer.zxid, session, node.data.len());
        if self.is_plain() {
            let node = nodes.first()?;
            let (path, stat) = if self.legacy {
                let CreateResponse { path } = decode_prefix(&answer.body).ok()?;
                (path, at_birth(node))
            } else {
                let Create2Response { path, stat } = decode_prefix(&answer.body).ok()?;
                (path, stat)
            };
            return Some(Ok(vec![node.found(&path.lossy(), stat)?]));
        }
        let response: MultiResponse = decode_prefix(&answer.body).ok()?;
        if let Some(failure) = failure(&response) {
            return Some(Err(failure));
        }
        let mut results = response.iter();
        let written = response.iter().nth(nodes.len()).and_then(|(_, result)| match result {
            MultiResult::SetData(SetDataResponse { stat }) => Some(stat),
            _ => None,
        });
        let at_birth = |node: &Wanted| written.unwrap_or_else(|| at_birth(node));
        let found = nodes.iter().map(|node| match results.next()? {
            (_, MultiResult::Create(CreateResponse { path })) => {
                node.found(&path.lossy(), at_birth(node))
            }
            _ => None,
        });
        found.collect::<Option<Vec<Found>>>().map(Ok)
    }
}

const fn over() -> Lost {
    Lost::SessionOver(zk_proto::session::Over::Closed)
}

/// Without its session the node cannot outlive the doubt.
fn failed(cause: Lost) -> Progress {
    Progress::Done(Err(WriteError::NotApplied(Cause::from(cause))))
}
