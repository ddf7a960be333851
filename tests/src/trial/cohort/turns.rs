//! What the book of the hall, and what went over the wire, say of turns and waits.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use zk_client::OpCode;
use zk_testkit::proxy::{Frames, Kind};

use super::hall::Visit;

/// A process's time with the lock, under one node.
#[derive(Debug)]
pub(super) struct Turn {
    process: usize,
    token: i64,
    /// Of its visits in the book.
    first: usize,
    pub(super) visits: usize,
    begun: Instant,
    ended: Instant,
    /// From the end of one visit to that of the next, or from the beginning to the first end: the longest.
    longest_visit: Duration,
    /// Whether others were to come after it.
    is_counted: bool,
}

/// How long a process waited for its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) time: Duration,
    /// What others did meanwhile.
    pub(super) visits: usize,
    pub(super) turns: usize,
}

/// What was asked of the servers by one process.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Requests but for the end of the session.
    requests: Vec<(Instant, OpCode)>,
    /// When the servers' answers to creates passed, by the transaction, which is the token.
    created: BTreeMap<i64, Instant>,
}

impl Asked {
    pub(super) fn in_frames(frames: &Frames) -> Self {
        let mut asked = Self::default();
        for frame in frames.iter() {
            match (frame.kind, frame.op, frame.zxid) {
                (Kind::Request, Some(op), _) if op != OpCode::CLOSE_SESSION => {
                    asked.requests.push((frame.at, op));
                }
                (Kind::Reply, Some(OpCode::CREATE2), Some(zxid)) => {
                    asked.created.insert(zxid.0, frame.at);
                }
                _ => {}
            }
        }
        asked
    }

    pub(super) fn requests(&self) -> usize {
        self.requests.len()
    }
}

/// The turns in a book.
pub(super) fn turns(book: &[Visit]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for (place, visit) in book.iter().enumerate() {
        match turns.last_mut().filter(|turn| turn.token == visit.token) {
            Some(turn) => {
                turn.longest_visit = turn.longest_visit.max(visit.left - turn.ended);
                turn.visits += 1;
                turn.ended = visit.left;
                turn.is_counted &= visit.is_counted;
            }
            None => turns.push(Turn {
                process: visit.process,
                token: visit.token,
                first: place,
                visits: 1,
                begun: visit.entered,
                ended: visit.left,
                longest_visit: visit.left - visit.entered,
                is_counted: visit.is_counted,
            }),
        }
    }
    turns
}

/// What processes waited for their turns, as long as all of them went on.
pub(super) fn waits(book: &[Visit], turns: &[Turn], asked: &[Asked]) -> Vec<Wait> {
    let counted = turns.iter().filter(|turn| turn.is_counted);
    let waits = counted.filter_map(|turn| {
        let created = *asked.get(turn.process)?.created.get(&turn.token)?;
        let before = book[..turn.first].iter().rev();
        let visits = before.take_while(|visit| visit.entered > created).count();
        let ahead = turns.iter().filter(|it| it.token < turn.token && it.ended > created).count();
        Some(Wait { time: turn.begun.saturating_duration_since(created), visits, turns: ahead })
    });
    waits.collect()
}

/// The longest of some times.
pub(super) fn longest(times: impl Iterator<Item = Duration>) -> Duration {
    times.max().unwrap_or_default()
}

/// The longest visit of all.
pub(super) fn longest_visit(turns: &[Turn]) -> Duration {
    longest(turns.iter().map(|turn| turn.longest_visit))
}

/// The longest time from the end of one turn to the beginning of the next.
pub(super) fn longest_change(turns: &[Turn]) -> Duration {
    let pairs = turns.iter().zip(turns.iter().skip(1));
    longest(pairs.map(|(one, next)| next.begun.saturating_duration_since(one.ended)))
}

/// What was asked by whose turn it was, from its first visit to its last, for each turn.
pub(super) fn asked_meanwhile<'a>(
    turns: &'a [Turn],
    asked: &'a [Asked],
) -> impl Iterator<Item = Vec<OpCode>> + 'a {
    turns.iter().map(|turn| {
        let requests = asked.get(turn.process).map_or(&[][..], |asked| &asked.requests);
        let meanwhile = requests.iter().filter(|(at, _)| turn.begun < *at && *at < turn.ended);
        meanwhile.map(|(_, op)| *op).collect()
    })
}
