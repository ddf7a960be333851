use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Deref;

use zk_proto::OpCode;

use super::frame::{Direction, Frame, Kind};

/// How many frames are remembered; the oldest are forgotten first. Counters go on.
const FRAMES_MAX: usize = 1 << 17;

/// A place in the order of frames: behind all that had arrived when it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(pub(super) u64);

/// What has passed.
#[derive(Debug, Default)]
pub(super) struct Log {
    frames: VecDeque<Frame>,
    counts: Counts,
    next_sequence: u64,
}

impl Log {
    pub(super) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    pub(super) fn enter(&mut self, frame: Frame) {
        self.next_sequence = frame.sequence + 1;
        self.counts.add(&frame);
        if self.frames.len() == FRAMES_MAX {
            self.frames.pop_front();
        }
        self.frames.push_back(frame);
    }

    /// Notes that a frame has been sent on. If nothing has happened since it arrived, that is one
    /// step together with its arrival.
    pub(super) fn departed(&mut self, sequence: u64) {
        let index = self.index(sequence);
        let frame = self.frames.get_mut(index).filter(|frame| frame.sequence == sequence);
        let Some(frame) = frame else {
            return; // Forgotten meanwhile.
        };
        if self.next_sequence == sequence + 1 {
            frame.departure = Some(sequence);
        } else {
            frame.departure = Some(self.next_sequence);
            self.next_sequence += 1;
        }
    }

    pub(super) fn since(&self, mark: Mark) -> impl Iterator<Item = &Frame> {
        self.frames.range(self.index(mark.0)..)
    }

    /// The first frame that is not before `sequence`.
    fn index(&self, sequence: u64) -> usize {
        self.frames.partition_point(|frame| frame.sequence < sequence)
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Forgets frames and counts; the order goes on, so that marks stay valid.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.counts = Counts::default();
    }
}

/// How many frames of each sort there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    by_sort: BTreeMap<(Direction, Kind, Option<OpCode>), u64>,
}

impl Counts {
    fn add(&mut self, frame: &Frame) {
        let sort = (frame.direction, frame.kind, frame.op);
        *self.by_sort.entry(sort).or_default() += 1;
    }

    /// Frames of a kind, both ways together.
    pub fn of(&self, kind: Kind) -> u64 {
        self.sum(|(_, k, _)| *k == kind)
    }

    /// Requests for an operation.
    pub fn requests(&self, op: OpCode) -> u64 {
        self.sum(|(_, k, o)| *k == Kind::Request && *o == Some(op))
    }

    /// Answers to requests for an operation.
    pub fn replies(&self, op: OpCode) -> u64 {
        self.sum(|(_, k, o)| *k == Kind::Reply && *o == Some(op))
    }

    /// Heartbeats that went this way.
    pub fn pings(&self, direction: Direction) -> u64 {
        self.sum(|(d, k, _)| *k == Kind::Ping && *d == direction)
    }

    fn sum(&self, counts: impl Fn(&(Direction, Kind, Option<OpCode>)) -> bool) -> u64 {
        let counted = self.by_sort.iter().filter(|(sort, _)| counts(sort));
        counted.map(|(_, count)| count).sum()
    }
}

/// Frames in the order in which the proxy saw them.
///
/// Prints one frame a line, so that it can be the message of an assertion.
#[derive(Clone, Default)]
pub struct Frames(Vec<Frame>);

impl Frames {
    /// How many frames of each sort there are.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for frame in &self.0 {
            counts.add(frame);
        }
        counts
    }

    /// Requests only, without heartbeats and handshakes.
    #[must_use]
    pub fn requests(&self) -> Self {
        self.filtered(|frame| frame.kind == Kind::Request)
    }

    /// Those of one connection.
    #[must_use]
    pub fn of_connection(&self, number: u64) -> Self {
        self.filtered(|frame| frame.connection == number)
    }

    /// How often a client waited for the server before it sent more.
    ///
    /// Requests that are sent together, or before a reply to earlier ones has been sent on, share
    /// a round trip. Heartbeats, notifications and handshakes do not count. Connections are
    /// counted by themselves and added up.
    ///
    /// A client that sends without waiting can be overtaken by a fast reply, so this is an upper
    /// bound; with a rule that holds the replies until all requests have been seen, it is exact.
    pub fn round_trips(&self) -> usize {
        let mut trips = 0;
        // Per connection, the last reply that the latest request may have seen.
        let mut seen: BTreeMap<u64, Option<u64>> = BTreeMap::new();
        for request in self.0.iter().filter(|frame| frame.kind == Kind::Request) {
            let replies = self.0.iter().filter(|frame| {
                frame.kind == Kind::Reply && frame.connection == request.connection
            });
            let latest = replies
                .filter(|reply| request.may_have_seen(reply))
                .filter_map(|reply| reply.departure)
                .max();
            if seen.insert(request.connection, latest) != Some(latest) {
                trips += 1;
            }
        }
        trips
    }

    fn filtered(&self, keep: impl Fn(&Frame) -> bool) -> Self {
        self.0.iter().filter(|frame| keep(frame)).cloned().collect()
    }
}

impl Deref for Frames {
    type Target = [Frame];

    fn deref(&self) -> &[Frame] {
        &self.0
    }
}

impl FromIterator<Frame> for Frames {
    fn from_iter<I: IntoIterator<Item = Frame>>(frames: I) -> Self {
        Self(frames.into_iter().collect())
    }
}

impl IntoIterator for Frames {
    type Item = Frame;
    type IntoIter = std::vec::IntoIter<Frame>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for frame in &self.0 {
            writeln!(f, "{frame}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}
