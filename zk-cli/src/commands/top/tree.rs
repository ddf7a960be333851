//! The tree of nodes, as far as it has been opened.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use zk_client::{Stat, bytes::Bytes, path::join};

use super::cursor::Motion;

/// Children of one node that are listed; more are counted. A server sends all of them, but no one reads that far.
pub(crate) const CHILDREN_MAX: usize = 10_000;

/// What has been read of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    /// In order, at most [`CHILDREN_MAX`].
    pub(crate) names: Arc<[String]>,
    pub(crate) stat: Stat,
    /// The beginning of its data; `None` if that may not be read.
    pub(crate) data: Option<Bytes>,
}

/// A line of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) path: String,
    pub(crate) depth: usize,
    pub(crate) is_open: bool,
    /// Children that are not listed, in the place of a node.
    pub(crate) left_out: Option<usize>,
}

/// The tree below a node.
#[derive(Debug)]
pub(crate) struct Tree {
    top: String,
    open: BTreeSet<String>,
    listings: BTreeMap<String, Result<Listing, String>>,
    selected: String,
}

impl Tree {
    /// The tree below `top`, which is open.
    pub(crate) fn new(top: &str) -> Self {
        Self {
            top: top.to_owned(),
            open: BTreeSet::from([top.to_owned()]),
            listings: BTreeMap::new(),
            selected: top.to_owned(),
        }
    }

    /// A node has been read, or could not be.
    pub(crate) fn listed(&mut self, path: &str, listing: Result<Listing, String>) {
        // Not of nodes that have been left meanwhile: they are read again when they are wanted.
        if self.open.contains(path) || self.selected == path {
            self.listings.insert(path.to_owned(), listing);
        }
    }

    /// What is known of a node.
    pub(crate) fn listing(&self, path: &str) -> Option<&Result<Listing, String>> {
        self.listings.get(path)
    }

    /// The nodes whose state is shown, and has to be read again now and then.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &String> {
        let closed = Some(&self.selected).filter(|path| !self.open.contains(*path));
        self.open.iter().chain(closed)
    }

    pub(crate) fn selected(&self) -> &str {
        &self.selected
    }

    /// All lines.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        // Of each level the paths that are still to come, the next one last.
        let mut levels = vec![vec![self.top.clone()]];
        while let Some(level) = levels.last_mut() {
            let Some(path) = level.pop() else {
                levels.pop();
                continue;
            };
            let depth = levels.len() - 1;
            let is_open = self.open.contains(&path);
            let listing = self.listings.get(&path).and_then(|it| it.as_ref().ok());
            if let (true, Some(Listing { names, stat, .. })) = (is_open, listing) {
                levels.push(names.iter().rev().map(|name| join(&path, name)).collect());
                let count = usize::try_from(stat.num_children).unwrap_or_default();
                let left_out = count.saturating_sub(names.len());
                rows.push(Row { path: path.clone(), depth, is_open, left_out: None });
                if left_out > 0 && names.len() == CHILDREN_MAX {
                    let left_out = Some(left_out);
                    rows.push(Row { path, depth: depth + 1, is_open: false, left_out });
                }
            } else {
                rows.push(Row { path, depth, is_open, left_out: None });
            }
        }
        rows
    }

    /// Where the cursor is.
    pub(crate) fn place(&self, rows: &[Row]) -> usize {
        let is_selected = |row: &Row| row.left_out.is_none() && row.path == self.selected;
        rows.iter().position(is_selected).unwrap_or_default()
    }

    /// Moves the cursor; returns the node that it is on now, to be read.
    pub(crate) fn step(&mut self, motion: Motion) -> String {
        let mut rows = self.rows();
        rows.retain(|row| row.left_out.is_none());
        let row = rows.get(motion.of(self.place(&rows), rows.len()));
        self.select(row.map_or_else(|| self.top.clone(), |row| row.path.clone()))
    }

    /// Opens the selected node; returns it, to be read.
    pub(crate) fn enter(&mut self) -> String {
        self.open.insert(self.selected.clone());
        self.selected.clone()
    }

    /// Closes the selected node, or goes to the one above it.
    pub(crate) fn leave(&mut self) -> Option<String> {
        let below =
            if self.selected == "/" { "/".to_owned() } else { format!("{}/", self.selected) };
        if self.open.remove(&self.selected) {
            self.open.retain(|path| !path.starts_with(&below));
            self.listings.retain(|path, _| !path.starts_with(&below) || *path == self.selected);
            return None;
        }
        let above = zk_client::path::parent(&self.selected)?;
        let is_inside = self.selected != self.top;
        is_inside.then(|| above.to_owned()).map(|above| self.select(above))
    }

    fn select(&mut self, path: String) -> String {
        if !self.open.contains(&self.selected) && path != self.selected {
            self.listings.remove(&self.selected);
        }
        self.selected.clone_from(&path);
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing<const N: usize>(names: [&str; N], count: i32) -> Result<Listing, String> {
        let stat = Stat { num_children: count, ..Stat::default() };
        Ok(Listing { names: names.map(str::to_owned).into(), stat, data: None })
    }

    fn lines(tree: &Tree) -> Vec<String> {
        let line = |row: Row| format!("{}{}", " ".repeat(row.depth), row.path);
        tree.rows().into_iter().map(line).collect()
    }

    #[test]
    fn open_nodes_show_their_children_in_order() {
        let mut tree = Tree::new("/");
        assert_eq!(lines(&tree), ["/"]);
        tree.listed("/", listing(["a", "b"], 2));
        assert_eq!(lines(&tree), ["/", " /a", " /b"]);
        assert_eq!(tree.step(Motion::Down), "/a");
        assert_eq!(tree.enter(), "/a");
        tree.listed("/a", listing(["x"], 1));
        assert_eq!(lines(&tree), ["/", " /a", "  /a/x", " /b"]);
        assert_eq!(tree.step(Motion::Last), "/b");
        assert_eq!(tree.leave(), Some("/".to_owned()));
    }

    #[test]
    fn closing_a_node_forgets_what_is_below() {
        let mut tree = Tree::new("/");
        tree.listed("/", listing(["a", "ab"], 2));
        tree.step(Motion::Down);
        tree.enter();
        tree.listed("/a", listing(["x"], 1));
        tree.step(Motion::Up);
        assert_eq!(tree.leave(), None);
        assert_eq!(lines(&tree), ["/"]);
        assert_eq!(tree.shown().collect::<Vec<_>>(), ["/"]);
        // An answer that comes late.
        tree.listed("/a", listing(["x"], 1));
        tree.enter();
        assert_eq!(lines(&tree), ["/", " /a", " /ab"]);
    }

    #[test]
    fn cursor_survives_the_end_of_its_node() {
        let mut tree = Tree::new("/");
        tree.listed("/", listing(["a", "b"], 2));
        tree.step(Motion::Last);
        tree.listed("/", listing(["a"], 1));
        assert_eq!(tree.place(&tree.rows()), 0);
        assert_eq!(tree.step(Motion::Down), "/a");
    }

    #[test]
    fn children_beyond_the_limit_are_counted() {
        let names: Vec<String> = (0..CHILDREN_MAX).map(|n| format!("{n:05}")).collect();
        let stat = Stat { num_children: 12_000, ..Stat::default() };
        let mut tree = Tree::new("/");
        tree.listed("/", Ok(Listing { names: names.into(), stat, data: None }));
        let rows = tree.rows();
        assert_eq!((rows.len(), rows[1].left_out), (CHILDREN_MAX + 2, Some(2_000)));
    }
}
