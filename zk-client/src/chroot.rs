//! A client's chroot: adds the prefix to paths, and removes it, in one place.

use std::{borrow::Cow, sync::Arc};

use zk_proto::path::{self, PathError, ZkPath};

/// The path that all paths of a client are relative to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chroot(Option<Arc<str>>);

impl Chroot {
    pub(crate) fn new(path: &ZkPath) -> Self {
        Self((path.as_str() != "/").then(|| Arc::from(path.as_str())))
    }

    /// A chroot below this one.
    pub(crate) fn below(&self, path: &str) -> Result<Self, PathError> {
        let path: ZkPath = path.parse()?;
        Ok(Self::new(&self.absolute(&path).parse()?))
    }

    /// The absolute path, as servers know it.
    pub(crate) fn absolute<'a>(&self, path: &'a str) -> Cow<'a, str> {
        match &self.0 {
            None => Cow::Borrowed(path),
            Some(root) if path == "/" => Cow::Owned(root.to_string()),
            Some(root) => Cow::Owned([root, path].concat()),
        }
    }

    /// The bytes that it adds to a path.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |root| root.len())
    }

    /// A prefix of absolute paths. All that is inside begins with the chroot, which is inside itself.
    pub(crate) fn prefix(&self, prefix: &str) -> String {
        match &self.0 {
            Some(root) if prefix == "/" => root.to_string(),
            root => [root.as_deref().unwrap_or_default(), prefix].concat(),
        }
    }

    /// Whether an absolute path is inside the chroot.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.strip(path).is_some()
    }

    /// The path relative to the chroot; unchanged if it is outside.
    pub(crate) fn relative<'a>(&self, path: &'a str) -> &'a str {
        self.strip(path).unwrap_or(path)
    }

    /// The path relative to the chroot, if it is inside.
    fn strip<'a>(&self, path: &'a str) -> Option<&'a str> {
        let Some(root) = &self.0 else { return Some(path) };
        match path.strip_prefix(&**root)? {
            "" => Some("/"),
            below => below.starts_with('/').then_some(below),
        }
    }

    /// Checks a caller's path and makes it absolute.
    #[inline]
    pub(crate) fn resolve<'a>(
        &self,
        path: &'a str,
        naming: path::Naming,
    ) -> Result<Cow<'a, str>, PathError> {
        path::check(path, naming)?;
        match &self.0 {
            // A number is to be appended below the root, whatever that is called.
            Some(root) if path == "/" && naming == path::Naming::Sequential => {
                Ok(Cow::Owned([root, path].concat()))
            }
            _ => Ok(self.absolute(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chroot_applies_at_component_boundaries() {
        let app = Chroot::new(&"/app".parse().unwrap());
        for (inside, outside) in [("/", "/app"), ("/a/b", "/app/a/b")] {
            assert_eq!(app.absolute(inside), outside);
            assert_eq!(app.relative(outside), inside);
        }
        assert_eq!(app.relative("/apple"), "/apple");
        assert_eq!(app.relative("/"), "/");
        assert_eq!(app.below("/x").unwrap().absolute("/y"), "/app/x/y");
        assert_eq!(app.below("/").unwrap(), app);
    }

    #[test]
    fn without_a_chroot_paths_stay_as_they_are() {
        let root = Chroot::new(&ZkPath::root());
        assert_eq!((root.absolute("/a"), root.relative("/a")), ("/a".into(), "/a"));
    }
}
