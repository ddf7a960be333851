//! The commands that callers send to the driver.

use std::{sync::Arc, time::Duration};

use tokio::sync::{oneshot, watch};
use zk_proto::session::{Auth, Credentials, Outgoing, WatchBy};

use super::token::Token;
use crate::{
    carry::{
        attempt::{Concluded, ProtectedCreate},
        guaranteed_delete::{DeleteSink, GuaranteedDelete},
    },
    error::{Cause, SessionEnd, WriteError},
    queue::{self, NeedsPermit, Permit, Sender, Ticket},
    report::stats::Counters,
    watch::Listener,
};

/// A command to the driver.
#[derive(Debug)]
pub(crate) enum Command {
    Submit(Purpose, Submission),
    /// To be sent in one write.
    Batch(Purpose, Vec<Submission>),
    CleanupBegins,
    CleanupEnds,
    /// The caller has stopped waiting.
    Withdraw(Arc<Ticket>),
    AddAuth(Purpose, Auth, Token),
    /// Some listeners on an absolute path have been dropped.
    Unwatch {
        by: WatchBy,
        path: Arc<str>,
    },
    /// Remove all listeners of some kinds on an absolute path.
    RemoveWatches {
        kinds: &'static [WatchBy],
        path: Arc<str>,
    },
    /// The session's lease is relied on, as the driver finds out in each turn.
    LeaseKept,
    /// Switch to these servers, each `host:port`.
    UpdateServers(Vec<Arc<str>>),
    /// Within this time, or the default.
    Close(oneshot::Sender<()>, Option<Duration>),
    Detach(Box<Detaching>),
    /// Leave the session as it is, at once: it was to be resumed, and the caller has given up.
    Leave,
}

/// What there is between the driver and the caller that wants to leave the session.
///
/// The credentials say how far client and servers have come, so nothing may be sent or read once the caller has them. But
/// the caller may never look for them, while commands and deadlines come. The driver therefore takes its offer back at the
/// begin of each turn, and makes it at the end of one that is the last for now. The caller accepts while it holds the channel's
/// lock, unless there are commands that the driver has not taken: one of them is first.
#[derive(Debug)]
pub(crate) struct Detaching {
    /// The session in which nothing is left to do.
    pub(crate) offer: watch::Sender<Option<Handover>>,
    /// The session is left once it is accepted, and closed if the caller has gone.
    pub(crate) accepted: oneshot::Receiver<()>,
}

/// The credentials of a session that nothing is left to do in; `None` if no server has granted one.
#[derive(Debug)]
pub(crate) struct Handover(pub(crate) Option<Credentials>);

/// A submission, carried out by one or several requests.
#[derive(Debug)]
pub(crate) enum Submission {
    Request(Outgoing<Token, Listener>),
    Create(Box<ProtectedCreate>, Option<Permit>),
    GuaranteedDelete(GuaranteedDelete),
}

impl Command {
    /// Answers a command that was sent when the driver had ended.
    pub(crate) fn refuse(self, end: SessionEnd, counters: &Counters) {
        match self {
            Self::Submit(_, submission) => submission.refuse(end, counters),
            Self::Batch(_, batch) => {
                batch.into_iter().for_each(|submission| submission.refuse(end, counters));
            }
            Self::CleanupBegins | Self::CleanupEnds | Self::LeaseKept => {}
            Self::AddAuth(_, _, token) => token.refuse(end, counters),
            // Callers that wait for these watch the session itself.
            Self::Close(..)
            | Self::Detach(_)
            | Self::Leave
            | Self::Withdraw(_)
            | Self::UpdateServers(_)
            | Self::Unwatch { .. }
            | Self::RemoveWatches { .. } => {}
        }
    }
}

impl NeedsPermit for Command {
    fn permit_granted(&mut self, permit: Permit) {
        if let Self::Submit(_, submission) = self {
            submission.permit_granted(permit);
        }
    }
}

impl NeedsPermit for Submission {
    fn permit_granted(&mut self, permit: Permit) {
        match self {
            Self::Request(Outgoing { token: Token::Caller(caller), .. }) => {
                caller.permit = Some(permit);
            }
            Self::Create(_, granted) => *granted = Some(permit),
            Self::Request(_) | Self::GuaranteedDelete(_) => {}
        }
    }
}

impl Submission {
    /// The permit that it holds.
    pub(crate) const fn permit(&self) -> Option<Permit> {
        match self {
            Self::Request(Outgoing { token: Token::Caller(caller), .. }) => caller.permit,
            Self::Create(_, permit) => *permit,
            Self::Request(_) | Self::GuaranteedDelete(_) => None,
        }
    }

    /// The delete of a node that it was to replace, and whose owner has passed it on.
    pub(crate) fn unreplaced(&self) -> Option<GuaranteedDelete> {
        match self {
            Self::Create(create, _) => create.replaced.as_ref().map(|node| node.deletion()),
            Self::Request(_) | Self::GuaranteedDelete(_) => None,
        }
    }

    pub(crate) fn refuse(self, end: SessionEnd, counters: &Counters) {
        match self {
            Self::Request(Outgoing { token, .. }) => token.refuse(end, counters),
            Self::Create(create, _) => {
                counters.refused(create.op());
                let nodes = Err(WriteError::NotApplied(Cause::SessionEnded(end)));
                // The caller may have gone.
                let _ = create.done.send(Concluded::new(nodes, None));
            }
            Self::GuaranteedDelete(_) => {}
        }
    }
}

/// The purpose of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Ordinary use: refused while the session is being left or closed.
    Use,
    /// Giving back what no other client would know of: accepted as long as there is a session.
    Cleanup,
}

/// A sender of commands to the driver.
pub(crate) type CommandSender = queue::CommandSender<Command>;

/// Passes nodes without an owner to the driver.
impl DeleteSink for Sender<Command> {
    fn sweep(&self, sweep: GuaranteedDelete) {
        // Without a driver there is no session any more, and the node is gone or will be.
        let delete = Submission::GuaranteedDelete(sweep);
        let _ = self.send_in_turn(Command::Submit(Purpose::Cleanup, delete));
    }
}

/// Keeps the session from being left until dropped. The driver counts these; beginning and end are ordinary commands,
/// so that a task that begins one and then leaves the session is handled in this order.
#[derive(Debug)]
pub(crate) struct Cleanup {
    commands: CommandSender,
}

impl Cleanup {
    pub(crate) fn begin(commands: &CommandSender) -> Arc<Self> {
        // Without a driver there is no session to leave.
        let _ = commands.send(Command::CleanupBegins);
        Arc::new(Self { commands: commands.clone() })
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::CleanupEnds);
    }
}
