//! Interprets the library's errors.

use libgssapi::error::{Error, MajorFlags};

use crate::error::SaslFault;

/// Error numbers of MIT's library (`krb5.h`), which other Kerberos 5 libraries have adopted.
mod code {
    /// The base from which the others count.
    const BASE: u32 = 0x96C7_3A00;

    pub(super) const UNKNOWN_CLIENT: u32 = BASE + 6;
    pub(super) const UNKNOWN_SERVICE: u32 = BASE + 7;
    pub(super) const TICKET_EXPIRED: u32 = BASE + 32;
    pub(super) const CLOCK_SKEW: u32 = BASE + 37;
    pub(super) const NO_CACHE: u32 = BASE + 141;
    pub(super) const CLOCK_SKEW_IN_REPLY: u32 = BASE + 148;
    pub(super) const UNKNOWN_REALM: u32 = BASE + 154;
    pub(super) const UNREACHABLE: u32 = BASE + 156;
    pub(super) const NO_KEY: u32 = BASE + 181;
    pub(super) const NO_CACHE_FILE: u32 = BASE + 195;
    pub(super) const KDC_NOT_RESOLVED: u32 = BASE + 220;
    pub(super) const NO_DEFAULT_REALM: u32 = BASE + 224;
}

/// The bits of a status that hold the error number; the rest is more detailed.
const ROUTINE: u32 = 0x00FF_0000;

/// Why there is no ticket. Must be called in the thread where the error occurred: the library keeps its texts there.
pub(super) fn no_ticket(error: Error) -> SaslFault {
    let text = text(error);
    match error.minor {
        code::UNKNOWN_CLIENT => SaslFault::UnknownClient(text),
        code::UNKNOWN_SERVICE => SaslFault::UnknownService(text),
        code::TICKET_EXPIRED => SaslFault::TicketExpired,
        code::CLOCK_SKEW | code::CLOCK_SKEW_IN_REPLY => SaslFault::ClockSkew,
        code::NO_CACHE | code::NO_CACHE_FILE | code::NO_KEY => SaslFault::NoCredentials(text),
        code::UNKNOWN_REALM | code::NO_DEFAULT_REALM => SaslFault::UnknownRealm(text),
        code::UNREACHABLE | code::KDC_NOT_RESOLVED => SaslFault::Unreachable(text),
        _ if is_expired(error) => SaslFault::TicketExpired,
        _ if is(error, MajorFlags::GSS_S_NO_CRED) => SaslFault::NoCredentials(text),
        _ => SaslFault::NoTicket(text),
    }
}

/// The server's message was not made with the ticket's key, or that ticket has expired in the meantime.
pub(super) fn unproved(error: Error) -> SaslFault {
    if is_expired(error) {
        return SaslFault::TicketExpired;
    }
    tracing::debug!(why = text(error), "server has not proved who it is");
    SaslFault::Unproved
}

fn is_expired(error: Error) -> bool {
    is(error, MajorFlags::GSS_S_CREDENTIALS_EXPIRED) || is(error, MajorFlags::GSS_S_CONTEXT_EXPIRED)
}

/// Whether a status is this error. These are numbers, although the library declares them as flags.
fn is(error: Error, routine: MajorFlags) -> bool {
    error.major.bits() & ROUTINE == routine.bits()
}

/// Kerberos' own message; the generic text before it only names Kerberos as its source.
fn text(error: Error) -> String {
    let both = error.to_string();
    let minor = both.split_once(" (").and_then(|(_, minor)| minor.strip_suffix(')'));
    minor.unwrap_or(&both).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(major: MajorFlags, minor: u32) -> Error {
        Error { major, minor }
    }

    #[test]
    fn ticket_expiry_is_not_a_server_fault() {
        for major in [MajorFlags::GSS_S_CONTEXT_EXPIRED, MajorFlags::GSS_S_CREDENTIALS_EXPIRED] {
            assert_eq!(unproved(error(major, 0)), SaslFault::TicketExpired);
        }
        for major in [MajorFlags::GSS_S_FAILURE, MajorFlags::GSS_S_DEFECTIVE_TOKEN] {
            assert_eq!(unproved(error(major, 0)), SaslFault::Unproved);
        }
    }

    #[test]
    fn error_codes_are_compared_as_a_whole() {
        let major = MajorFlags::GSS_S_UNAUTHORIZED;
        assert!(major.contains(MajorFlags::GSS_S_CREDENTIALS_EXPIRED | MajorFlags::GSS_S_NO_CRED));
        let fault = no_ticket(error(major, 0));
        assert!(matches!(fault, SaslFault::NoTicket(_)), "{fault:?}");
    }
}
