//! The kinds of watches that servers distinguish.

use super::intent::WatchBy;
use crate::code::ErrorCode;

/// The kind that a server stores a watch as, which determines how to arm it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// On the data of a node that existed.
    Data,
    /// On a node that was missing.
    Exist,
    /// On the set of children.
    Child,
    /// Persistent.
    Persistent,
    /// Persistent and recursive.
    Recursive,
}

impl Kind {
    /// The kinds that a request can register. Equal for requests that share one watch of the
    /// server.
    pub(crate) const fn registered_by(by: WatchBy) -> &'static [Self] {
        match by {
            WatchBy::Data | WatchBy::Exists => &[Self::Data, Self::Exist],
            WatchBy::Children => &[Self::Child],
            WatchBy::Persistent => &[Self::Persistent],
            WatchBy::Recursive => &[Self::Recursive],
        }
    }

    /// The kind that a request registers if it is answered with `code`; `None` if none.
    pub(crate) const fn registered(by: WatchBy, code: ErrorCode) -> Option<Self> {
        match (by, code) {
            (WatchBy::Data | WatchBy::Exists, ErrorCode::OK) => Some(Self::Data),
            (WatchBy::Exists, ErrorCode::NO_NODE) => Some(Self::Exist),
            (WatchBy::Children, ErrorCode::OK) => Some(Self::Child),
            (WatchBy::Persistent, ErrorCode::OK) => Some(Self::Persistent),
            (WatchBy::Recursive, ErrorCode::OK) => Some(Self::Recursive),
            _ => None,
        }
    }
}

/// A value for each kind, in the order in which watches are restored.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByKind<T> {
    pub(crate) data: T,
    pub(crate) exist: T,
    pub(crate) child: T,
    pub(crate) persistent: T,
    pub(crate) recursive: T,
}

impl<T> ByKind<T> {
    pub(crate) const fn of(&self, kind: Kind) -> &T {
        match kind {
            Kind::Data => &self.data,
            Kind::Exist => &self.exist,
            Kind::Child => &self.child,
            Kind::Persistent => &self.persistent,
            Kind::Recursive => &self.recursive,
        }
    }

    pub(crate) const fn of_mut(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::Data => &mut self.data,
            Kind::Exist => &mut self.exist,
            Kind::Child => &mut self.child,
            Kind::Persistent => &mut self.persistent,
            Kind::Recursive => &mut self.recursive,
        }
    }

    pub(crate) const fn each_mut(&mut self) -> [(Kind, &mut T); 5] {
        let Self { data, exist, child, persistent, recursive } = self;
        [
            (Kind::Data, data),
            (Kind::Exist, exist),
            (Kind::Child, child),
            (Kind::Persistent, persistent),
            (Kind::Recursive, recursive),
        ]
    }
}

impl<T> IntoIterator for ByKind<T> {
    type Item = T;
    type IntoIter = core::array::IntoIter<T, 5>;

    fn into_iter(self) -> Self::IntoIter {
        [self.data, self.exist, self.child, self.persistent, self.recursive].into_iter()
    }
}
