//! The task that owns the session: it moves bytes, time and tokens, and decides nothing.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Weak},
    task::{Context, Poll, ready},
    thread,
    time::Duration,
};

use tokio::task::yield_now;
use zk_proto::{
    Time,
    session::{Lease as LeaseBy, Outgoing, Output, ProbeAnswer, Session},
};

use super::{
    later::{Alarm, Later},
    proof::Proof,
};
use crate::{
    carry::{
        attempt::Attempts, guaranteed_delete::DeleteSink, known::Known, published::SessionState,
    },
    clock::Clock,
    driver::{
        command::{Command, Detaching, Purpose, Submission},
        frames::Frames,
        token::Token,
    },
    error::SessionEnd,
    net::{
        connect::Connect,
        link::{LITTLE, Link},
        sasl::SaslMechanism,
    },
    queue::CommandReceiver,
    report::{log_limit::LogLimit, stats::Counters},
    watch::Listener,
};

/// Turns per poll before the driver yields to other tasks.
const TURNS_PER_POLL: usize = 16;

/// Replies to deliver, however few requests are in flight, before the driver yields to their callers: fewer are not
/// worth a separate write.
const ANSWERS_MIN: usize = 20;

/// Fewest requests in flight for which a server that has answered all of them gets new ones before all replies are delivered.
const LOCKSTEP_MIN: usize = 8;

/// One in so many of the replies is delivered before that.
const LOCKSTEP_PART: usize = 16;

/// Commands taken per turn: enough to fill a write, few enough not to delay replies.
const COMMANDS_PER_TURN: usize = 1024;

/// Everything that a driver is made of and reports to.
pub(crate) struct Parts {
    pub(crate) session: Session<Token, Listener>,
    pub(crate) lease_by: LeaseBy,
    pub(crate) close_timeout: Duration,
    pub(crate) receiver: CommandReceiver<Command>,
    /// Deletes nodes without an owner.
    pub(crate) delete_sink: Weak<dyn DeleteSink>,
    pub(crate) connector: Arc<dyn Connect>,
    pub(crate) sasl: Option<Arc<dyn SaslMechanism>>,
    pub(crate) clock: Clock,
    pub(crate) known: Arc<Known>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) frames: Arc<Frames>,
}

/// The owner of one session.
pub(crate) struct Driver {
    pub(super) parts: Parts,
    pub(super) link: Link,
    pub(super) attempts: Attempts,
    pub(super) probe: Option<Box<Probe>>,
    pub(super) proof: Proof,
    pub(super) alarm: Alarm,
    /// Whether all clients are gone.
    pub(super) abandoned: bool,
    pub(super) later: Later,
    /// Number of cleanup tasks that still need the session.
    pub(super) cleanups: usize,
    /// The caller that wants to leave the session alive, once nothing is left to do in it.
    pub(super) detaching: Option<Box<Detaching>>,
    /// The caller that wants to end the session, and its deadline, once nothing is left to do in it.
    pub(super) closing: Option<Box<(Time, Vec<Token>)>>,
    /// Whether anything has asked for the session's end.
    pub(super) is_closing: bool,
    /// Whether the observer was told of it.
    pub(super) end_is_told: bool,
    pub(super) log_limit: LogLimit,
    /// Number of requests in flight at the last write.
    pub(super) under_way: usize,
    /// Number of replies to deliver before a pause.
    pub(super) answers: usize,
    /// Whether nothing has been asked for, or not since a ping was due: no memory is kept for more.
    pub(super) is_quiet: bool,
}

pub(super) struct Probe {
    pub(super) server: Arc<str>,
    pub(super) answer: Pin<Box<dyn Future<Output = ProbeAnswer> + Send>>,
}

impl Driver {
    pub(crate) fn new(parts: Parts) -> Self {
        let attempts = Attempts::new(parts.delete_sink.clone(), parts.known.clone());
        Self {
            parts,
            link: Link::Down,
            attempts,
            probe: None,
            proof: Proof::default(),
            alarm: Alarm::default(),
            abandoned: false,
            later: Later::default(),
            cleanups: 0,
            detaching: None,
            closing: None,
            is_closing: false,
            end_is_told: false,
            log_limit: LogLimit::default(),
            under_way: 0,
            answers: ANSWERS_MIN,
            is_quiet: true,
        }
    }

    /// Drives the session until it ends. Not an `async fn`, whose future would have room for two drivers.
    pub(crate) fn run(mut self) -> impl Future<Output = ()> + Send {
        poll_fn(move |cx| {
            ready!(self.poll(cx));
            self.refuse_the_rest();
            self.count_load();
            Poll::Ready(())
        })
    }

    /// Takes turns until there is nothing to do but wait, or until other tasks should run.
    ///
    /// Other tasks run once half of the due replies have been delivered, or [fewer](Self::leave_lockstep): if all were, and
    /// only then followed by new requests, client and server would alternate instead of working concurrently.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.answers == 0 {
            // Requests submitted during the pause are sent before anything else is handled.
            self.take_commands(cx);
            self.write(cx);
        }
        self.answers = ANSWERS_MIN.max(self.under_way.div_ceil(2));
        for _ in 0..TURNS_PER_POLL {
            let busy = self.turn(cx);
            if self.answers == 0 {
                break;
            }
            if self.parts.session.over().is_some() && !busy {
                return Poll::Ready(());
            }
            if busy {
                continue;
            }
            // Nothing is left to deliver either.
            self.offer_when_done();
            if self.wait(cx) {
                if self.is_quiet {
                    self.parts.session.shrink();
                }
                return Poll::Pending;
            }
        }
        if self.answers == 0 {
            cx.waker().wake_by_ref();
        } else {
            // There is always more to do than callers have asked for: an immediate wake-up would starve timers and
            // other connections of this thread.
            let _ = pin!(yield_now()).poll(cx);
        }
        Poll::Pending
    }

    /// Polls every source once, in a fixed order. Returns whether any was ready.
    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = self.take_offer_back(cx);
        busy |= self.take_commands(cx);
        let now = self.now();
        busy |= self.advance_link(cx, now);
        busy |= self.advance_probe(cx, now);
        busy |= self.advance_proof(cx, now);
        busy |= self.do_due(now);
        self.parts.session.rely(self.parts.known.lease.is_kept());
        if self.parts.session.deadline().is_some_and(|deadline| deadline <= now) {
            if self.parts.session.load().0 == 0 {
                // No request has been sent for so long that a ping is due.
                self.parts.frames.clear();
                self.parts.receiver.shrink();
                self.is_quiet = true;
            }
            self.parts.session.elapsed(now);
            busy = true;
        }
        while self.answers > 0 {
            let Some(output) = self.parts.session.poll() else { break };
            busy = true;
            self.answers -= usize::from(matches!(output, Output::Reply { .. }));
            self.carry_out(now, output);
        }
        // Before the answered callers run and submit more.
        self.parts.receiver.give_back();
        self.publish_lease();
        self.count_load();
        self.close_when_done(now);
        busy | self.write(cx)
    }

    fn count_load(&self) {
        let (requests, bytes) = self.parts.session.load();
        self.parts.counters.load(requests, bytes);
        #[cfg(feature = "metrics")]
        self.parts.counters.record_load(
            (requests, bytes),
            self.parts.session.throttled_count(),
            // They go with the session, and some may have been let go while nobody took them up any more.
            if self.parts.session.over().is_some() { 0 } else { self.parts.known.sweeps.count() },
        );
    }

    fn take_commands(&mut self, cx: &Context<'_>) -> bool {
        // The number is limited at submission: see `room`.
        if self.abandoned {
            return false;
        }
        let Poll::Ready(is_any) = self.parts.receiver.poll(cx) else { return false };
        self.is_quiet = false;
        let now = self.now();
        if !is_any {
            // No task can submit anything any more: all clients are gone.
            self.abandoned = true;
            // Or the last one leaves it, which has its own say.
            if self.detaching.is_none() {
                self.close_unless_closing(now);
            }
        }
        for _ in 0..COMMANDS_PER_TURN {
            let Some(command) = self.parts.receiver.next() else { break };
            self.obey(now, command);
        }
        true
    }

    /// Carries out a command.
    pub(super) fn obey(&mut self, now: Time, command: Command) {
        match command {
            Command::Submit(purpose, submission) => self.submit(now, purpose, submission),
            Command::Batch(purpose, batch) => {
                batch.into_iter().for_each(|one| self.submit(now, purpose, one));
            }
            Command::CleanupBegins => self.cleanups += 1,
            Command::CleanupEnds => self.cleanups -= 1,
            Command::LeaseKept => {}
            Command::Withdraw(ticket) => self.withdraw(now, &ticket),
            Command::AddAuth(purpose, ..) if self.refuses(purpose) => {
                command.refuse(SessionEnd::Closed, &self.parts.counters);
            }
            Command::AddAuth(_, auth, token) => self.add_auth(now, auth, token),
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
            Command::Close(done, limit) => self.close(now, limit, Some(done)),
            Command::Detach(detaching) => {
                if self.is_closing {
                    // The caller is told that there is no session.
                    return;
                }
                self.announce_closing();
                self.detaching = Some(detaching);
                // What waits for room may have a node to give back.
                for command in self.parts.receiver.open() {
                    self.obey(now, command);
                }
            }
            Command::Leave => self.parts.session.detach(),
        }
    }

    /// Whether the session is being left, or closed behind what others have to give back.
    fn refuses(&self, purpose: Purpose) -> bool {
        let leaves = self.detaching.is_some() || self.closing.is_some();
        leaves && purpose == Purpose::Use
    }

    fn submit(&mut self, now: Time, purpose: Purpose, submission: Submission) {
        if self.refuses(purpose) {
            self.parts.receiver.free(submission.permit());
            // No other client would know of the node.
            if let Some(deletion) = submission.unreplaced() {
                self.sweep(now, deletion);
            }
            return submission.refuse(SessionEnd::Closed, &self.parts.counters);
        }
        let request = match submission {
            Submission::GuaranteedDelete(sweep) => return self.sweep_counted(now, sweep),
            Submission::Request(request) => return self.request(now, request),
            Submission::Create(create, permit) => {
                Token::of(self.attempts.start(*create, now, permit))
            }
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
            // Its caller has given up already, and has counted it.
            self.parts.receiver.free(caller.permit);
            return;
        }
        let place = self.parts.session.submit(now, request);
        if let Some(ticket) = ticket {
            ticket.put(place);
        }
    }

    pub(super) fn now(&self) -> Time {
        Time::new((self.parts.clock)())
    }

    fn advance_link(&mut self, cx: &mut Context<'_>, now: Time) -> bool {
        let session = &mut self.parts.session;
        if let Poll::Ready(outcome) = self.link.poll_dial(cx) {
            session.dialed(now, outcome.map_err(Into::into));
            return true;
        }
        let read = if self.is_quiet {
            let read = self.link.poll_read_little(cx, session.inbound());
            // Many events at once, rather than the answer to a ping.
            self.is_quiet = session.inbound().len() < LITTLE;
            read
        } else {
            self.link.poll_read(cx, session.inbound_with_room())
        };
        match read {
            Poll::Ready(Ok(())) => {
                session.received(now);
                self.leave_lockstep();
            }
            Poll::Ready(Err(why)) => session.hung_up(now, why.into()),
            Poll::Pending => return false,
        }
        true
    }

    /// A server that has answered everything sleeps until the next request. The callers of the first replies submit one
    /// soon, and while it wakes the server, the other replies are delivered.
    fn leave_lockstep(&mut self) {
        let (unanswered, _) = self.parts.session.load();
        if unanswered == 0 && self.under_way >= LOCKSTEP_MIN {
            self.answers = self.answers.min(self.under_way / LOCKSTEP_PART).max(1);
        }
    }

    fn advance_probe(&mut self, cx: &mut Context<'_>, now: Time) -> bool {
        let Some(probe) = &mut self.probe else { return false };
        let Poll::Ready(answer) = probe.answer.as_mut().poll(cx) else { return false };
        self.parts.session.probed(now, &probe.server, answer);
        self.probe = None;
        true
    }

    /// Writes the outbound bytes. Returns whether that lost the connection.
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        let (under_way, _) = self.parts.session.load();
        let outbound = self.parts.session.outbound();
        if !outbound.is_empty() {
            self.under_way = under_way;
        }
        match self.link.poll_write(cx, outbound, self.parts.connector.fails_whole()) {
            Poll::Ready(Err(why)) => {
                let now = self.now();
                self.parts.session.hung_up(now, why.into());
                true
            }
            Poll::Ready(Ok(())) | Poll::Pending => false,
        }
    }
}

/// A driver that is dropped before it has come to its end was dropped with its runtime: no task keeps the session alive any
/// more, and no task may believe otherwise. Its requests and watches are told, as at any other end.
impl Drop for Driver {
    fn drop(&mut self) {
        let is_over =
            |driver: &Self| matches!(driver.parts.known.board.get().state, SessionState::Ended(_));
        // In a panic nothing is known of what the session was in the middle of.
        if !thread::panicking() {
            self.parts.session.detach();
            self.refuse_the_rest();
            self.count_load();
        }
        if !is_over(self) {
            let end = SessionEnd::Closed;
            if !self.end_is_told {
                self.parts.counters.ended(end);
            }
            self.parts.known.board.change(|it| it.enter(SessionState::Ended(end)));
        }
    }
}
