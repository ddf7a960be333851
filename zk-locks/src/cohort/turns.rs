//! Passing the lock on, and what happens to the waiters when that fails.

use std::{mem, sync::Arc};

use tokio::time::Instant;
use zk_client::SessionEnd;

use super::{
    CohortGuard,
    attempt::Attempt,
    local::{Next, Shared, Step, Turn, Waiter, Watched},
    runner::Runner,
};
use crate::{
    error::{AcquireError, Lost},
    guard::Guard,
    wait_queue::Waited,
};

impl Shared {
    /// Takes an idle lock, with the number of its turn: to be [granted](Self::grant_idle).
    pub(super) fn take_idle(&self) -> Option<(u64, Guard)> {
        let mut local = self.local();
        let turn = local.turn.as_mut()?;
        let (guard, _) = turn.idle.take()?;
        Some((turn.number, guard))
    }

    /// Gives a lock that was idle to a task; `Err` if it turns out to be lost.
    pub(super) fn grant_idle(
        self: &Arc<Self>,
        number: u64,
        guard: Guard,
        attempt: Attempt,
    ) -> Result<CohortGuard, Attempt> {
        match self.passed_on(number, guard, &attempt) {
            Ok(guard) => {
                attempt.granted();
                self.has_it(number);
                Ok(guard)
            }
            Err(lost) => {
                self.lose(number, lost);
                Err(attempt)
            }
        }
    }

    /// Wraps a lock that was just granted to a try. If another task has asked meanwhile, the runner queues up for it;
    /// it must watch this turn instead.
    pub(super) fn adopt(
        self: &Arc<Self>,
        guard: Guard,
        ahead: Option<usize>,
        attempt: Attempt,
    ) -> CohortGuard {
        let guard = guard.granted(&self.wait_queue, Waited { time: attempt.waited(), ahead });
        attempt.granted();
        let turn = self.begin(&guard, false);
        self.has_it(turn);
        self.changed();
        CohortGuard { guard: Some(guard), turn, shared: self.clone() }
    }

    /// Gives a lock that was just granted to the first waiter.
    pub(super) fn grant(self: &Arc<Self>, guard: Guard, ahead: Option<usize>, contended: bool) {
        let turn = self.begin(&guard, contended);
        let waiter = self.local().waiters.pop_front();
        let of_cohort = |guard| CohortGuard { guard: Some(guard), turn, shared: self.clone() };
        // If there are no waiters, or that one has just left, dropping the guard passes it on.
        let Some(Waiter { attempt, grant, .. }) = waiter else { return drop(of_cohort(guard)) };
        let waited = Waited { time: attempt.waited(), ahead };
        let guard = of_cohort(guard.granted(&self.wait_queue, waited));
        attempt.granted();
        let _ = grant.send(Ok(guard));
    }

    /// Counts a task that has got the lock.
    pub(super) fn has_it(&self, number: u64) {
        if let Some(turn) = self.local().turn(number) {
            turn.sections = turn.sections.saturating_add(1);
        }
    }

    fn begin(&self, guard: &Guard, contended: bool) -> u64 {
        let (since, held) = (Instant::now(), guard.held().clone());
        let mut local = self.local();
        let number = local.number();
        let turn = Turn { number, since, sections: 0, contended, held, idle: None };
        let before = local.turn.replace(turn);
        drop(local);
        drop(before);
        number
    }

    /// Passes the lock on. Returns the guard if it is to be released; the caller must wake the runner then.
    pub(super) fn hand_over(self: &Arc<Self>, number: u64, guard: Guard) -> Option<Guard> {
        let mut guard = guard;
        loop {
            let status = guard.status();
            let mut local = self.local();
            let waiter = match local.next(number, status, &self.wait_queue.settings.stay) {
                Next::Release => return Some(guard),
                Next::Linger(until) => {
                    drop(local);
                    guard.put_down();
                    let mut local = self.local();
                    let is_wanted = local.is_deserted || !local.waiters.is_empty();
                    let Some(turn) = local.turn(number) else { return Some(guard) };
                    // Others may have come meanwhile, and found nothing idle to be released.
                    if is_wanted || turn.contended {
                        continue;
                    }
                    turn.idle = Some((guard, until));
                    return None;
                }
                Next::Pass(waiter) => waiter,
            };
            drop(local);
            let passed = match self.passed_on(number, guard, &waiter.attempt) {
                Ok(passed) => passed,
                Err(lost) => {
                    // This comes first: without waiters the runner ends.
                    let left = self.waits_again(number, lost, waiter);
                    self.lose(number, lost);
                    drop(left);
                    return None;
                }
            };
            waiter.attempt.granted();
            match waiter.grant.send(Ok(passed)) {
                // That waiter has left; try the next one.
                Err(Ok(mut back)) => guard = back.guard.take()?,
                Ok(()) | Err(Err(_)) => return None,
            }
        }
    }

    /// Gives a waiter its place back, to hear of the loss of this turn; returns it if it has left meanwhile, without finding
    /// that place.
    fn waits_again(self: &Arc<Self>, number: u64, lost: Lost, waiter: Waiter) -> Option<Waiter> {
        let mut local = self.local();
        if waiter.grant.is_closed() {
            return Some(waiter);
        }
        // The runner may have heard of the loss first: it found no waiters to be told, and may have come to rest.
        let is_known = local.turn(number).is_none();
        if is_known && !self.wait_queue.settings.stay.requeues {
            drop(local);
            waiter.fail(lost.into());
            return None;
        }
        local.waiters.push_front(waiter);
        let needs_runner = !mem::replace(&mut local.has_runner, true);
        // There may be another turn by now, of a lock that nobody holds: it is not passed to waiters.
        let idle = local.turn.as_ref().filter(|turn| turn.idle.is_some()).map(|turn| turn.number);
        drop(local);
        if let Some(idle) = idle {
            self.release_idle(idle);
        }
        if needs_runner {
            Runner::spawn(self);
        }
        self.changed();
        None
    }

    /// The guard of the next holder; `Err` if the lock turns out to be lost.
    fn passed_on(
        self: &Arc<Self>,
        number: u64,
        guard: Guard,
        attempt: &Attempt,
    ) -> Result<CohortGuard, Lost> {
        let guard = guard.passed_on(&self.wait_queue, attempt.waited())?;
        if let Some(turn) = self.local().turn(number) {
            turn.held = guard.held().clone();
        }
        Ok(CohortGuard { guard: Some(guard), turn: number, shared: self.clone() })
    }

    /// Ends a turn whose lock is lost.
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

    /// Records that no task can ask for the lock any more.
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

    /// Releases an idle lock.
    pub(super) fn release_idle(&self, number: u64) {
        let mut local = self.local();
        let is_idle = local.turn(number).is_some_and(|turn| turn.idle.is_some());
        let ended = if is_idle { local.turn.take() } else { None };
        drop(local);
        drop(ended);
    }

    /// What to watch, if the turn is not over.
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

    /// A contender is behind us: an idle lock is released, and turns get limited.
    pub(super) fn is_contended(&self, number: u64) {
        if let Some(turn) = self.local().turn(number) {
            turn.contended = true;
        }
        self.release_idle(number);
    }

    /// The next step of the runner. It has no node at hand that was not granted.
    pub(super) fn step(&self) -> Step {
        let mut local = self.local();
        local.unwanted = None;
        let lost = local.lost.take();
        if let Some(lost) = lost.filter(|_| !self.wait_queue.settings.stay.requeues) {
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

    /// Cleans up after a runner that was stopped before it had come to rest.
    pub(super) fn abandon(&self) {
        let mut local = self.local();
        local.has_runner = false;
        local.unwanted = None;
        drop(local);
        self.fail(&AcquireError::SessionEnded(SessionEnd::Closed));
    }

    /// Fails all waiters.
    pub(super) fn fail(&self, error: &AcquireError) {
        let waiters = mem::take(&mut self.local().waiters);
        waiters.into_iter().for_each(|waiter| waiter.fail(error.clone()));
    }
}
