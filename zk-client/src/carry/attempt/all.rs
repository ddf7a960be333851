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
        AclList, CreateFlags, ErrorCode, Stat, Text, Zxid,
        jute::Encode as _,
        request::{GetChildrenResponse, GetDataResponse},
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

    const DATA: &[u8] = b"1";

    fn node(name: &str, known_by: KnownBy) -> NodeSpec {
        NodeSpec {
            parent: "/p".into(),
            name: name.to_owned(),
            data: Bytes::from_static(DATA),
            acl: AclList::default(),
            flags: CreateFlags::EPHEMERAL_SEQUENTIAL,
            known_by,
        }
    }

    /// A create of these nodes, and its caller.
    fn create(nodes: Vec<NodeSpec>) -> (ProtectedCreate, oneshot::Receiver<Concluded>) {
        let (done, caller) = oneshot::channel();
        let (checked, chroot) = (Vec::new(), Chroot::default());
        (ProtectedCreate { nodes, replaced: None, checked, chroot, done }, caller)
    }

    fn attempts() -> Attempts {
        let first = Published {
            state: SessionState::Connecting,
            epoch: 0,
            read_only_epoch: 0,
            id: SESSION,
            timeout: Duration::from_secs(10),
            close_confirmed: false,
        };
        let sink: Weak<Nobody> = Weak::new();
        Attempts::new(sink, Arc::new(Known::new(first)))
    }

    /// Attempts, and one of nodes that are known by their data, as others are of which these names were listed; the reply to
    /// its create was lost.
    fn listed(names: &[&str], nodes: usize) -> (Attempts, AttemptId, oneshot::Receiver<Concluded>) {
        let mut attempts = attempts();
        let (create, caller) = create((0..nodes).map(|_| node("n-", KnownBy::Data)).collect());
        let id = attempts.start(create, Time::ZERO, None).token;
        let no_end = |_, ending| panic!("{ending:?}");
        attempts.advance(id, (SESSION, 1), Outcome::Unknown(lost()), no_end);
        attempts.advance(id, (SESSION, 2), answered(Bytes::new()), no_end);
        let reads = attempts.advance(id, (SESSION, 2), children(names), no_end);
        let read = (OpCode::GET_DATA, Patience::Connections);
        assert_eq!(asked(&reads), vec![read; names.len() * nodes]);
        (attempts, id, caller)
    }

    fn answered(body: Bytes) -> Outcome {
        Outcome::Answered(Answer { zxid: Zxid(1), code: ErrorCode::OK, body })
    }

    fn refused(code: ErrorCode) -> Outcome {
        Outcome::Answered(Answer { zxid: Zxid(1), code, body: Bytes::new() })
    }

    fn children(names: &[&str]) -> Outcome {
        let mut body = BytesMut::new();
        GetChildrenResponse { children: names.iter().map(|name| Text::from(*name)).collect() }
            .encode(&mut body);
        answered(body.freeze())
    }

    /// A node of this session.
    fn read(data: &[u8]) -> Outcome {
        let mut body = BytesMut::new();
        let stat = Stat { czxid: Zxid(5), ephemeral_owner: SESSION, ..Stat::default() };
        GetDataResponse { data: Some(Bytes::copy_from_slice(data)), stat }.encode(&mut body);
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
        let mut attempts = attempts();
        let (create, _caller) = create(vec![node("_c_1-n-", KnownBy::Prefix)]);
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
        assert_eq!(hear(2, children(&[])), search);
        // Both are of one: a create over the same is safe, and over the next it would not be.
        assert_eq!(hear(2, answered(Bytes::new())), []);
        assert_eq!(hear(2, children(&[])), bound);
        for cause in [Cause::NotConnected, lost()] {
            assert_eq!(hear(2, Outcome::NotSent(cause)), search);
            assert_eq!(hear(3, answered(Bytes::new())), []);
            assert_eq!(hear(3, children(&[])), bound);
        }
        assert_eq!(hear(3, Outcome::Unknown(lost())), search);
    }

    /// What a replaced leader has listed says nothing of what its successor knows.
    #[test]
    fn candidate_that_is_read_over_another_connection_decides_nothing() {
        let (mut attempts, id, _caller) = listed(&["n-0000000007"], 1);
        let no_end = |_, ending| panic!("{ending:?}");
        let next = attempts.advance(id, (SESSION, 3), read(b"another's"), no_end);
        let search =
            [(OpCode::SYNC, Patience::Connections), (OpCode::GET_CHILDREN, Patience::Connections)];
        assert_eq!(asked(&next), search);
    }

    #[test]
    fn node_is_found_behind_one_that_may_not_be_read() {
        let (mut attempts, id, mut caller) = listed(&["n-0000000007", "n-0000000008"], 1);
        let hidden = refused(ErrorCode::NO_AUTH);
        let sink: Arc<dyn DeleteSink> = Arc::new(Nobody);
        attempts.delete_sink = Arc::downgrade(&sink);
        assert!(attempts.advance(id, (SESSION, 2), hidden, |_, _| ()).is_empty());
        assert!(attempts.advance(id, (SESSION, 2), read(DATA), |_, _| ()).is_empty());
        let nodes = caller.try_recv().unwrap().nodes.unwrap().unwrap();
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].path(), "/p/n-0000000008");
    }

    /// Others can get a name without an id meanwhile.
    #[test]
    fn rest_of_a_transaction_is_deleted_by_what_was_seen() {
        let (mut attempts, id, _caller) = listed(&["n-0000000007"], 2);
        assert!(attempts.advance(id, (SESSION, 2), read(DATA), |_, _| ()).is_empty());
        let next = attempts.advance(id, (SESSION, 2), refused(ErrorCode::NO_NODE), |_, _| ());
        let Some(Next::GuaranteedDelete(delete)) = next.into_iter().next() else {
            panic!("nothing is deleted");
        };
        assert_eq!(delete.request().frame.op(), OpCode::EXISTS);
    }
}
