//! W4: caches. What a copy has was committed, and where it says that it follows, nothing is missing that it can have
//! heard of.

use std::collections::BTreeMap;

use zk_client::{CacheState, CachedNode, SessionState};
use zk_testkit::real::Release;

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
pub(crate) struct Copied {
    pub(crate) client: u32,
    pub(crate) root: String,
    pub(crate) scope: Scope,
    pub(crate) with_data: bool,
    pub(crate) nodes: Vec<CachedNode>,
    pub(crate) state: CacheState,
    /// The state of its session.
    pub(crate) session: SessionState,
}

impl Copied {
    /// Whether it says that it lacks nothing, and can know.
    pub(crate) fn follows(&self) -> bool {
        let in_touch = SessionState::Connected { read_only: false };
        self.session == in_touch && self.state == CacheState::Following
    }
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
    pub(crate) fn copied(&mut self, copied: &Copied) -> Option<String> {
        self.count("looks at caches");
        let invented = copied.nodes.iter().find(|node| !self.was_committed(copied, node));
        if let Some(node) = invented {
            return Some(format!("has {node:?}, which never was"));
        }
        if !copied.follows() {
            return None;
        }
        self.count("looks at caches that follow");
        // What it must have heard of by now.
        let patience = self.patience(copied.client);
        self.missing(copied, |change| self.now > self.crowds.when(change.zxid) + patience)
    }

    /// What it lacks, or that it says that it is refused something though all may be read.
    pub(crate) fn lacks(&self, copied: &Copied) -> Option<String> {
        self.missing(copied, |_| true).or_else(|| {
            let is_refused = matches!(copied.state, CacheState::Refused(_));
            let for_nothing = is_refused && !self.may_be_refused(copied);
            for_nothing.then(|| format!("is {:?}, and all may be read", copied.state))
        })
    }

    /// Whether a server may have refused a node, and have told of no change since.
    fn may_be_refused(&self, copied: &Copied) -> bool {
        let tells_all = self.tells_all();
        let mut last = self.history.last_below(&copied.root);
        last.any(|(path, last)| {
            let is_there = !matches!(last.what, What::Deleted(_));
            let hidden = self.history.hidden(path).filter(|_| copied.scope.has(&copied.root, path));
            hidden.is_some_and(|access| !access.is_over(last) && (is_there || !tells_all))
        })
    }

    /// Whether a node, or one above it, was hidden, so that a copy may lose it.
    pub(crate) fn was_hidden(&self, path: &str) -> bool {
        self.history.hidden(path).is_some() || self.history.is_below_hidden(path)
    }

    /// Whether servers tell of changes that may not be seen.
    fn tells_all(&self) -> bool {
        self.options.release < Release::V3_8
    }

    /// Whether a node has been deleted that was there like this.
    pub(crate) fn was_deleted(&self, node: &CachedNode) -> bool {
        let later = self.history.changes_after(&node.path, node.stat.mzxid);
        later.iter().any(|change| matches!(change.what, What::Deleted(_)))
    }

    fn was_committed(&self, copied: &Copied, node: &CachedNode) -> bool {
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
        copied.scope.has(&copied.root, path)
            && fits
            && self.history.is_made_at(path, stat.mzxid, known, stat.version)
            && self.history.had(path, stat)
    }

    /// The first change of these that it does not show.
    fn missing(&self, copied: &Copied, is_due: impl Fn(&Change) -> bool) -> Option<String> {
        let there: BTreeMap<&str, &CachedNode> =
            copied.nodes.iter().map(|node| (&*node.path, node)).collect();
        let last = self.history.last_below(&copied.root);
        let there_too = last.filter(|(path, _)| {
            // Children of what may not be read cannot be had.
            copied.scope.has(&copied.root, path) && !self.history.is_below_hidden(path)
        });
        for (path, change) in there_too.filter(|(_, change)| is_due(change)) {
            let copy = there.get(path).map(|node| node.stat.mzxid);
            let is_so = match (self.history.hidden(path), change.what) {
                (Some(access), _) => access.allows(copy, change, self.tells_all()),
                (None, What::Deleted(_)) => copy.is_none(),
                (None, _) => copy == Some(change.zxid),
            };
            if !is_so {
                return Some(format!("has {path} as of {copy:?}, and {change:?} is true"));
            }
        }
        None
    }
}
