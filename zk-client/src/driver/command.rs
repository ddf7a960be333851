//! What callers ask the driver for.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;
use zk_proto::session::{Auth, Credentials, Outgoing, WatchBy};

use super::token::Token;
use crate::{
    carry::{
        attempt::{Concluded, ProtectedCreate},
        sweep::{Sweep, Sweeper},
    },
    error::{Cause, SessionEnd, WriteError},
    queue::{self, Charged, Cost, Sender, Ticket},
    watch::Listener,
};

/// What callers send to the driver.
#[derive(Debug)]
pub(crate) enum Command {
    Submit(Purpose, Submission),
    /// To leave in one write.
    Batch(Purpose, Vec<Submission>),
    CleanupBegins,
    CleanupEnds,
    /// Its caller waits no longer.
    Withdraw(Arc<Ticket>),
    AddAuth(Auth, Token),
    /// Some listeners on an absolute path have gone.
    Unwatch {
        by: WatchBy,
        path: Arc<str>,
    },
    /// All listeners of some kinds on an absolute path are to go.
    RemoveWatches {
        kinds: &'static [WatchBy],
        path: Arc<str>,
    },
    /// Go on with these, each `host:port`.
    UpdateServers(Vec<Arc<str>>),
    /// Within so long, or in the usual time.
    Close(oneshot::Sender<()>, Option<Duration>),
    Detach(oneshot::Sender<Option<Credentials>>),
}

/// Something that ends up as a request, or as several.
#[derive(Debug)]
pub(crate) enum Submission {
    Request(Outgoing<Token, Listener>),
    Create(Box<ProtectedCreate>, Option<Cost>),
    Sweep(Sweep),
}

impl Command {
    /// Answers what has found no driver any more.
    pub(crate) fn refuse(self, end: SessionEnd) {
        match self {
            Self::Submit(_, submission) => submission.refuse(end),
            Self::Batch(_, batch) => {
                batch.into_iter().for_each(|submission| submission.refuse(end));
            }
            Self::CleanupBegins | Self::CleanupEnds => {}
            Self::AddAuth(_, token) => token.refuse(end),
            // Whoever waits for these looks at the session itself.
            Self::Close(..)
            | Self::Detach(_)
            | Self::Withdraw(_)
            | Self::UpdateServers(_)
            | Self::Unwatch { .. }
            | Self::RemoveWatches { .. } => {}
        }
    }
}

impl Charged for Command {
    fn charge(&mut self, cost: Cost) {
        if let Self::Submit(_, submission) = self {
            submission.charge(cost);
        }
    }
}

impl Charged for Submission {
    fn charge(&mut self, cost: Cost) {
        match self {
            Self::Request(Outgoing { token: Token::Caller(caller), .. }) => {
                caller.cost = Some(cost);
            }
            Self::Create(_, paid) => *paid = Some(cost),
            Self::Request(_) | Self::Sweep(_) => {}
        }
    }
}

impl Submission {
    /// The room that it takes up.
    pub(crate) const fn cost(&self) -> Option<Cost> {
        match self {
            Self::Request(Outgoing { token: Token::Caller(caller), .. }) => caller.cost,
            Self::Create(_, cost) => *cost,
            Self::Request(_) | Self::Sweep(_) => None,
        }
    }

    pub(crate) fn refuse(self, end: SessionEnd) {
        match self {
            Self::Request(Outgoing { token, .. }) => token.refuse(end),
            Self::Create(create, _) => {
                let nodes = Err(WriteError::NotApplied(Cause::SessionEnded(end)));
                // Whoever waited may have gone.
                let _ = create.done.send(Concluded::new(nodes, None));
            }
            Self::Sweep(_) => {}
        }
    }
}

/// What a submission is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Something that nobody needs any more who leaves the session.
    Use,
    /// Giving back what nobody would know of: taken as long as there is a session.
    Cleanup,
}

/// A way to the driver.
pub(crate) type Commands = queue::Commands<Command>;

/// The driver hears of what has lost its owner.
impl Sweeper for Sender<Command> {
    fn sweep(&self, sweep: Sweep) {
        // Without a driver there is no session any more, and the node has gone with it or will.
        let _ = self.send(Command::Submit(Purpose::Cleanup, Submission::Sweep(sweep)));
    }
}
