//! Versions of a node's data that operations require.

use crate::error::Cause;

/// The version that servers take as "any version".
pub(crate) const ANY_VERSION: i32 = -1;

/// Returns the version to send, unless the requested one is the special value: a computed version may happen to be it.
pub(crate) const fn expected(version: Option<i32>) -> Result<i32, Cause> {
    match version {
        None => Ok(ANY_VERSION),
        Some(ANY_VERSION) => Err(Cause::InvalidArgument("version -1 would stand for any")),
        Some(version) => Ok(version),
    }
}
