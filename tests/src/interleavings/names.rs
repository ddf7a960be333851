//! Names for nodes that do not depend on chance, as the names of their paths do.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
};

use zk_proto::{List, SessionId, Text, Zxid};
use zk_testkit::server::Tree;

use super::scenario::LEASES;

/// A node: whose it is, and the how manieth of that client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    pub(super) client: u8,
    pub(super) nth: u8,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of client {}", self.nth, self.client)
    }
}

/// A node that a client has made.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) label: Label,
    pub(super) path: String,
    pub(super) created: Zxid,
    pub(super) exists: bool,
}

/// All nodes that clients have made, in the order of creation.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: Vec<Known>,
    labels: HashMap<String, Label>,
}

impl Names {
    /// Looks at what there is now.
    pub(super) fn look(&mut self, tree: &Tree, sessions: &[SessionId]) {
        for known in &mut self.known {
            known.exists = tree.get(&known.path).is_some();
        }
        let mut new: Vec<(Zxid, u8, String)> = Vec::new();
        for (client, session) in sessions.iter().enumerate() {
            let paths = tree.ephemerals(*session).filter(|path| !self.labels.contains_key(*path));
            new.extend(paths.map(|path| {
                let created = tree.get(path).map_or(Zxid(0), |node| node.stat().czxid);
                (created, u8::try_from(client).unwrap_or(u8::MAX), path.to_owned())
            }));
        }
        new.sort();
        for (created, client, path) in new {
            let before = self.known.iter().filter(|known| known.label.client == client).count();
            let label = Label { client, nth: u8::try_from(before).unwrap_or(u8::MAX) };
            self.labels.insert(path.clone(), label);
            self.known.push(Known { label, path, created, exists: true });
        }
    }

    pub(super) fn label(&self, path: &str) -> Option<Label> {
        self.labels.get(path).copied()
    }

    /// What a client makes of a list of names: which nodes stand before its newest one, in the order of creation, and
    /// whether that one is there. Of permits it counts how many there are.
    pub(super) fn ahead_of(
        &self,
        client: usize,
        parent: &str,
        names: &List<Text>,
    ) -> (usize, Vec<Label>) {
        if parent == LEASES {
            return (names.len(), Vec::new());
        }
        let paths: BTreeSet<String> = names.strs().map(|name| format!("{parent}/{name}")).collect();
        let own = |known: &&Known| usize::from(known.label.client) == client;
        let own = self.known.iter().filter(own).filter(|known| known.path.starts_with(parent));
        let newest = own.map(|known| known.created).max().unwrap_or(Zxid(i64::MAX));
        let ahead = |known: &&Known| known.created <= newest && paths.contains(&known.path);
        (0, self.known.iter().filter(ahead).map(|known| known.label).collect())
    }

    pub(super) fn get(&self, label: Label) -> Option<&Known> {
        self.known.iter().find(|known| known.label == label)
    }

    /// Those that exist, in the order of creation.
    pub(super) fn existing(&self) -> impl Iterator<Item = &Known> {
        self.known.iter().filter(|known| known.exists)
    }
}
