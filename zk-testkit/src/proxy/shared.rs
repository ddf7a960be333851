//! What the proxy's tasks and the test share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::watch;

use super::dissect::Piece;
use super::frame::{Direction, Disposition, Frame};
use super::log::Log;
use super::rule::{Forward, Match, Reaction, Rule, RuleId};

/// How much of a frame's contents the log keeps.
const PAYLOAD_LEN_MAX: usize = 4096;

#[derive(Debug)]
pub(super) struct Shared {
    /// Longest request that is waited for as a whole, in bytes.
    pub(super) request_len_max: usize,
    state: Mutex<State>,
    started: Instant,
    /// Wakes the tasks when something is wanted of them.
    control: watch::Sender<()>,
    /// Wakes waiters for a frame.
    logged: watch::Sender<()>,
    /// What the accepting task has made of [`State::door`].
    pub(super) door: watch::Sender<Door>,
    /// Wakes waiters for the end of connections.
    pub(super) closed: watch::Sender<()>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) log: Log,
    rules: BTreeMap<RuleId, Rule>,
    rules_made: u64,
    batches: u64,
    pub(super) target: SocketAddr,
    pub(super) door: Door,
    silenced: Ways,
    /// Bytes in a second, if they are limited: to the server, to the client.
    rates: [Option<u64>; 2],
    /// How often silence was ended; what was silenced before the last time is no longer.
    pub(super) resumes: u64,
    connections: BTreeMap<u64, Option<Ending>>,
    pub(super) accepted: u64,
}

/// Whether the proxy listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    Closed,
}

/// How a connection is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Cut,
    Reset,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    to_server: bool,
    to_client: bool,
}

impl Ways {
    fn of(&mut self, direction: Direction) -> &mut bool {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}

/// Where and when a piece arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    pub(super) connection: u64,
    pub(super) direction: Direction,
    pub(super) batch: u64,
    /// Whether the connection has been ended, so that rules no longer matter.
    pub(super) doomed: bool,
    /// The count of resumptions when a rule silenced the connection.
    pub(super) hushed: Option<u64>,
}

/// What is to happen to a piece.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) sequence: u64,
    /// `None`: send it on.
    pub(super) reaction: Option<(RuleId, Reaction)>,
}

impl Verdict {
    /// Whether the whole frame will reach the other side, now or later.
    pub(super) fn goes_on(&self) -> bool {
        match &self.reaction {
            None => true,
            Some((_, reaction)) => match reaction {
                Reaction::Drop => false,
                Reaction::Cut(forward) | Reaction::Reset(forward) => *forward == Forward::Frame,
                Reaction::Delay(_)
                | Reaction::Hold
                | Reaction::Rewrite(_)
                | Reaction::Silence(..) => true,
            },
        }
    }
}

impl Shared {
    pub(super) fn new(target: SocketAddr, request_len_max: usize) -> Self {
        let state = State {
            log: Log::default(),
            rules: BTreeMap::new(),
            rules_made: 0,
            batches: 0,
            target,
            door: Door::Open,
            silenced: Ways::default(),
            rates: [None; 2],
            resumes: 0,
            connections: BTreeMap::new(),
            accepted: 0,
        };
        Self {
            request_len_max,
            state: Mutex::new(state),
            started: Instant::now(),
            control: watch::Sender::new(()),
            logged: watch::Sender::new(()),
            door: watch::Sender::new(Door::Open),
            closed: watch::Sender::new(()),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A predicate of the test's may have panicked; the state is none of its business.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something that tasks have to look at.
    pub(super) fn order<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let answer = change(&mut self.state());
        self.control.send_replace(());
        answer
    }

    pub(super) fn orders(&self) -> watch::Receiver<()> {
        self.control.subscribe()
    }

    pub(super) fn forget_connection(&self, number: u64) {
        self.state().connections.remove(&number);
        self.closed.send_replace(());
    }

    pub(super) fn frames_logged(&self) -> watch::Receiver<()> {
        self.logged.subscribe()
    }

    /// Enters a piece in the log and asks the rules about it.
    pub(super) fn judge(&self, arrival: Arrival, piece: &Piece) -> Verdict {
        let mut state = self.state();
        let mut frame = self.frame(state.log.next_sequence(), arrival, piece);
        let reaction = if arrival.doomed {
            frame.disposition = Disposition::Discarded;
            None
        } else {
            let reaction = state.react(&frame);
            // A rule that only watches lets it go as if there were none.
            let is_change =
                |it: &&(RuleId, Reaction)| !matches!(it.1, Reaction::Delay(Duration::ZERO));
            frame.disposition = match reaction.as_ref().filter(is_change) {
                Some((_, reaction)) => disposition(reaction),
                None if state.is_silent(arrival.direction, arrival.hushed) => Disposition::Silenced,
                None => Disposition::Forwarded,
            };
            reaction
        };
        if let Some((rule, _)) = &reaction {
            state.fired(*rule, &frame);
        }
        let sequence = frame.sequence;
        state.log.enter(frame);
        drop(state);
        self.logged.send_replace(());
        Verdict { sequence, reaction }
    }

    fn frame(&self, sequence: u64, arrival: Arrival, piece: &Piece) -> Frame {
        let payload = piece.payload();
        let kept = payload.get(..PAYLOAD_LEN_MAX).unwrap_or(&payload);
        let facts = piece.facts.clone();
        Frame {
            sequence,
            at: arrival.at,
            since_start: arrival.at.duration_since(self.started),
            connection: arrival.connection,
            direction: arrival.direction,
            kind: facts.kind,
            op: facts.op,
            xid: facts.xid,
            zxid: facts.zxid,
            error: facts.error,
            event: facts.event,
            path: facts.path,
            session: facts.session,
            len: payload.len(),
            batch: arrival.batch,
            disposition: Disposition::Forwarded,
            departure: None,
            // A copy: a slice would keep the whole read buffer alive for as long as the log.
            payload: Bytes::copy_from_slice(kept),
        }
    }
}

fn disposition(reaction: &Reaction) -> Disposition {
    match reaction {
        Reaction::Delay(_) => Disposition::Delayed,
        Reaction::Drop => Disposition::Dropped,
        Reaction::Hold => Disposition::Held,
        Reaction::Rewrite(_) => Disposition::Rewritten,
        Reaction::Cut(_) | Reaction::Reset(_) => Disposition::EndedConnection,
        Reaction::Silence(..) => Disposition::Silenced,
    }
}

impl State {
    /// The first rule that has something to say about a frame, in the order of installation.
    fn react(&mut self, frame: &Frame) -> Option<(RuleId, Reaction)> {
        self.rules.iter_mut().find_map(|(id, rule)| Some((*id, rule.judge(frame)?)))
    }

    fn fired(&mut self, rule: RuleId, frame: &Frame) {
        if let Some(rule) = self.rules.get_mut(&rule) {
            rule.last = Some(frame.clone());
        }
    }

    pub(super) fn install(&mut self, condition: Match, reaction: Reaction) -> RuleId {
        let id = RuleId(self.rules_made);
        self.rules_made += 1;
        self.rules.insert(id, Rule::new(condition, reaction));
        id
    }

    pub(super) fn rule(&self, id: RuleId) -> Option<&Rule> {
        self.rules.get(&id)
    }

    pub(super) fn remove(&mut self, id: RuleId) {
        self.rules.remove(&id);
    }

    /// Whether frames that met this rule are still held.
    pub(super) fn holds(&self, id: RuleId) -> bool {
        self.rules.get(&id).is_some_and(|rule| !rule.released)
    }

    pub(super) fn release(&mut self, id: RuleId) {
        if let Some(rule) = self.rules.get_mut(&id) {
            rule.released = true;
        }
    }

    pub(super) fn next_batch(&mut self) -> u64 {
        self.batches += 1;
        self.batches
    }

    /// Whether nothing may be sent on this way: on all connections, or on one that was hushed
    /// when there had been that many resumptions.
    pub(super) fn is_silent(&mut self, direction: Direction, hushed: Option<u64>) -> bool {
        self.is_silenced(direction) || hushed == Some(self.resumes)
    }

    /// Whether nothing may be sent on this way on all connections.
    pub(super) fn is_silenced(&mut self, direction: Direction) -> bool {
        *self.silenced.of(direction)
    }

    pub(super) fn set_rate(&mut self, direction: Direction, rate: Option<u64>) {
        self.rates[direction as usize] = rate;
    }

    pub(super) fn rate(&self, direction: Direction) -> Option<u64> {
        self.rates[direction as usize]
    }

    pub(super) fn silence(&mut self, direction: Direction) {
        *self.silenced.of(direction) = true;
    }

    pub(super) fn resume(&mut self) {
        self.silenced = Ways::default();
        self.resumes += 1;
    }

    /// Gives a new connection its number.
    pub(super) fn accept(&mut self) -> u64 {
        self.accepted += 1;
        self.connections.insert(self.accepted, None);
        self.accepted
    }

    pub(super) fn open_connections(&self) -> usize {
        self.connections.len()
    }

    pub(super) fn ending(&self, number: u64) -> Option<Ending> {
        self.connections.get(&number).copied().flatten()
    }

    pub(super) fn end_all(&mut self, ending: Ending) {
        for order in self.connections.values_mut() {
            order.get_or_insert(ending);
        }
    }
}
