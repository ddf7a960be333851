//! How long a client tries one server, and how it looks for one that takes writes.

use std::{sync::Arc, time::Duration};

use zk_proto::session::{Negotiated, ProbeAnswer};
use zk_testkit::sim::Rng;

/// A round trip and a handshake must fit into each attempt, however many servers there are.
const ATTEMPT_MIN: Duration = Duration::from_secs(1);

/// Turns of each server within the life of a session.
const TURNS: u32 = 3;

/// What is added to each bound, in microseconds: the first pause of a search, and the time from one event to the next.
const SLACK: u64 = 250_000;

/// A moment, and for how long the process had stood still by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) at: u64,
    pub(crate) stalled: u64,
}

impl Moment {
    /// For how long the process has run from here to then.
    const fn until(self, then: Self) -> u64 {
        (then.at - self.at).saturating_sub(then.stalled - self.stalled)
    }
}

/// A search for a server that takes writes, as long as the session is on one that does not.
#[derive(Debug)]
struct Search {
    since: Moment,
    /// The last answer, or the beginning.
    last: Moment,
    /// The question that is under way, when it is answered, and how.
    asked: Option<(u64, Arc<str>, ProbeAnswer)>,
}

/// What a client does to come to a server. Numbers that say when are microseconds.
#[derive(Debug, Default)]
pub(crate) struct Dialing {
    /// The attempt that is under way.
    attempt: Option<Moment>,
    search: Option<Search>,
    timeout: Option<Duration>,
}

impl Dialing {
    /// The session dials a server.
    pub(crate) const fn begins(&mut self, now: Moment) {
        self.attempt = Some(now);
    }

    /// An attempt has failed, or a connection is left.
    pub(crate) fn ends(&mut self, now: Moment, servers: usize) -> Result<(), String> {
        let Some(attempt) = self.attempt.take() else { return Ok(()) };
        // A new session may wait for a quorum.
        let Some(timeout) = self.timeout else { return Ok(()) };
        let share = timeout / (TURNS * servers as u32);
        let bound = share.max(ATTEMPT_MIN.min(timeout / 3));
        let took = attempt.until(now);
        if took > bound.as_micros() as u64 + SLACK {
            return Err(format!("L1: an attempt takes {took} us of {timeout:?}, not {bound:?}"));
        }
        Ok(())
    }

    /// The session has a connection, or has none any more.
    pub(crate) fn state_changed(&mut self, now: Moment, negotiated: Option<&Negotiated>) {
        self.search = None;
        let Some(negotiated) = negotiated else { return };
        self.attempt = None;
        self.timeout = Some(negotiated.timeout);
        self.search = negotiated.read_only.then_some(Search { since: now, last: now, asked: None });
    }

    /// The session asks whether a server takes writes. Some may not say it.
    pub(crate) fn asks(&mut self, at: u64, server: Arc<str>, takes_writes: bool, rng: &mut Rng) {
        let answer = match (rng.per_mille(250), takes_writes) {
            (true, _) => ProbeAnswer::Unknown,
            (false, true) => ProbeAnswer::ReadWrite,
            (false, false) => ProbeAnswer::ReadOnly,
        };
        if let Some(search) = &mut self.search {
            search.asked = Some((at + rng.within(100, 50_000), server, answer));
        }
    }

    /// When the question is answered.
    pub(crate) fn due(&self) -> Option<u64> {
        self.search.as_ref()?.asked.as_ref().map(|(at, ..)| *at)
    }

    /// The answer, if it has come.
    pub(crate) fn answer(&mut self, now: Moment) -> Option<(Arc<str>, ProbeAnswer)> {
        let search = self.search.as_mut()?;
        let (_, server, answer) = search.asked.take_if(|(due, ..)| *due <= now.at)?;
        search.last = now;
        Some((server, answer))
    }

    /// Whether the session looks for a server that takes writes.
    pub(crate) const fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// Pauses of a search double: none is longer than what has passed before.
    pub(crate) fn check(&self, now: Moment) -> Result<(), String> {
        let Some(Search { since, last, asked: None }) = &self.search else { return Ok(()) };
        let pause = last.until(now);
        // They double with each answer, whether the process has stood still or not.
        let before = last.at - since.at;
        if pause > before + SLACK {
            return Err(format!("L1: looks for no server that takes writes for {pause} us"));
        }
        Ok(())
    }
}
