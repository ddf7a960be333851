//! Recipients of replies.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;
use zk_proto::{
    OpCode,
    session::{self, Outcome, Outgoing},
};

use crate::{
    carry::{attempt::AttemptId, guaranteed_delete::GuaranteedDelete},
    error::SessionEnd,
    queue::{Permit, Ticket},
    report::stats::Counters,
    watch::Listener,
};

/// The recipient of a reply.
#[derive(Debug)]
pub(crate) enum Token {
    Caller(Caller),
    /// The caller that closes the session, if one does.
    Closer(Option<oneshot::Sender<()>>),
    Attempt(AttemptId),
    /// Boxed, since it is larger than all others.
    GuaranteedDelete(Box<GuaranteedDelete>),
}

/// A caller as the driver knows it.
#[derive(Debug)]
pub(crate) struct Caller {
    /// `None` once it has been answered, while its request still has its place.
    pub(crate) reply: Option<oneshot::Sender<Outcome>>,
    /// Present if the caller has a timeout.
    pub(crate) ticket: Option<Arc<Ticket>>,
    pub(crate) op: OpCode,
    /// When the driver received the request.
    pub(crate) since: Duration,
    /// The permit it holds until its request has left its place.
    pub(crate) permit: Option<Permit>,
}

impl From<GuaranteedDelete> for Token {
    fn from(sweep: GuaranteedDelete) -> Self {
        Self::GuaranteedDelete(Box::new(sweep))
    }
}

impl From<AttemptId> for Token {
    fn from(id: AttemptId) -> Self {
        Self::Attempt(id)
    }
}

impl Token {
    /// Converts the recipient of a request's reply.
    pub(crate) fn of<T: Into<Self>>(request: Outgoing<T, Listener>) -> Outgoing<Self, Listener> {
        let Outgoing { frame, token, watch, on_loss, patience } = request;
        Outgoing { frame, token: token.into(), watch, on_loss, patience }
    }

    /// The caller may have gone.
    pub(super) fn refuse(self, end: SessionEnd, counters: &Counters) {
        if let Self::Caller(mut caller) = self {
            // One that has given up has counted it.
            if caller.ticket.as_ref().is_none_or(|ticket| ticket.take()) {
                counters.refused(caller.op);
            }
            caller.answer(Outcome::NotSent(session::Cause::SessionOver(end.into())));
        }
    }
}

impl Caller {
    pub(crate) const fn new(
        op: OpCode,
        reply: oneshot::Sender<Outcome>,
        ticket: Option<Arc<Ticket>>,
    ) -> Self {
        Self { reply: Some(reply), ticket, op, since: Duration::ZERO, permit: None }
    }

    /// Answers the caller, unless that has been done.
    pub(crate) fn answer(&mut self, outcome: Outcome) {
        if let Some(reply) = self.reply.take() {
            // The caller may have gone; the reply is dropped then.
            let _ = reply.send(outcome);
        }
    }
}
