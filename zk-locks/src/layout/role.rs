//! The purposes of nodes.

/// The purpose of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Lock,
    Read,
    Write,
    Lease,
    Lead,
}
