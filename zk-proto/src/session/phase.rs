//! The phase of a session, and its identity.

use bytes::Bytes;
use core::{fmt, time::Duration};

use super::{config::Credentials, fault::CloseReason, output::Negotiated};
use crate::{
    data::{SessionId, Xid, Zxid},
    text::Secret,
    time::Time,
    wipe::wipe,
};

/// The phase of a session. The diagram is in the documentation of the module above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting for the retry timer.
    Waiting,
    /// Waiting for the driver to connect.
    Dialing,
    /// Waiting for the answer to the handshake that was sent at this time.
    Handshaking { sent: Time },
    /// Waiting for the end of the SASL exchange.
    Authenticating(Authenticating),
    /// Connected: a server serves the session.
    Up(Up),
    /// Never left.
    Over(CloseReason),
}

/// The state of a SASL exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Authenticating {
    pub(crate) negotiated: Negotiated,
    /// When the handshake was sent, and when it was answered.
    pub(crate) handshake: (Time, Time),
    /// Steps that we have sent.
    pub(crate) steps: u32,
    /// The xid of the awaited answer; none while the driver computes the next step.
    pub(crate) due: Option<Xid>,
}

/// First pause between probes for a writable server; doubles with each probe.
pub(crate) const PROBE_PAUSE_MIN: Duration = Duration::from_millis(100);

/// The state while a server serves the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Up {
    pub(crate) negotiated: Negotiated,
    /// Unanswered frames of watch restoration.
    pub(crate) restoring: usize,
    /// How many pings must be answered, one after the other, before the server is trusted not to close the connection;
    /// nothing else is sent until then.
    pub(crate) doubts: u8,
    /// Pause before the next probe for a writable server.
    pub(crate) probe_pause: Duration,
}

impl Phase {
    pub(crate) const fn over(self) -> Option<CloseReason> {
        match self {
            Self::Over(over) => Some(over),
            Self::Waiting
            | Self::Dialing
            | Self::Handshaking { .. }
            | Self::Authenticating(_)
            | Self::Up(_) => None,
        }
    }

    /// Whether there is a connection that bytes can be written to.
    pub(crate) const fn has_stream(self) -> bool {
        matches!(self, Self::Handshaking { .. } | Self::Authenticating(_) | Self::Up(_))
    }

    /// Whether the driver has a connection or is making one.
    pub(crate) const fn has_link(self) -> bool {
        matches!(self, Self::Dialing) || self.has_stream()
    }
}

/// Bytes of a session password.
const PASSWORD_LEN: usize = 16;

/// A session's password, in memory of its own that is overwritten when it is dropped.
#[derive(Clone, Default)]
pub(crate) struct Password(Bytes);

impl Password {
    pub(crate) fn copy_of(password: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(password))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Secret(()).fmt(f)
    }
}

impl Drop for Password {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// The session's credentials, and the newest transaction that it has seen.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    id: SessionId,
    password: Password,
    /// For how many milliseconds the servers keep it at least; they count no finer.
    kept: u32,
    /// Newest transaction that a reply has shown; servers that are behind it refuse the session themselves.
    last_zxid: Zxid,
    /// `last_zxid` at the last moment in which all watches were armed, while they are not.
    ///
    /// Replies to the first frame of a restoration advance `last_zxid`. If the connection is lost before the last
    /// frame, that frame's paths must be restored from the earlier transaction, or events are lost.
    watch_zxid: Option<Zxid>,
    /// Whether a server that takes writes has served the session. Before that its id belongs to a
    /// read-only server alone and means nothing to any other.
    is_global: bool,
}

impl Identity {
    pub(crate) fn new(resume: Option<Credentials>) -> Self {
        let is_global = resume.is_some();
        let shown = resume.unwrap_or_else(Self::nobody);
        let (id, last_zxid, kept) = (shown.id, shown.last_zxid, millis(shown.timeout));
        let password = Password::copy_of(&shown.password.0);
        Self { id, password, kept, last_zxid, watch_zxid: None, is_global }
    }

    const fn nobody() -> Credentials {
        let password = Secret(Bytes::from_static(&[0; PASSWORD_LEN]));
        let (last_zxid, next_xid, timeout) = (Zxid(0), Xid::FIRST, Duration::ZERO);
        Credentials { id: SessionId(0), password, last_zxid, next_xid, timeout }
    }

    /// Whether there is a session that could expire.
    pub(crate) const fn is_established(&self) -> bool {
        self.id.0 != 0
    }

    /// For how long the servers keep it at least: the shortest timeout that one has granted it.
    ///
    /// They store the one that it began with, and go by that when they are restarted or find another leader, until it
    /// shakes hands again: a longer one is what a member grants its connection.
    pub(crate) fn kept(&self) -> Duration {
        Duration::from_millis(self.kept.into())
    }

    /// Whether there is a session that more than one server knows.
    pub(crate) const fn is_global(&self) -> bool {
        self.is_global && self.is_established()
    }

    /// The credentials to present in a handshake.
    pub(crate) fn shown(&self) -> Credentials {
        self.credentials(Xid::FIRST).unwrap_or_else(Self::nobody)
    }

    /// The credentials to resume the session elsewhere; `None` as long as other servers do not know it.
    pub(crate) fn credentials(&self, next_xid: Xid) -> Option<Credentials> {
        let (id, last_zxid, timeout) = (self.id, self.last_zxid, self.kept());
        let password = Secret(self.password.0.clone());
        let all = Credentials { id, password, last_zxid, next_xid, timeout };
        self.is_global().then_some(all)
    }

    /// Records the session that a server serves.
    pub(crate) fn adopt(&mut self, negotiated: Negotiated, password: Option<Password>) {
        let (granted, is_same) = (millis(negotiated.timeout), self.id == negotiated.id);
        // Who resumes a session may not know.
        let is_known = is_same && self.kept > 0;
        self.kept = if is_known { granted.min(self.kept) } else { granted };
        self.id = negotiated.id;
        self.password = password.unwrap_or_default();
        self.is_global |= !negotiated.read_only;
    }

    /// Records the transaction that a reply reflects.
    ///
    /// Not to be called for events: one transaction can have several, and those missed after the first could never be
    /// requested again (ZOOKEEPER-4655).
    pub(crate) fn saw(&mut self, zxid: Zxid) {
        self.last_zxid = self.last_zxid.max(zxid);
    }

    pub(crate) fn freeze_watches(&mut self) {
        self.watch_zxid.get_or_insert(self.last_zxid);
    }

    pub(crate) const fn thaw_watches(&mut self) {
        self.watch_zxid = None;
    }

    /// Changes after this transaction may not have been reported to watches.
    pub(crate) fn watches_since(&self) -> Zxid {
        self.watch_zxid.unwrap_or(self.last_zxid)
    }
}

fn millis(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX)
}
