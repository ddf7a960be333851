//! Deletes that the session carries out whether or not anybody waits for them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::oneshot;
use zk_proto::{
    ErrorCode, OpCode, Str,
    frame::RequestFrame,
    planted,
    request::DeleteRequest,
    session::{Answer, Cause as Lost, OnLoss, Outcome, Outgoing},
};

use crate::{
    call::{CallError as _, Token},
    error::WriteError,
    watch::Listener,
};

/// How many deletes have not been confirmed: counted by the driver, read by anyone.
#[derive(Debug, Default)]
pub(crate) struct Unconfirmed(AtomicUsize);

impl Unconfirmed {
    pub(crate) fn begun(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn concluded(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A node to be deleted, by whoever has gone or still waits.
///
/// Only for nodes whose names nobody else will ever use: then a delete may be repeated until there is an
/// answer. It dies with the session, as the (ephemeral) node does; it never moves to another session.
#[derive(Debug)]
pub(crate) struct Sweep {
    /// Absolute.
    pub(crate) path: Arc<str>,
    pub(crate) done: Option<oneshot::Sender<Result<(), WriteError>>>,
}

impl Sweep {
    pub(crate) fn request(self) -> Outgoing<Token, Listener> {
        let delete = DeleteRequest { path: Str::from(&*self.path), version: -1 };
        Outgoing {
            frame: RequestFrame::of(&delete),
            token: Token::Sweep(self),
            watch: None,
            fail_fast: false,
            on_loss: if planted!(DeleteNotRepeated) { OnLoss::Report } else { OnLoss::Resend },
        }
    }

    /// What comes of an outcome; gives the sweep back if it has to be tried again a little later.
    pub(crate) fn concluded(self, outcome: Outcome) -> Option<Self> {
        let result = match outcome {
            Outcome::Answered(Answer { code: ErrorCode::OK | ErrorCode::NO_NODE, .. }) => Ok(()),
            Outcome::Answered(Answer {
                code: ErrorCode::THROTTLED_OP | ErrorCode::NOT_READ_ONLY,
                ..
            }) => return Some(self),
            Outcome::Answered(Answer { code, .. }) => {
                tracing::warn!(path = &*self.path, %code, "cannot delete own node");
                Err(WriteError::answered(OpCode::DELETE, code))
            }
            Outcome::NotSent(cause) => Err(WriteError::not_sent(cause.into())),
            Outcome::Unknown(cause)
                if planted!(DeleteNotRepeated) || matches!(cause, Lost::SessionOver(_)) =>
            {
                Err(WriteError::unknown(OpCode::DELETE, cause.into()))
            }
            // Its reply could not be read. The next one can be.
            Outcome::Unknown(_) => return Some(self),
        };
        // Whoever waited may have gone.
        let _ = self.done.map(|done| done.send(result));
        None
    }
}
