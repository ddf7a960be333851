//! The state of a cohort: the waiters, the current turn, and what happens to the lock next.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use zk_client::Client;

use super::attempt::Attempt;
use crate::{
    error::{AcquireError, Lost},
    guard::{Guard, Held, Status},
    observe::Observers,
    wait_queue::{Stay, WaitQueue},
};

/// Longer than any process runs, and short enough for an [`Instant`].
const LINGER_MAX: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// What the tasks of a cohort share.
pub(super) struct Shared {
    pub(super) wait_queue: Arc<WaitQueue>,
    /// The same queue, for the cohort's node: observers are told of the tasks instead, which come and go meanwhile.
    pub(super) unobserved: WaitQueue,
    /// Never locked while a guard is dropped, a waiter notified or an observer told: all of them call back into this.
    local: Mutex<Local>,
    /// Wakes the runner: the state has changed.
    pub(super) news: Notify,
}

/// The state of a cohort. Whenever there are waiters there is a runner.
#[derive(Default)]
pub(super) struct Local {
    /// In the order of their numbers.
    pub(super) waiters: VecDeque<Waiter>,
    pub(super) turn: Option<Turn>,
    /// How the last turn was lost, until the waiters have been notified.
    pub(super) lost: Option<Lost>,
    pub(super) has_runner: bool,
    /// Whether all values of the cohort are dropped, so that no task can ask any more.
    pub(super) is_deserted: bool,
    /// Keeps the session open while the runner may have an unwanted node.
    pub(super) unwanted: Option<Client>,
    /// Numbers used so far, by waiters and turns.
    numbers: u64,
}

pub(super) struct Waiter {
    pub(super) number: u64,
    pub(super) attempt: Attempt,
    pub(super) grant: oneshot::Sender<Result<CohortGuard, AcquireError>>,
}

/// The lock, held by one task of a cohort. It dereferences to [`Guard`].
///
/// Dropping it passes the lock on to the next task, keeps it for a later one if it [lingers](crate::Builder::linger), or
/// releases it in the background.
#[must_use = "dropping it releases the lock"]
pub struct CohortGuard {
    /// `Some` until this is dropped or released.
    pub(super) guard: Option<Guard>,
    /// The turn of the cohort that it belongs to.
    pub(super) turn: u64,
    pub(super) shared: Arc<Shared>,
}

/// The time from the grant of the node to its end.
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) since: Instant,
    /// How many tasks have had the lock: those that left before they noticed do not count.
    pub(super) sections: u32,
    /// Whether a contender elsewhere is known to wait behind us.
    pub(super) contended: bool,
    /// Of the present holder.
    pub(super) held: Held,
    /// The lock, if no task holds it, and until when it stays.
    pub(super) idle: Option<(Guard, Instant)>,
}

/// What the runner watches.
pub(super) struct Watched {
    /// Of the present holder.
    pub(super) held: Held,
    /// Whether it matters if there is a contender behind us.
    pub(super) asks_who_is_behind: bool,
    /// Until when the lock stays although no task holds it.
    pub(super) idle_until: Option<Instant>,
}

/// What to do with the lock when a task is done.
pub(super) enum Next {
    Pass(Waiter),
    Release,
    Linger(Instant),
}

/// The next step of the runner.
pub(super) enum Step {
    /// No waiters, and nothing is held.
    Rest,
    /// There are waiters, and nothing is held.
    Join,
    /// Watch a turn.
    Watch(u64),
}

impl Waiter {
    /// Ends its attempt. It may have left.
    pub(super) fn fail(self, error: AcquireError) {
        let Self { attempt, grant, .. } = self;
        drop(attempt);
        let _ = grant.send(Err(error));
    }
}

impl Turn {
    /// Whether the turn must end in favour of other contenders.
    fn is_spent(&self, stay: &Stay) -> bool {
        let had = self.sections >= stay.max_sections.max(1);
        let spent = had || self.since.elapsed() >= stay.max_time;
        self.contended && spent || self.held.token.local() == u32::MAX
    }

    /// Whether it matters if there is a contender behind us.
    pub(super) fn asks_who_is_behind(&self, somebody_waits: bool) -> bool {
        let was_passed_on = self.held.token.local() > 0;
        !self.contended && (somebody_waits || was_passed_on || self.idle.is_some())
    }
}

impl Local {
    pub(super) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// Whether there are waiters but no granted node.
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

    /// What to do with the lock of a turn.
    pub(super) fn next(&mut self, number: u64, status: Status, stay: &Stay) -> Next {
        let Self { has_runner, is_deserted, .. } = *self;
        let is_last = self.waiters.is_empty();
        // If the turn was lost before, only its node is left to remove.
        let Some(turn) = self.turn(number) else { return Next::Release };
        if let Status::Lost(lost) = status {
            self.end(lost);
            return Next::Release;
        }
        if turn.is_spent(stay) {
            self.turn = None;
            return Next::Release;
        }
        let may_linger = has_runner && is_last && !is_deserted && !stay.linger.is_zero();
        let lingers = may_linger && !turn.contended;
        if lingers {
            return Next::Linger(Instant::now() + stay.linger.min(LINGER_MAX));
        }
        match self.waiters.pop_front() {
            Some(waiter) => Next::Pass(waiter),
            None => {
                self.turn = None;
                Next::Release
            }
        }
    }

    /// Ends a turn by a loss. Returns what the caller must drop.
    pub(super) fn end(&mut self, lost: Lost) -> Option<Turn> {
        // Without waiters there is no task to inform.
        self.lost = (!self.waiters.is_empty()).then_some(lost);
        self.turn.take()
    }
}

impl Shared {
    pub(super) fn new(wait_queue: WaitQueue) -> Arc<Self> {
        let mut unobserved = wait_queue.beside(wait_queue.path.clone());
        unobserved.settings.observers = Observers::default();
        let (wait_queue, local, news) = (Arc::new(wait_queue), Mutex::default(), Notify::new());
        Arc::new(Self { wait_queue, unobserved, local, news })
    }

    pub(super) fn local(&self) -> MutexGuard<'_, Local> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the runner.
    pub(super) fn changed(&self) {
        self.news.notify_one();
    }

    pub(super) fn is_busy(&self) -> bool {
        self.notice_loss();
        let local = self.local();
        local.turn.is_some() || !local.waiters.is_empty()
    }

    /// Ends a turn whose lock is lost, although a task still keeps its guard: without a runner no other would.
    fn notice_loss(&self) {
        let local = self.local();
        let turn = local.turn.as_ref().filter(|_| !local.has_runner);
        let Some((number, held)) = turn.map(|turn| (turn.number, turn.held.clone())) else {
            return;
        };
        drop(local);
        if let Status::Lost(lost) = held.status() {
            let mut local = self.local();
            let over = local.turn(number).is_some().then(|| local.end(lost));
            drop(local);
            drop(over);
        }
    }
}
