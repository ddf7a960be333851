//! The part of a request that its reply is checked against: servers, and anything in between, may be faulty.

use std::iter;

use zk_proto::{
    path::{Naming, parse_sequence},
    request::{MultiResponse, MultiResult},
};

/// A node to be created.
#[derive(Debug)]
pub(crate) struct Node {
    /// Absolute, as requested.
    path: Box<str>,
    /// The length of the chroot, which is not part of the path that the caller gets.
    root: usize,
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
    /// A node at an absolute path below a chroot of `root` bytes.
    pub(crate) fn new(path: &str, root: usize, naming: Naming) -> Self {
        Self { path: path.into(), root, naming }
    }

    /// Checks the path that a server gave to the node.
    fn check(&self, created: &str) -> Result<(), Mismatch> {
        let is_it = match self.naming {
            Naming::Exact => created == &*self.path,
            Naming::Sequential => is_numbered(&self.path, created),
        };
        if is_it { Ok(()) } else { Err(Mismatch("another node was created")) }
    }

    /// Checks the path that a server gave to the node, and returns it relative to the chroot.
    pub(crate) fn created(self, created: &str) -> Result<String, Mismatch> {
        self.check(created)?;
        Ok(match self.naming {
            Naming::Exact => self.into_path(),
            // It goes on behind the chroot in any case.
            Naming::Sequential => created[self.root..].to_owned(),
        })
    }

    /// The path as requested, relative to the chroot.
    pub(crate) fn into_path(self) -> String {
        let mut path = self.path.into_string();
        if path.len() == self.root {
            return "/".to_owned();
        }
        path.drain(..self.root);
        path
    }
}

/// Whether a server may have made `created` by appending a number to `requested`.
fn is_numbered(requested: &str, created: &str) -> bool {
    created.strip_prefix(requested).is_some_and(|digits| parse_sequence(digits).is_some())
}

/// Returns the results, each checked before it is kept. Nothing follows the first mismatch.
pub(crate) fn results<'r>(
    parts: &'r [Part],
    response: &'r MultiResponse,
) -> impl Iterator<Item = Result<MultiResult, Mismatch>> + use<'r> {
    let mut parts = parts.iter();
    let mut results = response.iter().map(|(_, result)| result);
    iter::from_fn(move || match (parts.next(), results.next()) {
        (Some(part), Some(result)) => Some(part.check(&result).map(|()| result)),
        (Some(_), None) => Some(Err(Mismatch("results are missing"))),
        (None, Some(_)) => Some(Err(Mismatch("more results than operations"))),
        (None, None) => None,
    })
}

impl Part {
    fn check(&self, result: &MultiResult) -> Result<(), Mismatch> {
        match (self, result) {
            (_, MultiResult::Error(_))
            | (Self::Set, MultiResult::SetData(_))
            | (Self::Delete, MultiResult::Delete)
            | (Self::Check, MultiResult::Check)
            | (Self::Data, MultiResult::GetData(_))
            | (Self::Children, MultiResult::GetChildren(_)) => Ok(()),
            (Self::Create(node), MultiResult::Create(created)) => node.check(&created.path.lossy()),
            (Self::Create(node), MultiResult::Create2(created)) => {
                node.check(&created.path.lossy())
            }
            _ => Err(Mismatch("the result of another operation")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(path: &str, root: usize, naming: Naming, by_server: &str) -> Option<String> {
        Node::new(path, root, naming).created(by_server).ok()
    }

    #[test]
    fn created_paths_are_relative_to_the_chroot() {
        use Naming::{Exact, Sequential};
        let some = |path: &str| Some(path.to_owned());
        assert_eq!(created("/a", 0, Exact, "/a"), some("/a"));
        assert_eq!(created("/app/a", 4, Exact, "/app/a"), some("/a"));
        assert_eq!(created("/app", 4, Exact, "/app"), some("/"));
        assert_eq!(created("/app/a-", 4, Sequential, "/app/a-0000000007"), some("/a-0000000007"));
        assert_eq!(created("/app/", 4, Sequential, "/app/0000000007"), some("/0000000007"));
    }

    #[test]
    fn other_nodes_are_no_result() {
        use Naming::{Exact, Sequential};
        for (naming, by_server) in [
            (Exact, "/a"),
            (Exact, "/app/b"),
            (Exact, "/app/a0000000007"),
            (Exact, ""),
            (Sequential, "/app/a"),
            (Sequential, "/a0000000007"),
            (Sequential, "/app/b0000000007"),
            (Sequential, "/app/ax"),
        ] {
            assert_eq!(created("/app/a", 4, naming, by_server), None, "{naming:?} {by_server}");
        }
    }
}
