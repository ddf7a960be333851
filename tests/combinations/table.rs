//! What has come of the cells, in numbers.

use std::{collections::BTreeMap, fmt};

use crate::combinations::{
    cell::{Cell, Outcome, Way},
    trouble::Trouble,
};

/// Cells that may miss their trouble, of a thousand.
const MISSED_MAX: usize = 10;

/// Violated invariants that are reported in full.
const TOLD_MAX: usize = 200;

/// Cells that had the trouble they were to have, and how many of them broke a promise.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    met: usize,
    broken: usize,
}

impl Count {
    fn add(&mut self, is_broken: bool) {
        self.met += 1;
        self.broken += usize::from(is_broken);
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self { met, broken: 0 } => met.to_string(),
            Self { met, broken } => format!("{met} ({broken})"),
        };
        f.pad(&text)
    }
}

/// What has come of the cells.
#[derive(Debug, Default)]
pub(crate) struct Table {
    calm: Count,
    single: BTreeMap<(&'static str, Trouble), Count>,
    double: Count,
    ways: BTreeMap<Way, Count>,
    missed: Vec<String>,
    broken: Vec<String>,
}

impl Table {
    pub(crate) fn record(&mut self, cell: &Cell<'_>, outcome: &Outcome) {
        let Outcome { met, promises } = outcome;
        let is_broken = promises.is_err();
        let first = cell.troubles.first.map(|(_, trouble)| trouble);
        let has_missed = match (first, cell.troubles.second) {
            (None, _) => false,
            (Some(_), None) => !met.first,
            (Some(_), Some(_)) => !met.second,
        };
        if has_missed {
            self.missed.push(cell.to_string());
            return;
        }
        match (first, cell.troubles.second) {
            (None, _) => self.calm.add(is_broken),
            (Some(_), Some(_)) => self.double.add(is_broken),
            (Some(trouble), None) => {
                self.single.entry((cell.play.recipe, trouble)).or_default().add(is_broken);
            }
        }
        self.ways.entry(cell.way).or_default().add(is_broken);
        if let Err(text) = promises {
            self.broken.push(format!("{cell}: {text}"));
        }
    }

    fn met(&self) -> usize {
        self.ways.values().map(|count| count.met).sum()
    }

    /// Fails if a promise was broken, or if too many cells have had no trouble.
    #[track_caller]
    pub(crate) fn judge(mut self) {
        self.broken.sort();
        let (met, broken, missed) = (self.met(), self.broken.len(), self.missed.len());
        let text = self.broken.into_iter().take(TOLD_MAX).collect::<Vec<_>>().join("\n");
        assert!(
            broken == 0,
            "{broken} of {met} cells broke a promise; one of them alone:\n\
             ZK_CELL='<its name>' cargo test -p zk-tests --test long combinations:: -- --nocapture\n{text}"
        );
        assert!(met > 0, "no cell has such a name");
        let missed_max = (met + missed) * MISSED_MAX / 1000;
        assert!(missed <= missed_max, "{missed} cells had no trouble: {:?}", self.missed);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "cells that met their trouble, and in brackets those of them that broke a promise"
        )?;
        write!(f, "{:25}", "")?;
        for trouble in Trouble::ALL {
            write!(f, "{:>15}", format!("{trouble:?}"))?;
        }
        writeln!(f)?;
        let recipes: std::collections::BTreeSet<_> =
            self.single.keys().map(|(it, _)| *it).collect();
        for recipe in recipes {
            write!(f, "{recipe:25}")?;
            for trouble in Trouble::ALL {
                let count = self.single.get(&(recipe, trouble)).copied().unwrap_or_default();
                write!(f, "{count:>15}")?;
            }
            writeln!(f)?;
        }
        for (way, count) in &self.ways {
            writeln!(f, "{:25}{count:>15}", format!("{way:?}"))?;
        }
        writeln!(f, "{:25}{:>15}", "no trouble", self.calm)?;
        writeln!(f, "{:25}{:>15}", "two troubles", self.double)?;
        write!(f, "{:25}{:>15}", "trouble not met", self.missed.len())
    }
}
