//! Why a connection could not be made, or was lost.

use zk_proto::{
    ErrorCode,
    session::{self, DriverFault},
};

/// Why a connection could not be made, or was lost.
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

/// Why there is no secured connection.
///
/// None of these ends the session: certificates are renewed while sessions live, and the next server may have a better
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

/// Why a SASL exchange failed. Texts about Kerberos come from the system's library; none of them is secret.
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
    /// No Kerberos login: there is neither a cache with tickets nor a table with keys, or none for the requested
    /// principal.
    #[error("no ticket: {0}")]
    NoCredentials(String),
    /// The ticket-granting ticket has expired, and there is no key to get another one.
    #[error("no ticket: credentials have expired")]
    TicketExpired,
    /// The key distribution centre does not know us.
    #[error("no ticket: {0}")]
    UnknownClient(String),
    /// The key distribution centre does not know the server by that name.
    #[error("no ticket: {0}")]
    UnknownService(String),
    /// The key distribution centre of the realm is not known.
    #[error("no ticket: {0}")]
    UnknownRealm(String),
    /// No key distribution centre answers.
    #[error("no ticket: {0}")]
    Unreachable(String),
    /// Our clock, or the server's, is too far from that of the key distribution centre.
    #[error("no ticket: clocks differ too much")]
    ClockSkew,
    /// There is no Kerberos ticket for another reason.
    #[error("no ticket: {0}")]
    NoTicket(String),
    /// Anything else on our side: no randomness, no thread.
    #[error("{0}")]
    Local(String),
}

/// What a TLS alert reads as, if taken for the length of a frame: type, version, and two bytes of it cut off.
const TLS_ALERT: i32 = 0x1503;

impl From<session::LinkError> for LinkError {
    fn from(error: session::LinkError) -> Self {
        use session::LinkError as Told;
        match error {
            Told::Refused => Self::Refused,
            Told::Reset => Self::Reset,
            Told::Closed => Self::Closed,
            Told::TimedOut => Self::TimedOut,
            Told::NotServed => Self::NotServed,
            Told::Protocol(why) => Self::Protocol(why),
            Told::Frame(error) if error.len >> 16 == TLS_ALERT => Self::Tls(TlsFault::Required),
            Told::Frame(error) => Self::Protocol(error.to_string()),
            Told::Moved => Self::Moved,
            Told::Unrestored(code) => Self::Unrestored(code),
            Told::Superseded => Self::Superseded,
            Told::SaslRefused => Self::Sasl(SaslFault::Refused),
            Told::SaslEndless(steps) => Self::Sasl(SaslFault::Endless(steps)),
            Told::Rebalanced => Self::Rebalanced,
            Told::Driver(fault) => {
                let ours = fault.downcast_ref::<Self>().cloned();
                ours.unwrap_or_else(|| Self::Other(fault.to_string()))
            }
        }
    }
}

/// For the session: what it does not decide by is passed through it.
impl From<LinkError> for session::LinkError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Refused => Self::Refused,
            LinkError::Reset => Self::Reset,
            LinkError::Closed => Self::Closed,
            LinkError::TimedOut => Self::TimedOut,
            other => Self::Driver(DriverFault::new(other)),
        }
    }
}

impl SaslFault {
    /// Whether all servers would answer the same, as long as the credentials do not change.
    pub(crate) const fn is_final(&self) -> bool {
        matches!(self, Self::Refused | Self::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use zk_proto::frame::FrameError;

    use super::*;

    #[test]
    fn every_fault_of_the_session_keeps_its_words() {
        use session::LinkError as Told;
        let frame = FrameError { len: -1, len_max: 8 };
        for told in [
            Told::Refused,
            Told::Reset,
            Told::Closed,
            Told::TimedOut,
            Told::NotServed,
            Told::Protocol("a reply that was not due".to_owned()),
            Told::Moved,
            Told::Unrestored(ErrorCode::NO_AUTH),
            Told::Superseded,
            Told::Rebalanced,
            Told::Driver(DriverFault::new(LinkError::NotServed)),
        ] {
            let words = told.to_string();
            assert_eq!(LinkError::from(told).to_string(), words);
        }
        let words = frame.to_string();
        assert_eq!(LinkError::from(Told::Frame(frame)), LinkError::Protocol(words));
        let alert = FrameError { len: TLS_ALERT << 16, len_max: 8 };
        assert_eq!(LinkError::from(Told::Frame(alert)), LinkError::Tls(TlsFault::Required));
        assert_eq!(LinkError::from(Told::SaslRefused), LinkError::Sasl(SaslFault::Refused));
        assert_eq!(LinkError::from(Told::SaslEndless(9)), LinkError::Sasl(SaslFault::Endless(9)));
    }
}
