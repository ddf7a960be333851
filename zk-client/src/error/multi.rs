//! Why a transaction was not carried out.

use zk_proto::{
    ErrorCode,
    request::{MultiResponse, MultiResult},
};

use super::cause::Rejection;

/// Which operation has stopped a transaction, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {index} {rejection}")]
pub struct MultiError {
    /// Its place among the operations, from 0.
    pub index: usize,
    /// What the server said.
    pub rejection: Rejection,
}

/// What has stopped a transaction, if anything has.
pub(crate) fn failure(response: &MultiResponse) -> Option<MultiError> {
    response.iter().enumerate().find_map(|(index, (_, result))| match result {
        MultiResult::Error(code) => failed(index, code),
        _ => None,
    })
}

/// Whether it is this operation that has stopped a transaction: others have codes of no meaning.
pub(crate) fn failed(index: usize, code: ErrorCode) -> Option<MultiError> {
    let has_failed = !code.is_ok() && code != ErrorCode::RUNTIME_INCONSISTENCY;
    has_failed.then(|| MultiError { index, rejection: code.into() })
}
