//! What a session asks of its driver and tells its users.

use alloc::{boxed::Box, string::String, sync::Arc};
use core::time::Duration;

use bytes::Bytes;

use crate::{
    code::ErrorCode,
    data::{EventType, SessionId, Zxid},
    frame::RequestFrame,
    op::OpCode,
    text::Secret,
};

/// Something to do, in the order in which it is polled.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output<R, W> {
    /// Resolve `server` and connect to it; report with [`Session::dialed`](super::Session::dialed).
    Dial {
        /// `host:port`, as configured.
        server: Arc<str>,
    },
    /// Drop the connection, or stop dialing. No report is due.
    HangUp,
    /// Ask `server` over a connection of its own whether it takes writes: send `isro`, read the answer;
    /// report with [`Session::probed`](super::Session::probed).
    Probe {
        /// `host:port`, as configured.
        server: Arc<str>,
    },
    /// An attempt to connect has failed; the next one is under way or on the retry timer.
    Failed {
        /// `host:port`, as configured.
        server: Arc<str>,
        /// Why.
        error: LinkError,
    },
    /// A step of a SASL exchange is due; report with [`Session::sasl_stepped`](super::Session::sasl_stepped). An
    /// exchange that was under way on an earlier connection is over.
    Sasl {
        /// With whom: `host:port`, as configured.
        server: Arc<str>,
        /// What the step is about.
        said: SaslSaid,
    },
    /// Exactly one for each submitted request.
    Reply {
        /// What was submitted with the request.
        token: R,
        /// What became of it.
        outcome: Outcome,
    },
    /// News for a watch.
    Watch {
        /// What was submitted with the request that armed the watch.
        watcher: W,
        /// The news.
        notice: WatchNotice,
    },
    /// The state has changed.
    State(State),
}

/// A request on its way into the session.
#[derive(Debug)]
pub struct Outgoing<R, W> {
    /// The encoded request.
    pub frame: RequestFrame,
    /// Comes back with the outcome.
    pub token: R,
    /// The watch that the request arms if it is answered well: one of those, and only those, that ask for a watch.
    pub watch: Option<Box<WatchIntent<W>>>,
    /// What to do if the connection is lost with the request sent and unanswered.
    pub on_loss: OnLoss,
    /// What it is waited for with.
    pub patience: Patience,
}

/// How much trouble of servers the session bears with before it gives a request back that has not been carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// None: it is [given back](Cause::NotConnected) wherever it would have to wait for a connection.
    FailFast,
    /// It waits for connections. That a server [has no time](ErrorCode::THROTTLED_OP) for it is its answer.
    #[default]
    Connections,
    /// It is also sent again when a server had no time for it: after a pause, longer each time, and behind whatever
    /// has been submitted meanwhile. Requests that stood behind it are carried out before it, and answered.
    ///
    /// If the session is closed meanwhile, it is sent once more in front of the end.
    Throttling,
}

/// A request's place in the order of all requests of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub(crate) u64);

/// What becomes of a request whose user waits no longer.
#[derive(Debug)]
pub enum Withdrawn<'a, R> {
    /// It will not be sent any more, and gives its token back. There is no [`Output::Reply`] for it.
    Unsent {
        /// What was submitted with it.
        token: R,
        /// Whether it was sent over an earlier connection, so that it may have been carried out.
        was_sent: bool,
    },
    /// It is on its way, and keeps its place until the answer comes and the token with it.
    Sent(&'a mut R),
}

/// What to do with a request that was sent when its connection was lost before the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLoss {
    /// Report [`Outcome::Unknown`]: carrying it out twice would not be the same.
    Report,
    /// Send it again on the next connection of the same session: carrying it out twice is harmless.
    Resend,
}

/// A watch to be armed by the answer to a request.
#[derive(Debug)]
pub struct WatchIntent<W> {
    /// The node, as the server knows it.
    pub path: Arc<str>,
    /// Which request arms it.
    pub by: WatchBy,
    /// Comes back with each notice.
    pub watcher: W,
}

/// The requests that arm watches. They differ in when a watch is armed, and in what restores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchBy {
    /// `getData`: only if the node exists.
    Data,
    /// `exists`: whether or not the node exists.
    Exists,
    /// `getChildren`: only if the node exists.
    Children,
    /// `addWatch`, not recursive.
    Persistent,
    /// `addWatch`, recursive.
    Recursive,
}

impl WatchBy {
    pub(crate) const fn is_persistent(self) -> bool {
        matches!(self, Self::Persistent | Self::Recursive)
    }
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server answered.
    Answered(Answer),
    /// The request has certainly not been carried out: no byte of it was given to a connection.
    NotSent(Cause),
    /// The request was sent and not answered: it may or may not have been carried out.
    Unknown(Cause),
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The state that the answer reflects; 0 if none, as where a server that does not know the question was not asked
    /// again.
    pub zxid: Zxid,
    /// Whether the request succeeded.
    pub code: ErrorCode,
    /// Empty unless it did.
    pub body: Bytes,
}

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
    /// There was no connection, and the request was not to wait for one.
    #[error("not connected")]
    NotConnected,
    /// Its user has waited long enough. Made by drivers, of what [`Withdrawn`] tells.
    #[error("withdrawn")]
    Withdrawn,
    /// Only the session itself asks for that: it would not know its own answers any more.
    #[error("{0} is asked for by the session alone")]
    Reserved(OpCode),
    /// What the request asks the server to watch is not what is [to be waited for](Outgoing::watch).
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
    /// The reply is longer than [`Config::reply_len_max`](super::Config::reply_len_max). Nothing behind it can
    /// be read, so the connection is left.
    #[error("reply of {len} bytes exceeds the limit of {len_max}")]
    ReplyTooLarge {
        /// Its length.
        len: usize,
        /// The limit.
        len_max: usize,
    },
    /// The request costs each connection that it is sent over.
    #[error("{0}")]
    CostsConnection(Box<Costly>),
}

/// A request that servers end the connection over: one after the other, each as soon as it had come, the last ones with
/// nothing else under way and after the connection had been seen to live without it. To send it again would cost the next
/// one, and everybody else's requests with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{op}{} of {len} bytes has cost {connections} connections: {}",
    path.as_deref().map_or_else(String::new, |path| alloc::format!(" {path}")),
    super::suspects::limit(*len, *len_answered)
)]
#[non_exhaustive]
pub struct Costly {
    /// What was asked for.
    pub op: OpCode,
    /// Of which node, as servers know it, if the request is about one.
    pub path: Option<Arc<str>>,
    /// Length of the request in bytes.
    pub len: usize,
    /// How many connections it has cost, one after the other.
    pub connections: u32,
    /// The longest request of the session that has been answered, in bytes: so much servers take.
    pub len_answered: usize,
}

/// Why a connection could not be made, or was lost. Errors of the operating system end here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The server's name has no address.
    #[error("name not resolved: {0}")]
    Unresolved(String),
    /// Nobody listens.
    #[error("refused")]
    Refused,
    /// The connection was reset.
    #[error("reset by peer")]
    Reset,
    /// The connection was closed.
    #[error("closed by peer")]
    Closed,
    /// Nothing was heard in time.
    #[error("timed out")]
    TimedOut,
    /// The server does not serve this session now: not part of a quorum, behind it, or full.
    #[error("not served")]
    NotServed,
    /// What came is not ZooKeeper's protocol.
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
    /// The two sides could not prove to each other who they are.
    #[error("SASL: {0}")]
    Sasl(SaslFault),
    /// Left because the list of servers has changed.
    #[error("left for another server of the new list")]
    Rebalanced,
    /// Any other error of the operating system.
    #[error("{0}")]
    Other(String),
}

/// Why there is no secured connection. Whoever makes connections judges; the session passes it on.
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
    /// The server does not want us: it asks for a certificate, or for another one.
    #[error("server refused: {0}")]
    Refused(String),
    /// The connection was closed before it was secured. Ports without TLS do that, and servers in trouble.
    #[error("closed before it was secured; is this port meant for TLS?")]
    CutOff,
    /// What came in answer is not TLS.
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

/// What a step of a SASL exchange is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaslSaid {
    /// Nothing has been said: a new exchange begins.
    Nothing,
    /// The server's answer to the last step. `None` is what it sends when its mechanism has nothing to say, and also
    /// in answer to a first step that it has no mechanism for.
    Answer(Secret<Option<Bytes>>),
}

/// What a SASL mechanism wants done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaslStep {
    /// Say this to the server, and wait for its answer.
    Say(Secret<Bytes>),
    /// Both sides are satisfied.
    Done,
    /// It cannot go on.
    Failed(SaslFault),
}

/// Why a SASL exchange did not end well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SaslFault {
    /// The server refuses the credentials. Ends the session: asking again would not help.
    #[error("server refused the credentials")]
    Refused,
    /// The server does not know the mechanism, or has it switched off. Ends the session too.
    #[error("server has no such mechanism")]
    Unavailable,
    /// The server does not know what it should if it were genuine.
    #[error("server could not prove who it is")]
    Unproved,
    /// The server said something that does not belong into the exchange.
    #[error("not understood: {0}")]
    Malformed(String),
    /// The server asks for more and more.
    #[error("no end in {0} steps")]
    Endless(u32),
    /// There is no ticket to show to the server.
    #[error("no ticket: {0}")]
    Ticket(TicketFault),
    /// Anything else on our side: no randomness, no thread.
    #[error("{0}")]
    Local(String),
}

/// Why there is no ticket of Kerberos for a server. Texts are what the system's library says; none of them is secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TicketFault {
    /// Nobody has logged in: neither a cache with tickets nor a table with keys, or not of whom was asked for.
    #[error("{0}")]
    NoCredentials(String),
    /// The ticket that all others are had by has expired, and there is no key to get another one.
    #[error("credentials have expired")]
    Expired,
    /// The key distribution centre does not know us.
    #[error("{0}")]
    UnknownClient(String),
    /// The key distribution centre does not know the server by that name.
    #[error("{0}")]
    UnknownService(String),
    /// Nobody knows where the key distribution centre of the realm is.
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
    /// Whether no server would answer otherwise, as long as the credentials are the same.
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

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// A server serves the session.
    Connected(Negotiated),
    /// No server does; the session lives on for a while. Reported once for each loss.
    Disconnected(LinkError),
    /// The session has ended.
    Over(Over),
}

/// What a handshake has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The session.
    pub id: SessionId,
    /// How long servers keep the session without hearing from it.
    pub timeout: Duration,
    /// Whether the server is cut off from the quorum.
    pub read_only: bool,
}

/// News for a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchNotice {
    /// Something happened to a node.
    Event(NodeEvent),
    /// Persistent watches only: the watch was armed again on a new connection. Servers do not say what
    /// happened in between.
    Gap,
    /// Persistent watches only: the server that the session lives on now has no such watches. Last.
    Unsupported,
    /// The session is over. Last.
    Over(Over),
}

/// Something happened to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// What.
    pub kind: EventType,
    /// To which node, as the server knows it.
    pub path: Arc<str>,
    /// The transaction that did it. Servers before 3.9 do not say, and none does for an event that was
    /// missed while disconnected.
    pub zxid: Option<Zxid>,
}

/// What a server said when it was asked whether it takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// It does.
    ReadWrite,
    /// It does not, or cannot be reached.
    ReadOnly,
    /// It answered something else: the question is not allowed there.
    Unknown,
}
