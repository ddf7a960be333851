//! The node that paths are relative to.

use std::sync::{Arc, Mutex, PoisonError};

use zk_client::path::{PathError, ZkPath};

/// Where the shell is. Clones are of the same shell.
#[derive(Clone, Debug)]
pub(crate) struct Place(Arc<Mutex<ZkPath>>);

impl Place {
    pub(crate) fn new(path: ZkPath) -> Self {
        Self(Arc::new(Mutex::new(path)))
    }

    pub(crate) fn path(&self) -> ZkPath {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn enter(&self, path: ZkPath) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }

    /// The node that is meant here. A slash at the end means nothing.
    pub(crate) fn node(&self, text: &str) -> Result<ZkPath, PathError> {
        let path = self.resolved(text);
        match path.strip_suffix('/') {
            None | Some("") => path.parse(),
            Some(path) => path.parse(),
        }
    }

    /// The same for what may go on with a number: a slash at the end stays.
    pub(crate) fn resolved(&self, text: &str) -> String {
        let path = if text.starts_with('/') {
            text.to_owned()
        } else {
            format!("{}/{text}", self.path().as_str().trim_end_matches('/'))
        };
        let is_relative = |part: &str| matches!(part, "." | "..");
        if !path.split('/').any(is_relative) {
            return path;
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/').skip(1) {
            match part {
                "." => {}
                // Above the root is the root.
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        format!("/{}", parts.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_place() {
        for (place, text, expected) in [
            ("/", "a", "/a"),
            ("/", ".", "/"),
            ("/", "..", "/"),
            ("/", "", "/"),
            ("/a/b", "c/d", "/a/b/c/d"),
            ("/a/b", "..", "/a"),
            ("/a/b", "../../../c", "/c"),
            ("/a/b", "./c/", "/a/b/c"),
            ("/a/b", "", "/a/b"),
            ("/a/b", "/", "/"),
            ("/a/b", "/c/../d", "/d"),
        ] {
            let place = Place::new(place.parse().unwrap());
            assert_eq!(place.node(text).unwrap().as_str(), expected, "{text:?} in {place:?}");
        }
        let place = Place::new("/a".parse().unwrap());
        assert_eq!(place.resolved("b/"), "/a/b/");
        assert!(place.node("b//c").is_err() && place.node("\u{7}").is_err());
    }
}
