//! What happened, as a running hash and as the last few events.

use std::{collections::VecDeque, fmt};

/// Events kept for the analysis of a failure.
const RING_LEN: usize = 200;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in milliseconds of virtual time.
    pub at: u64,
    /// The receiver: a client's number, or one of the names below.
    pub actor: Actor,
    /// What.
    pub what: &'static str,
    /// With what.
    pub argument: u64,
}

/// The subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// The simulation itself.
    World,
    /// A client.
    Client(u32),
    /// A member of the ensemble.
    Member(u32),
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World => f.write_str("world"),
            Self::Client(number) => write!(f, "c{number}"),
            Self::Member(number) => write!(f, "m{number}"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, actor, what, argument } = self;
        let (seconds, millis) = (at / 1000, at % 1000);
        write!(f, "{seconds:>5}.{millis:03}  {actor:<6} {what:<24} {argument}")
    }
}

/// A running hash over all events, and the last of them.
#[derive(Clone, Debug)]
pub struct Trace {
    hash: u64,
    count: u64,
    ring: VecDeque<Event>,
    ring_len: usize,
}

impl Default for Trace {
    fn default() -> Self {
        Self { hash: 0xCBF2_9CE4_8422_2325, count: 0, ring: VecDeque::new(), ring_len: RING_LEN }
    }
}

impl Trace {
    /// Keeps all events instead of the last few.
    pub fn keep_all(&mut self) {
        self.ring_len = usize::MAX;
    }

    /// Notes an event.
    pub fn note(&mut self, at: u64, actor: Actor, what: &'static str, argument: u64) {
        let actor_number = match actor {
            Actor::World => 0,
            Actor::Client(number) => 1 + (u64::from(number) << 2),
            Actor::Member(number) => 2 + (u64::from(number) << 2),
        };
        for number in [at, actor_number, argument] {
            self.mix(number);
        }
        for byte in what.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        }
        self.count += 1;
        if self.ring.len() >= self.ring_len {
            self.ring.pop_front();
        }
        self.ring.push_back(Event { at, actor, what, argument });
    }

    /// Takes bytes into the hash that are no event of their own.
    pub fn absorb(&mut self, bytes: &[u8]) {
        let hash = bytes
            .iter()
            .fold(self.hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
        self.mix(hash);
    }

    fn mix(&mut self, number: u64) {
        let mut z = (self.hash ^ number).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB);
        self.hash = z ^ (z >> 32);
    }

    /// The hash of all events so far.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// How many there were.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The last of them, oldest first.
    pub fn last(&self) -> impl Iterator<Item = &Event> {
        self.ring.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(events: &[(u64, Actor, &'static str, u64)]) -> u64 {
        let mut trace = Trace::default();
        for &(at, actor, what, argument) in events {
            trace.note(at, actor, what, argument);
        }
        trace.hash()
    }

    #[test]
    fn hash_depends_on_every_field_and_order() {
        let base = (1, Actor::Client(1), "granted", 5);
        let all = [
            hash(&[base]),
            hash(&[base, base]),
            hash(&[(2, Actor::Client(1), "granted", 5)]),
            hash(&[(1, Actor::Client(2), "granted", 5)]),
            hash(&[(1, Actor::Member(1), "granted", 5)]),
            hash(&[(1, Actor::Client(1), "lost", 5)]),
            hash(&[(1, Actor::Client(1), "granted", 6)]),
            hash(&[base, (2, Actor::World, "x", 0)]),
            hash(&[(2, Actor::World, "x", 0), base]),
        ];
        let mut distinct = all.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(hash(&[base]), hash(&[base]));
    }

    #[test]
    fn only_the_last_events_are_kept() {
        let mut trace = Trace::default();
        for at in 0..1000 {
            trace.note(at, Actor::World, "tick", at);
        }
        assert_eq!(trace.count(), 1000);
        assert_eq!(trace.last().count(), RING_LEN);
        assert_eq!(trace.last().next().map(|event| event.at), Some(800));
    }
}
