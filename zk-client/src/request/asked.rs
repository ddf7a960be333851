//! The part of a request that its reply is checked against: servers, and anything in between, may be faulty.

use std::iter;

use zk_proto::{
    path::{Naming, parse_sequence},
    request::{MultiResponse, MultiResult},
};

/// What a reply must match, beyond its type, which decoding checks.
#[derive(Debug)]
pub(crate) enum Asked {
    Nothing,
    /// A new node.
    Node(Node),
    /// Results of these kinds, one for each.
    Several(Box<[Part]>),
}

/// A node to be created.
#[derive(Debug)]
pub(crate) struct Node {
    /// Absolute, as requested.
    path: Box<str>,
    naming: Naming,
}

/// One operation of several.
#[derive(Debug)]
pub(crate) enum Part {
    Create(Node),
    Set,
    Delete,
    Check,
    Data,
    Children,
}

/// A reply belongs to a different request.
pub(crate) struct Mismatch(pub(crate) &'static str);

impl Node {
    pub(crate) fn new(path: &str, naming: Naming) -> Self {
        Self { path: path.into(), naming }
    }

    /// Whether a server may have given this node that path.
    fn is_at(&self, created: &str) -> bool {
        match self.naming {
            Naming::Exact => created == &*self.path,
            Naming::Sequential => is_numbered(&self.path, created),
        }
    }
}

/// Whether a server may have made `created` by appending a number to `requested`.
fn is_numbered(requested: &str, created: &str) -> bool {
    created.strip_prefix(requested).is_some_and(|digits| parse_sequence(digits).is_some())
}

impl Asked {
    /// For a create, at an absolute path.
    pub(crate) fn node(path: &str, naming: Naming) -> Self {
        Self::Node(Node::new(path, naming))
    }

    /// For several operations.
    pub(crate) fn several(parts: impl Iterator<Item = Part>) -> Self {
        Self::Several(parts.collect())
    }

    /// The number of results to expect.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Several(parts) => parts.len(),
            _ => 0,
        }
    }

    /// The absolute path of a node to be created, as requested.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Node(node) => &node.path,
            _ => "/",
        }
    }

    /// Checks the path of a new node.
    pub(crate) fn check_created(&self, created: &str) -> Result<(), Mismatch> {
        match self {
            Self::Node(node) if !node.is_at(created) => Err(Mismatch("another node was created")),
            _ => Ok(()),
        }
    }

    /// Returns the results, each checked before it is kept. Nothing follows the first mismatch.
    pub(crate) fn results<'r>(
        &'r self,
        response: &'r MultiResponse,
    ) -> impl Iterator<Item = Result<MultiResult, Mismatch>> + use<'r> {
        let mut parts = match self {
            Self::Several(parts) => parts.iter(),
            _ => [].iter(),
        };
        let mut results = response.iter().map(|(_, result)| result);
        iter::from_fn(move || match (parts.next(), results.next()) {
            (Some(part), Some(result)) => Some(part.check(&result).map(|()| result)),
            (Some(_), None) => Some(Err(Mismatch("results are missing"))),
            (None, Some(_)) => Some(Err(Mismatch("more results than operations"))),
            (None, None) => None,
        })
    }
}

impl Part {
    fn check(&self, result: &MultiResult) -> Result<(), Mismatch> {
        let created = match (self, result) {
            (_, MultiResult::Error(_))
            | (Self::Set, MultiResult::SetData(_))
            | (Self::Delete, MultiResult::Delete)
            | (Self::Check, MultiResult::Check)
            | (Self::Data, MultiResult::GetData(_))
            | (Self::Children, MultiResult::GetChildren(_)) => return Ok(()),
            (Self::Create(node), MultiResult::Create(created)) => node.is_at(&created.path.lossy()),
            (Self::Create(node), MultiResult::Create2(created)) => {
                node.is_at(&created.path.lossy())
            }
            _ => return Err(Mismatch("the result of another operation")),
        };
        if created { Ok(()) } else { Err(Mismatch("another node was created")) }
    }
}
