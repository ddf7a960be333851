//! What a session is told once, at its start.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use bytes::Bytes;

use crate::{
    data::{SessionId, Xid, Zxid},
    frame::{LEN_REPLY_MAX, LEN_REQUEST_MAX},
    text::Secret,
    wipe::wipe,
};

/// What a session is told once, at its start. Every limit has a default with its reason.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Servers as `host:port`, resolved by the driver at each attempt. Must not be empty. The session
    /// shuffles them once, so that the clients of a fleet spread over the ensemble.
    pub servers: Vec<Arc<str>>,
    /// Wished session timeout. Servers clamp it, by default to 2 to 20 of their ticks. Default 10 s:
    /// longer than the 6.7 s that a member cut off from its leader may keep answering with Debian's
    /// settings, short enough that a crashed lock holder blocks nobody for half a minute.
    pub session_timeout: Duration,
    /// Bound on one connection attempt, from dialing to the end of the handshake. `None`: the session
    /// timeout divided by the number of servers, and by three once there is a session to lose, so that
    /// every server gets several turns within its life; at least 1 s or a third of the session timeout.
    pub connect_timeout: Option<Duration>,
    /// How much earlier than by its timeout the session may end, as far as the [lease](super::Session::lease)
    /// goes, if only answers count that come from the leader.
    ///
    /// `None`, the default: every answer counts, in full. That is sound with a standalone server and on a
    /// connection to the leader. Another member goes on answering for a while (`syncLimit` ticks) when it is cut
    /// off from the leader, which meanwhile ends the sessions that it no longer hears of.
    ///
    /// With a margin only the handshake and successful writes and `sync`s count, which members cannot answer
    /// without the leader. They do not tell the leader of the session, though; members do, in their answers
    /// to its pings, every half tick. The margin is for that delay: half a tick, and what networks and
    /// schedulers add.
    pub lease_margin: Option<Duration>,
    /// How long [`Session::close`](super::Session::close) may take. Default 2 s.
    pub close_timeout: Duration,
    /// Whether a server that is cut off from the quorum will do, until a better one is found.
    pub read_only: bool,
    /// A session to go on with, instead of a new one.
    pub resume: Option<Credentials>,
    /// Presented on every connection, in this order, before anything else.
    pub auth: Vec<Auth>,
    /// Whether to prove an identity by SASL on every connection, before `auth` and anything else: the driver is asked
    /// for each step by [`Output::Sasl`](super::Output::Sasl). If that fails there is no connection.
    pub sasl: bool,
    /// Longest request in bytes; servers drop the connection over longer ones. Default 1 MiB less one,
    /// as in servers.
    pub request_len_max: usize,
    /// Longest reply in bytes. Default 64 MiB, since servers do not limit listings.
    pub reply_len_max: usize,
    /// Requests waiting or in flight, above which [`Session::has_room`](super::Session::has_room) says
    /// no. Default 65 536.
    pub requests_max: usize,
    /// The same in bytes of frames. Default 64 MiB.
    pub request_bytes_max: usize,
}

impl Config {
    /// A configuration of defaults for these servers, each `host:port`.
    pub fn new<S: Into<Arc<str>>>(servers: impl IntoIterator<Item = S>) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            session_timeout: Duration::from_secs(10),
            connect_timeout: None,
            lease_margin: None,
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
}

/// What it takes to go on with a session in another process, or later in this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Which session.
    pub id: SessionId,
    /// Proof that it is ours, 16 bytes. Not a strong one: servers derive it from the id.
    pub password: Secret<Bytes>,
    /// Newest transaction that the session has seen; servers that are behind it refuse.
    pub last_zxid: Zxid,
    /// The xid to go on from. Must not repeat within a session: servers match commits to requests by
    /// session and xid, and answered a repeated one with the result of its namesake.
    pub next_xid: Xid,
}

/// An identity to be proved on every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// `digest`, `ip`, `x509`, `ensemble`, or a server plug-in's.
    pub scheme: Arc<str>,
    /// In the scheme's own form, such as `user:password` for `digest`.
    pub auth: Secret<Bytes>,
}

/// Overwrites the password, unless somebody else has it too.
impl Drop for Credentials {
    fn drop(&mut self) {
        wipe(&mut self.password.0);
    }
}

/// Overwrites the proof, unless somebody else has it too.
impl Drop for Auth {
    fn drop(&mut self) {
        wipe(&mut self.auth.0);
    }
}
