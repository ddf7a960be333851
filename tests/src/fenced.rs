//! A resource that checks fencing tokens, and remembers everything that a lock should have prevented.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use zk_locks::FencingToken;

/// How many violations are remembered; the others are only counted.
const SHOWN_MAX: usize = 5;

/// What a lock protects in these tests: for one at a time, unless it is [shared](FencedResource::shared).
#[derive(Debug)]
pub struct FencedResource {
    /// How many may share it.
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    inside: Vec<(Token, Access)>,
    /// Of all that came.
    highest: Token,
    /// Of visitors that came to be alone.
    highest_alone: Token,
    entered: usize,
    violations: usize,
    /// The first of them.
    shown: Vec<Violation>,
}

/// What a visitor shows: a fencing token, in both its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(i64, u32);

impl From<i64> for Token {
    fn from(number: i64) -> Self {
        Self(number, 0)
    }
}

impl From<(i64, u32)> for Token {
    fn from((number, local): (i64, u32)) -> Self {
        Self(number, local)
    }
}

impl From<FencingToken> for Token {
    fn from(token: FencingToken) -> Self {
        Self(token.get(), token.local())
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(number, 0) => write!(f, "{number}"),
            Self(number, local) => write!(f, "{number}.{local}"),
        }
    }
}

/// With whom a visitor uses the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Without others.
    Alone,
    /// With others who share it.
    Shared,
}

/// Something that a lock should have prevented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A visitor came in while another one was inside, and one of them was to be alone.
    Overlap {
        /// The one that came.
        token: Token,
        /// The one that was inside.
        inside: Token,
    },
    /// More share the resource than may.
    Crowd {
        /// The one that came.
        token: Token,
        /// How many are inside now.
        inside: usize,
    },
    /// A visitor came with a token that is not larger than all that it should be larger than.
    Stale {
        /// The token.
        token: Token,
        /// The largest one before.
        highest: Token,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap { token, inside } => write!(f, "{token} came in with {inside} inside"),
            Self::Crowd { token, inside } => write!(f, "{token} came in, which makes {inside}"),
            Self::Stale { token, highest } => write!(f, "{token} came after {highest}"),
        }
    }
}

impl Default for FencedResource {
    fn default() -> Self {
        Self::shared(0)
    }
}

impl FencedResource {
    /// A resource that so many may share at a time.
    #[must_use]
    pub fn shared(most: usize) -> Self {
        Self { most, state: Mutex::default() }
    }

    /// A visitor begins to use the resource alone.
    pub fn enter(&self, token: impl Into<Token>) {
        self.admit(token.into(), Access::Alone);
    }

    /// A visitor stops using the resource, by will or by having lost the lock.
    pub fn leave(&self, token: impl Into<Token>) {
        let token = token.into();
        let mut state = self.state();
        if let Some(place) = state.inside.iter().position(|(inside, _)| *inside == token) {
            state.inside.swap_remove(place);
        }
    }

    /// A visitor uses the resource for as long as the returned value lives.
    #[must_use = "dropping it ends the visit"]
    pub fn visit(&self, token: impl Into<Token>, access: Access) -> Visit<'_> {
        let token = token.into();
        self.admit(token, access);
        Visit { resource: self, token }
    }

    /// A token is to be larger than those of all earlier visitors; of those that share the resource it is
    /// enough if it is not smaller than those of all who were alone.
    fn admit(&self, token: Token, access: Access) {
        let mut state = self.state();
        let State { highest, highest_alone, .. } = *state;
        match access {
            Access::Alone if token <= highest => {
                state.violate(Violation::Stale { token, highest });
            }
            Access::Shared if token < highest_alone => {
                state.violate(Violation::Stale { token, highest: highest_alone });
            }
            Access::Alone | Access::Shared => {}
        }
        for (inside, whose) in state.inside.clone() {
            if access == Access::Alone || whose == Access::Alone {
                state.violate(Violation::Overlap { token, inside });
            }
        }
        state.inside.push((token, access));
        if access == Access::Alone {
            state.highest_alone = highest_alone.max(token);
        } else if state.inside.len() > self.most {
            let inside = state.inside.len();
            state.violate(Violation::Crowd { token, inside });
        }
        state.highest = highest.max(token);
        state.entered += 1;
    }

    /// How often it has been used.
    #[must_use]
    pub fn entered(&self) -> usize {
        self.state().entered
    }

    /// How often something has happened that should not, and the first times in words.
    #[must_use]
    pub fn violations(&self) -> (usize, Vec<String>) {
        let state = self.state();
        (state.violations, state.shown.iter().map(ToString::to_string).collect())
    }

    /// Asserts that nothing has happened that should not.
    ///
    /// # Panics
    /// With the first violations, if there were any.
    #[track_caller]
    pub fn assert_clean(&self) {
        let (count, shown) = self.violations();
        assert!(count == 0, "{count} violations: {shown:?}");
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn violate(&mut self, violation: Violation) {
        self.violations += 1;
        if self.shown.len() < SHOWN_MAX {
            self.shown.push(violation);
        }
    }
}

/// One visitor's use of a [`FencedResource`].
#[derive(Debug)]
pub struct Visit<'a> {
    resource: &'a FencedResource,
    token: Token,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.resource.leave(self.token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_sequence_is_clean() {
        let resource = FencedResource::default();
        for token in [1, 5, 9] {
            resource.enter(token);
            resource.leave(token);
        }
        resource.assert_clean();
        assert_eq!(resource.entered(), 3);
    }

    #[test]
    #[should_panic(expected = "1 violations: [\"6 came in with 5 inside\"]")]
    fn an_overlap_is_noticed() {
        let resource = FencedResource::default();
        resource.enter(5);
        resource.enter(6);
        resource.assert_clean();
    }

    #[test]
    #[should_panic(expected = "1 violations: [\"5 came after 5\"]")]
    fn a_stale_token_is_noticed() {
        let resource = FencedResource::default();
        resource.enter(5);
        resource.leave(5);
        resource.enter(5);
        resource.assert_clean();
    }

    /// A reader that was a writer keeps its token, and older ones may read beside it.
    #[test]
    fn reader_tokens_may_equal_the_last_writers() {
        let resource = FencedResource::shared(3);
        drop(resource.visit(5, Access::Alone));
        let _downgraded = resource.visit(5, Access::Shared);
        let _later = resource.visit(8, Access::Shared);
        drop(resource.visit(6, Access::Shared));
        resource.assert_clean();
    }

    #[test]
    fn excess_and_late_visitors_are_reported() {
        let resource = FencedResource::shared(1);
        let reader = resource.visit(5, Access::Shared);
        let crowd = resource.visit(6, Access::Shared);
        drop((reader, crowd));
        let writer = resource.visit(9, Access::Alone);
        drop(resource.visit(10, Access::Shared));
        drop(writer);
        drop(resource.visit(8, Access::Shared));
        drop(resource.visit(Token(9, 1), Access::Alone));
        let expected = [
            "6 came in, which makes 2",
            "10 came in with 9 inside",
            "10 came in, which makes 2",
            "8 came after 9",
            "9.1 came after 10",
        ];
        assert_eq!(resource.violations(), (5, expected.map(str::to_owned).to_vec()));
    }
}
