//! Carries out the session's outputs and delivers its replies.

use std::time::Duration;

use zk_proto::{
    Time,
    session::{Cause as Lost, Lease, Outcome, Output, State, WatchNotice, Watcher as _},
};

use super::{
    Driver,
    later::{RETRY_PAUSE, Task},
    proof::Proof,
    task::Probe,
};
use crate::{
    carry::{
        attempt::Next,
        guaranteed_delete::DeleteStep,
        published::{Published, SessionState},
    },
    driver::token::{Caller, Token},
    net::link::{Link, probe},
    report::observe::{Connected, Ending},
    watch::{Delivery, Listener},
};

impl Driver {
    pub(super) fn carry_out(&mut self, now: Time, output: Output<Token, Listener>) {
        match output {
            Output::Dial { server } => {
                tracing::debug!(server = &*server, "dialing");
                self.proof = Proof::default();
                self.link = Link::Dialing(self.parts.connector.connect(&server));
            }
            Output::HangUp => {
                self.link = Link::Down;
                self.proof = Proof::default();
            }
            Output::Sasl { server, said } => {
                self.is_quiet = false;
                self.prove(&server, said);
            }
            Output::Probe { server } => {
                let answer = Box::pin(probe(self.parts.connector.connect(&server)));
                self.probe = Some(Box::new(Probe { server, answer }));
            }
            Output::Failed { server, error } => {
                let error = error.into();
                self.log_limit.failed(now, &server, &error);
                self.parts.counters.attempt_failed(&server, &error);
                self.parts.known.failed((server, error));
            }
            Output::Reply { token, outcome } => {
                if let Outcome::NotSent(Lost::SessionOver(_))
                | Outcome::Unknown(Lost::SessionOver(_)) = outcome
                {
                    self.tell_end();
                }
                self.reply(now, token, outcome);
            }
            Output::Watch { watcher, notice } => {
                if let WatchNotice::Over(_) = notice {
                    self.tell_end();
                }
                if let WatchNotice::Event(event) = &notice {
                    tracing::trace!(kind = %event.kind, path = &*event.path, "watch fired");
                    if !watcher.is_gone() {
                        self.parts.counters.watch_event();
                    }
                }
                if watcher.notify(notice) == Delivery::Lagged {
                    self.parts.counters.lagged();
                    tracing::debug!("events came faster than they were read");
                }
            }
            Output::State(state) => {
                if let State::Connected(negotiated) = &state {
                    self.judge_margin(negotiated.timeout);
                    // Another member may have other permissions.
                    self.later.hurry_refused(now);
                }
                self.publish(now, state);
            }
        }
    }

    fn reply(&mut self, now: Time, token: Token, outcome: Outcome) {
        match token {
            Token::Caller(caller) => self.conclude(now, caller, outcome),
            Token::Closer(done) => {
                let confirmed = matches!(outcome, Outcome::Answered(_));
                self.parts.known.board.change(|it| {
                    it.close_confirmed |= confirmed;
                    confirmed
                });
                // The caller may have gone.
                let _ = done.map(|done| done.send(()));
            }
            Token::Attempt(id) => {
                let Published { id: session, epoch, .. } = self.parts.known.board.get();
                let counters = &self.parts.counters;
                let count = |asked, ending| counters.concluded(now, asked, ending);
                let next = self.attempts.advance(id, (session, epoch), outcome, count);
                self.parts.receiver.free(self.attempts.take_freed());
                self.go_on(now, next);
            }
            Token::GuaranteedDelete(sweep) => {
                let counters = &self.parts.counters;
                let count = |asked, ending| counters.concluded(now, asked, ending);
                let Published { epoch, read_only_epoch, .. } = self.parts.known.board.get();
                let alone = epoch == read_only_epoch;
                match sweep.heard((outcome, alone), &self.parts.known.sweeps, count) {
                    DeleteStep::Now(sweep) => {
                        self.parts.session.submit(now, Token::of(sweep.request()));
                    }
                    DeleteStep::Later(sweep) => {
                        self.later.put(now.after(RETRY_PAUSE), Task::GuaranteedDelete(sweep))
                    }
                    DeleteStep::Refused(sweep, pause) => {
                        self.later.put(now.after(pause), Task::Refused(sweep));
                    }
                    DeleteStep::Concluded => {}
                }
            }
        }
    }

    /// Concludes a caller's request: answers the caller, unless that has been done, and frees the permit.
    pub(super) fn conclude(&mut self, now: Time, mut caller: Caller, outcome: Outcome) {
        if caller.reply.is_some() {
            let ending = Ending::of(caller.op, &outcome);
            self.parts.counters.concluded(now, (caller.op, caller.since), ending);
        }
        self.parts.receiver.free(caller.permit);
        if let Outcome::Answered(answer) = &outcome {
            self.parts.known.capabilities.answered(caller.op, answer.code);
        }
        caller.answer(outcome);
    }

    pub(super) fn go_on(&mut self, now: Time, next: Vec<Next>) {
        for next in next {
            match next {
                Next::Submit(request) => {
                    self.parts.session.submit(now, Token::of(request));
                }
                Next::GuaranteedDelete(sweep) => self.sweep(now, sweep),
                Next::Later(id) => {
                    self.later.put(now.after(RETRY_PAUSE), Task::Attempt(id));
                }
            }
        }
    }

    pub(super) fn publish_lease(&mut self) {
        self.tell_end();
        let session = &self.parts.session;
        let over = session.over().map(Into::into);
        self.parts.known.lease.publish(session.lease(), session.confirmed_lease(), over);
    }

    /// Warns if the granted timeout is too short for the requested margin: servers may grant less than requested.
    fn judge_margin(&self, granted: Duration) {
        if let Lease::Margin(wished) = self.parts.lease_by {
            // Of a resumed session, which may have a shorter one than its heir has been granted.
            let own = self.parts.session.credentials();
            let timeout = own.map_or(granted, |own| own.timeout);
            let margin = self.parts.lease_by.margin(timeout);
            if margin != wished {
                tracing::warn!(
                    ?wished,
                    ?timeout,
                    ?margin,
                    "the margin of the lease is half of the timeout"
                );
            }
        }
    }

    /// Counts a change of state, and reports it to the observer before any other task sees it.
    fn observe(&mut self, state: &State) {
        let counters = &self.parts.counters;
        match state {
            State::Connected(negotiated) => counters.connected(&Connected {
                server: self.parts.session.server().map_or("", |server| server),
                session: negotiated.id,
                timeout: negotiated.timeout,
                read_only: negotiated.read_only,
                epoch: self.parts.known.board.get().epoch + 1,
            }),
            State::Disconnected(why) => counters.disconnected(&why.clone().into()),
            State::Over(_) => self.tell_end(),
        }
    }

    /// Reports the end of the session to the observer: callers learn of it from what they wait for, and from the lease, before
    /// the state says so.
    pub(super) fn tell_end(&mut self) {
        let Some(over) = self.parts.session.over() else { return };
        if !std::mem::replace(&mut self.end_is_told, true) {
            self.parts.counters.ended(over.into());
        }
    }

    fn publish(&mut self, now: Time, state: State) {
        let comes_or_goes = matches!(state, State::Connected(_) | State::Disconnected(_));
        let shown = comes_or_goes && self.log_limit.changed(now);
        self.observe(&state);
        // Before the state, so that no task sees a new connection with a stale lease.
        self.publish_lease();
        self.parts.known.board.change(|published| {
            match state {
                State::Connected(negotiated) => {
                    published.id = negotiated.id;
                    published.timeout = negotiated.timeout;
                    published.epoch += 1;
                    self.parts.known.capabilities.connected(published.epoch);
                    if negotiated.read_only {
                        published.read_only_epoch = published.epoch;
                    }
                    published.enter(SessionState::Connected { read_only: negotiated.read_only });
                    if shown {
                        tracing::info!(
                            session = %negotiated.id,
                            timeout = ?negotiated.timeout,
                            read_only = negotiated.read_only,
                            "connected"
                        );
                    }
                }
                State::Disconnected(why) => {
                    self.parts.known.capabilities.connected(0);
                    published.enter(SessionState::Disconnected);
                    if shown {
                        tracing::info!(session = %published.id, %why, "disconnected");
                    }
                }
                State::Over(over) => {
                    published.enter(SessionState::Ended(over.into()));
                    tracing::info!(session = %published.id, %over, "session over");
                }
            }
            true
        });
    }
}
