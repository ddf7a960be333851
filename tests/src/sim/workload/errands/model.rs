//! What there is below a node that nobody else changes, and what servers say to each change of it.

use std::collections::BTreeMap;

use zk_client::{CreateMode, MultiError, Rejection, SessionId, Stat};
use zk_proto::path::{join, parent};

/// A change, or a condition. Paths are relative to the node above all others: `/` is itself.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// With one of the lists of permissions, and, if that is said, with the parents that are missing.
    Create {
        path: String,
        data: Vec<u8>,
        mode: CreateMode,
        list: usize,
        above: Option<CreateMode>,
    },
    Set {
        path: String,
        data: Vec<u8>,
        version: Option<i32>,
    },
    Delete {
        path: String,
        version: Option<i32>,
    },
    Check {
        path: String,
        version: Option<i32>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) data: Vec<u8>,
    mode: CreateMode,
    /// Its permissions.
    list: usize,
    version: i32,
    aversion: i32,
    /// How many children it has had.
    created: i32,
    children: i32,
}

/// All of them, by their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Model(BTreeMap<String, Node>);

impl Model {
    /// A node by itself.
    pub(super) fn new(list: usize) -> Self {
        Self(BTreeMap::from([("/".to_owned(), Node { list, ..Node::default() })]))
    }

    pub(super) fn node(&self, path: &str) -> Result<&Node, Rejection> {
        self.0.get(path).ok_or(Rejection::NoNode)
    }

    /// Whether the node above is there.
    pub(super) fn has_parent(&self, path: &str) -> bool {
        parent_of(path).is_some_and(|above| self.0.contains_key(above))
    }

    /// What is below a node: the names of its children, or all paths.
    pub(super) fn children(&self, path: &str) -> Vec<&str> {
        let is_child = |it: &&String| parent(it) == Some(path);
        self.0.keys().filter(is_child).filter_map(|it| it.rsplit('/').next()).collect()
    }

    pub(super) fn below(&self, path: &str) -> usize {
        let below = join(path, "");
        self.0.keys().filter(|it| it.starts_with(&below) && **it != path).count()
    }

    /// Those that live as long as the session.
    pub(super) fn ephemerals(&self, prefix: &str) -> Vec<&str> {
        let is_one =
            |(path, node): &(&String, &Node)| node.is_ephemeral() && path.starts_with(prefix);
        self.0.iter().filter(is_one).map(|(path, _)| &**path).collect()
    }

    /// Whether servers may delete something of their own accord.
    pub(super) fn is_mortal(&self) -> bool {
        let is_left = |node: &Node| {
            node.mode == CreateMode::Container && node.created > 0 && node.children == 0
        };
        self.0.values().any(is_left)
    }

    /// Whether servers may delete something of it as soon as its children are gone.
    pub(super) fn has_containers(&self, path: &str) -> bool {
        let below = join(path, "");
        let is_of = |it: &str| it == path || it.starts_with(&below);
        self.0.iter().any(|(it, node)| is_of(it) && node.mode == CreateMode::Container)
    }

    /// Carries out a change, or nothing. Returns the path that it concerns.
    pub(super) fn apply(&mut self, change: &Change) -> Result<String, Rejection> {
        match change {
            Change::Create { path, data, mode, list, above } => {
                if let Some(mode) = above {
                    self.create_above(path, *mode, *list)?;
                }
                self.create(
                    path,
                    Node { data: data.clone(), mode: *mode, list: *list, ..Node::default() },
                )
            }
            Change::Set { path, data, version } => {
                let node = self.expect(path, *version)?;
                node.version += 1;
                node.data.clone_from(data);
                Ok(path.clone())
            }
            Change::Delete { path, version } => {
                if self.expect(path, *version)?.children > 0 {
                    return Err(Rejection::NotEmpty);
                }
                self.0.remove(path);
                if let Some(above) = parent(path).and_then(|above| self.0.get_mut(above)) {
                    above.children -= 1;
                }
                Ok(path.clone())
            }
            Change::Check { path, version } => self.expect(path, *version).map(|_| path.clone()),
        }
    }

    /// Carries out all of several changes, or nothing. Returns the paths that they concern.
    pub(super) fn apply_all(&mut self, changes: &[Change]) -> Result<Vec<String>, MultiError> {
        let mut next = self.clone();
        let mut paths = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            paths.push(next.apply(change).map_err(|rejection| MultiError { index, rejection })?);
        }
        *self = next;
        Ok(paths)
    }

    /// Another list of permissions.
    pub(super) fn permit(
        &mut self,
        path: &str,
        version: Option<i32>,
        list: usize,
    ) -> Result<(), Rejection> {
        let node = self.0.get_mut(path).ok_or(Rejection::NoNode)?;
        if version.is_some_and(|version| version != node.aversion) {
            return Err(Rejection::BadVersion);
        }
        node.aversion += 1;
        node.list = list;
        Ok(())
    }

    /// A node and all below it go. Returns how many that were.
    pub(super) fn clear(&mut self, path: &str) -> usize {
        let there = self.0.len();
        let below = join(path, "");
        let goes = self.0.contains_key(path);
        self.0.retain(|it, _| it != path && !it.starts_with(&below));
        if let Some(above) = parent(path).and_then(|above| self.0.get_mut(above)).filter(|_| goes) {
            above.children -= 1;
        }
        there - self.0.len()
    }

    /// The nodes above one, as far as they are missing.
    fn create_above(&mut self, path: &str, mode: CreateMode, list: usize) -> Result<(), Rejection> {
        match parent_of(path) {
            Some(above) if !self.0.contains_key(above) => {
                self.create_above(above, mode, list)?;
                self.create(above, Node { mode, list, ..Node::default() }).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn create(&mut self, path: &str, node: Node) -> Result<String, Rejection> {
        let above = parent_of(path).and_then(|above| self.0.get(above)).ok_or(Rejection::NoNode)?;
        let path = match is_sequential(node.mode) {
            true => format!("{path}{:010}", above.created),
            false => path.to_owned(),
        };
        if self.0.contains_key(&path) {
            return Err(Rejection::NodeExists);
        }
        if above.is_ephemeral() {
            return Err(Rejection::NoChildrenForEphemerals);
        }
        if let Some(above) = parent(&path).and_then(|above| self.0.get_mut(above)) {
            above.created += 1;
            above.children += 1;
        }
        self.0.insert(path.clone(), node);
        Ok(path)
    }

    fn expect(&mut self, path: &str, version: Option<i32>) -> Result<&mut Node, Rejection> {
        let node = self.0.get_mut(path).ok_or(Rejection::NoNode)?;
        match version.is_none_or(|version| version == node.version) {
            true => Ok(node),
            false => Err(Rejection::BadVersion),
        }
    }
}

impl Change {
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Create { path, .. }
            | Self::Set { path, .. }
            | Self::Delete { path, .. }
            | Self::Check { path, .. } => path,
        }
    }
}

/// The parent of a node, whose name may be the number alone that it is given.
fn parent_of(path: &str) -> Option<&str> {
    match path {
        "/" => Some(path),
        _ => path.strip_suffix('/').or_else(|| parent(path)),
    }
}

pub(super) const fn is_sequential(mode: CreateMode) -> bool {
    matches!(
        mode,
        CreateMode::PersistentSequential
            | CreateMode::EphemeralSequential
            | CreateMode::PersistentSequentialTtl(_)
    )
}

impl Node {
    fn is_ephemeral(&self) -> bool {
        matches!(self.mode, CreateMode::Ephemeral | CreateMode::EphemeralSequential)
    }

    /// Whether this is what servers say of it in that session.
    pub(super) fn fits(&self, stat: &Stat, session: SessionId) -> bool {
        // Only sessions are told of as owners.
        let owner = if self.is_ephemeral() { session } else { SessionId(0) };
        // It counts the children that came, and those that went.
        let changes = 2 * self.created - self.children;
        stat.ephemeral_owner == owner
            && (stat.version, stat.aversion, stat.cversion)
                == (self.version, self.aversion, changes)
            && stat.num_children == self.children
            && usize::try_from(stat.data_length) == Ok(self.data.len())
    }

    /// Another version than that of the data, and that.
    pub(super) const fn versions(&self) -> (i32, i32) {
        (self.version + 1, self.version)
    }

    pub(super) const fn aversion(&self) -> i32 {
        self.aversion
    }

    pub(super) const fn list(&self) -> usize {
        self.list
    }
}
