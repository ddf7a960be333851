//! The configuration of a session.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use bytes::Bytes;

use crate::{
    data::{SessionId, Xid, Zxid},
    frame::{LEN_REPLY_MAX, LEN_REQUEST_MAX},
    text::Secret,
    wipe::wipe,
};

/// The configuration of a session. Every limit has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Servers as `host:port`, resolved by the driver at each attempt. Must not be empty. The session
    /// shuffles them once, so that the clients of a fleet spread over the ensemble.
    pub servers: Vec<Arc<str>>,
    /// Requested session timeout. Servers clamp it, by default to 2 to 20 of their ticks. Default 10 s: longer than the
    /// 6.7 s that a member cut off from its leader may keep answering with Debian's settings, short enough that a
    /// crashed lock holder blocks no waiter for half a minute.
    pub session_timeout: Duration,
    /// Bound on one connection attempt, from dialing to the end of the handshake. `None`: the session
    /// timeout divided by the number of servers, and by three once there is a session to lose, so that
    /// every server gets several turns within its life; at least 1 s or a third of the session timeout.
    pub connect_timeout: Option<Duration>,
    /// How the [confirmed lease](super::Session::confirmed_lease) is counted. Default: by confirmations of the leader.
    pub lease: Lease,
    /// How long [`Session::close`](super::Session::close) may take. Default 2 s.
    pub close_timeout: Duration,
    /// Whether a server that is cut off from the quorum is acceptable, until a better one is found.
    pub read_only: bool,
    /// A session to resume, instead of a new one.
    pub resume: Option<Credentials>,
    /// Presented on every connection, in this order, before anything else.
    pub auth: Vec<Auth>,
    /// Whether to prove an identity by SASL on every connection, before `auth` and anything else: the session asks the
    /// driver for each step by [`Output::Sasl`](super::Output::Sasl). If that fails there is no connection.
    pub sasl: bool,
    /// Longest request in bytes; servers drop the connection over longer ones. Default 1 MiB less one,
    /// as in servers.
    pub request_len_max: usize,
    /// Longest reply in bytes. Default 64 MiB, since servers do not limit listings.
    pub reply_len_max: usize,
    /// Requests waiting or in flight, above which [`Session::has_room`](super::Session::has_room) returns `false`.
    /// Default 65 536.
    pub requests_max: usize,
    /// The same limit in bytes of frames. Default 64 MiB.
    pub request_bytes_max: usize,
}

impl Config {
    /// A configuration of defaults for these servers, each `host:port`.
    pub fn new<S: Into<Arc<str>>>(servers: impl IntoIterator<Item = S>) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            session_timeout: Duration::from_secs(10),
            connect_timeout: None,
            lease: Lease::default(),
            close_timeout: Duration::from_secs(2),
            read_only: false,
            resume: None,
            auth: Vec::new(),
            sasl: false,
            request_len_max: LEN_REQUEST_MAX,
            reply_len_max: LEN_REPLY_MAX,
            requests_max: 1 << 16,
            request_bytes_max: 64 << 20,
        }
    }

    /// Takes apart what only the beginning of a session needs, and what all of it does.
    pub(crate) fn split(self) -> (Beginning, Settings) {
        let settings = Settings {
            session_timeout: self.session_timeout,
            connect_timeout: self.connect_timeout,
            lease: self.lease,
            close_timeout: self.close_timeout,
            read_only: self.read_only,
            sasl: self.sasl,
            request_len_max: self.request_len_max,
            reply_len_max: self.reply_len_max,
            requests_max: self.requests_max,
            request_bytes_max: self.request_bytes_max,
        };
        (Beginning { servers: self.servers, resume: self.resume, auth: self.auth }, settings)
    }
}

/// What a session begins with, and has elsewhere then.
pub(crate) struct Beginning {
    pub(crate) servers: Vec<Arc<str>>,
    pub(crate) resume: Option<Credentials>,
    pub(crate) auth: Vec<Auth>,
}

/// What a session keeps of its [`Config`].
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) session_timeout: Duration,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) lease: Lease,
    pub(crate) close_timeout: Duration,
    pub(crate) read_only: bool,
    pub(crate) sasl: bool,
    pub(crate) request_len_max: usize,
    pub(crate) reply_len_max: usize,
    pub(crate) requests_max: usize,
    pub(crate) request_bytes_max: usize,
}

/// How a client decides that servers still keep its session, and with it locks and whatever else it holds.
///
/// A member of an ensemble that is cut off from its leader keeps answering for a while (`syncLimit` ticks), while the
/// leader ends the sessions that are no longer reported to it and gives away what they held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lease {
    /// By confirmations of the leader, less a margin: the greater of 2 s and a fifth of the session timeout, but at
    /// most half of it.
    ///
    /// Only the handshake and successful writes and `sync`s count, which members cannot answer without the leader. The
    /// margin must cover a tick of the servers, half of the shortest timeout that they grant, and delays of networks and
    /// schedulers, for two reasons:
    ///
    /// * Such requests do not inform the leader of the session; members do, in their answers to its pings, every half
    ///   tick. One that is cut off before the next has told it of what came before. So a confirmation lasts for the timeout
    ///   less half a margin from when the newest message was sent that had been answered half a margin before it, and no
    ///   longer than for the timeout less the margin from when it was sent itself. Handshakes inform the leader. A member
    ///   that follows an observer master tells in two such steps: there a tick counts twice.
    /// * A leader that is cut off from the others finds out up to a tick after they have given it up, and answers `sync`s
    ///   and handshakes until then (ZOOKEEPER-1675).
    ///
    /// 2 s is the tick of most servers. With a longer one, either request a session timeout of at least five ticks or set
    /// a [margin](Self::Margin). No margin covers a leader that stands still for longer than its followers wait
    /// (`syncLimit`), and then answers a client that reaches no other member; a write takes a quorum.
    ///
    /// Behind an election servers go by the timeout that a session began with: the shortest that was granted to it counts.
    ///
    /// A session that [is relied on](super::Session::rely) sends a `sync` where it would have sent a ping, and five times
    /// in the time for which a confirmation can last, unless a write or another `sync` that was sent since has been answered.
    /// Where answers take a large part of that time, it sends up to fifteen.
    #[default]
    Confirmed,
    /// As [`Confirmed`](Lease::Confirmed), with this margin; with half of the timeout if it is more than three quarters
    /// of the granted one, with which confirmations would hardly outlast one another.
    Margin(Duration),
    /// Every answer counts, in full: sound with a standalone server, and on a connection to the leader.
    Connection,
}

impl Lease {
    /// The margin that is subtracted from a session timeout.
    #[must_use]
    pub fn margin(self, timeout: Duration) -> Duration {
        let part = |of| timeout.checked_div(of).unwrap_or_default();
        match self {
            Self::Confirmed => MARGIN.max(part(5)).min(part(2)),
            Self::Margin(margin) if margin <= part(4).saturating_mul(3) => margin,
            Self::Margin(_) => part(2),
            Self::Connection => Duration::ZERO,
        }
    }
}

/// A whole tick of most servers.
const MARGIN: Duration = Duration::from_secs(2);

/// The credentials to resume a session in another process, or later in this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The session.
    pub id: SessionId,
    /// Proof that the session is ours, 16 bytes. Not a strong one: servers derive it from the id.
    pub password: Secret<Bytes>,
    /// Newest transaction that the session has seen; servers that are behind it refuse.
    pub last_zxid: Zxid,
    /// The xid of the next request. Must not repeat within a session: servers match commits to requests by session and
    /// xid, and have answered a repeated one with the result of the earlier request.
    pub next_xid: Xid,
    /// How long servers keep the session without hearing from it: the shortest timeout that one has granted it, since after
    /// a restart or an election they go by the one that it began with. Zero if that is not known: then the requested timeout
    /// counts until one is granted.
    pub timeout: Duration,
}

/// An identity to be proved on every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// `digest`, `ip`, `x509`, `ensemble`, or a server plug-in's.
    pub scheme: Arc<str>,
    /// In the scheme's own form, such as `user:password` for `digest`.
    pub auth: Secret<Bytes>,
}

/// Overwrites the password, unless it is shared.
impl Drop for Credentials {
    fn drop(&mut self) {
        wipe(&mut self.password.0);
    }
}

/// Overwrites the proof, unless it is shared.
impl Drop for Auth {
    fn drop(&mut self) {
        wipe(&mut self.auth.0);
    }
}
