//! What went wrong with TLS.

use std::{fmt, io};

use rustls::CertificateError;

use crate::error::TlsFault;

/// The connection was lost in the middle of the handshake.
#[derive(Debug)]
pub(super) struct CutOff;

impl CutOff {
    /// Marks a loss in the middle of the handshake: ports without TLS answer it by closing the connection.
    pub(super) fn tell(error: io::Error) -> io::Error {
        use io::ErrorKind as Kind;
        match error.kind() {
            kind @ (Kind::UnexpectedEof
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::BrokenPipe) => io::Error::new(kind, Self),
            _ => error,
        }
    }
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TlsFault::CutOff.fmt(f)
    }
}

impl std::error::Error for CutOff {}

/// Returns the TLS fault in an error, if there is one. Not only for handshakes: in TLS 1.3 the server's verdict on our
/// certificate arrives after we have verified its own, with the first bytes read.
pub(crate) fn fault(error: &io::Error) -> Option<TlsFault> {
    let inner = error.get_ref()?;
    if inner.is::<CutOff>() {
        return Some(TlsFault::CutOff);
    }
    Some(match inner.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(why) => distrust(why),
        rustls::Error::AlertReceived(alert) => TlsFault::Refused(format!("{alert:?}")),
        rustls::Error::InvalidMessage(_) => TlsFault::NotSpoken,
        rustls::Error::PeerIncompatible(why) => TlsFault::Incompatible(format!("{why:?}")),
        other => TlsFault::Other(other.to_string()),
    })
}

fn distrust(why: &CertificateError) -> TlsFault {
    use CertificateError as Why;
    match why {
        Why::Expired | Why::ExpiredContext { .. } => TlsFault::Expired,
        Why::NotValidYet | Why::NotValidYetContext { .. } => TlsFault::NotYetValid,
        Why::NotValidForName | Why::NotValidForNameContext { .. } => TlsFault::WrongName,
        Why::UnknownIssuer => TlsFault::UnknownAuthority,
        Why::Revoked => TlsFault::Revoked,
        other => TlsFault::NotAccepted(other.to_string()),
    }
}
