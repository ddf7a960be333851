//! Determines the fate of creates whose reply was lost, from the replies of the search.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use zk_proto::{
    ErrorCode, SessionId, Stat, Str,
    jute::decode_prefix,
    path::join,
    request::{ExistsRequest, ExistsResponse, GetChildrenResponse, GetDataRequest, GetDataView},
    session::{Answer, Cause as Lost, Outcome},
};

use super::{
    node_spec::{Candidate, FoundNode, KnownBy, NodeSpec},
    one::{Attempt, AttemptId, Next, Progress, Step, harmless},
};
use crate::error::{CallError as _, Cause, LinkError, MultiError, Rejection, WriteError};

/// How many unreadable replies a search tolerates before it is given up: each one costs a connection.
const UNREAD_MAX: u32 = 8;

impl Attempt {
    /// Processes the listings of the siblings, unless they are incomplete.
    pub(super) fn searched(&mut self, id: u64, over: u64, outcomes: Vec<Outcome>) -> Progress {
        let mut outcomes = outcomes.into_iter();
        // If it was lost, the listings behind it share its fate, and report it.
        let synced = is_ok(outcomes.next().as_ref());
        let mut siblings = BTreeMap::new();
        for (parent, outcome) in self.parents().into_iter().zip(outcomes) {
            let answer = match outcome {
                Outcome::Answered(answer) => answer,
                Outcome::NotSent(cause) | Outcome::Unknown(cause) => return self.unread(id, cause),
            };
            let names = match answer.code {
                _ if !synced => return Progress::Go(vec![Next::Later(AttemptId(id))]),
                ErrorCode::THROTTLED_OP => return Progress::Go(vec![Next::Later(AttemptId(id))]),
                ErrorCode::OK => decode_prefix::<GetChildrenResponse>(&answer.body),
                // No parent, no node; the next create will report it.
                ErrorCode::NO_NODE => continue,
                code => return self.unresolved(code),
            };
            let Ok(GetChildrenResponse { children }) = names else {
                return Progress::Go(vec![Next::Later(AttemptId(id))]);
            };
            siblings.insert(parent, children.strs().map(Cow::into_owned).collect());
        }
        self.look_among(id, over, &siblings)
    }

    /// Processes the read of a name that other clients use too: it is our node, another client's, or missing.
    pub(super) fn looked(
        &mut self,
        id: u64,
        session: SessionId,
        outcomes: Vec<Outcome>,
    ) -> Progress {
        let synced = is_ok(outcomes.first());
        let answer = match outcomes.into_iter().next_back() {
            Some(Outcome::Answered(answer)) => answer,
            Some(Outcome::NotSent(cause) | Outcome::Unknown(cause)) => {
                return self.unread(id, cause);
            }
            None => return Progress::Go(vec![Next::Later(AttemptId(id))]),
        };
        let (Some(node), true) = (self.create.nodes.first(), synced) else {
            return Progress::Go(vec![Next::Later(AttemptId(id))]);
        };
        match answer.code {
            ErrorCode::OK => {}
            ErrorCode::NO_NODE => return self.again(id),
            ErrorCode::THROTTLED_OP => return Progress::Go(vec![Next::Later(AttemptId(id))]),
            code => return self.unresolved(code),
        }
        match node.seen(session, &answer) {
            Some(Seen::Ours(stat)) => Progress::Done(Ok(Ok(vec![FoundNode {
                name: node.name.clone(),
                stat,
                sequence: None,
            }]))),
            Some(Seen::AnothersOfTheName) => {
                Progress::Done(Ok(Err(MultiError { index: 0, rejection: Rejection::NodeExists })))
            }
            None => Progress::Go(vec![Next::Later(AttemptId(id))]),
        }
    }

    /// Looks for the nodes: all exist, or none, unless another client has deleted some.
    fn look_among(
        &mut self,
        id: u64,
        over: u64,
        siblings: &BTreeMap<Arc<str>, Vec<String>>,
    ) -> Progress {
        let nodes = &self.create.nodes;
        let (mut next, mut candidates, mut twins) = (Vec::new(), Vec::new(), Vec::new());
        for (index, node) in nodes.iter().enumerate() {
            let names = siblings.get(&node.parent);
            let mut found = names.map(|names| node.among(names)).unwrap_or_default();
            if node.known_by != KnownBy::Data && found.len() > 1 {
                // There should never be a second one; if there is, it is ours to remove.
                twins.extend(
                    found.drain(1..).map(|(_, twin)| Next::GuaranteedDelete(node.sweep(&twin))),
                );
            }
            for (sequence, name) in found {
                let path = join(&node.parent, &name);
                next.push(node.look(id, &path));
                candidates.push(Candidate { index, name, sequence });
            }
        }
        if candidates.is_empty() {
            return self.again(id);
        }
        self.wait_for(Step::Check { candidates, over }, next.len());
        next.extend(twins);
        Progress::Go(next)
    }

    /// Handles a request of the search that has no reply: the session is over, or the reply was unreadable and broke
    /// the connection. It may have been corrupted in transit; if every reply is, the search has to end.
    fn unread(&mut self, id: u64, cause: Lost) -> Progress {
        self.unread += 1;
        if matches!(cause, Lost::SessionOver(_)) || self.unread > UNREAD_MAX {
            return self.unknown(cause);
        }
        Progress::Go(vec![Next::Later(AttemptId(id))])
    }

    /// Processes the reads of the candidates. `is_same`: they were answered over the connection of the listing.
    pub(super) fn checked(
        &mut self,
        id: u64,
        (session, is_same): (SessionId, bool),
        candidates: Vec<Candidate>,
        outcomes: Vec<Outcome>,
    ) -> Progress {
        let spec = &self.create.nodes;
        let mut nodes: Vec<Option<FoundNode>> = spec.iter().map(|_| None).collect();
        // A name that only we use has been listed. Others are candidates that may be another client's.
        let were_made =
            candidates.iter().any(|candidate| spec[candidate.index].known_by != KnownBy::Data);
        let mut hidden = Vec::new();
        for (outcome, Candidate { index, name, sequence }) in outcomes.into_iter().zip(candidates) {
            let answer = match outcome {
                Outcome::Answered(answer) => answer,
                Outcome::NotSent(cause) | Outcome::Unknown(cause) => return self.unread(id, cause),
            };
            match (answer.code, spec[index].seen(session, &answer)) {
                (ErrorCode::OK, Some(Seen::Ours(stat))) => {
                    nodes[index].get_or_insert(FoundNode { name, stat, sequence });
                }
                (ErrorCode::OK, Some(Seen::AnothersOfTheName)) => {}
                // Another client has deleted it between listing and read.
                (ErrorCode::NO_NODE, _) => {}
                // Another's, perhaps; ours may be readable.
                (code @ ErrorCode::NO_AUTH, _) => hidden.push((index, code)),
                _ => return Progress::Go(vec![Next::Later(AttemptId(id))]),
            }
        }
        let Some(missing) = nodes.iter().position(Option::is_none) else {
            return Progress::Done(Ok(Ok(nodes.into_iter().flatten().collect())));
        };
        if !is_same {
            // What was listed may be what a leader believed that was replaced.
            return Progress::Go(self.search(id));
        }
        if let Some((_, code)) = hidden.into_iter().find(|(index, _)| nodes[*index].is_none()) {
            return self.unresolved(code);
        }
        let none = nodes.iter().all(Option::is_none);
        if none && (self.is_plain() || !were_made) {
            return self.again(id);
        }
        // Another client has deleted this one of several nodes: the others are deleted too.
        let left = spec
            .iter()
            .zip(nodes)
            .filter_map(|(node, found)| Some(Next::GuaranteedDelete(found?.of(node).deletion())));
        Progress::Incomplete { index: missing, left: left.collect() }
    }

    /// Fails the attempt: the servers refuse to let us look for our own nodes.
    fn unresolved(&self, code: ErrorCode) -> Progress {
        let refused = LinkError::Other(format!("search for the node refused: {code}"));
        Progress::Done(Err(WriteError::unknown(self.op(), Cause::Disconnected(refused))))
    }
}

/// The result of reading a candidate.
enum Seen {
    Ours(Stat),
    /// Another client's node of the same name, or another attempt's.
    AnothersOfTheName,
}

impl NodeSpec {
    /// Reads a candidate: its owner and, where the name does not identify the node, its data.
    fn look(&self, id: u64, path: &str) -> Next {
        let path = Str::from(path);
        match self.known_by {
            KnownBy::Data => harmless(id, &GetDataRequest { path, watch: false }),
            KnownBy::Prefix | KnownBy::Name => harmless(id, &ExistsRequest { path, watch: false }),
        }
    }

    /// Interprets such a read; `None` if the reply cannot be trusted.
    fn seen(&self, session: SessionId, answer: &Answer) -> Option<Seen> {
        if self.known_by == KnownBy::Data {
            let GetDataView { data, stat } = decode_prefix(&answer.body).ok()?;
            let is_ours =
                *data.unwrap_or_default() == *self.data && stat.ephemeral_owner == session;
            return Some(if is_ours { Seen::Ours(stat) } else { Seen::AnothersOfTheName });
        }
        let ExistsResponse { stat } = decode_prefix(&answer.body).ok()?;
        // An older session's node of that name is impossible: this reply is stale.
        (stat.ephemeral_owner == session).then_some(Seen::Ours(stat))
    }
}

fn is_ok(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Outcome::Answered(answer)) if answer.code.is_ok())
}
