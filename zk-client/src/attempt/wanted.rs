//! A node to create, and what it is known by.

use std::sync::Arc;

use bytes::Bytes;
use zk_proto::{
    AclList, CreateFlags, Stat, Str,
    path::{join, name, parse_sequence},
    planted,
    request::CreateRequest,
};

use super::Next;
use crate::{node::Disowned, sweep::Sweep};

/// A node to create.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Absolute.
    pub(crate) parent: Arc<str>,
    /// The name as requested, with the id in front.
    pub(crate) name: String,
    pub(crate) data: Bytes,
    pub(crate) acl: AclList,
    pub(crate) flags: CreateFlags,
}

/// The node of an attempt.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) stat: Stat,
    pub(super) sequence: Option<i32>,
}

impl Found {
    /// The node itself, of the attempt that wanted this.
    pub(super) fn of(self, wanted: &Wanted) -> Disowned {
        let Self { name, stat, sequence } = self;
        Disowned { absolute: Arc::from(join(&wanted.parent, &name)), stat, sequence }
    }
}

impl Wanted {
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

    /// The node that a create has answered with.
    pub(super) fn found(&self, path: &str, stat: Stat) -> Found {
        let name = name(path).to_owned();
        let sequence = self.sequence(&name);
        Found { name, stat, sequence }
    }

    /// The number that a server has put behind the name that was asked for.
    pub(super) fn sequence(&self, name: &str) -> Option<i32> {
        name.strip_prefix(&*self.name).and_then(parse_sequence)
    }

    /// Those among the siblings that are this node: one, or none. The lowest first.
    pub(super) fn among(&self, siblings: &[String]) -> Vec<(Option<i32>, String)> {
        let ours = if planted!(FindsAnyNode) { "_c_" } else { &*self.name };
        let mut found: Vec<(Option<i32>, String)> = siblings
            .iter()
            .filter(|name| name.starts_with(ours))
            .map(|name| (self.sequence(name), name.clone()))
            .collect();
        found.sort();
        found
    }

    pub(super) fn sweep(&self, name: &str) -> Next {
        Next::Sweep(Sweep { path: Arc::from(join(&self.parent, name)), done: None })
    }
}
