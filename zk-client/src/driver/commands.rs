//! What clients ask for besides requests, and what is due.

use std::{
    future::Future as _,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{sync::oneshot, task::unconstrained};
use zk_proto::{
    Time,
    session::{Auth, Cause, Outcome, WatchBy, Watcher as _, Withdrawn},
};

use super::{
    Driver,
    command::Handover,
    later::{DIALING_SLEEP_MAX, SLEEP_MAX, Task},
    token::Token,
};
use crate::{
    carry::{guaranteed_delete::GuaranteedDelete, published::SessionState},
    net::link::Link,
    queue::Ticket,
    report::observe::Ending,
    watch::Listener,
};

impl Driver {
    /// Answers a caller that has given up with what is known.
    pub(super) fn withdraw(&mut self, now: Time, ticket: &Ticket) {
        let withdrawn = ticket.place().and_then(|place| self.parts.session.withdraw(place));
        match withdrawn {
            Some(Withdrawn::Unsent { token: Token::Caller(caller), was_sent }) => {
                let cause = Cause::Withdrawn;
                let outcome =
                    if was_sent { Outcome::Unknown(cause) } else { Outcome::NotSent(cause) };
                self.conclude(now, caller, outcome);
            }
            Some(Withdrawn::Sent(Token::Caller(caller))) if caller.reply.is_some() => {
                let outcome = Outcome::Unknown(Cause::Withdrawn);
                let asked = (caller.op, caller.since);
                self.parts.counters.concluded(now, asked, Ending::Unknown);
                caller.answer(outcome);
            }
            // The caller has been answered already.
            _ => {}
        }
    }

    pub(super) fn add_auth(&mut self, now: Time, auth: Auth, mut token: Token) {
        if let Token::Caller(caller) = &mut token {
            caller.since = now.since_epoch();
        }
        self.parts.session.add_auth(now, auth, token);
        // After it.
        self.later.hurry_refused(now);
    }

    pub(super) fn unwatch(&mut self, now: Time, by: WatchBy, path: &Arc<str>) {
        self.parts.session.unwatch(now, by, path, Listener::is_gone);
    }

    pub(super) fn sweep(&mut self, now: Time, sweep: GuaranteedDelete) {
        self.parts.known.sweeps.begun();
        self.sweep_counted(now, sweep);
    }

    /// The same of one that counts since it was submitted.
    pub(super) fn sweep_counted(&mut self, now: Time, sweep: GuaranteedDelete) {
        self.parts.session.submit(now, Token::of(sweep.since(now).request()));
    }

    /// Offers the session to a caller that has asked to leave it, once nothing is left to do: the client that resumes it
    /// would not know of unwanted nodes. Nothing is done behind it before the offer is [taken back](Self::take_offer_back).
    pub(super) fn offer_when_done(&self) {
        let Some(detaching) = self.detaching.as_deref() else { return };
        let swept = self.parts.known.sweeps.hopeful() == 0 && self.cleanups == 0;
        if self.attempts.is_empty() && swept && self.parts.receiver.is_empty() {
            detaching.offer.send_replace(Some(Handover(self.parts.session.credentials())));
        }
    }

    /// Takes an offer back, unless it has been accepted: then the session is left. Returns whether the caller has decided.
    pub(super) fn take_offer_back(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(detaching) = self.detaching.as_deref_mut() else { return false };
        detaching.offer.send_if_modified(|offer| {
            *offer = None;
            // There is nothing to wake the caller for.
            false
        });
        // Whatever this task has used of its time.
        let mut accepted = pin!(unconstrained(&mut detaching.accepted));
        let Poll::Ready(accepted) = accepted.as_mut().poll(cx) else { return false };
        self.detaching = None;
        match accepted {
            Ok(()) => self.parts.session.detach(),
            // The caller was to have the session.
            Err(_) => self.close_unless_closing(self.now()),
        }
        true
    }

    /// Ends the session for want of a caller, in the time that another one has set if it is being ended already.
    pub(super) fn close_unless_closing(&mut self, now: Time) {
        if !self.is_closing {
            self.close(now, None, None);
        }
    }

    /// Ends the session, once the cleanup tasks have finished or three quarters of the time are over.
    pub(super) fn close(
        &mut self,
        now: Time,
        limit: Option<Duration>,
        done: Option<oneshot::Sender<()>>,
    ) {
        let token = Token::Closer(done);
        // What waits for room was submitted before.
        for command in self.parts.receiver.open() {
            self.obey(now, command);
        }
        self.announce_closing();
        (self.is_closing, self.detaching) = (true, None);
        // The promised limit counts from here.
        self.alarm.forget();
        let limit = limit.unwrap_or(self.parts.close_timeout);
        if self.cleanups == 0 {
            return self.parts.session.close_within(now, limit, token);
        }
        // Of several callers, each waits for the tasks, and none for longer than it has said.
        let until = now.after(limit);
        let closing = self.closing.get_or_insert_with(|| Box::new((until, Vec::new())));
        closing.0 = closing.0.min(until);
        closing.1.push(token);
        self.later.put(now.after(limit.saturating_sub(limit / 4)), Task::Close);
    }

    pub(super) fn close_when_done(&mut self, now: Time) {
        if self.cleanups == 0 {
            self.close_now(now);
        }
    }

    pub(super) fn close_now(&mut self, now: Time) {
        if let Some(closing) = self.closing.take() {
            let (until, tokens) = *closing;
            for token in tokens {
                self.parts.session.close_within(now, until.since(now), token);
            }
        }
    }

    /// Publishes the state before any server is informed: no task may rely on the session's nodes any more.
    pub(super) fn announce_closing(&self) {
        self.parts.known.board.change(|published| published.enter(SessionState::Closing));
    }

    /// Arranges a wake-up at the next deadline. Returns whether that is still in the future.
    pub(super) fn wait(&mut self, cx: &mut Context<'_>) -> bool {
        let deadline = self.parts.session.deadline().into_iter().chain(self.later.next()).min();
        let Some(deadline) = deadline else { return true };
        let clock = &self.parts.clock;
        let sleep_max =
            if matches!(self.link, Link::Dialing(_)) { DIALING_SLEEP_MAX } else { SLEEP_MAX };
        self.alarm.poll(cx, (deadline, sleep_max), || Time::new(clock())).is_pending()
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
            Task::GuaranteedDelete(sweep) => {
                self.parts.session.submit(now, Token::of(sweep.request()));
            }
            Task::Refused(sweep) => {
                self.parts.session.submit(now, Token::of(sweep.since(now).request()));
            }
            Task::Attempt(id) => {
                let next = self.attempts.retry(id);
                self.go_on(now, next);
            }
            Task::Close => self.close_now(now),
        }
    }

    /// Answers whatever was submitted after the end of the session.
    pub(super) fn refuse_the_rest(&mut self) {
        let now = self.now();
        for command in self.parts.receiver.close() {
            self.obey(now, command);
        }
        loop {
            // There is nothing left to be closed.
            for task in self.later.all().filter(|task| !matches!(task, Task::Close)) {
                self.carry_on(now, task);
            }
            // What has failed before may be tried again behind it, in vain.
            let Some(output) = self.parts.session.poll() else { break };
            self.carry_out(now, output);
        }
    }
}
