//! What has happened, in numbers, and what should not have.

use std::{collections::BTreeMap, fmt};

use super::claim::{Claim, Mode, Party};

/// How many violations are reported; all are counted.
const TOLD_MAX: usize = 20;

/// Something that a lock should have prevented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// See the module.
    Overlap {
        /// The one that came.
        newcomer: Claim,
        /// The one that was inside.
        inside: Claim,
    },
    /// See the module.
    TooMany {
        /// The one that came.
        newcomer: Claim,
        /// How many were inside.
        inside: usize,
    },
    /// See the module.
    OutOfOrder {
        /// The one that came.
        newcomer: Claim,
        /// The largest token before.
        highest: i64,
    },
    /// See the module.
    JumpedIn {
        /// The one that went on.
        party: Party,
        /// The node that it goes on with.
        node: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap { newcomer, inside } => {
                write!(f, "{newcomer} came in with {inside} inside")
            }
            Self::TooMany { newcomer, inside } => {
                write!(f, "{newcomer} came in with {inside} inside already")
            }
            Self::OutOfOrder { newcomer, highest } => {
                write!(f, "{newcomer} came after {highest}")
            }
            Self::JumpedIn { party, node } => {
                write!(f, "{party} went on with {node} after somebody else had been let in")
            }
        }
    }
}

/// Whose visit it is, and what for.
pub type Who = (Party, Mode);

/// What has happened, in numbers.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Visits.
    pub entered: BTreeMap<Who, u64>,
    /// One visit after the other, of which at least one was alone: first party, second party.
    pub handed_over: BTreeMap<(Who, Who), u64>,
    /// Visits that began beside one of another party: the one inside, the one that came.
    pub shared: BTreeMap<(Who, Who), u64>,
    /// Those inside that were found to have lost their nodes when another contender came.
    pub superseded: BTreeMap<Party, u64>,
    /// What was refused, as another contender had been there since.
    pub refused: BTreeMap<Party, u64>,
    /// Downgrades of Curator's that jumped in.
    pub jumped_in: u64,
    /// What contenders have reported, by their own words.
    pub notes: BTreeMap<(Party, String), u64>,
    /// What should not have happened.
    pub violations: u64,
    /// The first of those.
    pub told: Vec<Violation>,
}

impl Counts {
    /// How often a party has entered, in whatever mode.
    #[must_use]
    pub fn entered_by(&self, party: Party) -> u64 {
        self.entered.iter().filter(|((who, _), _)| *who == party).map(|(_, count)| count).sum()
    }

    /// How many visits there were.
    #[must_use]
    pub fn entered_in_all(&self) -> u64 {
        self.entered.values().sum()
    }

    pub(super) fn violated(&mut self, violation: Violation) {
        self.violations += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(violation);
        }
    }
}
