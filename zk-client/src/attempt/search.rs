//! What became of creates that were not answered: what the answers to the questions mean.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use zk_proto::{
    ErrorCode, SessionId, Str,
    jute::decode_prefix,
    path::join,
    planted,
    request::{ExistsRequest, ExistsResponse, GetChildrenResponse},
    session::{Cause as Lost, LinkError, Outcome},
};

use super::{Attempt, Found, Next, Progress, Step, failed, harmless};
use crate::{
    call::CallError as _,
    error::{Cause, WriteError},
};

/// How many replies of a search may break the connection before it is given up: each costs a new one.
const UNREAD_MAX: u32 = 8;

impl Attempt {
    /// The siblings of the nodes, or there is not enough to go by.
    pub(super) fn searched(&mut self, id: u64, outcomes: Vec<Outcome>) -> Progress {
        let mut outcomes = outcomes.into_iter();
        let synced = planted!(ListsWithoutSync)
            || match outcomes.next() {
                Some(Outcome::Answered(answer)) => answer.code.is_ok(),
                // The listings behind it share its fate, and report it.
                _ => false,
            };
        let mut siblings = BTreeMap::new();
        for (parent, outcome) in self.parents().into_iter().zip(outcomes) {
            let answer = match outcome {
                Outcome::Answered(answer) => answer,
                Outcome::NotSent(cause) | Outcome::Unknown(cause) => return self.unread(id, cause),
            };
            let names = match answer.code {
                _ if !synced => return Progress::Go(vec![Next::Later(id)]),
                ErrorCode::THROTTLED_OP => return Progress::Go(vec![Next::Later(id)]),
                ErrorCode::OK => decode_prefix::<GetChildrenResponse>(&answer.body),
                // No parent, no node; the next create will say so.
                ErrorCode::NO_NODE => continue,
                code => return self.unresolved(code),
            };
            let Ok(GetChildrenResponse { children }) = names else {
                return Progress::Go(vec![Next::Later(id)]);
            };
            siblings.insert(parent, children.strs().map(Cow::into_owned).collect());
        }
        self.look_among(id, &siblings)
    }

    /// Looks for the nodes: all are there, or none, unless somebody has deleted some.
    fn look_among(&mut self, id: u64, siblings: &BTreeMap<Arc<str>, Vec<String>>) -> Progress {
        let nodes = &self.create.nodes;
        let found = nodes.iter().map(|node| {
            siblings.get(&node.parent).map(|names| node.among(names)).unwrap_or_default()
        });
        let found: Vec<Vec<(Option<i32>, String)>> = found.collect();
        if found.iter().all(Vec::is_empty) {
            return self.again(id);
        }
        let (mut next, mut sequences, mut twins) = (Vec::new(), Vec::new(), Vec::new());
        for (node, found) in nodes.iter().zip(&found) {
            let Some(((sequence, first), others)) = found.split_first() else { continue };
            sequences.push(*sequence);
            let path = join(&node.parent, first);
            next.push(harmless(id, &ExistsRequest { path: Str::from(&*path), watch: false }));
            // There should never be a second one; if there is, it is ours to remove.
            twins.extend(others.iter().map(|(_, twin)| node.sweep(twin)));
        }
        if let Some(index) = found.iter().position(Vec::is_empty) {
            let there = nodes.iter().zip(&found);
            let left = there.flat_map(|(node, found)| found.iter().map(|(_, it)| node.sweep(it)));
            return Progress::Incomplete { index, left: left.collect() };
        }
        self.wait_for(Step::Check { sequences }, next.len());
        next.extend(twins);
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
            return Progress::Done(Err(WriteError::unknown(self.op(), cause.into())));
        }
        Progress::Go(vec![Next::Later(id)])
    }

    pub(super) fn checked(
        &mut self,
        id: u64,
        session: SessionId,
        sequences: Vec<Option<i32>>,
        outcomes: Vec<Outcome>,
    ) -> Progress {
        let mut nodes = Vec::with_capacity(outcomes.len());
        let mut missing = None;
        for (index, (outcome, sequence)) in outcomes.into_iter().zip(sequences).enumerate() {
            let answer = match outcome {
                Outcome::Answered(answer) => answer,
                Outcome::NotSent(cause) | Outcome::Unknown(cause) => return self.unread(id, cause),
            };
            let digits = sequence.map(|sequence| format!("{sequence:010}"));
            let name = self.create.nodes[index].name.clone() + &digits.unwrap_or_default();
            let stat = answer.code.is_ok().then(|| decode_prefix::<ExistsResponse>(&answer.body));
            let stat = match (answer.code, stat) {
                (_, Some(Ok(ExistsResponse { stat })))
                    if stat.ephemeral_owner == session || planted!(AdoptsOldNode) =>
                {
                    stat
                }
                // Somebody has deleted it between listing and look.
                (ErrorCode::NO_NODE, _) => {
                    missing = missing.or(Some(index));
                    continue;
                }
                (code @ ErrorCode::NO_AUTH, _) => return self.unresolved(code),
                _ => return Progress::Go(vec![Next::Later(id)]),
            };
            nodes.push((index, Found { name, stat, sequence }));
        }
        match missing {
            None => Progress::Done(Ok(Ok(nodes.into_iter().map(|(_, found)| found).collect()))),
            Some(_) if nodes.is_empty() && self.is_plain() => self.again(id),
            Some(missing) => {
                let wanted = &self.create.nodes;
                let left = nodes.iter().map(|(index, found)| wanted[*index].sweep(&found.name));
                Progress::Incomplete { index: missing, left: left.collect() }
            }
        }
    }

    /// The servers do not let us look for our own nodes.
    fn unresolved(&self, code: ErrorCode) -> Progress {
        let refused = LinkError::Other(format!("search for the node refused: {code}"));
        Progress::Done(Err(WriteError::unknown(self.op(), Cause::Disconnected(refused))))
    }
}
