//! What a server did, and how it is levelled.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use super::step::Name;

/// What a server did in the course of a sequence: for each step, a line for each connection that
/// heard something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// By step. All lines of a step begin with the connection's letter.
    pub steps: Vec<Vec<String>>,
}

impl Record {
    /// The first step at which two servers differ.
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        let steps = self.steps.len().max(other.steps.len());
        (0..steps).find(|&step| self.steps.get(step) != other.steps.get(step))
    }
}

/// A piece of what a server said, not yet levelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// What is compared as it is.
    Text(String),
    /// A transaction number.
    Zxid(i64),
    /// A time, and the transaction that it should be the time of.
    Time {
        millis: i64,
        zxid: i64,
    },
    Session(i64),
}

impl From<String> for Piece {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Piece {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// How events begin.
pub(super) const EVENT: &str = "event";

/// What was heard during one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    by: BTreeMap<Name, Vec<Vec<Piece>>>,
}

impl Heard {
    pub(super) fn push(&mut self, name: Name, pieces: Vec<Piece>) {
        self.by.entry(name).or_default().push(pieces);
    }

    /// Forgets in which order events came that stand side by side.
    pub(super) fn sort_events(&mut self) {
        let is_event = |line: &Vec<Piece>| line.first() == Some(&EVENT.into());
        for lines in self.by.values_mut() {
            let runs = lines.chunk_by_mut(|one, other| is_event(one) && is_event(other));
            runs.for_each(|run| run.sort_by_key(|line| format!("{line:?}")));
        }
    }
}

/// What is left of transaction numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zxids {
    /// Their order.
    Ranked,
    /// Whether there is one.
    Ignored,
}

/// Levels what was heard in all steps together.
pub(super) fn level(steps: &[Heard], root: &str, left: Zxids) -> Record {
    let pieces =
        || steps.iter().flat_map(|heard| heard.by.values().flatten()).flat_map(|line| line.iter());
    let zxids: BTreeSet<i64> = pieces()
        .filter_map(|piece| match piece {
            Piece::Zxid(zxid) if *zxid > 0 => Some(*zxid),
            _ => None,
        })
        .collect();
    let mut level = Level {
        ranks: match left {
            Zxids::Ranked => zxids.into_iter().zip(1..).collect(),
            Zxids::Ignored => zxids.into_iter().map(|zxid| (zxid, 0)).collect(),
        },
        times: BTreeMap::new(),
        sessions: BTreeMap::new(),
        root,
    };
    let line = |level: &mut Level<'_>, name: &Name, pieces: &Vec<Piece>| {
        let mut line = format!("{name:?}");
        for piece in pieces.iter().filter(|piece| **piece != Piece::Text(String::new())) {
            line.push(' ');
            level.spell(piece, &mut line);
        }
        line
    };
    let step = |heard: &Heard| {
        let heard = heard.by.iter().flat_map(|(name, lines)| lines.iter().map(move |l| (name, l)));
        heard.map(|(name, pieces)| line(&mut level, name, pieces)).collect()
    };
    Record { steps: steps.iter().map(step).collect() }
}

struct Level<'a> {
    ranks: BTreeMap<i64, usize>,
    times: BTreeMap<i64, i64>,
    sessions: BTreeMap<i64, usize>,
    root: &'a str,
}

impl Level<'_> {
    fn spell(&mut self, piece: &Piece, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match piece {
            Piece::Text(text) => write!(out, "{}", text.replace(self.root, "$")),
            Piece::Zxid(zxid) => match self.ranks.get(zxid) {
                Some(rank) => write!(out, "z{rank}"),
                None => write!(out, "{zxid}"),
            },
            Piece::Session(0) => write!(out, "-"),
            Piece::Session(id) => {
                let next = self.sessions.len();
                write!(out, "s{}", self.sessions.entry(*id).or_insert(next))
            }
            // All that a transaction does happens at one time.
            Piece::Time { millis, zxid } if *zxid > 0 => {
                let time = self.times.entry(*zxid).or_insert(*millis);
                write!(out, "{}", if time == millis { "=" } else { "!" })
            }
            Piece::Time { millis, .. } => write!(out, "{millis}"),
        };
    }
}
