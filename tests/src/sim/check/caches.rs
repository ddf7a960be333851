//! W4: caches. What a copy has was committed, and where it says that it follows, nothing is missing that it can have
//! heard of.

use std::collections::BTreeMap;

use zk_client::{CacheState, CachedNode, SessionState};

use super::Checker;
use crate::history::{Change, What, digest};

/// Which nodes a cache is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Node,
    Children,
    Subtree,
}

/// What a cache shows at a moment.
pub(crate) struct Copied<'a> {
    pub(crate) client: u32,
    pub(crate) root: &'a str,
    pub(crate) scope: Scope,
    pub(crate) with_data: bool,
    pub(crate) nodes: &'a [CachedNode],
    pub(crate) state: CacheState,
    /// The state of its session.
    pub(crate) session: SessionState,
}

impl Scope {
    fn has(self, root: &str, path: &str) -> bool {
        let Some(below) = path.strip_prefix(root) else { return false };
        match self {
            _ if below.is_empty() => true,
            Self::Node => false,
            Self::Children => below.starts_with('/') && below.matches('/').count() == 1,
            Self::Subtree => below.starts_with('/'),
        }
    }
}

impl Checker {
    /// A cache is looked at. Returns what is wrong with it.
    pub(crate) fn copied(&mut self, copied: &Copied<'_>) -> Option<String> {
        self.count("looks at caches");
        let invented = copied.nodes.iter().find(|node| !self.was_committed(copied, node));
        if let Some(node) = invented {
            return Some(format!("has {node:?}, which never was"));
        }
        if copied.session != (SessionState::Connected { read_only: false }) {
            return None;
        }
        if copied.state != CacheState::Following {
            return None;
        }
        self.count("looks at caches that follow");
        self.missing(copied)
    }

    /// Whether a node has been deleted that was there like this.
    pub(crate) fn was_deleted(&self, node: &CachedNode) -> bool {
        let later = self.history.changes_after(&node.path, node.stat.mzxid);
        later.iter().any(|change| matches!(change.what, What::Deleted(_)))
    }

    fn was_committed(&self, copied: &Copied<'_>, node: &CachedNode) -> bool {
        let CachedNode { path, data, stat, .. } = node;
        let known = match copied.with_data {
            true => digest(Some(data)),
            // Only when it was written is known.
            false => match self.history.at(path, stat.mzxid) {
                Some((_, there)) => there.data,
                None => return false,
            },
        };
        let fits = !copied.with_data || usize::try_from(stat.data_length) == Ok(data.len());
        copied.scope.has(copied.root, path)
            && fits
            && self.history.is_made_at(path, stat.mzxid, known, stat.version)
            && self.history.had(path, stat)
    }

    /// A change that it must have heard of by now, and has not.
    fn missing(&self, copied: &Copied<'_>) -> Option<String> {
        let there: BTreeMap<&str, &CachedNode> =
            copied.nodes.iter().map(|node| (&*node.path, node)).collect();
        let known = |change: &Change| self.crowds.when(change.zxid) + self.patience(copied.client);
        let last = self.history.last_below(copied.root);
        let due = last.filter(|(path, _)| copied.scope.has(copied.root, path));
        for (path, change) in due.filter(|(_, change)| self.now > known(change)) {
            let copy = there.get(path).map(|node| node.stat.mzxid);
            let is_so = match change.what {
                What::Deleted(_) => copy.is_none(),
                _ => copy == Some(change.zxid),
            };
            if !is_so {
                return Some(format!("follows, has {path} as of {copy:?}, and {change:?} is true"));
            }
        }
        None
    }
}
