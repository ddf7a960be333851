//! The subscribers of one watch: nearly always a single one, which is stored inline without an allocation.

use alloc::{
    string::String,
    vec::{self, Vec},
};
use core::{iter::Chain, mem, option, slice};

/// The receiver of a watch's notices. The session only carries it.
pub trait Watcher: Clone {
    /// Whether the receiver is gone, so that the session may forget the watcher.
    fn is_gone(&self) -> bool {
        false
    }
}

/// Plain values, as used by simulators and tests, are never gone.
impl Watcher for u64 {}
impl Watcher for String {}
impl Watcher for () {}

/// The watchers of one watch.
#[derive(Clone, Debug)]
pub(crate) enum Subscribers<W> {
    One(W),
    Any(Vec<W>),
}

impl<W> Default for Subscribers<W> {
    fn default() -> Self {
        Self::Any(Vec::new())
    }
}

impl<W> Subscribers<W> {
    pub(crate) fn push(&mut self, watcher: W) {
        *self = match mem::take(self) {
            Self::One(first) => Self::Any(Vec::from([first, watcher])),
            Self::Any(none) if none.is_empty() => Self::One(watcher),
            Self::Any(mut some) => {
                some.push(watcher);
                Self::Any(some)
            }
        };
    }

    /// Forgets all but those that `stays` picks. Returns whether there are any left.
    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&W) -> bool) -> bool {
        match self {
            Self::One(watcher) if !stays(watcher) => *self = Self::default(),
            Self::One(_) => {}
            Self::Any(watchers) => watchers.retain(stays),
        }
        !self.as_slice().is_empty()
    }

    pub(crate) fn as_slice(&self) -> &[W] {
        match self {
            Self::One(watcher) => slice::from_ref(watcher),
            Self::Any(watchers) => watchers.as_slice(),
        }
    }
}

impl<W> IntoIterator for Subscribers<W> {
    type Item = W;
    type IntoIter = Chain<option::IntoIter<W>, vec::IntoIter<W>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, any) = match self {
            Self::One(watcher) => (Some(watcher), Vec::new()),
            Self::Any(watchers) => (None, watchers),
        };
        one.into_iter().chain(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribers_stay_ordered_after_removals() {
        let mut subscribers = Subscribers::default();
        assert_eq!(subscribers.as_slice(), []);
        for (number, there) in [(1, &[1][..]), (2, &[1, 2]), (3, &[1, 2, 3])] {
            subscribers.push(number);
            assert_eq!(subscribers.as_slice(), there);
        }
        assert!(subscribers.retain(|&number| number != 2));
        assert_eq!(subscribers.clone().into_iter().collect::<Vec<_>>(), [1, 3]);
        assert!(subscribers.retain(|&number| number == 3));
        assert!(!subscribers.retain(|_| false));

        subscribers.push(4);
        assert!(subscribers.retain(|_| true));
        assert_eq!(subscribers.clone().into_iter().collect::<Vec<_>>(), [4]);
        assert!(!subscribers.retain(|_| false));
        assert_eq!(subscribers.as_slice(), []);
    }
}
