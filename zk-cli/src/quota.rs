//! Limits on nodes and bytes, as servers keep them: `count=5,bytes=-1=;countHardLimit=7`.

use serde::Serialize;

use crate::args::Limit;

/// Where servers keep them, each below the path that it is for.
pub(crate) const ROOT: &str = "/zookeeper/quota";
/// The node with limits, and the one with what is used.
pub(crate) const LIMITS: &str = "zookeeper_limits";
pub(crate) const STATS: &str = "zookeeper_stats";

/// Limits, or what is used; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Numbers {
    pub(crate) nodes: Option<i64>,
    pub(crate) bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hard_nodes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hard_bytes: Option<i64>,
}

impl Numbers {
    /// What servers say. What is not understood is no limit, as with them.
    pub(crate) fn parse(data: &[u8]) -> Self {
        let text = String::from_utf8_lossy(data);
        let number = |key: &str| {
            let mut parts = text.split([',', ';']);
            let value = parts.find_map(|part| part.strip_prefix(key)?.strip_prefix('='))?;
            value.trim_end_matches('=').parse().ok().filter(|number| *number >= 0)
        };
        Self {
            nodes: number("count"),
            bytes: number("bytes"),
            hard_nodes: number("countHardLimit"),
            hard_bytes: number("byteHardLimit"),
        }
    }

    /// What servers understand. Those before 3.7 stop reading at the second equals sign.
    pub(crate) fn text(self) -> String {
        let number = |number: Option<i64>| number.unwrap_or(-1);
        let mut text = format!("count={},bytes={}", number(self.nodes), number(self.bytes));
        let hard = [("byteHardLimit", self.hard_bytes), ("countHardLimit", self.hard_nodes)];
        if self.hard_nodes.is_some() || self.hard_bytes.is_some() {
            text.push('=');
        }
        for (key, number) in hard {
            if let Some(number) = number {
                text.push_str(&format!(";{key}={number}"));
            }
        }
        text
    }

    /// With the numbers of another, where that has any.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            nodes: other.nodes.or(self.nodes),
            bytes: other.bytes.or(self.bytes),
            hard_nodes: other.hard_nodes.or(self.hard_nodes),
            hard_bytes: other.hard_bytes.or(self.hard_bytes),
        }
    }

    /// Without one of them, or all.
    pub(crate) fn without(self, which: Limit) -> Self {
        match which {
            Limit::All => Self::default(),
            Limit::Nodes => Self { nodes: None, ..self },
            Limit::Bytes => Self { bytes: None, ..self },
            Limit::HardNodes => Self { hard_nodes: None, ..self },
            Limit::HardBytes => Self { hard_bytes: None, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_they_are_read() {
        for text in [
            "count=-1,bytes=-1",
            "count=5,bytes=10",
            "count=-1,bytes=-1=;byteHardLimit=12;countHardLimit=3",
            "count=1,bytes=2=;countHardLimit=3",
        ] {
            assert_eq!(Numbers::parse(text.as_bytes()).text(), text);
        }
        assert_eq!(Numbers::parse(b"nonsense=;"), Numbers::default());
    }
}
