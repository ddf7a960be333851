//! What is to be done at some time, and the wait for it.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep};
use zk_proto::{
    Str, Time,
    frame::RequestFrame,
    planted,
    request::SyncRequest,
    session::{OnLoss, Outgoing},
};

use super::Driver;
use crate::{call::Token, session::SessionState, sweep::Sweep};

/// How long to wait before asking a server again that could not be bothered.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// However short the sessions are that are asked for.
const CONFIRM_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// Something to be done later.
pub(super) enum Task {
    /// Ask again for what a server would not do just now.
    Sweep(Sweep),
    /// The same for an attempt to create a node.
    Attempt(u64),
    /// Ask the leader for a sign of life, for the lease, so often.
    Confirm(Duration),
}

/// What is to be done, and when. There is never much of it.
#[derive(Default)]
pub(super) struct Later(Vec<(Time, Task)>);

impl Later {
    pub(super) fn put(&mut self, at: Time, task: Task) {
        self.0.push((at, task));
    }

    /// Takes what is due.
    fn due(&mut self, now: Time) -> Vec<Task> {
        let (due, later) = std::mem::take(&mut self.0).into_iter().partition(|(at, _)| *at <= now);
        self.0 = later;
        let due: Vec<(Time, Task)> = due;
        due.into_iter().map(|(_, task)| task).collect()
    }

    /// Takes everything.
    pub(super) fn all(&mut self) -> impl Iterator<Item = Task> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|(_, task)| task)
    }

    fn next(&self) -> Option<Time> {
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
    fn poll(&mut self, cx: &mut Context<'_>, at: Time, now: impl FnOnce() -> Time) -> Poll<()> {
        let oversleeps = planted!(DeadlineOverslept) && self.at.is_some();
        if self.at.is_none_or(|set| set > at) && !oversleeps {
            self.sleep.as_mut().reset(Instant::now() + at.since(now()));
            self.at = Some(at);
        }
        let polled = self.sleep.as_mut().poll(cx);
        if polled.is_ready() {
            self.at = None;
        }
        polled
    }
}

impl Driver {
    /// Arranges to be woken at the next deadline. Returns whether that is still to come.
    pub(super) fn wait(&mut self, cx: &mut Context<'_>) -> bool {
        let deadline = self.parts.session.deadline().into_iter().chain(self.later.next()).min();
        let Some(deadline) = deadline else { return true };
        let clock = &self.parts.clock;
        self.alarm.poll(cx, deadline, || Time::new(clock.now())).is_pending()
    }

    /// Does what is due. Returns whether anything was.
    pub(super) fn do_due(&mut self, now: Time) -> bool {
        let due = self.later.due(now);
        let any = !due.is_empty();
        for task in due {
            match task {
                Task::Sweep(sweep) => {
                    self.parts.session.submit(now, sweep.request());
                }
                Task::Attempt(id) => {
                    let next = self.attempts.retry(id);
                    self.go_on(now, next);
                }
                Task::Confirm(interval) => self.confirm(now, interval),
            }
        }
        any
    }

    /// A new connection has a lease, from its greeting.
    pub(super) fn begin_to_confirm(&mut self, now: Time, timeout: Duration) {
        let Some(margin) = self.parts.lease_margin else { return };
        let third = timeout.checked_div(3).unwrap_or_default();
        let half = timeout.saturating_sub(margin).checked_div(2).unwrap_or_default();
        let interval = third.min(half).max(CONFIRM_INTERVAL_MIN);
        self.later.0.retain(|(_, task)| !matches!(task, Task::Confirm(_)));
        self.later.put(now.after(interval), Task::Confirm(interval));
    }

    /// Has the lease renewed by the leader, now and then, until the connection is lost.
    fn confirm(&mut self, now: Time, interval: Duration) {
        let SessionState::Connected { read_only: false } = self.parts.published.borrow().state
        else {
            return;
        };
        let sync = SyncRequest { path: Str::from("/") };
        self.parts.session.submit(
            now,
            Outgoing {
                frame: RequestFrame::of(&sync),
                token: Token::Nobody,
                watch: None,
                on_loss: OnLoss::Report,
                fail_fast: false,
            },
        );
        self.later.put(now.after(interval), Task::Confirm(interval));
    }
}
