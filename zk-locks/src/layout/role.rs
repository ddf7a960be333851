//! What nodes are created for.

/// What a node is created for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Lock,
    Read,
    Write,
    Lease,
    Lead,
}
