//! Quotas: limits on subtrees, kept in nodes below `/zookeeper/quota`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use bytes::Bytes;

const ROOT: &str = "/zookeeper/quota";
pub(super) const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";

/// Which subtrees have a quota.
#[derive(Clone, Debug, Default)]
pub(super) struct Quotas {
    paths: BTreeSet<Box<str>>,
}

impl Quotas {
    pub(super) fn node_created(&mut self, path: &str) {
        if let Some(subtree) = subtree_of_limits(path) {
            self.paths.insert(subtree.into());
        }
    }

    pub(super) fn node_deleted(&mut self, path: &str) {
        if let Some(subtree) = subtree_of_limits(path) {
            self.paths.remove(subtree);
        }
    }

    /// The subtree with a quota that a path is in, the innermost one.
    pub(super) fn subtree_of(&self, path: &str) -> Option<&str> {
        if self.paths.is_empty() {
            return None;
        }
        zk_proto::path::ancestors(path).find_map(|above| self.paths.get(above)).map(|path| &**path)
    }

    /// Where the counts of the subtree are kept that a path is in.
    pub(super) fn stats_of(&self, path: &str) -> Option<String> {
        self.subtree_of(path).map(stats_path)
    }
}

pub(super) fn stats_path(subtree: &str) -> String {
    format!("{ROOT}{subtree}/{STATS}")
}

pub(super) fn limits_path(subtree: &str) -> String {
    format!("{ROOT}{subtree}/{LIMITS}")
}

fn subtree_of_limits(path: &str) -> Option<&str> {
    let subtree = path.strip_prefix(ROOT)?.strip_suffix(LIMITS)?.strip_suffix('/')?;
    (!subtree.is_empty()).then_some(subtree)
}

/// The subtree whose counts a node keeps; `None` if it is no such node.
pub(super) fn subtree_of_stats(path: &str) -> Option<&str> {
    path.strip_prefix(ROOT)?.strip_suffix(STATS)?.strip_suffix('/')
}

/// Numbers as they stand in both nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Track(BTreeMap<String, i64>);

const COUNT: &str = "count";
const BYTES: &str = "bytes";

impl Track {
    /// Numbers of a node, if that is what it holds.
    pub(super) fn parse(data: Option<&[u8]>) -> Option<Self> {
        let text = String::from_utf8_lossy(data?);
        let mut numbers = BTreeMap::new();
        if text.is_empty() {
            return Some(Self(numbers));
        }
        for pair in text.split([',', ';']).filter(|pair| !pair.is_empty()) {
            let (key, rest) = pair.split_once('=')?;
            // What follows a second sign is not looked at.
            let number = rest.split('=').next().unwrap_or_default();
            let number = if number.is_empty() && !rest.is_empty() { "-1" } else { number };
            numbers.insert(key.to_owned(), number.parse().ok()?);
        }
        Some(Self(numbers))
    }

    fn number(&self, key: &str) -> i64 {
        self.0.get(key).copied().unwrap_or(-1)
    }

    fn print(&self) -> String {
        let mut text = format!("{COUNT}={},{BYTES}={}", self.number(COUNT), self.number(BYTES));
        let others = self.0.iter().filter(|(key, _)| ![COUNT, BYTES].contains(&&***key));
        for (place, (key, number)) in others.enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{};{key}={number}", if place == 0 { "=" } else { "" });
        }
        text
    }

    /// Whether these limits refuse so many more nodes and bytes than these counts tell of.
    pub(super) fn refuses(&self, stats: &Self, nodes: i64, bytes: i64) -> bool {
        let over = |limit: &str, key: &str, more: i64| {
            let limit = self.number(limit);
            more != 0 && limit > -1 && stats.number(key).saturating_add(more) > limit
        };
        over("countHardLimit", COUNT, nodes) || over("byteHardLimit", BYTES, bytes)
    }

    /// Whether there is a limit that so many more nodes and bytes could exceed, be it a soft one.
    pub(super) fn concerns(&self, nodes: i64, bytes: i64) -> bool {
        let set = |hard: &str, soft: &str| self.number(hard) > -1 || self.number(soft) > -1;
        (nodes != 0 && set("countHardLimit", COUNT)) || (bytes != 0 && set("byteHardLimit", BYTES))
    }
}

/// The counts of a node that keeps some.
pub(super) fn counts(nodes: i64, bytes: i64) -> Bytes {
    Track([(COUNT.to_owned(), nodes), (BYTES.to_owned(), bytes)].into()).print().into()
}

/// The counts with something added. What holds no counts stays as it is.
pub(super) fn counted(data: Option<&[u8]>, nodes: i64, bytes: i64) -> Option<Bytes> {
    let mut track = Track::parse(data)?;
    for (key, more) in [(COUNT, nodes), (BYTES, bytes)] {
        track.0.insert(key.to_owned(), track.number(key).saturating_add(more));
    }
    Some(track.print().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_numbers_round_trip_as_on_servers() {
        let text = b"count=-1,bytes=-1=;byteHardLimit=12;countHardLimit=3";
        let track = Track::parse(Some(text)).expect("numbers");
        assert_eq!(track.print().as_bytes(), text);
        assert_eq!(Track::parse(Some(b"")).expect("nothing").print(), "count=-1,bytes=-1");
        assert_eq!(Track::parse(Some(b"nonsense")), None);
        assert_eq!(Track::parse(None), None);
    }

    #[test]
    fn only_hard_limits_refuse() {
        let track = |text: &str| Track::parse(Some(text.as_bytes())).expect("numbers");
        let stats = track("count=2,bytes=10");
        assert!(!track("count=2,bytes=10").refuses(&stats, 1, 1));
        assert!(track("countHardLimit=2").refuses(&stats, 1, 0));
        assert!(!track("countHardLimit=2").refuses(&stats, 0, 5));
        assert!(track("byteHardLimit=3").refuses(&stats, 0, -1), "still above");
    }
}
