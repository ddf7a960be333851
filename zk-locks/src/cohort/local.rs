//! Where a cohort stands: who waits, whose turn it is, and what becomes of the lock.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use zk_client::{Client, planted};

use super::Passing;
use crate::{
    error::{AcquireError, Lost},
    guard::{Guard, Held, Status},
    line::Line,
};

/// What the tasks of a cohort share.
pub(super) struct Shared {
    pub(super) line: Arc<Line>,
    pub(super) passing: Passing,
    /// Never held while a guard goes or somebody is told: both come back here.
    local: Mutex<Local>,
    /// For the runner: something has changed that is its business.
    pub(super) news: Notify,
}

/// Where a cohort stands. Whenever somebody waits there is a runner.
#[derive(Default)]
pub(super) struct Local {
    /// In the order of their numbers.
    pub(super) waiters: VecDeque<Waiter>,
    pub(super) turn: Option<Turn>,
    /// How the last turn was lost, until those who wait were told.
    pub(super) lost: Option<Lost>,
    pub(super) has_runner: bool,
    /// Whether nobody can ask any more.
    pub(super) is_deserted: bool,
    /// Keeps the session from being left while the runner may have a node that nobody wants.
    pub(super) unwanted: Option<Client>,
    /// Numbers given out so far, to waiters and turns.
    numbers: u64,
}

pub(super) struct Waiter {
    pub(super) number: u64,
    pub(super) since: Instant,
    pub(super) grant: oneshot::Sender<Result<CohortGuard, AcquireError>>,
}

/// The lock, held by one task of a cohort. What a [`Guard`] can, it can.
///
/// Dropping it passes the lock on to the next task, or releases it in the background.
#[must_use = "dropping it releases the lock"]
pub struct CohortGuard {
    /// There until this is dropped or released.
    pub(super) guard: Option<Guard>,
    /// Which turn of the cohort it belongs to.
    pub(super) turn: u64,
    pub(super) shared: Arc<Shared>,
}

/// The time from the grant of the node to its end.
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) since: Instant,
    /// How many have had the lock.
    pub(super) sections: u32,
    /// Whether somebody elsewhere is known to wait behind us.
    pub(super) contended: bool,
    /// Of whoever has the lock now.
    pub(super) held: Held,
    /// The lock, if nobody has it, and until when it stays.
    pub(super) idle: Option<(Guard, Instant)>,
}

/// What a runner watches over.
pub(super) struct Watched {
    /// Of whoever has the lock now.
    pub(super) held: Held,
    /// Whether it matters if somebody is behind us.
    pub(super) asks_who_is_behind: bool,
    /// Until when the lock stays although nobody has it.
    pub(super) idle_until: Option<Instant>,
}

/// What is to be done with the lock when a task is done.
pub(super) enum Next {
    Pass(Waiter),
    Release,
    Linger(Instant),
}

/// What the runner has to do.
pub(super) enum Step {
    /// Nobody waits, and nothing is held.
    Rest,
    /// Somebody waits, and nothing is held.
    Join,
    /// To watch over a turn.
    Watch(u64),
}

impl Turn {
    /// Whether it is somebody else's turn now.
    fn is_spent(&self, passing: &Passing) -> bool {
        let spent = self.sections >= passing.most || self.since.elapsed() >= passing.time;
        self.contended && spent && !planted!(CohortKeepsLock) || self.sections == u32::MAX
    }

    /// Whether it matters if somebody is behind us.
    pub(super) fn asks_who_is_behind(&self, somebody_waits: bool) -> bool {
        !self.contended && (somebody_waits || self.sections > 1 || self.idle.is_some())
    }
}

impl Local {
    pub(super) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// Whether somebody waits, and there is no node yet that was granted.
    pub(super) fn wants_node(&self) -> bool {
        self.turn.is_none() && !self.waiters.is_empty()
    }

    /// The turn with this number, if it is not over.
    pub(super) fn turn(&mut self, number: u64) -> Option<&mut Turn> {
        self.turn.as_mut().filter(|turn| turn.number == number)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// What is to be done with the lock of a turn.
    pub(super) fn next(&mut self, number: u64, status: Status, passing: &Passing) -> Next {
        let Self { has_runner, is_deserted, .. } = *self;
        let is_last = self.waiters.is_empty();
        // Of a turn that was lost before, there is only its node to be removed.
        let Some(turn) = self.turn(number) else { return Next::Release };
        if let Status::Lost(lost) = status {
            self.end(lost);
            return Next::Release;
        }
        if turn.is_spent(passing) {
            self.turn = None;
            return Next::Release;
        }
        let may_linger = has_runner && is_last && !is_deserted && !passing.linger.is_zero();
        let lingers = may_linger && !turn.contended;
        if let Some(until) = Instant::now().checked_add(passing.linger).filter(|_| lingers) {
            return Next::Linger(until);
        }
        match self.waiters.pop_front() {
            Some(waiter) => Next::Pass(waiter),
            None => {
                self.turn = None;
                Next::Release
            }
        }
    }

    /// A turn has ended in a loss. Gives back what is to be dropped.
    pub(super) fn end(&mut self, lost: Lost) -> Option<Turn> {
        // Of nobody's concern if nobody waits.
        self.lost = (!self.waiters.is_empty()).then_some(lost);
        self.turn.take()
    }
}

impl Shared {
    pub(super) fn new(line: Arc<Line>, passing: Passing) -> Arc<Self> {
        Arc::new(Self { line, passing, local: Mutex::default(), news: Notify::new() })
    }

    pub(super) fn local(&self) -> MutexGuard<'_, Local> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the runner to look again.
    pub(super) fn changed(&self) {
        self.news.notify_one();
    }

    pub(super) fn is_busy(&self) -> bool {
        let local = self.local();
        local.turn.is_some() || !local.waiters.is_empty()
    }
}
