//! The client's half of a session: what survives a socket, as a value that never does I/O.
//!
//! Whoever drives a [`Session`] tells it what happened (`submit`, `dialed`, `received`, `hung_up`,
//! `probed`, `elapsed`, `close`), each time with the present [`Time`], and then does what it says:
//!
//! 1. [`poll`](Session::poll) until there is nothing more, and do each [`Output`] in that order;
//! 2. write the bytes in [`outbound`](Session::outbound) and take off what was written;
//! 3. wait for bytes, for a dial, for a submission, or for [`deadline`](Session::deadline).
//!
//! The same inputs at the same times give the same outputs: chance comes from the seed.
//!
//! ```
//! use bytes::Bytes;
//! use zk_proto::{
//!     Secret, SessionId, Time,
//!     frame::encode_frame,
//!     request::{ConnectResponse, TrailingFlag},
//!     session::{Config, Output, Session, State},
//! };
//!
//! let mut session: Session<u64, u64> = Session::new(Config::new(["zk1:2181"]), 7, Time::ZERO);
//! let Some(Output::Dial { server }) = session.poll() else { panic!("it begins to dial at once") };
//! assert_eq!(&*server, "zk1:2181");
//!
//! // The driver has connected; it writes what there is to write, and reads the server's answer.
//! session.dialed(Time::ZERO, Ok(()));
//! assert_eq!(session.outbound().split().len(), 49);
//! let answer = ConnectResponse {
//!     protocol_version: 0,
//!     time_out: 6000,
//!     session_id: SessionId(0x10),
//!     passwd: Secret(Some(Bytes::from_static(&[1; 16]))),
//!     read_only: TrailingFlag(Some(false)),
//! };
//! encode_frame(&answer, session.inbound());
//! session.received(Time::ZERO);
//! let Some(Output::State(State::Connected(negotiated))) = session.poll() else { panic!() };
//! assert_eq!(negotiated.id, SessionId(0x10));
//! ```
//!
//! ```text
//!            submit queues at any time; close sends its frame behind what is queued
//!
//!            +-------------------- retry timer --------------------+
//!            v                                                     |
//!  new -> Dialing --dialed--> Greeting --answer--> Up --loss--> Waiting
//!            |                   |   |              ^ |            ^
//!            |                   |   +-> Proving ---+ |            |
//!            |                   |         |          |            |
//!            +--- failed, dial timer, not served -----+------------+
//!                                |                  |
//!                    refused: the session is        +-- close answered, credentials refused
//!                    unknown to the servers         |
//!                                v                  v
//!          expiry or close timer, at any time ->  Over(why)      never left
//! ```

mod auth;
mod close;
mod config;
mod confirm;
mod fault;
mod flight;
mod inbound;
mod link;
mod listening;
mod liveness;
mod output;
mod phase;
mod receive;
mod reconnect;
mod resume;
mod sasl;
mod slot;
mod standing;
mod suspects;
mod throttle;
mod timer;
mod waiting;
mod watch;
mod watches;

use alloc::{collections::VecDeque, vec::Vec};

use bytes::BytesMut;

pub use self::{
    config::{Auth, Config, Credentials, Lease},
    fault::{Cause, Costly, LinkError, Over, SaslFault, TicketFault, TlsFault},
    output::{
        Answer, Negotiated, OnLoss, Outcome, Outgoing, Output, Patience, Place, ProbeAnswer,
        SaslSaid, SaslStep, State, Withdrawn,
    },
    watch::{NodeEvent, WatchBy, WatchIntent, WatchNotice},
    watches::Watcher,
};

use self::{
    auth::Credential,
    flight::Flight,
    link::Link,
    liveness::Liveness,
    phase::{Identity, Phase},
    reconnect::Rotation,
    slot::Slot,
    standing::Standing,
    suspects::Suspects,
    timer::{Timer, Timers},
    watches::Watches,
};
use crate::{data::Xid, op::OpCode, rng::Rng, time::Time};

/// A session and everything that outlives its connections.
///
/// `R` is whatever waits for a reply, `W` whatever waits for a watch; the session only carries them.
#[derive(Debug)]
pub struct Session<R, W> {
    config: Config,
    phase: Phase,
    identity: Identity,
    link: Link,
    flight: Flight<R, W>,
    watches: Watches<W>,
    standing: Standing,
    credentials: Vec<Credential<R>>,
    liveness: Liveness,
    rotation: Rotation,
    suspects: Suspects,
    /// How long frames of restoration may be, as far as is known of the servers.
    batch_len_max: usize,
    timers: Timers,
    rng: Rng,
    /// Set by `close`: nothing may be submitted any more.
    closing: bool,
    /// What the server has turned out not to know, or the one before if the connection was lost over it.
    unknown: Vec<OpCode>,
    /// Whether it may have been closed: a server was told, and has not answered.
    close_is_in_doubt: bool,
    /// Whether the connection is to be left as soon as nothing is in flight: nothing more is sent over it.
    leaving: bool,
    /// Whether somebody relies on the session's lasting.
    relied_on: bool,
    outputs: VecDeque<Output<R, W>>,
}

impl<R, W: Watcher> Session<R, W> {
    /// A session that begins to dial at once. The seed decides the order of servers and all jitter.
    #[must_use]
    pub fn new(mut config: Config, seed: u64, now: Time) -> Self {
        let mut rng = Rng::new(seed);
        let resume = config.resume.take();
        let resumed_since = resume.is_some().then_some(now);
        let next_xid = resume.as_ref().map_or(Xid::FIRST, |resume| resume.next_xid);
        let mut session = Self {
            phase: Phase::Waiting,
            identity: Identity::new(resume),
            link: Link::default(),
            // From zero down they have meanings of their own.
            flight: Flight::new(next_xid.max(Xid::FIRST)),
            watches: Watches::new(),
            standing: Standing::default(),
            credentials: Vec::new(),
            liveness: Liveness::new(config.session_timeout, resumed_since, config.lease),
            rotation: Rotation::new(config.servers.clone(), &mut rng),
            suspects: Suspects::default(),
            batch_len_max: config.request_len_max,
            timers: Timers::default(),
            rng,
            closing: false,
            unknown: Vec::new(),
            close_is_in_doubt: false,
            leaving: false,
            relied_on: false,
            outputs: VecDeque::new(),
            config,
        };
        let auth = core::mem::take(&mut session.config.auth);
        session.credentials = auth.into_iter().map(|auth| Credential::new(auth, None)).collect();
        session.watch_expiry();
        session.dial(now);
        session.check();
        session
    }

    /// A request to be sent as soon as there is a connection, behind all earlier ones.
    ///
    /// What the server of this connection has turned out not to know is not asked for again: it would cost another
    /// connection.
    ///
    /// Whatever becomes of it, its token comes back in exactly one [`Output::Reply`], or when it is
    /// [withdrawn](Session::withdraw). Returns where it stands.
    pub fn submit(&mut self, now: Time, request: Outgoing<R, W>) -> Place {
        let (len, len_max) = (request.frame.len(), self.config.request_len_max);
        let refusal = if let Some(over) = self.over_or_closing() {
            Some(Cause::SessionOver(over))
        } else if len > len_max {
            Some(Cause::TooLarge { len, len_max })
        } else if request.frame.op().is_the_sessions() {
            Some(Cause::Reserved(request.frame.op()))
        } else if WatchBy::asked_by(&request.frame) != request.watch.as_ref().map(|watch| watch.by)
        {
            Some(Cause::WatchMismatch)
        } else if request.patience == Patience::FailFast && !matches!(self.phase, Phase::Up(_)) {
            Some(Cause::NotConnected)
        } else {
            None
        };
        let place = if let Some(cause) = refusal {
            self.reply(request.token, Outcome::NotSent(cause));
            Place(0)
        } else if self.unknown.contains(&request.frame.op()) {
            self.reply_unknown(request.token);
            Place(0)
        } else {
            self.pass_on(now, Slot::user(request))
        };
        self.check();
        place
    }

    /// The user of a request waits no longer: it is not sent if it has not been. `None` if there is nothing to wait
    /// for any more.
    ///
    /// What was sent keeps its place. Its answer will come, and has to be told from the others'; if a server has no time
    /// for it, that is the answer.
    pub fn withdraw(&mut self, place: Place) -> Option<Withdrawn<'_, R>> {
        self.flight.withdraw(place)
    }

    /// The moment of [`deadline`](Session::deadline) has come. Harmless if it has not.
    pub fn elapsed(&mut self, now: Time) {
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                Timer::Expiry => self.finish(Over::Expired),
                Timer::Close => self.finish(Over::Closed),
                Timer::Dial => self.drop_link(now, LinkError::TimedOut),
                Timer::Silence => self.fell_silent(now),
                Timer::Confirm => self.confirm(now),
                Timer::Ping => self.ping(now),
                Timer::Retry => self.dial(now),
                Timer::Trial => self.observed(now),
                Timer::Probe => self.probe(),
                Timer::Pause => self.end_due_pauses(now),
            }
        }
        self.check();
    }

    /// The next thing to do; `None` once there is nothing more.
    pub fn poll(&mut self) -> Option<Output<R, W>> {
        self.outputs.pop_front()
    }

    /// Bytes for the server. The driver takes off the front what it has written, and nothing else.
    pub const fn outbound(&mut self) -> &mut BytesMut {
        &mut self.link.outbound
    }

    /// Where the driver appends what it has read, before it calls [`received`](Session::received).
    pub const fn inbound(&mut self) -> &mut BytesMut {
        self.link.inbound.buffer()
    }

    /// The same, with room to read to: how drivers should ask for it before they read.
    ///
    /// Little room, where little has come of late; 64 KiB at most, or what is missing of a longer frame. Such a frame
    /// gets a buffer of its own, that grows as it fills up: to the length that it says it has, but not beyond twice what
    /// has come of it, unless the one before was as long or all of it is within 128 KiB. So with a [longest
    /// reply](Config::reply_len_max) of so many bytes at most twice as many are taken up, while the buffer grows for
    /// the last time.
    pub fn inbound_with_room(&mut self) -> &mut BytesMut {
        self.link.inbound.with_room()
    }

    /// Gives back the memory of buffers that are empty, and the room for more: for drivers that know that nothing is going on.
    pub fn shrink(&mut self) {
        self.link.shrink();
    }

    /// When [`elapsed`](Session::elapsed) is due; `None` only once the session is over.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Whether the limits of [`Config`] leave room for another request. Not enforced by `submit`.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.flight.requests() < self.config.requests_max
            && self.flight.bytes() < self.config.request_bytes_max
    }

    /// Requests waiting or in flight, the session's own among them, and the bytes that are kept of their frames.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        (self.flight.requests(), self.flight.bytes())
    }

    /// The server that the session is connected to or dials, as `host:port`.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.link.server.as_deref().filter(|_| self.phase.has_link())
    }

    /// Until when the server that answered last keeps this session, counted from when the newest
    /// answered message was *sent*; `None` before the first handshake, once the session is over, and
    /// while it seems to be: when a reply said so, and no handshake has settled it yet.
    ///
    /// Sound for a standalone server and for a leader. A follower that is cut off from its leader goes
    /// on answering while the leader's clock runs out: see [`confirmed_lease`](Session::confirmed_lease).
    #[must_use]
    pub fn lease(&self) -> Option<Time> {
        self.liveness.lease()
    }

    /// Why the session is over, if it is.
    #[must_use]
    pub const fn over(&self) -> Option<Over> {
        self.phase.over()
    }

    /// What it takes to go on with this session elsewhere; `None` if there is none, or none that any
    /// server but a read-only one has heard of.
    #[must_use]
    pub fn credentials(&self) -> Option<Credentials> {
        let next_xid = self.flight.next_xid();
        self.identity.credentials(next_xid).filter(|_| self.phase.over().is_none())
    }

    /// Sends a heartbeat, unless the end of the session is on its way: the server closes the connection
    /// behind that, and what it has not read by then can cost its answer.
    fn ping(&mut self, now: Time) {
        if let Phase::Up(_) = self.phase {
            if self.flight.close_was_sent(u64::MAX) {
                self.liveness.sent(now);
            } else {
                self.note_drain(now);
                self.link.write_ping(!self.liveness.is_waiting());
                self.liveness.pinged(now);
            }
            self.watch_silence();
        }
    }

    /// What leaves slowly leaves all the same, and the answer to a ping behind it is not due yet.
    fn note_drain(&mut self, now: Time) {
        if self.link.drains(now) {
            self.liveness.drained(now);
        }
    }

    /// Nothing has come for so long that the connection is taken for dead, unless it has been taking our bytes.
    fn fell_silent(&mut self, now: Time) {
        self.note_drain(now);
        if self.liveness.silence() <= now {
            self.drop_link(now, LinkError::TimedOut);
        } else {
            self.watch_silence();
        }
    }

    /// Sends a request, or lets it wait until requests can be sent. Those that wait then are sent first: while they can,
    /// none waits.
    #[inline(always)]
    fn pass_on(&mut self, now: Time, slot: Slot<R, W>) -> Place {
        if !self.sends() || self.flight.is_paced() {
            return self.line_up(now, slot);
        }
        let place = self.flight.send_next(now, slot, &mut self.link, &mut self.standing);
        self.has_sent(now);
        place
    }

    /// Puts a request behind others that wait, or that the connection has to show something for first.
    #[cold]
    fn line_up(&mut self, now: Time, slot: Slot<R, W>) -> Place {
        let place = self.flight.push(slot);
        self.send_waiting(now);
        place
    }

    fn send_waiting(&mut self, now: Time) {
        if !self.sends() {
            return;
        }
        if self.flight.send_waiting(now, &mut self.link, &mut self.standing) {
            self.has_sent(now);
        }
        if self.flight.is_waiting() {
            self.observe(now);
        }
    }

    pub(super) const fn sends(&self) -> bool {
        matches!(self.phase, Phase::Up(up) if up.doubts == 0) && !self.leaving
    }

    #[inline(always)]
    fn has_sent(&mut self, now: Time) {
        if self.liveness.sent(now) {
            self.watch_silence();
        }
    }

    fn watch_expiry(&mut self) {
        if let Some(at) = self.liveness.expiry().filter(|_| self.identity.is_established()) {
            self.timers.set(Timer::Expiry, at);
        }
    }

    fn watch_silence(&mut self) {
        self.timers.set(Timer::Ping, self.liveness.ping_due());
        self.timers.set(Timer::Silence, self.liveness.silence());
    }

    const fn over_or_closing(&self) -> Option<Over> {
        match self.phase.over() {
            None if self.closing => Some(Over::Closed),
            over => over,
        }
    }

    fn reply(&mut self, token: R, outcome: Outcome) {
        let reply = Output::Reply { token, outcome };
        if planted!(AnswersInReverse) {
            self.outputs.push_front(reply);
        } else {
            self.outputs.push_back(reply);
        }
    }

    /// Asserts in debug builds what every input must leave true.
    fn check(&self) {
        #[cfg(debug_assertions)]
        {
            let up = matches!(self.phase, Phase::Up(_));
            let over = self.phase.over().is_some();
            self.flight.check();
            debug_assert_eq!(self.timers.at(Timer::Ping).is_some(), up, "pings iff up");
            debug_assert_eq!(self.timers.at(Timer::Silence).is_some(), up, "silence iff up");
            let waiting = matches!(self.phase, Phase::Waiting);
            debug_assert_eq!(self.timers.at(Timer::Retry).is_some(), waiting, "retry iff waiting");
            debug_assert_eq!(self.timers.next().is_none(), over, "no timer iff over");
            let due = self.flight.next_due();
            let ends =
                due.is_none_or(|due| self.timers.at(Timer::Pause).is_some_and(|at| at <= due));
            debug_assert!(ends, "every pause ends");
            debug_assert!(up || !self.flight.has_sent(), "sent requests need a connection");
            debug_assert!(self.phase.has_stream() || self.link.outbound.is_empty());
        }
    }
}
