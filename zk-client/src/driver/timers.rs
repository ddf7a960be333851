//! Waits for deadlines and carries out what is due.

use std::task::Context;

use zk_proto::Time;

use super::{Driver, later::Task};
use crate::driver::token::Token;

impl Driver {
    /// Arranges a wake-up at the next deadline. Returns whether that is still in the future.
    pub(super) fn wait(&mut self, cx: &mut Context<'_>) -> bool {
        let deadline = self.parts.session.deadline().into_iter().chain(self.later.next()).min();
        let Some(deadline) = deadline else { return true };
        let clock = &self.parts.clock;
        self.alarm.poll(cx, deadline, || Time::new(clock.now())).is_pending()
    }

    /// Carries out the tasks that are due. Returns whether there were any.
    pub(super) fn do_due(&mut self, now: Time) -> bool {
        let due = self.later.due(now);
        let any = !due.is_empty();
        due.into_iter().for_each(|task| self.carry_on(now, task));
        any
    }

    /// Carries out a task, due or not.
    pub(super) fn carry_on(&mut self, now: Time, task: Task) {
        match task {
            Task::Sweep(sweep) | Task::Refused(sweep) => {
                self.parts.session.submit(now, Token::of(sweep.request()));
            }
            Task::Attempt(id) => {
                let next = self.attempts.retry(id);
                self.go_on(now, next);
            }
            Task::Close => self.close_now(now),
        }
    }
}
