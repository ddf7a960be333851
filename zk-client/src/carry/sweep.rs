//! Deletes that the session carries out whether or not anybody waits for them.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::oneshot;
use zk_proto::{
    ErrorCode, OpCode, Str, Zxid,
    frame::RequestFrame,
    jute::decode_prefix,
    planted,
    request::{DeleteRequest, ExistsRequest, ExistsResponse, SyncRequest},
    session::{Cause as Lost, OnLoss, Outcome, Outgoing, Patience},
};

use crate::{
    carry::{unconfirmed::Unconfirmed, version::ANY_VERSION},
    error::{CallError as _, WriteError},
    watch::Listener,
};

/// Pause before a delete that was refused is tried again, if nothing has happened that could have changed that; it grows
/// up to the longest one.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(60);

/// A node to be deleted, by whoever has gone or still waits.
///
/// It dies with the session, as the (ephemeral) node does; it never moves to another session.
#[derive(Debug)]
pub(crate) struct Sweep {
    /// Absolute.
    path: Arc<str>,
    done: Option<oneshot::Sender<Result<(), WriteError>>>,
    aim: Aim,
    /// The last pause after a refusal.
    pause: Duration,
}

/// Which node is to be deleted.
#[derive(Clone, Copy, Debug)]
enum Aim {
    /// Whichever has the name, which nobody else will ever use: so the delete may be repeated until there is an
    /// answer.
    Name,
    /// The one that was made in this transaction. Others use the name too, so that before each delete the session has
    /// to look.
    Node(Zxid),
    /// It was there, in this version of its data.
    Seen(Zxid, i32),
    /// The same, but a delete of it may still be on its way: a look would not be the last word before that has arrived.
    Doubted(Zxid),
}

/// What has come of one request of a sweep.
pub(crate) enum Swept {
    /// The node is gone, or the session is, which takes it along. Whoever waited has been told.
    Concluded(Arc<str>),
    /// To be submitted again.
    Now(Sweep),
    /// The same, but a little later.
    Later(Sweep),
    /// The same, but after this pause, or when permissions may have changed: it was refused.
    Refused(Sweep, Duration),
}

impl Sweep {
    pub(crate) const fn new(
        path: Arc<str>,
        done: Option<oneshot::Sender<Result<(), WriteError>>>,
    ) -> Self {
        Self { path, done, aim: Aim::Name, pause: Duration::ZERO }
    }

    /// The same, of no other node than the one that was made in this transaction.
    pub(crate) fn only(mut self, czxid: Zxid) -> Self {
        if !planted!(DeletesUnlooked) {
            self.aim = Aim::Node(czxid);
        }
        self
    }

    pub(crate) fn request(self) -> Outgoing<Self, Listener> {
        let path = Str::from(&*self.path);
        let frame = match self.aim {
            Aim::Name => delete(path, ANY_VERSION),
            Aim::Node(_) => RequestFrame::of(&ExistsRequest { path, watch: false }),
            Aim::Seen(_, version) => delete(path, version),
            Aim::Doubted(_) => RequestFrame::of(&SyncRequest { path }),
        };
        let (on_loss, patience) = match self.aim {
            Aim::Name if planted!(DeleteNotRepeated) => (OnLoss::Report, Patience::Throttling),
            // Not without another look.
            Aim::Seen(..) => (OnLoss::Report, Patience::Connections),
            Aim::Name | Aim::Node(_) | Aim::Doubted(_) => (OnLoss::Resend, Patience::Throttling),
        };
        Outgoing { frame, token: self, watch: None, patience, on_loss }
    }

    /// What comes of an outcome. Whoever waits is told of a refusal, after which it goes on.
    pub(crate) fn heard(mut self, outcome: Outcome, unconfirmed: &Unconfirmed) -> Swept {
        let aim = self.aim;
        if let Aim::Seen(czxid, _) | Aim::Doubted(czxid) = aim {
            self.aim = Aim::Node(czxid);
        }
        let result = match outcome {
            Outcome::Answered(answer) => match (aim, answer.code) {
                (_, ErrorCode::THROTTLED_OP | ErrorCode::NOT_READ_ONLY) => {
                    if matches!(aim, Aim::Doubted(_)) {
                        self.aim = aim;
                    }
                    return Swept::Later(self);
                }
                (Aim::Doubted(_), ErrorCode::OK) => return Swept::Now(self),
                (_, ErrorCode::NO_NODE) => Ok(()),
                (Aim::Node(czxid), ErrorCode::OK) => match decode_prefix(&answer.body) {
                    Ok(ExistsResponse { stat }) if stat.czxid == czxid => {
                        self.aim = Aim::Seen(czxid, stat.version);
                        return Swept::Now(self);
                    }
                    // Somebody else's.
                    Ok(_) => Ok(()),
                    Err(_) => return Swept::Later(self),
                },
                (_, ErrorCode::OK) => Ok(()),
                // Somebody has written it, or it is another one by now.
                (Aim::Seen(..), ErrorCode::BAD_VERSION) => return Swept::Now(self),
                (_, code) => {
                    unconfirmed.refused(&self.path, code);
                    return self.refused(code);
                }
            },
            Outcome::NotSent(cause) => Err(WriteError::not_sent(cause.into())),
            Outcome::Unknown(cause)
                if planted!(DeleteNotRepeated) || matches!(cause, Lost::SessionOver(_)) =>
            {
                Err(WriteError::unknown(OpCode::DELETE, cause.into()))
            }
            Outcome::Unknown(_) => {
                if let Aim::Seen(czxid, _) | Aim::Doubted(czxid) = aim {
                    self.aim = Aim::Doubted(czxid);
                }
                // Its reply was lost, or could not be read. The next one can be.
                return Swept::Later(self);
            }
        };
        // Whoever waited may have gone.
        let _ = self.done.map(|done| done.send(result));
        Swept::Concluded(self.path)
    }

    fn refused(mut self, code: ErrorCode) -> Swept {
        if self.pause.is_zero() {
            tracing::warn!(path = &*self.path, %code, "cannot delete own node");
        }
        let error = WriteError::answered(OpCode::DELETE, code);
        // Whoever waited may have gone.
        let _ = self.done.take().map(|done| done.send(Err(error)));
        self.pause = (2 * self.pause).clamp(REFUSED_PAUSE, REFUSED_PAUSE_MAX);
        let pause = self.pause;
        Swept::Refused(self, pause)
    }
}

fn delete(path: Str<'_>, version: i32) -> RequestFrame {
    RequestFrame::of(&DeleteRequest { path, version })
}

/// Who carries sweeps out, and keeps the session alive for that.
pub(crate) trait Sweeper: fmt::Debug + Send + Sync {
    fn sweep(&self, sweep: Sweep);
}
