//! Where a session stands, and who it is.

use bytes::Bytes;
use core::{fmt, time::Duration};

use super::{config::Credentials, fault::Over, output::Negotiated};
use crate::{
    data::{SessionId, Xid, Zxid},
    text::Secret,
    time::Time,
    wipe::wipe,
};

/// Where a session stands. The diagram is in the documentation of the module above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// For the retry timer.
    Waiting,
    /// For the driver to connect.
    Dialing,
    /// For the answer to the handshake that was sent at this time.
    Greeting { sent: Time },
    /// For the server and us to prove to each other who we are.
    Proving(Proving),
    /// For nothing: a server serves the session.
    Up(Up),
    /// Never left.
    Over(Over),
}

/// What exists only during a SASL exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proving {
    pub(crate) negotiated: Negotiated,
    /// When the handshake was sent, and when it was answered.
    pub(crate) greeting: (Time, Time),
    /// Steps that we have sent.
    pub(crate) steps: u32,
    /// Whose answer is due; none while the driver thinks about the next step.
    pub(crate) due: Option<Xid>,
}

/// First pause of the search for a server that takes writes; doubles with each try.
pub(crate) const PROBE_PAUSE_MIN: Duration = Duration::from_millis(100);

/// What exists only while a server serves the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Up {
    pub(crate) negotiated: Negotiated,
    /// Frames of watch restoration that have not been answered.
    pub(crate) restoring: usize,
    /// How many pings must be answered, one after the other, until the server is known not to be about to close the
    /// connection; nothing else is sent before.
    pub(crate) doubts: u8,
    /// Pause before the next search for a server that takes writes.
    pub(crate) probe_pause: Duration,
}

impl Phase {
    pub(crate) const fn over(self) -> Option<Over> {
        match self {
            Self::Over(over) => Some(over),
            Self::Waiting
            | Self::Dialing
            | Self::Greeting { .. }
            | Self::Proving(_)
            | Self::Up(_) => None,
        }
    }

    /// Whether there is a connection that bytes can be written to.
    pub(crate) const fn has_stream(self) -> bool {
        matches!(self, Self::Greeting { .. } | Self::Proving(_) | Self::Up(_))
    }

    /// Whether the driver has a connection or is making one.
    pub(crate) const fn has_link(self) -> bool {
        matches!(self, Self::Dialing) || self.has_stream()
    }
}

/// Bytes of a session password.
const PASSWORD_LEN: usize = 16;

/// A session's password, in memory of its own that is overwritten when it goes.
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

/// Who the session is to the servers, and what it has seen of them.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    id: SessionId,
    password: Password,
    /// Newest transaction that a reply has shown; servers that are behind it are refused by themselves.
    last_zxid: Zxid,
    /// The same as of the last moment in which all watches were armed, while they are not.
    ///
    /// Replies to the first frame of a restoration move `last_zxid` on. If the connection is lost before
    /// the last frame, that one's paths must be restored from where they were, or events are lost.
    watch_zxid: Option<Zxid>,
    /// Whether a server that takes writes has served the session. Before that its id is a read-only
    /// server's own and means nothing to any other.
    is_global: bool,
}

impl Identity {
    pub(crate) fn new(resume: Option<Credentials>) -> Self {
        let is_global = resume.is_some();
        let shown = resume.unwrap_or_else(Self::nobody);
        let (id, last_zxid) = (shown.id, shown.last_zxid);
        let password = Password::copy_of(&shown.password.0);
        Self { id, password, last_zxid, watch_zxid: None, is_global }
    }

    const fn nobody() -> Credentials {
        let password = Secret(Bytes::from_static(&[0; PASSWORD_LEN]));
        Credentials { id: SessionId(0), password, last_zxid: Zxid(0), next_xid: Xid::FIRST }
    }

    /// Whether there is a session that could expire.
    pub(crate) const fn is_established(&self) -> bool {
        self.id.0 != 0
    }

    /// Whether there is a session that more than one server knows.
    pub(crate) const fn is_global(&self) -> bool {
        self.is_global && self.is_established()
    }

    /// What to show in a handshake.
    pub(crate) fn shown(&self) -> Credentials {
        self.credentials(Xid::FIRST).unwrap_or_else(Self::nobody)
    }

    /// What it takes to go on with the session elsewhere; `None` as long as there is nothing that other
    /// servers know.
    pub(crate) fn credentials(&self, next_xid: Xid) -> Option<Credentials> {
        let (id, password) = (self.id, Secret(self.password.0.clone()));
        let all = Credentials { id, password, last_zxid: self.last_zxid, next_xid };
        self.is_global().then_some(all)
    }

    /// A server serves the session under this name.
    pub(crate) fn adopt(&mut self, negotiated: Negotiated, password: Option<Password>) {
        self.id = negotiated.id;
        if !planted!(OldPasswordKept) {
            self.password = password.unwrap_or_default();
        }
        self.is_global |= !negotiated.read_only;
    }

    /// A reply reflects this transaction.
    ///
    /// Not to be called for events: one transaction can have several, and what was missed of them after
    /// the first could never be asked for again (ZOOKEEPER-4655).
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
