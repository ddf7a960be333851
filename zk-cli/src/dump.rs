//! A node on a line of a file, as `zk export` writes it and `zk import` reads it.

use serde::{Deserialize, Serialize};
use zk_client::path::join;

use crate::render::Data;

/// A node, relative to the top of what is exported.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Node {
    /// Empty for the top itself.
    pub(crate) path: String,
    #[serde(flatten)]
    pub(crate) data: Data,
    /// Who may do what, if that is part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) acl: Option<Vec<String>>,
}

/// How many nodes are under way at once: data can be a megabyte each.
pub(crate) const BATCH: usize = 64;

/// The path of a node below `top`, as a file has it.
pub(crate) fn relative<'a>(top: &str, path: &'a str) -> &'a str {
    path.strip_prefix(top.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/')
}

/// The other way round.
pub(crate) fn absolute(top: &str, path: &str) -> String {
    if path.is_empty() { top.to_owned() } else { join(top, path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_below_the_top_wherever_that_is() {
        for (top, path, short) in [("/a", "/a/b/c", "b/c"), ("/", "/a", "a"), ("/a", "/a", "")] {
            assert_eq!(relative(top, path), short);
            assert_eq!(absolute(top, short), path);
        }
    }
}
