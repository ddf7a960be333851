//! Deletes that the session carries out whether or not a caller waits for them.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::oneshot;
use zk_proto::{
    ErrorCode, OpCode, Str, Time, Zxid,
    frame::RequestFrame,
    jute::decode_prefix,
    request::{DeleteRequest, ExistsRequest, ExistsResponse, SyncRequest},
    session::{Cause as Lost, OnLoss, Outcome, Outgoing, Patience},
};

use crate::{
    carry::{unconfirmed::Unconfirmed, version::ANY_VERSION},
    error::{CallError as _, Verdict, WriteError},
    report::observe::Ending,
    watch::Listener,
};

/// Initial pause before a refused delete is retried, if nothing has happened that could change the result, and the
/// maximum it grows to.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(60);

/// A node to delete, whose owner has been dropped or is waiting.
///
/// The sweep ends with the session, as the (ephemeral) node does; it never moves to another session.
#[derive(Debug)]
pub(crate) struct GuaranteedDelete {
    /// Absolute.
    path: Arc<str>,
    done: Option<oneshot::Sender<Result<(), WriteError>>>,
    aim: DeleteTarget,
    /// When the driver received it, or tried again after a refusal.
    since: Duration,
    /// The last pause after a refusal.
    pause: Duration,
    /// Whether a delete may have been carried out.
    in_doubt: bool,
}

/// Which node to delete.
#[derive(Clone, Copy, Debug)]
enum DeleteTarget {
    /// Any node of this name, which no other client will ever use: so the delete may be repeated until it is answered.
    Name,
    /// The node created in this transaction. Other clients use the name too, so the session reads the node before each
    /// delete.
    Node(Zxid),
    /// The node exists, with this version of its data.
    Seen(Zxid, i32),
    /// As `Node`, but an earlier delete may still be on its way: until it has arrived, a read is not conclusive.
    Doubted(Zxid),
    /// As `Node`, and what was on its way has arrived at the server of this connection.
    Synced(Zxid),
}

/// The result of one request of a sweep.
pub(crate) enum DeleteStep {
    /// The node is gone, or the session is, and the node with it. The caller, if any, has been notified.
    Concluded,
    /// Submit again now.
    Now(GuaranteedDelete),
    /// Submit again after a pause.
    Later(GuaranteedDelete),
    /// Refused: submit again after this pause, or when permissions may have changed.
    Refused(GuaranteedDelete, Duration),
}

impl GuaranteedDelete {
    pub(crate) const fn new(
        path: Arc<str>,
        done: Option<oneshot::Sender<Result<(), WriteError>>>,
    ) -> Self {
        let (since, pause) = (Duration::ZERO, Duration::ZERO);
        Self { path, done, aim: DeleteTarget::Name, since, pause, in_doubt: false }
    }

    /// Counts the time that it takes from here.
    pub(crate) const fn since(mut self, now: Time) -> Self {
        self.since = now.since_epoch();
        self
    }

    /// Restricts the sweep to the node created in this transaction.
    pub(crate) fn only(mut self, czxid: Zxid) -> Self {
        self.aim = DeleteTarget::Node(czxid);
        self
    }

    pub(crate) fn request(self) -> Outgoing<Self, Listener> {
        let path = Str::from(&*self.path);
        let frame = match self.aim {
            DeleteTarget::Name => delete(path, ANY_VERSION),
            DeleteTarget::Node(_) | DeleteTarget::Synced(_) => {
                RequestFrame::of(&ExistsRequest { path, watch: false })
            }
            DeleteTarget::Seen(_, version) => delete(path, version),
            DeleteTarget::Doubted(_) => RequestFrame::of(&SyncRequest { path }),
        };
        let (on_loss, patience) = match self.aim {
            // Over the connection of what was before, or not at all: a leader that was replaced and has not noticed answers
            // reads and a `sync` (ZOOKEEPER-1675), and its successor may have deleted the node meanwhile.
            DeleteTarget::Seen(..) | DeleteTarget::Synced(_) => {
                (OnLoss::Report, Patience::FailFast)
            }
            DeleteTarget::Name | DeleteTarget::Node(_) | DeleteTarget::Doubted(_) => {
                (OnLoss::Resend, Patience::Throttling)
            }
        };
        Outgoing { frame, token: self, watch: None, patience, on_loss }
    }

    /// Processes an outcome. A waiting caller is notified of a refusal; the sweep then continues. A refusal and the end
    /// are counted, before a caller learns of them. `alone`: a member without a quorum has answered, which may have seen what
    /// the others never agreed on.
    pub(crate) fn heard(
        mut self,
        (outcome, alone): (Outcome, bool),
        unconfirmed: &Unconfirmed,
        count: impl FnOnce((OpCode, Duration), Ending),
    ) -> DeleteStep {
        let aim = self.aim;
        if let DeleteTarget::Seen(czxid, _) | DeleteTarget::Synced(czxid) = aim {
            self.aim = DeleteTarget::Doubted(czxid);
        }
        let result = match outcome {
            Outcome::Answered(answer) => match (aim, answer.code) {
                (_, ErrorCode::THROTTLED_OP | ErrorCode::NOT_READ_ONLY) => {
                    return DeleteStep::Later(self);
                }
                (DeleteTarget::Doubted(czxid), ErrorCode::OK) => {
                    self.aim = DeleteTarget::Synced(czxid);
                    return DeleteStep::Now(self);
                }
                (DeleteTarget::Node(_), ErrorCode::NO_NODE | ErrorCode::OK) if alone => {
                    return DeleteStep::Later(self);
                }
                (_, ErrorCode::NO_NODE) => Ok(()),
                (DeleteTarget::Node(czxid) | DeleteTarget::Synced(czxid), ErrorCode::OK) => {
                    match decode_prefix(&answer.body) {
                        Ok(ExistsResponse { stat }) if stat.czxid == czxid => {
                            self.aim = DeleteTarget::Seen(czxid, stat.version);
                            return DeleteStep::Now(self);
                        }
                        // Another client's node.
                        Ok(_) => Ok(()),
                        Err(_) => return DeleteStep::Later(self),
                    }
                }
                (_, ErrorCode::OK) => Ok(()),
                // Another client has written the node, or has replaced it.
                (DeleteTarget::Seen(czxid, _), ErrorCode::BAD_VERSION) => {
                    self.aim = DeleteTarget::Node(czxid);
                    return DeleteStep::Now(self);
                }
                // Which the session learns from its next connection.
                (_, code) if code.ends_session() => return DeleteStep::Later(self),
                (_, code) => {
                    if let Verdict::InDoubt(_) = Verdict::of(code) {
                        return self.unanswered(aim);
                    }
                    unconfirmed.refused(&self.path, code, self.was_refused());
                    count((OpCode::DELETE, self.since), Ending::Rejected(code));
                    return self.refused(code);
                }
            },
            Outcome::NotSent(Lost::NotConnected | Lost::LinkLost(_)) => {
                return DeleteStep::Now(self);
            }
            Outcome::NotSent(cause) if !self.in_doubt => Err(WriteError::not_sent(cause.into())),
            Outcome::NotSent(cause) | Outcome::Unknown(cause @ Lost::SessionOver(_)) => {
                Err(WriteError::unknown(OpCode::DELETE, cause.into()))
            }
            // The reply was lost or unreadable. The next one may not be.
            Outcome::Unknown(_) => return self.unanswered(aim),
        };
        count((OpCode::DELETE, self.since), Ending::of_write(&result));
        unconfirmed.concluded(&self.path, self.was_refused());
        // The caller may have gone.
        let _ = self.done.map(|done| done.send(result));
        DeleteStep::Concluded
    }

    /// What was asked for, with this aim, may have been done.
    fn unanswered(mut self, aim: DeleteTarget) -> DeleteStep {
        self.in_doubt |= matches!(aim, DeleteTarget::Name | DeleteTarget::Seen(..));
        DeleteStep::Later(self)
    }

    const fn was_refused(&self) -> bool {
        !self.pause.is_zero()
    }

    fn refused(mut self, code: ErrorCode) -> DeleteStep {
        if !self.was_refused() {
            tracing::warn!(path = &*self.path, %code, "cannot delete own node");
        }
        let error = WriteError::answered(OpCode::DELETE, code);
        // The caller may have gone.
        let _ = self.done.take().map(|done| done.send(Err(error)));
        self.pause = (2 * self.pause).clamp(REFUSED_PAUSE, REFUSED_PAUSE_MAX);
        let pause = self.pause;
        DeleteStep::Refused(self, pause)
    }
}

fn delete(path: Str<'_>, version: i32) -> RequestFrame {
    RequestFrame::of(&DeleteRequest { path, version })
}

/// Carries out sweeps, and keeps the session alive for them.
pub(crate) trait DeleteSink: fmt::Debug + Send + Sync {
    fn sweep(&self, sweep: GuaranteedDelete);
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use zk_proto::{
        Stat,
        jute::Encode as _,
        session::{Answer, CloseReason, LinkError},
    };

    use super::*;

    const CZXID: Zxid = Zxid(7);

    fn answered(body: Bytes) -> Outcome {
        Outcome::Answered(Answer { zxid: Zxid(9), code: ErrorCode::OK, body })
    }

    fn exists() -> Outcome {
        let mut body = BytesMut::new();
        let stat = Stat { czxid: CZXID, ..Stat::default() };
        ExistsResponse { stat }.encode(&mut body);
        answered(body.freeze())
    }

    /// The request of a sweep, and what becomes of it.
    fn ask(sweep: GuaranteedDelete, outcome: Outcome) -> (OpCode, Patience, GuaranteedDelete) {
        let request = sweep.request();
        let (op, patience) = (request.frame.op(), request.patience);
        match request.token.heard((outcome, false), &Unconfirmed::default(), |_, _| {}) {
            DeleteStep::Now(next) | DeleteStep::Later(next) => (op, patience, next),
            DeleteStep::Concluded | DeleteStep::Refused(..) => panic!("{op:?} ends it"),
        }
    }

    /// What was seen over a connection holds for that one: another server may show an older state.
    #[test]
    fn shared_node_is_deleted_over_the_connection_of_its_read() {
        let lost = || Lost::LinkLost(LinkError::Closed);
        let sweep = GuaranteedDelete::new("/node".into(), None).only(CZXID);
        let (op, patience, mut sweep) = ask(sweep, exists());
        assert_eq!((op, patience), (OpCode::EXISTS, Patience::Throttling));
        let unsent = [Outcome::NotSent(lost()), Outcome::NotSent(Lost::NotConnected)];
        for gone in unsent.into_iter().chain([Outcome::Unknown(lost())]) {
            let steps = [
                (OpCode::DELETE, Patience::FailFast, gone.clone()),
                (OpCode::SYNC, Patience::Throttling, answered(Bytes::new())),
                // Neither does the barrier hold for another connection.
                (OpCode::EXISTS, Patience::FailFast, gone),
                (OpCode::SYNC, Patience::Throttling, answered(Bytes::new())),
                (OpCode::EXISTS, Patience::FailFast, exists()),
            ];
            for (number, (op, patience, outcome)) in steps.into_iter().enumerate() {
                let asked;
                (asked, sweep) = {
                    let (op, patience, next) = ask(sweep, outcome);
                    ((op, patience), next)
                };
                assert_eq!(asked, (op, patience), "step {number}");
            }
        }
    }

    /// What a member without a quorum shows may be what the others never agreed on.
    #[test]
    fn member_alone_does_not_tell_that_a_node_is_gone() {
        let missing = Answer { zxid: Zxid(9), code: ErrorCode::NO_NODE, body: Bytes::new() };
        for answer in [Outcome::Answered(missing), exists()] {
            let sweep = GuaranteedDelete::new("/node".into(), None).only(Zxid(CZXID.0 + 1));
            let step = sweep.heard((answer.clone(), true), &Unconfirmed::default(), |_, _| {});
            assert!(matches!(step, DeleteStep::Later(_)), "{answer:?}");
            let sweep = GuaranteedDelete::new("/node".into(), None).only(Zxid(CZXID.0 + 1));
            let step = sweep.heard((answer, false), &Unconfirmed::default(), |_, _| {});
            assert!(matches!(step, DeleteStep::Concluded));
        }
    }

    /// Where the session ends, the node goes with it; and what proxies answer is no word of a server.
    #[test]
    fn delete_is_refused_by_rejections_alone() {
        let codes = [
            (ErrorCode::NO_AUTH, true),
            (ErrorCode::NOT_EMPTY, true),
            (ErrorCode::AUTH_FAILED, true),
            (ErrorCode::THROTTLED_OP, false),
            (ErrorCode::SESSION_EXPIRED, false),
            (ErrorCode::CONNECTION_LOSS, false),
            (ErrorCode::OPERATION_TIMEOUT, false),
            (ErrorCode::REQUEST_TIMEOUT, false),
        ];
        for (code, is_refused) in codes {
            let unconfirmed = Unconfirmed::default();
            unconfirmed.begun();
            let sweep = GuaranteedDelete::new("/node".into(), None);
            let answer = Answer { zxid: Zxid(9), code, body: Bytes::new() };
            let step = sweep.heard((Outcome::Answered(answer), false), &unconfirmed, |_, _| {});
            assert_eq!(matches!(step, DeleteStep::Refused(..)), is_refused, "{code}");
            assert_eq!(unconfirmed.hopeful() == 0, is_refused, "{code}");
        }
    }

    /// What may have been done is in doubt, whatever becomes of the requests that look for it.
    #[test]
    fn lost_delete_is_in_doubt_at_the_end_of_the_session() {
        let lost = || Outcome::Unknown(Lost::LinkLost(LinkError::Closed));
        let over = || Outcome::NotSent(Lost::SessionOver(CloseReason::Expired));
        for (first, in_doubt) in [(lost(), true), (Outcome::NotSent(Lost::NotConnected), false)] {
            let (done, mut told) = oneshot::channel();
            let sweep = GuaranteedDelete::new("/node".into(), Some(done)).only(CZXID);
            let (_, _, sweep) = ask(sweep, exists());
            let (op, _, sweep) = ask(sweep, first);
            assert_eq!(op, OpCode::DELETE);
            let last =
                sweep.request().token.heard((over(), false), &Unconfirmed::default(), |_, _| {});
            assert!(matches!(last, DeleteStep::Concluded));
            let error = told.try_recv().unwrap().unwrap_err();
            assert_eq!(matches!(error, WriteError::InDoubt { .. }), in_doubt, "{error}");
        }
    }
}
