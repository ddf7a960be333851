//! The queue in memory.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use zk_client::{Client, SessionEnd, planted};

use super::{CohortGuard, OnLoss, Passing, runner::Runner};
use crate::{
    Status,
    error::{AcquireError, Lost},
    guard::{Guard, Held},
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
    waiters: VecDeque<Waiter>,
    turn: Option<Turn>,
    /// How the last turn was lost, until those who wait were told.
    lost: Option<Lost>,
    has_runner: bool,
    /// Whether nobody can ask any more.
    is_deserted: bool,
    /// Keeps the session from being left while the runner may have a node that nobody wants.
    unwanted: Option<Client>,
    /// Numbers given out so far, to waiters and turns.
    numbers: u64,
}

struct Waiter {
    number: u64,
    since: Instant,
    grant: oneshot::Sender<Result<CohortGuard, AcquireError>>,
}

/// The time from the grant of the node to its end.
struct Turn {
    number: u64,
    since: Instant,
    /// How many have had the lock.
    sections: u32,
    /// Whether somebody elsewhere is known to wait behind us.
    contended: bool,
    /// Of whoever has the lock now.
    held: Held,
    /// The lock, if nobody has it, and until when it stays.
    idle: Option<(Guard, Instant)>,
}

/// What comes of asking for the lock.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is made")]
pub(super) enum Asked {
    Granted(CohortGuard),
    Waits(Waiting),
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
enum Next {
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
    fn asks_who_is_behind(&self, somebody_waits: bool) -> bool {
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
    fn turn(&mut self, number: u64) -> Option<&mut Turn> {
        self.turn.as_mut().filter(|turn| turn.number == number)
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// What is to be done with the lock of a turn.
    fn next(&mut self, number: u64, status: Status, passing: &Passing) -> Next {
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
    fn end(&mut self, lost: Lost) -> Option<Turn> {
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

    /// Takes the lock if it is at hand, or a place in the queue.
    pub(super) fn ask(self: &Arc<Self>) -> Asked {
        let (grant, granted) = oneshot::channel();
        let mut local = loop {
            if let Some(guard) = self.take_idle() {
                return Asked::Granted(guard);
            }
            let local = self.local();
            // It may have been put down in between, and whoever waits is passed nothing then.
            if local.turn.as_ref().is_none_or(|turn| turn.idle.is_none()) {
                break local;
            }
        };
        let number = local.number();
        let is_first = local.waiters.is_empty();
        local.unwanted = None;
        local.waiters.push_back(Waiter { number, since: Instant::now(), grant });
        let needs_runner = !mem::replace(&mut local.has_runner, true);
        drop(local);
        let waiting = Waiting { shared: self.clone(), number, granted, is_told: false };
        if needs_runner {
            self.line.client.spawn(Runner::new(self.clone()).run());
        } else if is_first {
            self.changed();
        }
        Asked::Waits(waiting)
    }

    /// Takes a lock that lingers.
    pub(super) fn take_idle(self: &Arc<Self>) -> Option<CohortGuard> {
        let mut local = self.local();
        let turn = local.turn.as_mut()?;
        let (guard, _) = turn.idle.take()?;
        let number = turn.number;
        turn.sections += 1;
        drop(local);
        self.passed_on(number, guard, Duration::ZERO)
            .inspect_err(|&lost| self.lose(number, lost))
            .ok()
    }

    /// A lock that was just granted, for whoever tried to get it. Somebody else may have asked meanwhile, for whom
    /// the runner queues up: it has a turn to watch over now.
    pub(super) fn adopt(self: &Arc<Self>, guard: Guard) -> CohortGuard {
        let turn = self.begin(&guard, false);
        self.changed();
        CohortGuard { guard: Some(guard), turn, shared: self.clone() }
    }

    /// Gives a lock that was just granted to the first who waits.
    pub(super) fn grant(self: &Arc<Self>, guard: Guard, contended: bool) {
        let number = self.begin(&guard, contended);
        let waiter = self.local().waiters.pop_front();
        let guard = CohortGuard { guard: Some(guard), turn: number, shared: self.clone() };
        // If nobody waits any more, or that one has just gone, it is passed on in being dropped.
        if let Some(waiter) = waiter {
            let _ = waiter.grant.send(Ok(guard));
        }
    }

    fn begin(&self, guard: &Guard, contended: bool) -> u64 {
        let (since, held) = (Instant::now(), guard.held().clone());
        let mut local = self.local();
        let number = local.number();
        let turn = Turn { number, since, sections: 1, contended, held, idle: None };
        let before = local.turn.replace(turn);
        drop(local);
        drop(before);
        number
    }

    /// Passes the lock on. Gives it back if it is to be released; the runner is to be told then.
    pub(super) fn hand_over(self: &Arc<Self>, number: u64, guard: Guard) -> Option<Guard> {
        let mut guard = guard;
        loop {
            let status = guard.status();
            let mut local = self.local();
            let waiter = match local.next(number, status, &self.passing) {
                Next::Release => return Some(guard),
                Next::Linger(until) => {
                    drop(local);
                    guard.put_down();
                    let mut local = self.local();
                    if local.is_deserted || !local.waiters.is_empty() {
                        continue;
                    }
                    let Some(turn) = local.turn(number) else { return Some(guard) };
                    turn.idle = Some((guard, until));
                    return None;
                }
                Next::Pass(waiter) => waiter,
            };
            if let Some(turn) = local.turn(number) {
                turn.sections += 1;
            }
            drop(local);
            let passed = match self.passed_on(number, guard, waiter.since.elapsed()) {
                Ok(passed) => passed,
                Err(lost) => {
                    // First of all: without anybody who waits the runner comes to rest.
                    self.local().waiters.push_front(waiter);
                    self.lose(number, lost);
                    return None;
                }
            };
            match waiter.grant.send(Ok(passed)) {
                // That one has gone; the next one, then.
                Err(Ok(mut back)) => guard = back.guard.take()?,
                Ok(()) | Err(Err(_)) => return None,
            }
        }
    }

    /// The guard of the next holder; `Err` if the lock turns out to be lost.
    fn passed_on(
        self: &Arc<Self>,
        number: u64,
        guard: Guard,
        waited: Duration,
    ) -> Result<CohortGuard, Lost> {
        let guard = guard.passed_on(&self.line, waited)?;
        if let Some(turn) = self.local().turn(number) {
            turn.held = guard.held().clone();
        }
        Ok(CohortGuard { guard: Some(guard), turn: number, shared: self.clone() })
    }

    /// The lock of a turn is lost.
    pub(super) fn lose(&self, number: u64, lost: Lost) {
        let mut local = self.local();
        let ended = local.turn(number).is_some().then(|| local.end(lost));
        drop(local);
        if let Some(turn) = ended.flatten() {
            turn.held.lose(lost);
            drop(turn);
            self.changed();
        }
    }

    /// Nobody can ask for the lock any more.
    pub(super) fn desert(&self) {
        let mut local = self.local();
        local.is_deserted = true;
        let turn = local.turn.as_ref().map(|turn| turn.number);
        drop(local);
        if let Some(turn) = turn {
            self.release_idle(turn);
            self.changed();
        }
    }

    /// Releases a lock that nobody has.
    pub(super) fn release_idle(&self, number: u64) {
        let mut local = self.local();
        let is_idle = local.turn(number).is_some_and(|turn| turn.idle.is_some());
        let ended = if is_idle { local.turn.take() } else { None };
        drop(local);
        drop(ended);
    }

    /// What there is to watch over, if the turn is not over.
    pub(super) fn watched(&self, number: u64) -> Option<Watched> {
        let mut local = self.local();
        local.unwanted = None;
        let somebody_waits = !local.waiters.is_empty();
        let turn = local.turn(number)?;
        Some(Watched {
            held: turn.held.clone(),
            asks_who_is_behind: turn.asks_who_is_behind(somebody_waits),
            idle_until: turn.idle.as_ref().map(|(_, until)| *until),
        })
    }

    /// Somebody is behind us: the lock is not kept for nobody then, nor for long.
    pub(super) fn is_contended(&self, number: u64) {
        if let Some(turn) = self.local().turn(number) {
            turn.contended = true;
        }
        self.release_idle(number);
    }

    /// What the runner has to do next. It has no node at hand that was not granted.
    pub(super) fn step(&self) -> Step {
        let mut local = self.local();
        local.unwanted = None;
        if let (Some(lost), OnLoss::Fail) = (local.lost.take(), self.passing.on_loss) {
            drop(local);
            self.fail(&lost.into());
            local = self.local();
        }
        match &local.turn {
            Some(turn) => Step::Watch(turn.number),
            None if local.waiters.is_empty() => {
                local.has_runner = false;
                Step::Rest
            }
            None => Step::Join,
        }
    }

    /// There is no runner any more although it had not come to rest.
    pub(super) fn abandon(&self) {
        let mut local = self.local();
        local.has_runner = false;
        local.unwanted = None;
        drop(local);
        self.fail(&AcquireError::SessionEnded(SessionEnd::Closed));
    }

    /// Tells all who wait that they do so in vain.
    pub(super) fn fail(&self, error: &AcquireError) {
        let waiters = mem::take(&mut self.local().waiters);
        for waiter in waiters {
            // That one may have gone.
            let _ = waiter.grant.send(Err(error.clone()));
        }
    }

    /// Gives up a place in the queue, or what is about to be passed to it.
    fn leave(&self, number: u64) {
        let mut local = self.local();
        let place = local.waiters.binary_search_by_key(&number, |waiter| waiter.number);
        drop(place.ok().and_then(|place| local.waiters.remove(place)));
        let is_nobodys = local.waiters.is_empty() && local.has_runner;
        if is_nobodys {
            local.unwanted = Some(self.line.client.for_cleanup());
        }
        drop(local);
        if is_nobodys {
            self.changed();
        }
    }
}

/// A place in the queue of a cohort. Dropping it leaves the queue; a lock that has just been passed to it goes
/// on to the next one.
pub(super) struct Waiting {
    shared: Arc<Shared>,
    number: u64,
    granted: oneshot::Receiver<Result<CohortGuard, AcquireError>>,
    /// Whether there is no place any more.
    is_told: bool,
}

impl Waiting {
    pub(super) async fn granted(mut self) -> Result<CohortGuard, AcquireError> {
        let closed = AcquireError::SessionEnded(SessionEnd::Closed);
        let told = (&mut self.granted).await;
        self.is_told = true;
        told.unwrap_or(Err(closed))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_told {
            self.shared.leave(self.number);
        }
    }
}
