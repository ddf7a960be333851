//! What clients want of the session.

use std::task::{Context, Poll};

use zk_proto::{Time, planted};

use super::{Driver, later::Task};
use crate::{
    call::{Command, Submission, Token},
    cleanup::Purpose,
    error::SessionEnd,
    session::SessionState,
    sweep::Sweep,
};

/// Commands taken per turn: enough to fill a write, few enough for replies not to wait long.
const COMMANDS_PER_TURN: usize = 1024;

impl Driver {
    pub(super) fn take_commands(&mut self, cx: &mut Context<'_>) -> bool {
        if self.abandoned || !self.parts.session.has_room() {
            return false;
        }
        let mut inbox = std::mem::take(&mut self.inbox);
        let polled = self.parts.commands.poll_recv_many(cx, &mut inbox, COMMANDS_PER_TURN);
        let now = self.now();
        for command in inbox.drain(..) {
            self.obey(now, command);
        }
        self.inbox = inbox;
        match polled {
            Poll::Ready(0) => {
                // Nobody can submit anything any more: all clients are gone.
                self.abandoned = true;
                if !planted!(AbandonedLivesOn) {
                    self.close(now, Token::Nobody);
                }
                true
            }
            Poll::Ready(_) => true,
            Poll::Pending => false,
        }
    }

    fn obey(&mut self, now: Time, command: Command) {
        match command {
            Command::Submit(purpose, submission) => self.submit(now, purpose, submission),
            Command::Batch(purpose, batch) => {
                batch.into_iter().for_each(|one| self.submit(now, purpose, one));
            }
            Command::CleanupBegins => self.cleanups += 1,
            Command::CleanupEnds => self.cleanups -= 1,
            Command::Close(done) => self.close(now, Token::Closer(done)),
            Command::Detach(credentials) => {
                self.announce_closing();
                self.detaching = Some(credentials);
            }
        }
    }

    fn submit(&mut self, now: Time, purpose: Purpose, submission: Submission) {
        if self.detaching.is_some() && purpose == Purpose::Use {
            return submission.refuse(SessionEnd::Closed);
        }
        let request = match submission {
            Submission::Sweep(sweep) => return self.sweep(now, sweep),
            Submission::Request(request) => request,
            Submission::Create(create) => self.attempts.start(*create),
        };
        self.parts.session.submit(now, request);
    }

    pub(super) fn sweep(&mut self, now: Time, sweep: Sweep) {
        self.parts.sweeps.begun();
        self.parts.session.submit(now, sweep.request());
    }

    /// Leaves the session if somebody wants to and nothing is left to do: whoever resumes it would not know of
    /// nodes that nobody wants.
    pub(super) fn detach_when_done(&mut self) -> bool {
        let swept = self.parts.sweeps.count() == 0 && self.cleanups == 0;
        let done = self.attempts.is_empty() && swept && self.parts.commands.is_empty();
        let Some(credentials) = self.detaching.take_if(|_| done) else { return false };
        // Whoever asked may have gone; the session is left all the same.
        let _ = credentials.send(self.parts.session.credentials());
        self.parts.session.detach();
        true
    }

    fn close(&mut self, now: Time, token: Token) {
        if !planted!(ClosingNotAnnounced) {
            self.announce_closing();
        }
        self.parts.session.close(now, token);
        // What is promised in time is measured from here.
        self.alarm.forget();
    }

    /// Before any server can hear of it: nobody must count on the session's nodes any more.
    fn announce_closing(&self) {
        self.parts.published.send_if_modified(|published| published.enter(SessionState::Closing));
    }

    /// Answers what was submitted when the session was over already.
    pub(super) fn refuse_the_rest(&mut self) {
        let now = self.now();
        self.parts.commands.close();
        while let Ok(command) = self.parts.commands.try_recv() {
            self.obey(now, command);
        }
        for task in self.later.all() {
            match task {
                Task::Sweep(sweep) => self.parts.session.submit(now, sweep.request()),
                Task::Attempt(id) => {
                    let next = self.attempts.retry(id);
                    self.go_on(now, next);
                }
                Task::Confirm(_) => {}
            }
        }
        while let Some(output) = self.parts.session.poll() {
            self.carry_out(now, output);
        }
    }
}
