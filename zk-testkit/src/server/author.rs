//! Whose write it is, and what comes of it.

use zk_proto::{SessionId, Zxid};

use super::{
    acl::Identities,
    connection::{Encoded, Refused},
};

/// Whose write it is.
#[derive(Debug)]
pub(super) struct Author {
    pub(super) session: SessionId,
    pub(super) identities: Identities,
}

/// A write's answer, and its place in history.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) zxid: Zxid,
    pub(super) result: Result<Encoded, Refused>,
}
