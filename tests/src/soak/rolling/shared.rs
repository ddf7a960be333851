//! What all contenders share: fenced resources, counts, and when it is over.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::Notify, task::yield_now};
use zk_locks::{AcquireError, CheckError, Lost, ReleaseError, SessionEnd};

use super::{
    super::Report,
    recipes::{Recipe, Resources},
};
use crate::faults::last;

/// How many errors are printed.
const SHOWN_MAX: usize = 10;

/// What all contenders share.
#[derive(Debug)]
pub(in crate::soak) struct Shared {
    pub(super) servers: String,
    pub(super) pace: Pace,
    pub(super) resources: Resources,
    over: AtomicBool,
    tally: Mutex<Tally>,
    granted: Notify,
}

/// What contenders ask for.
#[derive(Clone, Copy, Debug)]
pub(in crate::soak) struct Pace {
    pub(in crate::soak) session_timeout: Duration,
    /// Between two turns of a task.
    pub(in crate::soak) pause: Duration,
    /// How long what a lock protects is used.
    pub(in crate::soak) hold: Duration,
}

impl Pace {
    /// Uses what a lock protects.
    pub(super) async fn hold(self) {
        if self.hold.is_zero() { yield_now().await } else { last(self.hold).await }
    }
}

#[derive(Debug, Default)]
struct Tally {
    grants: BTreeMap<Recipe, u64>,
    given_up: u64,
    lost: u64,
    sessions_ended: u64,
    unexpected: Vec<String>,
    /// When the last member was killed, and how long after that each recipe was granted for the first time
    /// to a contender that asked after that.
    killed: Option<Instant>,
    recovered: BTreeMap<Recipe, Duration>,
}

/// Why a contender cannot go on.
#[derive(Debug)]
pub(super) struct SessionOver;

impl Shared {
    pub(in crate::soak) fn new(servers: String, pace: Pace) -> Self {
        Self {
            servers,
            pace,
            resources: Resources::default(),
            over: AtomicBool::new(false),
            tally: Mutex::default(),
            granted: Notify::new(),
        }
    }

    /// No contender begins another turn.
    pub(in crate::soak) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// A contender that asked then has been granted it now.
    pub(super) fn granted(&self, recipe: Recipe, asked: Instant) {
        let mut tally = self.tally();
        *tally.grants.entry(recipe).or_default() += 1;
        if let Some(killed) = tally.killed.filter(|killed| asked >= *killed) {
            tally.recovered.entry(recipe).or_insert_with(|| killed.elapsed());
            self.granted.notify_waiters();
        }
    }

    /// A member is gone now.
    pub(in crate::soak) fn killed(&self) {
        let mut tally = self.tally();
        tally.recovered.clear();
        tally.killed = Some(Instant::now());
    }

    /// Waits until each recipe has been granted to a contender that asked after the kill; returns how long the
    /// first and the last one took.
    pub(in crate::soak) async fn recovered(&self) -> (Duration, Duration) {
        loop {
            let granted = self.granted.notified();
            tokio::pin!(granted);
            granted.as_mut().enable();
            let taken: Vec<Duration> = self.tally().recovered.values().copied().collect();
            if let (Some(first), Some(last), true) =
                (taken.iter().min(), taken.iter().max(), taken.len() == Recipe::ALL.len())
            {
                return (*first, *last);
            }
            granted.await;
        }
    }

    /// Which recipes have not been granted since the kill.
    pub(in crate::soak) fn waiting(&self) -> Vec<Recipe> {
        let tally = self.tally();
        let waits = |recipe: &Recipe| !tally.recovered.contains_key(recipe);
        Recipe::ALL.into_iter().filter(waits).collect()
    }

    pub(super) fn given_up(&self) {
        self.tally().given_up += 1;
    }

    pub(super) fn lost(&self, lost: Lost) {
        self.tally().lost += 1;
        if lost == Lost::NodeDeleted {
            self.unexpected("a node was deleted under its holder".to_owned());
        }
    }

    /// Something that no contender should see.
    pub(in crate::soak) fn unexpected(&self, what: String) {
        self.tally().unexpected.push(what);
    }

    /// Judges what came of an attempt.
    pub(super) fn refused(&self, recipe: Recipe, error: &AcquireError) -> Result<(), SessionOver> {
        match error {
            AcquireError::TimedOut => self.given_up(),
            AcquireError::LeaseRanOut => self.tally().lost += 1,
            AcquireError::SessionEnded(end) => return self.session_ended(*end),
            error => self.unexpected(format!("{recipe:?}: {error:?}")),
        }
        Ok(())
    }

    /// Judges what came of a release.
    pub(super) fn released(&self, released: Result<(), ReleaseError>) -> Result<(), SessionOver> {
        match released {
            Ok(()) => Ok(()),
            Err(ReleaseError::SessionEnded(end)) => self.session_ended(end),
            Err(error) => {
                self.unexpected(format!("release: {error:?}"));
                Ok(())
            }
        }
    }

    /// Judges what came of a question whether a lock is held.
    pub(super) fn checked(&self, checked: Result<(), CheckError>) {
        match checked {
            // In doubt over a lost connection: nothing was promised, and nothing is lost by it.
            Ok(()) | Err(CheckError::Unavailable(_)) => {}
            Err(CheckError::Lost(lost)) => self.lost(lost),
            Err(error) => self.unexpected(format!("check: {error:?}")),
        }
    }

    fn session_ended(&self, end: SessionEnd) -> Result<(), SessionOver> {
        if end != SessionEnd::Expired {
            self.unexpected(format!("{end}"));
        }
        Err(SessionOver)
    }

    pub(super) fn session_over(&self) {
        self.tally().sessions_ended += 1;
    }

    pub(in crate::soak) fn tell(&self, report: &mut Report) {
        let tally = self.tally();
        report.figure("acquisitions", tally.grants.values().sum::<u64>());
        for recipe in Recipe::ALL {
            let grants = tally.grants.get(&recipe).copied().unwrap_or_default();
            report.figure(format!("of them: {recipe:?}"), grants);
            report.expect(grants > 0, || format!("{recipe:?} was never granted"));
        }
        report.figure("attempts given up on purpose", tally.given_up);
        report.figure("locks lost by their holders", tally.lost);
        report.figure("sessions that expired", tally.sessions_ended);
        let (violations, shown) = self.resources.violations();
        report.figure("violations of what locks protect", violations);
        report.figure("unexpected errors", tally.unexpected.len());
        for what in shown.into_iter().chain(tally.unexpected.iter().take(SHOWN_MAX).cloned()) {
            report.violation(what);
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
