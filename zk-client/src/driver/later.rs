//! What is to be done at some time, and the wait for it.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep};
use zk_proto::{Time, planted};

use crate::carry::{attempt::AttemptId, sweep::Sweep};

/// How long to wait before asking a server again that could not be bothered.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Longest sleep. Nothing else is due that late, and what is far beyond has no [`Instant`].
const SLEEP_MAX: Duration = Duration::from_secs(24 * 3600);

/// Something to be done later.
pub(super) enum Task {
    /// Ask again for what a server would not do just now.
    Sweep(Sweep),
    /// The same for what it refused.
    Refused(Sweep),
    /// The same for an attempt to create a node.
    Attempt(AttemptId),
    /// End the session, whoever still has something to do in it.
    Close,
}

/// What is to be done, and when. There is never much of it.
#[derive(Default)]
pub(super) struct Later(Vec<(Time, Task)>);

impl Later {
    pub(super) fn put(&mut self, at: Time, task: Task) {
        self.0.push((at, task));
    }

    /// What was refused is to be asked for again now: permissions may have changed.
    pub(super) fn hurry_refused(&mut self, now: Time) {
        for (at, task) in &mut self.0 {
            if let Task::Refused(_) = task {
                *at = now;
            }
        }
    }

    /// Takes what is due.
    pub(super) fn due(&mut self, now: Time) -> Vec<Task> {
        let (due, later) = std::mem::take(&mut self.0).into_iter().partition(|(at, _)| *at <= now);
        self.0 = later;
        let due: Vec<(Time, Task)> = due;
        due.into_iter().map(|(_, task)| task).collect()
    }

    /// Takes everything.
    pub(super) fn all(&mut self) -> impl Iterator<Item = Task> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|(_, task)| task)
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.0.iter().map(|(at, _)| *at).min()
    }
}

/// Wakes the driver at a time of its clock.
pub(super) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    /// What `sleep` is set to.
    at: Option<Time>,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Self { sleep: Box::pin(tokio::time::sleep(Duration::ZERO)), at: None }
    }

    /// Measures the wait anew: one that has begun goes by what the clock said then.
    pub(super) const fn forget(&mut self) {
        self.at = None;
    }

    /// Ready at `at`, or too early: each request puts the deadline off a little, and to set a timer costs more than to be
    /// woken once in vain when it would have been due without them.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        at: Time,
        now: impl FnOnce() -> Time,
    ) -> Poll<()> {
        let oversleeps = planted!(DeadlineOverslept) && self.at.is_some();
        if self.at.is_none_or(|set| set > at) && !oversleeps {
            self.sleep.as_mut().reset(Instant::now() + at.since(now()).min(SLEEP_MAX));
            self.at = Some(at);
        }
        let polled = self.sleep.as_mut().poll(cx);
        if polled.is_ready() {
            self.at = None;
        }
        polled
    }
}
