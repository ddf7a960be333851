//! Which nodes are copied.

use zk_proto::path;

use crate::watch::WatchMode;

/// Which nodes a cache covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Node,
    Children,
    Subtree,
}

impl Scope {
    /// Whether a node belongs to the copy rooted at `root`.
    pub(super) fn contains(self, root: &str, path: &str) -> bool {
        match self {
            _ if path == root => true,
            Self::Node => false,
            Self::Children => path::parent(path) == Some(root),
            Self::Subtree => path::ancestors(path).any(|above| above == root),
        }
    }

    /// Whether the children of a node in the copy belong to it too.
    pub(super) fn goes_below(self, root: &str, path: &str) -> bool {
        match self {
            Self::Node => false,
            Self::Children => path == root,
            Self::Subtree => true,
        }
    }

    /// The watch mode that reports every change in scope. A watch on a single node does not report its children's data.
    pub(super) const fn watch(self) -> WatchMode {
        match self {
            Self::Node => WatchMode::Node,
            Self::Children | Self::Subtree => WatchMode::Recursive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_bounds_the_cached_nodes() {
        for (scope, path, inside, below) in [
            (Scope::Node, "/a", true, false),
            (Scope::Node, "/a/b", false, false),
            (Scope::Children, "/a", true, true),
            (Scope::Children, "/a/b", true, false),
            (Scope::Children, "/a/b/c", false, false),
            (Scope::Subtree, "/a/b/c", true, true),
            (Scope::Subtree, "/ab", false, true),
        ] {
            assert_eq!(scope.contains("/a", path), inside, "{scope:?} {path}");
            assert!(!inside || scope.goes_below("/a", path) == below, "{scope:?} {path}");
        }
        assert!(Scope::Subtree.contains("/", "/x/y"));
        assert!(Scope::Children.contains("/", "/x"));
    }
}
