//! The state of a session, and its public view.

use alloc::{collections::VecDeque, vec::Vec};

use bytes::BytesMut;

use super::{
    config::{Beginning, Config, Credentials, Settings},
    credential::Credential,
    disposition::Disposition,
    fault::{Cause, CloseReason},
    in_flight::InFlight,
    link::Link,
    liveness::Liveness,
    outbound::Outbound,
    output::{Outcome, Output},
    pending_request::PendingRequest,
    phase::{Identity, Phase},
    reconnect::Rotation,
    suspects::Suspects,
    timer::{Timer, Timers},
    watch::{Registry, ServerWatches, Watcher},
};
use crate::{data::Xid, op::OpCode, rng::Rng, time::Time};

/// A session and everything that outlives its connections.
///
/// `R` identifies a request, `W` a watcher; the session only carries them.
#[derive(Debug)]
pub struct Session<R, W> {
    pub(super) config: Settings,
    pub(super) phase: Phase,
    pub(super) identity: Identity,
    pub(super) link: Link,
    pub(super) in_flight: InFlight<R, W>,
    pub(super) registry: Registry<W>,
    pub(super) server_watches: ServerWatches,
    pub(super) credentials: Vec<Credential<R>>,
    pub(super) liveness: Liveness,
    pub(super) rotation: Rotation,
    pub(super) suspects: Suspects,
    /// The longest frame of restoration, as far as is known of the servers.
    pub(super) batch_len_max: usize,
    pub(super) timers: Timers,
    pub(super) rng: Rng,
    /// Set by `close`: nothing may be submitted any more.
    pub(super) closing: bool,
    /// Operations unknown to the server, or to the previous one if the connection was lost over that.
    pub(super) unknown: Vec<OpCode>,
    /// Whether the session may have been closed: a server got the request, and has not answered.
    pub(super) close_is_in_doubt: bool,
    /// Whether the connection is to be left as soon as nothing is in flight: nothing more is sent over it.
    pub(super) leaving: bool,
    /// Whether a user relies on the session's lasting.
    pub(super) relied_on: bool,
    /// How often servers have throttled a request.
    pub(super) throttled: u64,
    pub(super) outputs: VecDeque<Output<R, W>>,
}

impl<R, W: Watcher> Session<R, W> {
    /// Creates a session that begins to dial at once. The seed determines the order of servers and all jitter.
    #[must_use]
    pub fn new(config: Config, seed: u64, now: Time) -> Self {
        let mut rng = Rng::new(seed);
        let (Beginning { servers, resume, auth }, config) = config.split();
        let next_xid = resume.as_ref().map_or(Xid::FIRST, |resume| resume.next_xid);
        let identity = Identity::new(resume);
        // What is wished for holds once it is granted; until then others end the session by what was granted before.
        let timeout = match identity.kept() {
            kept if identity.is_established() && !kept.is_zero() => kept,
            _ => config.session_timeout,
        };
        let mut session = Self {
            phase: Phase::Waiting,
            identity,
            link: Link::default(),
            // Numbers from zero down have special meanings.
            in_flight: InFlight::new(next_xid.max(Xid::FIRST)),
            registry: Registry::default(),
            server_watches: ServerWatches::default(),
            credentials: auth.into_iter().map(|auth| Credential::new(auth, None)).collect(),
            liveness: Liveness::new(timeout, config.lease),
            rotation: Rotation::new(servers, &mut rng),
            suspects: Suspects::default(),
            batch_len_max: config.request_len_max,
            timers: Timers::default(),
            rng,
            closing: false,
            unknown: Vec::new(),
            close_is_in_doubt: false,
            leaving: false,
            relied_on: false,
            throttled: 0,
            outputs: VecDeque::new(),
            config,
        };
        if session.identity.is_established() {
            // It was left now at the latest.
            session.timers.set(Timer::Expiry, Liveness::expires(now, timeout));
        }
        session.dial(now);
        session.check();
        session
    }

    /// Returns the next action or report; `None` once there are no more.
    pub fn poll(&mut self) -> Option<Output<R, W>> {
        self.outputs.pop_front()
    }

    /// Bytes for the server. The driver removes from the front what it has written, and nothing else.
    pub const fn outbound(&mut self) -> &mut Outbound {
        &mut self.link.outbound
    }

    /// Where the driver appends what it has read, before it calls [`received`](Session::received).
    pub const fn inbound(&mut self) -> &mut BytesMut {
        self.link.inbound.buffer()
    }

    /// As [`inbound`](Session::inbound), with room for reading: drivers should call this before they read.
    ///
    /// The room is small after little traffic; 64 KiB at most, or the missing part of a longer frame. Such a frame gets
    /// a buffer of its own, which grows as it fills up: to the claimed length, but not beyond twice the received bytes,
    /// unless the last such frame was as long or all of it is within 128 KiB. So the memory is at most twice the
    /// [longest reply](Config::reply_len_max), while the buffer grows for the last time.
    pub fn inbound_with_room(&mut self) -> &mut BytesMut {
        self.link.inbound.with_room()
    }

    /// Frees the memory of empty buffers and queues, and the room for more: for drivers that know that there is no
    /// traffic.
    pub fn shrink(&mut self) {
        self.link.shrink();
        self.in_flight.shrink();
        self.outputs.shrink_to_fit();
    }

    /// When [`elapsed`](Session::elapsed) is due; `None` only once the session is over.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Whether the limits of [`Config`] leave room for another request. Not enforced by `submit`.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.in_flight.requests() < self.config.requests_max
            && self.in_flight.bytes() < self.config.request_bytes_max
    }

    /// Requests waiting or in flight, the session's own among them, and the bytes that are kept of their frames.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        (self.in_flight.requests(), self.in_flight.bytes())
    }

    /// How often servers have answered that they have no time for a request, whether or not it was resent.
    #[must_use]
    pub const fn throttled_count(&self) -> u64 {
        self.throttled
    }

    /// The server that the session is connected to or dials, as `host:port`.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.link.server.as_deref().filter(|_| self.phase.has_link())
    }

    /// Until when the server that answered last keeps this session, counted from when the newest answered message was
    /// *sent*; `None` before the first handshake, once the session is over, and while it seems to be: after a reply
    /// that says so, until a handshake settles it.
    ///
    /// Sound for a standalone server and for a leader. A follower that is cut off from its leader keeps answering while
    /// the leader's clock runs out: see [`confirmed_lease`](Session::confirmed_lease).
    #[must_use]
    pub fn lease(&self) -> Option<Time> {
        self.liveness.lease()
    }

    /// Why the session is over, if it is.
    #[must_use]
    pub const fn over(&self) -> Option<CloseReason> {
        self.phase.over()
    }

    /// The credentials to resume this session elsewhere; `None` if there is no session, or only a read-only server
    /// knows it.
    #[must_use]
    pub fn credentials(&self) -> Option<Credentials> {
        let next_xid = self.in_flight.next_xid();
        self.identity.credentials(next_xid).filter(|_| self.phase.over().is_none())
    }

    pub(super) const fn over_or_closing(&self) -> Option<CloseReason> {
        match self.phase.over() {
            None if self.closing => Some(CloseReason::Closed),
            over => over,
        }
    }

    pub(super) fn reply(&mut self, token: R, outcome: Outcome) {
        self.outputs.push_back(Output::Reply { token, outcome });
    }

    /// Reports a request that will not be answered to its submitter.
    pub(super) fn report(
        &mut self,
        slot: PendingRequest<R, W>,
        disposition: Disposition,
        cause: &Cause,
    ) {
        if let Some(token) = slot.into_token() {
            self.reply(token, disposition.outcome(cause));
        }
    }

    /// Asserts in debug builds the invariants after every input.
    pub(super) fn check(&self) {
        #[cfg(debug_assertions)]
        {
            use super::timer::Timer;

            let up = matches!(self.phase, Phase::Up(_));
            let over = self.phase.over().is_some();
            self.in_flight.check();
            debug_assert_eq!(self.timers.at(Timer::Ping).is_some(), up, "pings iff up");
            debug_assert_eq!(self.timers.at(Timer::Silence).is_some(), up, "silence iff up");
            let waiting = matches!(self.phase, Phase::Waiting);
            debug_assert_eq!(self.timers.at(Timer::Retry).is_some(), waiting, "retry iff waiting");
            debug_assert_eq!(self.timers.next().is_none(), over, "no timer iff over");
            let due = self.in_flight.next_due();
            let ends =
                due.is_none_or(|due| self.timers.at(Timer::Pause).is_some_and(|at| at <= due));
            debug_assert!(ends, "every pause ends");
            let sent = self.in_flight.oldest_sent();
            debug_assert!(up || sent.is_none(), "sent requests need a connection");
            debug_assert!(self.phase.has_stream() || self.link.outbound.is_empty());
            debug_assert_eq!(self.server().is_some(), self.phase.has_link(), "server iff link");
        }
    }
}
