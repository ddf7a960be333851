//! An outcome as a caller's error.

use zk_proto::{ErrorCode, OpCode};

use super::{
    call::{ReadError, WriteError},
    cause::{Cause, Rejection, SessionEnd},
    link::LinkError,
};

/// Builds either kind of error from an outcome.
pub(crate) trait CallError: std::fmt::Display + Sized {
    fn answered(op: OpCode, code: ErrorCode) -> Self;
    fn not_sent(cause: Cause) -> Self;
    fn unknown(op: OpCode, cause: Cause) -> Self;
    /// What a server has answered, or why none has.
    #[cfg(feature = "trace-requests")]
    fn answer(&self) -> Result<Rejection, &Cause>;
}

impl CallError for ReadError {
    fn answered(_: OpCode, code: ErrorCode) -> Self {
        match Verdict::of(code) {
            Verdict::Rejected => Self::Rejected(code.into()),
            Verdict::NotApplied(cause) | Verdict::InDoubt(cause) => Self::Unavailable(cause),
        }
    }
    fn not_sent(cause: Cause) -> Self {
        Self::Unavailable(cause)
    }
    fn unknown(_: OpCode, cause: Cause) -> Self {
        Self::Unavailable(cause)
    }
    #[cfg(feature = "trace-requests")]
    fn answer(&self) -> Result<Rejection, &Cause> {
        match self {
            Self::Rejected(rejection) => Ok(*rejection),
            Self::Unavailable(cause) => Err(cause),
        }
    }
}

impl CallError for WriteError {
    fn answered(op: OpCode, code: ErrorCode) -> Self {
        match Verdict::of(code) {
            Verdict::Rejected => Self::Rejected(Rejection::from(code)),
            Verdict::NotApplied(cause) => Self::NotApplied(cause),
            Verdict::InDoubt(cause) => Self::unknown(op, cause),
        }
    }
    fn not_sent(cause: Cause) -> Self {
        Self::NotApplied(cause)
    }
    fn unknown(op: OpCode, cause: Cause) -> Self {
        Self::InDoubt { op, cause }
    }
    #[cfg(feature = "trace-requests")]
    fn answer(&self) -> Result<Rejection, &Cause> {
        match self {
            Self::Rejected(rejection) => Ok(*rejection),
            Self::NotApplied(cause) | Self::InDoubt { cause, .. } => Err(cause),
        }
    }
}

/// The meaning of a server's error code for the request.
pub(crate) enum Verdict {
    Rejected,
    NotApplied(Cause),
    InDoubt(Cause),
}

impl Verdict {
    pub(crate) fn of(code: ErrorCode) -> Self {
        let lost = || Cause::Disconnected(LinkError::Other(code.to_string()));
        match code {
            ErrorCode::THROTTLED_OP => Self::NotApplied(Cause::Throttled),
            code if code.ends_session() => {
                Self::NotApplied(Cause::SessionEnded(SessionEnd::Expired))
            }
            ErrorCode::AUTH_FAILED => Self::NotApplied(Cause::SessionEnded(SessionEnd::AuthFailed)),
            // Clients use these codes; what a proxy in between means by them is unknown.
            ErrorCode::CONNECTION_LOSS
            | ErrorCode::OPERATION_TIMEOUT
            | ErrorCode::REQUEST_TIMEOUT => Self::InDoubt(lost()),
            _ => Self::Rejected,
        }
    }
}
