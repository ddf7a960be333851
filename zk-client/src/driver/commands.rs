//! Carries out the commands of clients.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use zk_proto::{
    Time,
    session::{Auth, Cause, Outcome, Outgoing, WatchBy, Watcher as _, Withdrawn},
};

use super::{Driver, later::Task};
use crate::{
    carry::{published::SessionState, sweep::Sweep},
    driver::{
        command::{Command, Purpose, Submission},
        token::Token,
    },
    error::SessionEnd,
    queue::Ticket,
    watch::Listener,
};

/// Commands taken per turn: enough to fill a write, few enough not to delay replies.
const COMMANDS_PER_TURN: usize = 1024;

impl Driver {
    pub(super) fn take_commands(&mut self, cx: &Context<'_>) -> bool {
        // The number is limited at submission: see `room`.
        if self.abandoned {
            return false;
        }
        let Poll::Ready(is_any) = self.parts.inbox.poll(cx) else { return false };
        let now = self.now();
        if !is_any {
            // No task can submit anything any more: all clients are gone.
            self.abandoned = true;
            self.close(now, None, Token::Nobody);
        }
        for _ in 0..COMMANDS_PER_TURN {
            let Some(command) = self.parts.inbox.next() else { break };
            self.obey(now, command);
        }
        true
    }

    fn obey(&mut self, now: Time, command: Command) {
        match command {
            Command::Submit(purpose, submission) => self.submit(now, purpose, submission),
            Command::Batch(purpose, batch) => {
                batch.into_iter().for_each(|one| self.submit(now, purpose, one));
            }
            Command::CleanupBegins => self.cleanups += 1,
            Command::CleanupEnds => self.cleanups -= 1,
            Command::Withdraw(ticket) => self.withdraw(now, &ticket),
            Command::AddAuth(auth, token) => self.add_auth(now, auth, token),
            Command::Unwatch { by, path } => self.unwatch(now, by, &path),
            Command::RemoveWatches { kinds, path } => {
                for by in kinds {
                    let gone = |listener: &Listener| {
                        listener.remove(*by, &path);
                        true
                    };
                    self.parts.session.unwatch(now, *by, &path, gone);
                }
            }
            Command::UpdateServers(servers) => self.parts.session.update_servers(now, servers),
            Command::Close(done, limit) => self.close(now, limit, Token::Closer(done)),
            Command::Detach(credentials) => {
                self.announce_closing();
                self.detaching = Some(credentials);
            }
        }
    }

    fn submit(&mut self, now: Time, purpose: Purpose, submission: Submission) {
        let leaves = self.detaching.is_some() || self.closing.is_some();
        if leaves && purpose == Purpose::Use {
            self.parts.inbox.free(submission.cost());
            return submission.refuse(SessionEnd::Closed);
        }
        let request = match submission {
            Submission::Sweep(sweep) => return self.sweep(now, sweep),
            Submission::Request(request) => return self.request(now, request),
            Submission::Create(create, cost) => Token::of(self.attempts.start(*create, cost)),
        };
        self.parts.session.submit(now, request);
    }

    fn request(&mut self, now: Time, mut request: Outgoing<Token, Listener>) {
        let Token::Caller(caller) = &mut request.token else {
            self.parts.session.submit(now, request);
            return;
        };
        caller.since = now.since_epoch();
        let ticket = caller.ticket.clone();
        if ticket.as_ref().is_some_and(|ticket| !ticket.take()) {
            // Its caller has given up already.
            self.parts.inbox.free(caller.cost);
            return;
        }
        let place = self.parts.session.submit(now, request);
        if let Some(ticket) = ticket {
            ticket.put(place);
        }
    }

    /// Answers a caller that has given up with what is known.
    fn withdraw(&mut self, now: Time, ticket: &Ticket) {
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
                self.parts.counters.concluded(now, (caller.op, caller.since), &outcome);
                caller.answer(outcome);
            }
            // The caller has been answered already.
            _ => {}
        }
    }

    fn add_auth(&mut self, now: Time, auth: Auth, mut token: Token) {
        if let Token::Caller(caller) = &mut token {
            caller.since = now.since_epoch();
        }
        self.parts.session.add_auth(now, auth, token);
        // After it.
        self.later.hurry_refused(now);
    }

    fn unwatch(&mut self, now: Time, by: WatchBy, path: &Arc<str>) {
        self.parts.session.unwatch(now, by, path, Listener::is_gone);
    }

    pub(super) fn sweep(&mut self, now: Time, sweep: Sweep) {
        self.parts.sweeps.begun();
        self.parts.session.submit(now, Token::of(sweep.request()));
    }

    /// Leaves the session once a caller has asked for it and nothing is left to do: the client that resumes it would
    /// not know of unwanted nodes.
    pub(super) fn detach_when_done(&mut self) -> bool {
        if self.detaching.is_none() {
            return false;
        }
        let swept = self.parts.sweeps.hopeful() == 0 && self.cleanups == 0;
        let done = self.attempts.is_empty() && swept && self.parts.inbox.is_empty();
        let Some(credentials) = self.detaching.take_if(|_| done) else { return false };
        // The caller may have gone; the session is left all the same.
        let _ = credentials.send(self.parts.session.credentials());
        self.parts.session.detach();
        true
    }

    /// Ends the session, once the cleanup tasks have finished or three quarters of the time are over.
    fn close(&mut self, now: Time, limit: Option<Duration>, token: Token) {
        self.announce_closing();
        // The promised limit counts from here.
        self.alarm.forget();
        let limit = limit.unwrap_or(self.parts.close_timeout);
        if self.cleanups == 0 || self.closing.is_some() {
            return self.parts.session.close_within(now, limit, token);
        }
        self.closing = Some((now.after(limit), token));
        self.later.put(now.after(limit.saturating_sub(limit / 4)), Task::Close);
    }

    pub(super) fn close_when_done(&mut self, now: Time) {
        if self.cleanups == 0 {
            self.close_now(now);
        }
    }

    pub(super) fn close_now(&mut self, now: Time) {
        if let Some((until, token)) = self.closing.take() {
            self.parts.session.close_within(now, until.since(now), token);
        }
    }

    /// Publishes the state before any server is informed: no task may rely on the session's nodes any more.
    fn announce_closing(&self) {
        self.parts.published.send_if_modified(|published| published.enter(SessionState::Closing));
    }

    /// Answers whatever was submitted after the end of the session.
    pub(super) fn refuse_the_rest(&mut self) {
        let now = self.now();
        for command in self.parts.inbox.close() {
            self.obey(now, command);
        }
        // There is nothing left to be closed.
        for task in self.later.all().filter(|task| !matches!(task, Task::Close)) {
            self.carry_on(now, task);
        }
        while let Some(output) = self.parts.session.poll() {
            self.carry_out(now, output);
        }
    }
}
