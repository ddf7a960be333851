//! A resource that checks fencing tokens, and remembers everything that a lock should have prevented.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

/// What a lock protects in these tests.
#[derive(Debug, Default)]
pub struct Register(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Whoever is inside, by token.
    inside: Vec<i64>,
    highest: i64,
    entered: Vec<i64>,
    violations: Vec<Violation>,
}

/// Something that a lock should have prevented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// Somebody came in while somebody else was inside.
    Overlap {
        /// Who came.
        token: i64,
        /// Who was inside.
        inside: i64,
    },
    /// Somebody came with a token that is not larger than all before.
    Stale {
        /// The token.
        token: i64,
        /// The largest one before.
        highest: i64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap { token, inside } => write!(f, "{token} came in with {inside} inside"),
            Self::Stale { token, highest } => write!(f, "{token} came after {highest}"),
        }
    }
}

impl Register {
    /// Somebody begins to use the resource.
    pub fn enter(&self, token: i64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let highest = state.highest;
        if token <= highest {
            state.violations.push(Violation::Stale { token, highest });
        }
        for inside in state.inside.clone() {
            state.violations.push(Violation::Overlap { token, inside });
        }
        state.highest = highest.max(token);
        state.inside.push(token);
        state.entered.push(token);
    }

    /// Somebody stops using the resource, by will or by having lost the lock.
    pub fn leave(&self, token: i64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.inside.retain(|&inside| inside != token);
    }

    /// How often it has been used.
    #[must_use]
    pub fn entered(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entered.len()
    }

    /// Asserts that nothing has happened that should not.
    ///
    /// # Panics
    /// With the first violations, if there were any.
    #[track_caller]
    pub fn assert_clean(&self) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shown: Vec<_> = state.violations.iter().take(5).map(ToString::to_string).collect();
        assert!(shown.is_empty(), "{} violations: {shown:?}", state.violations.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_sequence_is_clean() {
        let register = Register::default();
        for token in [1, 5, 9] {
            register.enter(token);
            register.leave(token);
        }
        register.assert_clean();
        assert_eq!(register.entered(), 3);
    }

    #[test]
    #[should_panic(expected = "1 violations: [\"6 came in with 5 inside\"]")]
    fn an_overlap_is_noticed() {
        let register = Register::default();
        register.enter(5);
        register.enter(6);
        register.assert_clean();
    }

    #[test]
    #[should_panic(expected = "1 violations: [\"5 came after 5\"]")]
    fn a_stale_token_is_noticed() {
        let register = Register::default();
        register.enter(5);
        register.leave(5);
        register.enter(5);
        register.assert_clean();
    }
}
