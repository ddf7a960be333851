//! One direction of one connection: what waits to be sent on, and until when.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use super::dissect::Piece;
use super::frame::Direction;
use super::rule::{Reaction, RuleId, Silence};
use super::shared::{Ending, State, Verdict};

/// Waiting bytes above which nothing more is read in this direction: TCP then slows the sender.
const QUEUE_LEN_MAX: usize = 16 << 20;

/// Portions in a second of what is written at a limited rate.
const PORTIONS: u64 = 50;

/// How late a portion may be for the next ones to come the earlier.
const LATE_MAX: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) direction: Direction,
    /// Bytes that are not a whole frame yet.
    pub(super) received: BytesMut,
    queue: VecDeque<Parcel>,
    queue_len: usize,
    /// Bytes that are free to go.
    pub(super) outbox: BytesMut,
    /// When more may be written, if the rate is limited.
    pub(super) ready: Option<Instant>,
    /// Whether the proxy is silent this way: what is free to go waits, too.
    pub(super) silent: bool,
    /// Bytes in a second that may be written, if they are limited.
    pub(super) rate: Option<u64>,
    pub(super) input: Input,
    pub(super) output: Output,
    /// A rule has ended the connection, or is about to: what still arrives goes nowhere.
    pub(super) doomed: bool,
    /// The count of resumptions when a rule silenced this lane.
    pub(super) hushed: Option<u64>,
}

/// The side that is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Open,
    Ended,
}

/// The side that is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Open,
    /// To be closed when the outbox is empty.
    Closing(Close),
    Shut,
}

/// How one side of a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    Orderly,
    Reset,
}

/// Something that waits for its turn.
#[derive(Debug)]
struct Parcel {
    due: Instant,
    /// The rule that keeps it from being sent on.
    hold: Option<RuleId>,
    what: What,
}

#[derive(Debug)]
enum What {
    Bytes {
        bytes: Bytes,
        /// The frame that departs with these bytes.
        frame: Option<u64>,
    },
    Close(Close),
    Hush(Silence),
    Strike(Ending),
}

/// What a released parcel demands of the whole connection.
#[derive(Debug)]
pub(super) enum Demand {
    HushBoth,
    Strike(Ending),
}

impl Lane {
    pub(super) fn new(direction: Direction) -> Self {
        Self {
            direction,
            received: BytesMut::new(),
            queue: VecDeque::new(),
            queue_len: 0,
            outbox: BytesMut::new(),
            ready: None,
            silent: false,
            rate: None,
            input: Input::Open,
            output: Output::Open,
            doomed: false,
            hushed: None,
        }
    }

    /// Whether more should be read.
    pub(super) fn wants_input(&self) -> bool {
        let waiting = self.queue_len + self.outbox.len();
        self.input == Input::Open && waiting < QUEUE_LEN_MAX
    }

    /// Whether there is something to write, or to close.
    pub(super) fn wants_output(&self) -> bool {
        let waits = self.stands_still() || self.ready.is_some_and(|ready| ready > Instant::now());
        match self.output {
            Output::Open | Output::Closing(_) if waits => false,
            Output::Open => !self.outbox.is_empty(),
            Output::Closing(_) => true,
            Output::Shut => false,
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.input == Input::Ended && self.output == Output::Shut
    }

    /// Whether nothing may be written until the test orders something else.
    fn stands_still(&self) -> bool {
        self.silent || self.rate == Some(0)
    }

    /// How much of the outbox may be written now.
    pub(super) fn allowance(&mut self, now: Instant) -> usize {
        if self.stands_still() {
            self.ready = None;
            return 0;
        }
        let Some(rate) = self.rate else {
            self.ready = None;
            return self.outbox.len();
        };
        if self.ready.is_some_and(|ready| ready > now) {
            return 0;
        }
        let portion = usize::try_from(rate / PORTIONS).unwrap_or(usize::MAX).max(1);
        self.outbox.len().min(portion)
    }

    /// So much has been written: more may be when that would have passed a link of so many bytes in a second.
    pub(super) fn wrote(&mut self, now: Instant, len: usize) {
        // A task that wakes late makes up for it.
        let since = self.ready.map_or(now, |ready| ready.max(now - LATE_MAX));
        self.ready =
            self.rate.map(|rate| since + Duration::from_secs_f64(len as f64 / rate as f64));
    }

    /// When something in the queue may be sent on that may not yet.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queue.front().map(|parcel| parcel.due)
    }

    /// Queues a whole piece, or what its verdict leaves of it.
    pub(super) fn accept(&mut self, now: Instant, piece: Piece, verdict: Verdict) {
        let frame = verdict.sequence;
        let Some((rule, reaction)) = verdict.reaction else {
            self.queue_bytes(now, None, piece.bytes, Some(frame));
            return;
        };
        let bytes = piece.bytes.clone();
        match reaction {
            Reaction::Delay(delay) => self.queue_bytes(now + delay, None, bytes, Some(frame)),
            Reaction::Drop => {}
            Reaction::Hold => self.queue_bytes(now, Some(rule), bytes, Some(frame)),
            Reaction::Rewrite(rewrite) => {
                self.queue_bytes(now, None, rewrite.of(&piece), Some(frame));
            }
            Reaction::Cut(forward) => {
                self.queue_part(now, &bytes, forward.len(bytes.len()));
                self.queue_end(now, What::Strike(Ending::Cut));
            }
            Reaction::Reset(forward) => {
                self.queue_part(now, &bytes, forward.len(bytes.len()));
                self.queue_end(now, What::Strike(Ending::Reset));
            }
            Reaction::Silence(silence, forward) => {
                let first = forward.len(bytes.len());
                self.queue_part(now, &bytes, first);
                self.queue(now, None, What::Hush(silence));
                self.queue_bytes(now, None, bytes.slice(first..), Some(frame));
            }
        }
    }

    /// The side that is read from has ended; the other side hears of it in its turn.
    pub(super) fn end_input(&mut self, now: Instant, close: Close) {
        self.input = Input::Ended;
        if self.doomed {
            return;
        }
        // Half a frame, if the sender broke off in the middle of one.
        let rest = self.received.split().freeze();
        self.queue_bytes(now, None, rest, None);
        self.queue_end(now, What::Close(close));
    }

    /// Ends the lane at once: what waits in the queue is lost, what was free to go still goes, unless it waits for the end of
    /// a silence.
    pub(super) fn doom(&mut self, close: Close) {
        self.doomed = true;
        self.queue.clear();
        self.queue_len = 0;
        if self.silent {
            self.outbox.clear();
        }
        if self.output != Output::Shut {
            self.output = Output::Closing(close);
        }
    }

    /// The side that is written to is gone.
    pub(super) fn shut_output(&mut self) {
        self.doom(Close::Orderly);
        self.outbox.clear();
        self.output = Output::Shut;
    }

    pub(super) fn hush(&mut self, state: &State) {
        self.hushed = Some(state.resumes);
    }

    /// Moves everything whose turn has come into the outbox.
    pub(super) fn release(&mut self, now: Instant, state: &mut State) -> Option<Demand> {
        while let Some(parcel) = self.queue.front() {
            let silent = state.is_silent(self.direction, self.hushed);
            let held = parcel.hold.is_some_and(|rule| state.holds(rule));
            if silent || held || parcel.due > now {
                return None;
            }
            match self.queue.pop_front()?.what {
                What::Bytes { bytes, frame } => {
                    self.queue_len -= bytes.len();
                    self.outbox.extend_from_slice(&bytes);
                    if let Some(frame) = frame {
                        state.log.departed(frame);
                    }
                }
                What::Close(close) => self.output = Output::Closing(close),
                What::Hush(Silence::ThisWay) => self.hush(state),
                What::Hush(Silence::BothWays) => return Some(Demand::HushBoth),
                What::Strike(ending) => return Some(Demand::Strike(ending)),
            }
        }
        None
    }

    fn queue_bytes(
        &mut self,
        due: Instant,
        hold: Option<RuleId>,
        bytes: Bytes,
        frame: Option<u64>,
    ) {
        self.queue_len += bytes.len();
        self.queue(due, hold, What::Bytes { bytes, frame });
    }

    /// The part of a frame that goes before its rule strikes.
    fn queue_part(&mut self, due: Instant, bytes: &Bytes, len: usize) {
        self.queue_bytes(due, None, bytes.slice(..len), None);
    }

    /// Nothing that arrives later will be sent on.
    fn queue_end(&mut self, due: Instant, what: What) {
        self.doomed = true;
        self.queue(due, None, what);
    }

    fn queue(&mut self, due: Instant, hold: Option<RuleId>, what: What) {
        self.queue.push_back(Parcel { due, hold, what });
    }
}
