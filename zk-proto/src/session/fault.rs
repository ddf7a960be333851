//! Faults of requests, connections and sessions.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString},
    sync::Arc,
};

use crate::{code::ErrorCode, jute::DecodeError, op::OpCode};

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The connection was lost.
    #[error("connection lost: {0}")]
    LinkLost(LinkError),
    /// The session is over.
    #[error("session over: {0}")]
    SessionOver(Over),
    /// There was no connection, and the request was configured not to wait for one.
    #[error("not connected")]
    NotConnected,
    /// Its user has waited long enough. Made by drivers, from the result of [`Withdrawn`](super::Withdrawn).
    #[error("withdrawn")]
    Withdrawn,
    /// Only the session itself may send this operation: it could not recognize its own answers otherwise.
    #[error("{0} is asked for by the session alone")]
    Reserved(OpCode),
    /// The watch that the request asks for is not the one that is [to be waited for](super::Outgoing::watch).
    #[error("the request and whoever waits for it watch differently")]
    WatchMismatch,
    /// The request is longer than servers accept.
    #[error("request of {len} bytes exceeds the limit of {len_max}")]
    TooLarge {
        /// Its length.
        len: usize,
        /// The limit.
        len_max: usize,
    },
    /// The reply is longer than [`Config::reply_len_max`](super::Config::reply_len_max). Nothing behind it can be read,
    /// so the session leaves the connection.
    #[error("reply of {len} bytes exceeds the limit of {len_max}")]
    ReplyTooLarge {
        /// Its length.
        len: usize,
        /// The limit.
        len_max: usize,
    },
    /// Servers end each connection that the request is sent over.
    #[error("{0}")]
    CostsConnection(Box<Costly>),
}

/// A request that made servers end connections: one after the other, each as soon as it had arrived, the last ones with
/// nothing else in flight and after the connection had proved to be alive without it. Sending it again would cost the
/// next connection, and with it all other requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{op}{} of {len} bytes has cost {connections} connections: {}",
    path.as_deref().map_or_else(String::new, |path| format!(" {path}")),
    limit(*len, *len_answered)
)]
#[non_exhaustive]
pub struct Costly {
    /// The operation.
    pub op: OpCode,
    /// The node's path, as servers know it, if the request is about one.
    pub path: Option<Arc<str>>,
    /// Length of the request in bytes.
    pub len: usize,
    /// How many connections it has cost, one after the other.
    pub connections: u32,
    /// The longest request of the session that has been answered, in bytes: servers accept at least that.
    pub len_answered: usize,
}

/// The end of the message: what is known of the servers' limit.
fn limit(len: usize, len_answered: usize) -> String {
    if len > len_answered {
        format!(
            "the longest that was answered had {len_answered}; see jute.maxbuffer of the servers"
        )
    } else {
        format!("though one of {len_answered} was answered")
    }
}

/// Why a connection could not be made, or was lost. Errors of the operating system are converted to this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The server's name has no address.
    #[error("name not resolved: {0}")]
    Unresolved(String),
    /// No process listens there.
    #[error("refused")]
    Refused,
    /// The connection was reset.
    #[error("reset by peer")]
    Reset,
    /// The connection was closed.
    #[error("closed by peer")]
    Closed,
    /// Nothing arrived in time.
    #[error("timed out")]
    TimedOut,
    /// The server does not serve this session now: not part of a quorum, behind it, or full.
    #[error("not served")]
    NotServed,
    /// The bytes received are not ZooKeeper's protocol.
    #[error("protocol violated: {0}")]
    Protocol(String),
    /// The session lives on another connection.
    #[error("session moved")]
    Moved,
    /// Watches could not be armed again.
    #[error("watches not restored: {0}")]
    Unrestored(ErrorCode),
    /// Left in favour of a server that takes writes.
    #[error("left for a writable server")]
    Superseded,
    /// The two sides could not agree on a secured connection.
    #[error("TLS: {0}")]
    Tls(TlsFault),
    /// The two sides could not authenticate each other.
    #[error("SASL: {0}")]
    Sasl(SaslFault),
    /// Left because the list of servers has changed.
    #[error("left for another server of the new list")]
    Rebalanced,
    /// Any other error of the operating system.
    #[error("{0}")]
    Other(String),
}

/// Why there is no secured connection. The driver determines it; the session passes it on.
///
/// None of them ends the session: certificates are renewed while sessions live, and the next server may have a better
/// one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFault {
    /// The server's certificate is not valid any more.
    #[error("certificate of the server has expired")]
    Expired,
    /// The server's certificate is not valid yet. One of the clocks may be wrong.
    #[error("certificate of the server is not valid yet")]
    NotYetValid,
    /// The server's certificate is for other names than the one that was dialed.
    #[error("certificate is not for this server's name")]
    WrongName,
    /// The server's certificate comes from an authority that is not trusted.
    #[error("certificate of the server is from an unknown authority")]
    UnknownAuthority,
    /// The server's certificate has been revoked.
    #[error("certificate of the server has been revoked")]
    Revoked,
    /// The server's certificate was not accepted for another reason.
    #[error("certificate of the server not accepted: {0}")]
    NotAccepted(String),
    /// The server refused us: it asks for a certificate, or for another one.
    #[error("server refused: {0}")]
    Refused(String),
    /// The connection was closed before it was secured, as ports without TLS do, and servers in trouble.
    #[error("closed before it was secured; is this port meant for TLS?")]
    CutOff,
    /// The bytes received in answer are not TLS.
    #[error("server does not speak TLS on this port")]
    NotSpoken,
    /// The server and we have no version of TLS in common, or no cipher: it speaks TLS 1.1 or older, most likely.
    #[error("nothing in common with the server's TLS: {0}")]
    Incompatible(String),
    /// The server speaks TLS, and we did not.
    #[error("server speaks only TLS on this port")]
    Required,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Why a SASL exchange failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SaslFault {
    /// The server refuses the credentials. Ends the session: asking again would not help.
    #[error("server refused the credentials")]
    Refused,
    /// The server does not know the mechanism, or has it switched off. Ends the session too.
    #[error("server has no such mechanism")]
    Unavailable,
    /// The server does not know what a genuine one would.
    #[error("server could not prove who it is")]
    Unproved,
    /// The server sent something that does not belong in the exchange.
    #[error("not understood: {0}")]
    Malformed(String),
    /// The server asks for more and more steps.
    #[error("no end in {0} steps")]
    Endless(u32),
    /// There is no ticket to show to the server.
    #[error("no ticket: {0}")]
    Ticket(TicketFault),
    /// Anything else on our side: no randomness, no thread.
    #[error("{0}")]
    Local(String),
}

/// Why there is no Kerberos ticket for a server. Texts come from the system's library; none of them is secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TicketFault {
    /// No login: there is neither a cache with tickets nor a table with keys, or none for the requested principal.
    #[error("{0}")]
    NoCredentials(String),
    /// The ticket-granting ticket has expired, and there is no key to get another one.
    #[error("credentials have expired")]
    Expired,
    /// The key distribution centre does not know us.
    #[error("{0}")]
    UnknownClient(String),
    /// The key distribution centre does not know the server by that name.
    #[error("{0}")]
    UnknownService(String),
    /// The key distribution centre of the realm is not known.
    #[error("{0}")]
    UnknownRealm(String),
    /// No key distribution centre answers.
    #[error("{0}")]
    Unreachable(String),
    /// Our clock, or the server's, is too far from that of the key distribution centre.
    #[error("clocks differ too much")]
    ClockSkew,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl SaslFault {
    /// Whether all servers would answer the same, as long as the credentials do not change.
    pub(crate) const fn is_final(&self) -> bool {
        matches!(self, Self::Refused | Self::Unavailable)
    }
}

/// Why a session is over. Once over it stays over, and always for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Over {
    /// The servers have forgotten the session, or must have by now. Its ephemeral nodes are gone, or
    /// will be.
    #[error("expired")]
    Expired,
    /// The servers refuse the credentials. The session's ephemeral nodes linger until it expires.
    #[error("authentication failed")]
    AuthFailed,
    /// Closed by its user.
    #[error("closed")]
    Closed,
}

/// Why a connection must be left because of something received over it.
pub(crate) enum Broken {
    /// It cannot be understood, or must not be trusted any further.
    Link(LinkError),
    /// It ends the session.
    Session(Over),
}

impl From<DecodeError> for Broken {
    fn from(error: DecodeError) -> Self {
        Self::Link(LinkError::Protocol(error.to_string()))
    }
}
