//! A node to create, and how it is recognised.

use std::sync::Arc;

use bytes::Bytes;
use zk_proto::{
    AclList, CreateFlags, Stat, Str,
    path::{join, name, parent, parse_sequence},
    request::CreateRequest,
};

use crate::carry::{guaranteed_delete::GuaranteedDelete, node::DetachedNode};

/// Bytes of a create besides its path and data: headers, lengths, and a usual access control list.
const LEN_REST: usize = 48;

/// A node to create.
#[derive(Debug)]
pub(crate) struct NodeSpec {
    /// Absolute.
    pub(crate) parent: Arc<str>,
    /// The name as requested, with the id in front.
    pub(crate) name: String,
    pub(crate) data: Bytes,
    pub(crate) acl: AclList,
    pub(crate) flags: CreateFlags,
    pub(crate) known_by: KnownBy,
}

/// How the node of a protected create is found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownBy {
    /// An id in front of its name.
    Prefix,
    /// Its name, which no other client uses.
    Name,
    /// Its data and its session: other clients use the name too, one at a time, or each with a number appended.
    Data,
}

/// The node created by an attempt.
pub(super) struct FoundNode {
    pub(super) name: String,
    pub(super) stat: Stat,
    pub(super) sequence: Option<i32>,
}

/// A sibling that may be the node created by an attempt.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Index among the nodes of the attempt.
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) sequence: Option<i32>,
}

impl FoundNode {
    /// Converts this into the node of the attempt that wanted it.
    pub(super) fn of(self, spec: &NodeSpec) -> DetachedNode {
        let Self { name, stat, sequence } = self;
        let is_shared = spec.known_by == KnownBy::Data;
        DetachedNode { absolute: Arc::from(join(&spec.parent, &name)), stat, sequence, is_shared }
    }
}

impl NodeSpec {
    /// Its size in bytes: about that of its request.
    pub(super) fn len(&self) -> usize {
        let named = self.parent.len().saturating_add(self.name.len());
        named.saturating_add(self.data.len()).saturating_add(LEN_REST)
    }

    pub(super) fn path(&self) -> String {
        join(&self.parent, &self.name)
    }

    pub(super) fn request<'a>(&'a self, path: &'a str) -> CreateRequest<'a> {
        CreateRequest {
            path: Str::from(path),
            data: Some(&self.data),
            acl: self.acl.clone(),
            flags: self.flags,
        }
    }

    /// Returns the node that a create has returned, unless it is a different one.
    pub(super) fn found(&self, path: &str, stat: Stat) -> Option<FoundNode> {
        let name = name(path).to_owned();
        let sequence = self.sequence(&name);
        let is_wanted = sequence.is_some() || name == self.name;
        let is_there = parent(path) == Some(&*self.parent);
        (is_wanted && is_there).then_some(FoundNode { name, stat, sequence })
    }

    /// Returns the number that a server has appended to the requested name.
    pub(super) fn sequence(&self, name: &str) -> Option<i32> {
        name.strip_prefix(&*self.name).and_then(parse_sequence)
    }

    /// Whether other clients have nodes of this exact name, not only of the same name with another number.
    pub(crate) fn shares_its_name(&self) -> bool {
        self.known_by == KnownBy::Data && self.flags == CreateFlags::EPHEMERAL
    }

    /// Returns the siblings that are this node (one or none) or, if its data decides, that may be it. The lowest first.
    ///
    /// Others may have names that begin like it.
    pub(super) fn among(&self, siblings: &[String]) -> Vec<(Option<i32>, String)> {
        // Only ephemeral nodes are looked for.
        let numbered = self.flags == CreateFlags::EPHEMERAL_SEQUENTIAL;
        let mut found: Vec<(Option<i32>, String)> = siblings
            .iter()
            .map(|name| (self.sequence(name), name))
            .filter(|(sequence, name)| match numbered {
                true => sequence.is_some(),
                false => **name == self.name,
            })
            .map(|(sequence, name)| (sequence, name.clone()))
            .collect();
        found.sort();
        found
    }

    pub(super) fn sweep(&self, name: &str) -> GuaranteedDelete {
        GuaranteedDelete::new(Arc::from(join(&self.parent, name)), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_requested_node_is_found() {
        let spec = |name: &str| NodeSpec {
            parent: "/p".into(),
            name: name.to_owned(),
            data: Bytes::new(),
            acl: AclList::default(),
            flags: CreateFlags::PERSISTENT,
            known_by: KnownBy::Name,
        };
        let found = |name: &str, path: &str| {
            let found = spec(name).found(path, Stat::default());
            found.map(|found| (found.name, found.sequence))
        };
        assert_eq!(found("a", "/p/a"), Some(("a".to_owned(), None)));
        let numbered = "a0000000007".to_owned();
        assert_eq!(found("a", "/p/a0000000007"), Some((numbered, Some(7))));
        for other in ["/p/b", "/p/ab", "/q/a", "/p/a/a", "/p/b0000000007"] {
            assert_eq!(found("a", other), None, "{other}");
        }
    }
}
