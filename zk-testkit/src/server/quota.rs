//! Quotas: limits on subtrees, kept in nodes below `/zookeeper/quota`.

use std::{collections::BTreeSet, fmt::Write as _};

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
        if self.paths.is_empty() || path.starts_with("/zookeeper") {
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

/// Numbers as they stand in both nodes; -1 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) count: i64,
    pub(super) bytes: i64,
    pub(super) count_hard: i64,
    pub(super) bytes_hard: i64,
}

impl Track {
    pub(super) fn parse(data: &[u8]) -> Self {
        let mut track = Self { count: -1, bytes: -1, count_hard: -1, bytes_hard: -1 };
        for pair in String::from_utf8_lossy(data).split([',', ';']) {
            let Some((key, number)) = pair.split_once('=') else { continue };
            let Ok(number) = number.trim_end_matches('=').parse() else { continue };
            match key {
                "count" => track.count = number,
                "bytes" => track.bytes = number,
                "countHardLimit" => track.count_hard = number,
                "byteHardLimit" => track.bytes_hard = number,
                _ => {}
            }
        }
        track
    }

    fn print(self) -> String {
        let mut text = format!("count={},bytes={}", self.count, self.bytes);
        if self.count_hard != -1 || self.bytes_hard != -1 {
            let _ = write!(
                text,
                "=;byteHardLimit={};countHardLimit={}",
                self.bytes_hard, self.count_hard
            );
        }
        text
    }
}

/// The counts with something added.
pub(super) fn counted(data: Option<&[u8]>, nodes: i64, bytes: i64) -> Bytes {
    let mut track = Track::parse(data.unwrap_or_default());
    track.count = track.count.saturating_add(nodes);
    track.bytes = track.bytes.saturating_add(bytes);
    track.print().into()
}
