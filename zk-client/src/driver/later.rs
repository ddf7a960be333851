//! Delayed tasks of the driver, and the timer for them.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep};
use zk_proto::Time;

use crate::carry::{attempt::AttemptId, guaranteed_delete::GuaranteedDelete};

/// Pause before asking a busy server again.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Longest sleep. Nothing else is due that late, and times far beyond have no [`Instant`].
pub(super) const SLEEP_MAX: Duration = Duration::from_secs(24 * 3600);

/// Longest sleep while a server is dialed: less than until the first ping of most sessions. The timer is then set once
/// for both, and moving it forward costs a call and a wake-up of the runtime.
pub(super) const DIALING_SLEEP_MAX: Duration = Duration::from_secs(1);

/// A delayed task.
pub(super) enum Task {
    /// Submit again what a server was too busy for.
    GuaranteedDelete(GuaranteedDelete),
    /// Submit again what a server refused.
    Refused(GuaranteedDelete),
    /// Retry an attempt to create a node.
    Attempt(AttemptId),
    /// End the session, even if cleanup tasks are unfinished.
    Close,
}

/// The delayed tasks and their times. There are never many.
#[derive(Default)]
pub(super) struct Later(Vec<(Time, Task)>);

impl Later {
    pub(super) fn put(&mut self, at: Time, task: Task) {
        self.0.push((at, task));
    }

    /// Makes refused deletes due now: permissions may have changed.
    pub(super) fn hurry_refused(&mut self, now: Time) {
        for (at, task) in &mut self.0 {
            if let Task::Refused(_) = task {
                *at = now;
            }
        }
    }

    /// Takes the tasks that are due.
    pub(super) fn due(&mut self, now: Time) -> Vec<Task> {
        let (due, later) = std::mem::take(&mut self.0).into_iter().partition(|(at, _)| *at <= now);
        self.0 = later;
        let due: Vec<(Time, Task)> = due;
        due.into_iter().map(|(_, task)| task).collect()
    }

    /// Takes all tasks.
    pub(super) fn all(&mut self) -> impl Iterator<Item = Task> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|(_, task)| task)
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.0.iter().map(|(at, _)| *at).min()
    }
}

/// Wakes the driver at a time of its clock.
#[derive(Default)]
pub(super) struct Alarm {
    /// Made when it is first polled: a timer belongs to the runtime that makes it, and the driver may be spawned on another
    /// one than the client was connected on.
    sleep: Option<Pin<Box<Sleep>>>,
    /// The time that `sleep` is set to.
    at: Option<Time>,
}

impl Alarm {
    /// Measures the wait again: a running timer is based on an earlier reading of the clock.
    pub(super) const fn forget(&mut self) {
        self.at = None;
    }

    /// Ready at `at`, or too early: each request postpones the deadline a little, and resetting the timer each time
    /// costs more than one early wake-up. Sleeps for `sleep_max` at most.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        (at, sleep_max): (Time, Duration),
        now: impl FnOnce() -> Time,
    ) -> Poll<()> {
        let timer = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(Duration::ZERO)));
        if self.at.is_none_or(|set| set > at) {
            let now = now();
            let sleep = at.since(now).min(sleep_max);
            timer.as_mut().reset(Instant::now() + sleep);
            self.at = Some(now.after(sleep));
        }
        let polled = timer.as_mut().poll(cx);
        if polled.is_ready() {
            self.at = None;
        }
        polled
    }
}
