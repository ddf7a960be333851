//! All creates in progress.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use zk_proto::{
    OpCode, SessionId, Time,
    session::{Outcome, Outgoing},
};

use super::{
    node_spec::FoundNode,
    one::{Attempt, AttemptId, Next, Progress, Step},
    protected::{Concluded, ProtectedCreate},
};
use crate::{
    carry::{
        guaranteed_delete::DeleteSink,
        known::Known,
        lease_keeper::LeaseKeeper,
        node::{DetachedNode, OwnedNode},
    },
    error::{MultiError, Rejection, WriteError},
    queue::Permit,
    report::observe::Ending,
    watch::Listener,
};

/// All creates in progress.
#[derive(Debug)]
pub(crate) struct Attempts {
    running: BTreeMap<u64, Attempt>,
    next: u64,
    /// Deletes unneeded nodes. Weak, or the driver would keep itself alive.
    delete_sink: Weak<dyn DeleteSink>,
    known: Arc<Known>,
    /// The permit of the last create to end.
    freed: Option<Permit>,
}

impl Attempts {
    pub(crate) const fn new(delete_sink: Weak<dyn DeleteSink>, known: Arc<Known>) -> Self {
        Self { running: BTreeMap::new(), next: 0, delete_sink, known, freed: None }
    }

    /// Whether no create is in progress.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn start(
        &mut self,
        create: ProtectedCreate,
        now: Time,
        permit: Option<Permit>,
    ) -> Outgoing<AttemptId, Listener> {
        let id = self.next;
        self.next += 1;
        let mut attempt = Attempt {
            create,
            since: now.since_epoch(),
            permit,
            step: Step::Create,
            missing: 1,
            outcomes: Vec::new(),
            connection: None,
            in_doubt: false,
            legacy: false,
            unread: 0,
            costs: 0,
            known: self.known.clone(),
        };
        let request = attempt.create_request(id);
        self.running.insert(id, attempt);
        request
    }

    /// Searches again, after a server was unable to resolve the doubt.
    pub(crate) fn retry(&mut self, AttemptId(id): AttemptId) -> Vec<Next> {
        match self.running.get_mut(&id) {
            Some(attempt) => attempt.search(id),
            None => Vec::new(),
        }
    }

    /// Processes the outcome of one of an attempt's requests, over this connection of this session. Counts an attempt
    /// that has ended, before its caller learns of it.
    pub(crate) fn advance(
        &mut self,
        AttemptId(id): AttemptId,
        over: (SessionId, u64),
        outcome: Outcome,
        count: impl FnOnce((OpCode, Duration), Ending),
    ) -> Vec<Next> {
        let Some(mut attempt) = self.running.remove(&id) else { return Vec::new() };
        let asked = (attempt.op(), attempt.since);
        match attempt.heard(id, over, outcome) {
            Progress::Go(next) => {
                self.running.insert(id, attempt);
                next
            }
            Progress::Done(result) => {
                self.freed = attempt.permit;
                count(
                    asked,
                    match &result {
                        Ok(Err(failed)) => Ending::Rejected(failed.rejection.code()),
                        result => Ending::of_write(result),
                    },
                );
                self.finish(attempt.create, result, true);
                Vec::new()
            }
            Progress::Incomplete { index, left } => {
                // Reported as if the creates had been too late: a caller that retries asks for new names. But they were
                // applied, and the node they replaced is gone.
                attempt.create.replaced = None;
                self.freed = attempt.permit;
                let missing = MultiError { index, rejection: Rejection::NoNode };
                count(asked, Ending::Rejected(missing.rejection.code()));
                self.finish(attempt.create, Ok(Err(missing)), false);
                left
            }
        }
    }

    /// Returns the freed permit, once.
    pub(crate) const fn take_freed(&mut self) -> Option<Permit> {
        self.freed.take()
    }

    fn finish(
        &self,
        create: ProtectedCreate,
        result: Result<Result<Vec<FoundNode>, MultiError>, WriteError>,
        may_lack_parents: bool,
    ) {
        let ProtectedCreate { nodes: spec, replaced, chroot, done, .. } = create;
        // Without a client the session is being closed, and its nodes go with it.
        let Some(delete_sink) = self.delete_sink.upgrade() else { return };
        let own = |DetachedNode { absolute, stat, sequence, is_shared }| OwnedNode {
            absolute,
            stat,
            sequence,
            is_shared,
            chroot: chroot.clone(),
            delete_sink: Some(delete_sink.clone()),
            lease: LeaseKeeper::new(&self.known).0,
        };
        let creates = if may_lack_parents { spec.len() } else { 0 };
        let created = matches!(result, Ok(Ok(_)));
        let nodes = result.map(|found| {
            let pairs = found.map(|found| spec.into_iter().zip(found));
            pairs.map(|pairs| pairs.map(|(spec, found)| own(found.of(&spec))).collect())
        });
        let kept = replaced.filter(|_| !created).map(own);
        // If no caller waits any more, dropping the nodes deletes them.
        let _ = done.send(Concluded { nodes, kept, creates });
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use tokio::sync::oneshot;
    use zk_proto::{
        AclList, CreateFlags, ErrorCode, List, Zxid,
        jute::Encode as _,
        request::GetChildrenResponse,
        session::{Answer, Cause, LinkError, Patience},
    };

    use super::*;
    use crate::{
        carry::{
            attempt::{KnownBy, NodeSpec},
            guaranteed_delete::GuaranteedDelete,
            published::{Published, SessionState},
        },
        chroot::Chroot,
    };

    #[derive(Debug)]
    struct Nobody;

    impl DeleteSink for Nobody {
        fn sweep(&self, _: GuaranteedDelete) {}
    }

    const SESSION: SessionId = SessionId(7);

    /// A create, and its caller.
    fn create() -> (ProtectedCreate, oneshot::Receiver<Concluded>) {
        let node = NodeSpec {
            parent: "/p".into(),
            name: "_c_1-n-".to_owned(),
            data: Bytes::new(),
            acl: AclList::default(),
            flags: CreateFlags::EPHEMERAL_SEQUENTIAL,
            known_by: KnownBy::Prefix,
        };
        let (done, caller) = oneshot::channel();
        let (checked, chroot) = (Vec::new(), Chroot::default());
        (ProtectedCreate { nodes: vec![node], replaced: None, checked, chroot, done }, caller)
    }

    fn answered(body: Bytes) -> Outcome {
        Outcome::Answered(Answer { zxid: Zxid(1), code: ErrorCode::OK, body })
    }

    fn no_children() -> Outcome {
        let mut body = BytesMut::new();
        GetChildrenResponse { children: List::EMPTY }.encode(&mut body);
        answered(body.freeze())
    }

    fn lost() -> Cause {
        Cause::LinkLost(LinkError::Closed)
    }

    /// What is submitted next.
    fn asked(next: &[Next]) -> Vec<(OpCode, Patience)> {
        let ask = |next: &Next| match next {
            Next::Submit(request) => (request.frame.op(), request.patience),
            other => panic!("{other:?}"),
        };
        next.iter().map(ask).collect()
    }

    /// A leader that was replaced answers a `sync` as if it were not, and does not show what its successor has done.
    #[test]
    fn search_and_next_create_share_a_connection() {
        let first = Published {
            state: SessionState::Connecting,
            epoch: 0,
            last_to_read: 0,
            id: SESSION,
            timeout: Duration::from_secs(10),
            close_confirmed: false,
        };
        let sink: Weak<Nobody> = Weak::new();
        let mut attempts = Attempts::new(sink, Arc::new(Known::new(first)));
        let (create, _caller) = create();
        let request = attempts.start(create, Time::ZERO, None);
        assert_eq!(request.patience, Patience::Throttling);
        let id = request.token;
        let mut hear = |connection, outcome| {
            let ends = |_, ending| panic!("{ending:?}");
            asked(&attempts.advance(id, (SESSION, connection), outcome, ends))
        };
        let search =
            [(OpCode::SYNC, Patience::Connections), (OpCode::GET_CHILDREN, Patience::Connections)];
        let bound = [(OpCode::CREATE2, Patience::FailFast)];
        assert_eq!(hear(1, Outcome::Unknown(lost())), search);

        // The listing behind the barrier is of the next connection: nothing is known.
        assert_eq!(hear(1, answered(Bytes::new())), []);
        assert_eq!(hear(2, no_children()), search);
        // Both are of one: a create over the same is safe, and over the next it would not be.
        assert_eq!(hear(2, answered(Bytes::new())), []);
        assert_eq!(hear(2, no_children()), bound);
        for cause in [Cause::NotConnected, lost()] {
            assert_eq!(hear(2, Outcome::NotSent(cause)), search);
            assert_eq!(hear(3, answered(Bytes::new())), []);
            assert_eq!(hear(3, no_children()), bound);
        }
        assert_eq!(hear(3, Outcome::Unknown(lost())), search);
    }
}
