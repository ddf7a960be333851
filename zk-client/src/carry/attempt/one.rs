//! One create in progress: the replies it waits for, and its next step.

use std::{sync::Arc, time::Duration};

use zk_proto::{
    ErrorCode, OpCode, Request, SessionId, Str,
    frame::RequestFrame,
    jute::decode_prefix,
    request::{
        CheckVersionRequest, Create2Request, Create2Response, CreateResponse, DeleteRequest,
        GetChildrenRequest, GetDataRequest, MultiOp, MultiRequest, MultiResponse, MultiResult,
        SetDataRequest, SetDataResponse, SyncRequest,
    },
    session::{Answer, Cause as Lost, LinkError, OnLoss, Outcome, Outgoing, Patience},
};

use super::{
    node_spec::{Candidate, FoundNode, NodeSpec},
    protected::ProtectedCreate,
};
use crate::{
    carry::{
        capabilities::stat_at_birth, guaranteed_delete::GuaranteedDelete, known::Known,
        version::ANY_VERSION,
    },
    error::{CallError as _, Cause, MultiError, Verdict, WriteError, failure},
    queue::Permit,
    watch::Listener,
};

/// How many connections a create may cost, one after the other, before it is given up. All other requests lose theirs too:
/// it is longer than servers accept, most likely.
const COSTS_MAX: u32 = 8;

/// What an attempt is waiting for.
#[derive(Debug)]
pub(super) enum Step {
    /// The reply to the create.
    Create,
    /// The replies to the `sync`, and to the listings or the read behind it.
    Search,
    /// The [`Stat`](zk_proto::Stat)s of the nodes that were found over this connection, and the data where that identifies
    /// the node.
    Check { candidates: Vec<Candidate>, over: u64 },
}

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) create: ProtectedCreate,
    /// When the driver received it.
    pub(super) since: Duration,
    /// The permit it holds throughout, whatever it is waiting for.
    pub(super) permit: Option<Permit>,
    pub(super) step: Step,
    /// Outstanding replies of this step, and those received; they arrive in order.
    pub(super) missing: usize,
    pub(super) outcomes: Vec<Outcome>,
    /// The connection of the first of these replies.
    pub(super) connection: Option<u64>,
    /// Whether an earlier create may have been carried out. A search that has not found it proves that it never will be to
    /// the connection of the search alone, so the next create is sent over that one or not at all.
    pub(super) in_doubt: bool,
    /// Whether the last create sent was the legacy one.
    pub(super) legacy: bool,
    /// How many replies of the search were unreadable.
    pub(super) unread: u32,
    /// How many connections servers have ended over the create.
    pub(super) costs: u32,
    pub(super) known: Arc<Known>,
}

/// Identifies a create in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttemptId(pub(super) u64);

/// The next action of an attempt.
#[derive(Debug)]
pub(crate) enum Next {
    Submit(Outgoing<AttemptId, Listener>),
    GuaranteedDelete(GuaranteedDelete),
    /// Call [`Attempts::retry`](super::Attempts::retry) with this after a pause.
    Later(AttemptId),
}

pub(super) enum Progress {
    Go(Vec<Next>),
    Done(Result<Result<Vec<FoundNode>, MultiError>, WriteError>),
    /// Another client has deleted this one of several nodes in the meantime.
    Incomplete {
        index: usize,
        left: Vec<Next>,
    },
}

pub(super) fn harmless<R: Request>(id: u64, request: &R) -> Next {
    Next::Submit(Outgoing {
        frame: RequestFrame::of(request),
        token: AttemptId(id),
        watch: None,
        on_loss: OnLoss::Resend,
        // A resent request would be answered after those behind it.
        patience: Patience::Connections,
    })
}

impl Attempt {
    /// Whether this is one plain create rather than a transaction.
    pub(super) fn is_plain(&self) -> bool {
        self.create.is_plain()
    }

    /// Whether other clients use the name of the (only) node too.
    pub(super) fn is_shared(&self) -> bool {
        self.create.is_shared()
    }

    pub(super) fn op(&self) -> OpCode {
        self.create.op()
    }

    pub(super) fn create_request(&mut self, id: u64) -> Outgoing<AttemptId, Listener> {
        self.legacy = self.known.capabilities.lacks_create2();
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
                // The plain create: every server knows it, and some cannot return the stat here.
                let paths: Vec<String> = nodes.iter().map(NodeSpec::path).collect();
                let creates = nodes.iter().zip(&paths).map(|(node, path)| node.request(path));
                let checks = self.create.checked.iter().map(|(path, version)| {
                    let path = Str::from(&**path);
                    MultiOp::Check(CheckVersionRequest { path, version: *version })
                });
                let deletes = self.create.replaced.iter().map(|node| {
                    let path = Str::from(&*node.absolute);
                    MultiOp::Delete(DeleteRequest { path, version: ANY_VERSION })
                });
                // Written once before it is visible to any client: see `protected_by_its_data`.
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
        let (token, on_loss) = (AttemptId(id), OnLoss::Report);
        let patience = if self.in_doubt { Patience::FailFast } else { Patience::Throttling };
        Outgoing { frame, token, watch: None, on_loss, patience }
    }

    /// Fails in doubt.
    pub(super) fn unknown(&self, cause: Lost) -> Progress {
        Progress::Done(Err(WriteError::unknown(self.op(), cause.into())))
    }

    /// Processes one of the replies this step waits for, over this connection.
    pub(super) fn heard(
        &mut self,
        id: u64,
        (session, connection): (SessionId, u64),
        outcome: Outcome,
    ) -> Progress {
        self.outcomes.push(outcome);
        let first = *self.connection.get_or_insert(connection);
        self.missing -= 1;
        if self.missing > 0 {
            return Progress::Go(Vec::new());
        }
        let mut outcomes = std::mem::take(&mut self.outcomes);
        match std::mem::replace(&mut self.step, Step::Create) {
            // What the `sync` has brought one server up to, the next one need not know: see `Client::sync`.
            Step::Search if first != connection => Progress::Go(self.search(id)),
            Step::Create => match outcomes.pop() {
                Some(outcome) => self.created(id, session, outcome),
                None => Progress::Go(Vec::new()),
            },
            Step::Search if self.is_shared() => self.looked(id, session, outcomes),
            Step::Search => self.searched(id, connection, outcomes),
            Step::Check { candidates, over } => {
                let is_same = over == connection;
                self.checked(id, (session, is_same), candidates, outcomes)
            }
        }
    }

    pub(super) fn wait_for(&mut self, step: Step, replies: usize) {
        self.step = step;
        self.missing = replies;
        self.connection = None;
    }

    pub(super) fn again(&mut self, id: u64) -> Progress {
        if self.create.done.is_closed() {
            // No caller waits for the nodes, and there are none.
            return failed(over());
        }
        if self.costs >= COSTS_MAX {
            // Not certain but to the connection of the search.
            let cause = Lost::LinkLost(LinkError::Closed).into();
            return Progress::Done(Err(WriteError::unknown(self.op(), cause)));
        }
        self.wait_for(Step::Create, 1);
        Progress::Go(vec![Next::Submit(self.create_request(id))])
    }

    /// The parents, without duplicates.
    pub(super) fn parents(&self) -> Vec<Arc<str>> {
        let mut parents: Vec<Arc<str>> = Vec::new();
        for node in &self.create.nodes {
            if !parents.contains(&node.parent) {
                parents.push(node.parent.clone());
            }
        }
        parents
    }

    pub(super) fn search(&mut self, id: u64) -> Vec<Next> {
        self.in_doubt = true;
        let parents = self.parents();
        let sync =
            parents.first().map(|path| harmless(id, &SyncRequest { path: Str::from(&**path) }));
        if self.is_shared() {
            let look = |node: &NodeSpec| {
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

    pub(super) fn created(&mut self, id: u64, session: SessionId, outcome: Outcome) -> Progress {
        let answer = match outcome {
            Outcome::Answered(answer) => answer,
            Outcome::NotSent(cause @ (Lost::NotConnected | Lost::LinkLost(_))) if self.in_doubt => {
                tracing::debug!(name = self.create.nodes[0].name, %cause, "create not sent");
                return Progress::Go(self.search(id));
            }
            // What the search has shown holds for its connection alone.
            Outcome::NotSent(cause) if self.in_doubt => return self.unknown(cause),
            Outcome::NotSent(cause) => return failed(cause),
            // The node goes with the session, which may live on for others.
            Outcome::Unknown(cause @ Lost::SessionOver(_)) => return self.unknown(cause),
            Outcome::Unknown(cause) => {
                tracing::debug!(name = self.create.nodes[0].name, %cause, "create in doubt");
                self.costs += u32::from(is_ended(&cause));
                return Progress::Go(self.search(id));
            }
        };
        match answer.code {
            ErrorCode::OK => match self.read_created(session, &answer) {
                Some(found) => Progress::Done(Ok(found)),
                None => Progress::Go(self.search(id)),
            },
            ErrorCode::UNIMPLEMENTED if self.is_plain() && !self.legacy => {
                self.known.capabilities.answered(OpCode::CREATE2, answer.code);
                self.again(id)
            }
            ErrorCode::THROTTLED_OP if self.in_doubt => {
                Progress::Go(vec![Next::Later(AttemptId(id))])
            }
            code => match Verdict::of(code) {
                Verdict::InDoubt(_) => Progress::Go(self.search(id)),
                _ => Progress::Done(match WriteError::answered(self.op(), code) {
                    // As in a transaction: the refused operation is the create of a node.
                    WriteError::Rejected(rejection) if self.is_plain() => {
                        Ok(Err(MultiError { index: 0, rejection }))
                    }
                    error => Err(error),
                }),
            },
        }
    }

    /// Returns the nodes that a create has returned, or the operation that failed the transaction; `None` if the reply
    /// makes no sense.
    pub(super) fn read_created(
        &self,
        session: SessionId,
        answer: &Answer,
    ) -> Option<Result<Vec<FoundNode>, MultiError>> {
        let nodes = &self.create.nodes;
        let at_birth = |node: &NodeSpec| stat_at_birth(answer.zxid, session, node.data.len());
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
        let at_birth = |node: &NodeSpec| written.unwrap_or_else(|| at_birth(node));
        let found = nodes.iter().map(|node| match results.next()? {
            (_, MultiResult::Create(CreateResponse { path })) => {
                node.found(&path.lossy(), at_birth(node))
            }
            _ => None,
        });
        found.collect::<Option<Vec<FoundNode>>>().map(Ok)
    }
}

/// Whether a server has ended the connection.
const fn is_ended(cause: &Lost) -> bool {
    matches!(cause, Lost::LinkLost(LinkError::Closed | LinkError::Reset))
}

pub(super) const fn over() -> Lost {
    Lost::SessionOver(zk_proto::session::CloseReason::Closed)
}

/// Fails without doubt: nothing was sent of which nothing is known.
pub(super) fn failed(cause: Lost) -> Progress {
    Progress::Done(Err(WriteError::NotApplied(Cause::from(cause))))
}
