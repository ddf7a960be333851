//! Versions of a node's data, as operations insist on them.

use crate::error::Cause;

/// What servers take for "whatever the version is".
pub(crate) const ANY_VERSION: i32 = -1;

/// The version to send, if one was asked for: one that was computed may happen to be what servers take for any.
pub(crate) const fn expected(version: Option<i32>) -> Result<i32, Cause> {
    match version {
        None => Ok(ANY_VERSION),
        Some(ANY_VERSION) => Err(Cause::InvalidArgument("version -1 would stand for any")),
        Some(version) => Ok(version),
    }
}
