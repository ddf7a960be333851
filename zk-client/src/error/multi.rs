//! Why a transaction was not carried out.

use zk_proto::{
    ErrorCode,
    request::{MultiResponse, MultiResult},
};

use super::cause::Rejection;

/// The operation that failed a transaction, and its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {index} {rejection}")]
pub struct MultiError {
    /// Its index among the operations, from 0.
    pub index: usize,
    /// The server's error.
    pub rejection: Rejection,
}

/// Returns the operation that failed a transaction, if one did.
pub(crate) fn failure(response: &MultiResponse) -> Option<MultiError> {
    response.iter().enumerate().find_map(|(index, (_, result))| match result {
        MultiResult::Error(code) => failed(index, code),
        _ => None,
    })
}

/// Returns the error if this operation failed the transaction: the codes of the others mean nothing.
pub(crate) fn failed(index: usize, code: ErrorCode) -> Option<MultiError> {
    let has_failed = !code.is_ok() && code != ErrorCode::RUNTIME_INCONSISTENCY;
    has_failed.then(|| MultiError { index, rejection: code.into() })
}
