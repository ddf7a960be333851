//! The task that owns the session: it moves bytes, time and tokens, and decides nothing.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Sleep,
};
use zk_proto::{
    Str, Time,
    frame::RequestFrame,
    planted,
    request::SyncRequest,
    session::{
        Credentials, LinkError, OnLoss, Outcome, Outgoing, Output, ProbeAnswer, Session, State,
        WatchNotice,
    },
};

use crate::{
    attempt::{Attempts, Next},
    call::{Command, Submission, Token},
    clock::Clock,
    complaints::Complaints,
    error::SessionEnd,
    level::Level,
    link::{Connect, Link, probe},
    session::{Lease, Published, SessionState},
    sweep::{Sweep, Unconfirmed},
    watch::Listener,
};

/// Commands taken per turn: enough to fill a write, few enough for replies not to wait long.
const COMMANDS_PER_TURN: usize = 1024;

/// Turns without going to sleep before other tasks get a chance.
const TURNS_PER_POLL: usize = 16;

/// How long to wait before asking a server again that could not be bothered.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// However short the sessions are that are asked for.
const CONFIRM_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// Everything that a driver is made of and reports to.
pub(crate) struct Parts {
    pub(crate) session: Session<Token, Listener>,
    /// Whether the lease counts only what the leader confirms.
    pub(crate) lease_margin: Option<Duration>,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) weak_commands: mpsc::WeakUnboundedSender<Command>,
    pub(crate) connector: Arc<dyn Connect>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) published: watch::Sender<Published>,
    pub(crate) lease: Arc<Lease>,
    pub(crate) sweeps: Arc<Unconfirmed>,
    pub(crate) level: Arc<Level>,
    pub(crate) last_failure: watch::Sender<Option<(Arc<str>, LinkError)>>,
}

/// The owner of one session.
pub(crate) struct Driver {
    parts: Parts,
    link: Link,
    attempts: Attempts,
    probe: Option<Probe>,
    sleep: Pin<Box<Sleep>>,
    /// What `sleep` is set to.
    sleeping_until: Option<Time>,
    inbox: Vec<Command>,
    /// Whether all clients are gone.
    abandoned: bool,
    /// What a server would not do just now, to be tried again at that time.
    parked: Vec<(Time, Parked)>,
    /// Who wants to leave the session alive, as soon as nothing is left to do in it.
    detaching: Option<oneshot::Sender<Option<Credentials>>>,
    complaints: Complaints,
}

struct Probe {
    server: Arc<str>,
    answer: Pin<Box<dyn Future<Output = ProbeAnswer> + Send>>,
}

enum Parked {
    Sweep(Sweep),
    Attempt(u64),
    /// Ask the leader for a sign of life, for the lease, so often.
    Confirm(Duration),
}

impl Driver {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { weak_commands, level, published, .. } = &parts;
        let attempts = Attempts::new(weak_commands.clone(), level.clone(), published.subscribe());
        Self {
            parts,
            link: Link::Down,
            attempts,
            probe: None,
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            sleeping_until: None,
            inbox: Vec::new(),
            abandoned: false,
            parked: Vec::new(),
            detaching: None,
            complaints: Complaints::default(),
        }
    }

    /// Drives the session to its end.
    pub(crate) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
        self.refuse_the_rest();
    }

    /// Turns until there is nothing to do but wait, or until others should get a chance.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS_PER_POLL {
            let busy = self.turn(cx);
            if self.parts.session.over().is_some() && !busy {
                return Poll::Ready(());
            }
            if !busy && self.wait(cx) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Polls every source once, in a fixed order. Returns whether any had something.
    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = self.take_commands(cx);
        let now = self.now();
        busy |= self.advance_link(cx, now);
        busy |= self.advance_probe(cx, now);
        busy |= self.retry_parked(now);
        if self.parts.session.deadline().is_some_and(|deadline| deadline <= now) {
            self.parts.session.elapsed(now);
            busy = true;
        }
        while let Some(output) = self.parts.session.poll() {
            busy = true;
            self.carry_out(now, output);
        }
        self.parts.lease.publish(self.parts.session.lease());
        busy |= self.detach_when_done();
        busy | self.write(cx)
    }

    fn now(&self) -> Time {
        Time::new(self.parts.clock.now())
    }

    fn take_commands(&mut self, cx: &mut Context<'_>) -> bool {
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
            Command::Submit(submission) => self.submit(now, submission),
            Command::Batch(batch) => batch.into_iter().for_each(|one| self.submit(now, one)),
            Command::Close(done) => self.close(now, Token::Closer(done)),
            Command::Detach(credentials) => {
                self.announce_closing();
                self.detaching = Some(credentials);
            }
        }
    }

    fn submit(&mut self, now: Time, submission: Submission) {
        let request = match submission {
            Submission::Sweep(sweep) => return self.sweep(now, sweep),
            other if self.detaching.is_some() => return other.refuse(SessionEnd::Closed),
            Submission::Request(request) => request,
            Submission::Create(create) => self.attempts.start(*create),
        };
        self.parts.session.submit(now, request);
    }

    fn sweep(&mut self, now: Time, sweep: Sweep) {
        self.parts.sweeps.begun();
        self.parts.session.submit(now, sweep.request());
    }

    /// Leaves the session if somebody wants to and nothing is left to do: whoever resumes it would not know of
    /// nodes that nobody wants.
    fn detach_when_done(&mut self) -> bool {
        let swept = self.parts.sweeps.count() == 0;
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
    }

    /// Before any server can hear of it: nobody must count on the session's nodes any more.
    fn announce_closing(&self) {
        self.parts.published.send_if_modified(|published| published.enter(SessionState::Closing));
    }

    fn advance_link(&mut self, cx: &mut Context<'_>, now: Time) -> bool {
        let session = &mut self.parts.session;
        if let Poll::Ready(outcome) = self.link.poll_dial(cx) {
            session.dialed(now, outcome);
            return true;
        }
        match self.link.poll_read(cx, session.inbound()) {
            Poll::Ready(Ok(())) => session.received(now),
            Poll::Ready(Err(why)) => session.hung_up(now, why),
            Poll::Pending => return false,
        }
        true
    }

    fn advance_probe(&mut self, cx: &mut Context<'_>, now: Time) -> bool {
        let Some(probe) = &mut self.probe else { return false };
        let Poll::Ready(answer) = probe.answer.as_mut().poll(cx) else { return false };
        self.parts.session.probed(now, &probe.server, answer);
        self.probe = None;
        true
    }

    fn retry_parked(&mut self, now: Time) -> bool {
        let parked = std::mem::take(&mut self.parked).into_iter();
        let (due, parked): (Vec<_>, Vec<_>) = parked.partition(|(at, _)| *at <= now);
        self.parked = parked;
        let any = !due.is_empty();
        for (_, parked) in due {
            match parked {
                Parked::Sweep(sweep) => self.parts.session.submit(now, sweep.request()),
                Parked::Attempt(id) => {
                    let next = self.attempts.retry(id);
                    self.go_on(now, next);
                }
                Parked::Confirm(interval) => self.confirm(now, interval),
            }
        }
        any
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
            },
        );
        self.parked.push((now.after(interval), Parked::Confirm(interval)));
    }

    /// A new connection has a lease, from its greeting.
    fn begin_to_confirm(&mut self, now: Time, timeout: Duration) {
        let Some(margin) = self.parts.lease_margin else { return };
        let third = timeout.checked_div(3).unwrap_or_default();
        let half = timeout.saturating_sub(margin).checked_div(2).unwrap_or_default();
        let interval = third.min(half).max(CONFIRM_INTERVAL_MIN);
        self.parked.retain(|(_, parked)| !matches!(parked, Parked::Confirm(_)));
        self.parked.push((now.after(interval), Parked::Confirm(interval)));
    }

    fn carry_out(&mut self, now: Time, output: Output<Token, Listener>) {
        match output {
            Output::Dial { server } => {
                tracing::debug!(server = &*server, "dialing");
                self.link = Link::Dialing(self.parts.connector.connect(&server));
            }
            Output::HangUp => self.link = Link::Down,
            Output::Probe { server } => {
                let answer = Box::pin(probe(self.parts.connector.connect(&server)));
                self.probe = Some(Probe { server, answer });
            }
            Output::Failed { server, error } => {
                self.complaints.failed(now, &server, &error);
                self.parts.last_failure.send_replace(Some((server, error)));
            }
            Output::Reply { token, outcome } => self.reply(now, token, outcome),
            Output::Watch { watcher, notice } => {
                if let WatchNotice::Event(event) = &notice {
                    tracing::trace!(kind = %event.kind, path = &*event.path, "watch fired");
                }
                watcher.notify(notice);
            }
            Output::State(state) => {
                if let State::Connected(negotiated) = &state {
                    self.begin_to_confirm(now, negotiated.timeout);
                }
                self.publish(now, state);
            }
            other => tracing::debug!(?other, "not carried out"),
        }
    }

    fn reply(&mut self, now: Time, token: Token, outcome: Outcome) {
        match token {
            // The caller may have gone; the answer goes with it.
            Token::Caller { reply, .. } => drop(reply.send(outcome)),
            Token::Closer(done) => {
                let confirmed = matches!(outcome, Outcome::Answered(_));
                self.parts.published.send_modify(|it| it.close_confirmed |= confirmed);
                let _ = done.send(());
            }
            Token::Attempt(id) => {
                let session = self.parts.published.borrow().id;
                let next = self.attempts.advance(id, session, outcome);
                self.go_on(now, next);
            }
            Token::Sweep(sweep) => match sweep.concluded(outcome) {
                Some(sweep) => {
                    self.parked.push((now.after(RETRY_PAUSE), Parked::Sweep(sweep)));
                }
                None => self.parts.sweeps.concluded(),
            },
            Token::Nobody => {}
        }
    }

    fn go_on(&mut self, now: Time, next: Vec<Next>) {
        for next in next {
            match next {
                Next::Submit(request) => self.parts.session.submit(now, request),
                Next::Sweep(sweep) => self.sweep(now, sweep),
                Next::Later(id) => {
                    self.parked.push((now.after(RETRY_PAUSE), Parked::Attempt(id)));
                }
            }
        }
    }

    fn publish(&mut self, now: Time, state: State) {
        let comes_or_goes = matches!(state, State::Connected(_) | State::Disconnected(_));
        let shown = comes_or_goes && self.complaints.changed(now);
        // Before the state, so that nobody sees a fresh connection with a stale lease.
        self.parts.lease.publish(self.parts.session.lease());
        self.parts.published.send_modify(|published| match state {
            State::Connected(negotiated) => {
                published.id = negotiated.id;
                published.timeout = negotiated.timeout;
                published.epoch += 1;
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
            State::Disconnected(_) if planted!(LossNotPublished) => {}
            State::Disconnected(why) => {
                published.enter(SessionState::Disconnected);
                if shown {
                    tracing::info!(session = %published.id, %why, "disconnected");
                }
            }
            State::Over(over) => {
                published.enter(SessionState::Ended(over.into()));
                tracing::info!(session = %published.id, %over, "session over");
            }
            _ => {}
        });
    }

    /// Writes what there is to write. Returns whether the connection was lost over it.
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        match self.link.poll_write(cx, self.parts.session.outbound()) {
            Poll::Ready(Err(why)) => {
                let now = self.now();
                self.parts.session.hung_up(now, why);
                true
            }
            Poll::Ready(Ok(())) | Poll::Pending => false,
        }
    }

    /// Arranges to be woken at the next deadline. Returns whether that is still to come.
    fn wait(&mut self, cx: &mut Context<'_>) -> bool {
        let parked = self.parked.iter().map(|(at, _)| *at).min();
        let deadline = self.parts.session.deadline().into_iter().chain(parked).min();
        let Some(deadline) = deadline else { return true };
        let oversleeps = planted!(DeadlineOverslept) && self.sleeping_until < Some(deadline);
        if self.sleeping_until != Some(deadline) && !oversleeps {
            let left = deadline.since(self.now());
            self.sleep.as_mut().reset(tokio::time::Instant::now() + left);
            self.sleeping_until = Some(deadline);
        }
        let pending = self.sleep.as_mut().poll(cx).is_pending();
        if !pending {
            self.sleeping_until = None;
        }
        pending
    }

    /// Answers what was submitted when the session was over already.
    fn refuse_the_rest(&mut self) {
        let now = self.now();
        self.parts.commands.close();
        while let Ok(command) = self.parts.commands.try_recv() {
            self.obey(now, command);
        }
        for (_, parked) in std::mem::take(&mut self.parked) {
            match parked {
                Parked::Sweep(sweep) => self.parts.session.submit(now, sweep.request()),
                Parked::Attempt(id) => {
                    let next = self.attempts.retry(id);
                    self.go_on(now, next);
                }
                Parked::Confirm(_) => {}
            }
        }
        while let Some(output) = self.parts.session.poll() {
            self.carry_out(now, output);
        }
    }
}

/// A driver that goes without having reached the session's end was dropped with its runtime: nobody
/// keeps the session alive any more, and nobody must believe otherwise.
impl Drop for Driver {
    fn drop(&mut self) {
        let gone = SessionState::Ended(SessionEnd::Closed);
        self.parts.published.send_if_modified(|published| published.enter(gone));
    }
}
