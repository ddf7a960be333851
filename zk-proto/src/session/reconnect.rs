//! The choice of the next server, and backoff.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use crate::rng::Rng;

/// Longest pause before the first attempt after an established connection was lost, for sessions with long timeouts: as
/// long as in other clients, so that a server's clients do not all return at once.
const SPREAD_MAX: Duration = Duration::from_secs(1);

/// Pause between attempts in the round after one in which no server could be reached; doubles with each further round.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// Longest pause between attempts.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Lower bound of the backoff cap, however short a session's timeout and however many its servers: a fleet whose
/// sessions are about to expire must not dial faster because of that.
const PAUSE_CAP_MIN: Duration = Duration::from_millis(250);

/// A round's pauses may take one part in this many of a session's timeout.
const ROUND_SHARE: u32 = 4;

/// The servers in the order of this session, and the failures so far.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    servers: Vec<Arc<str>>,
    /// Index of the next one to try.
    next: usize,
    /// Failed attempts since the last useful one.
    failures: u32,
}

impl Rotation {
    pub(crate) fn new(mut servers: Vec<Arc<str>>, rng: &mut Rng) -> Self {
        rng.shuffle(&mut servers);
        servers.shrink_to_fit();
        Self { servers, next: 0, failures: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns the next server; starts over after the last.
    pub(crate) fn advance(&mut self) -> Arc<str> {
        let server = self.servers.get(self.next).cloned().unwrap_or_else(|| Arc::from(""));
        self.next = self.next.saturating_add(1).checked_rem(self.servers.len()).unwrap_or_default();
        server
    }

    /// Whether it goes over these servers, in whatever order.
    pub(crate) fn is_over(&self, servers: &[Arc<str>]) -> bool {
        self.servers.len() == servers.len() && servers.iter().all(|it| self.servers.contains(it))
    }

    /// Replaces the servers. Returns whether to stay at `here`; if not, the next server is the new one.
    ///
    /// As in the Java client: with these probabilities, clients that were spread evenly over the old servers are spread
    /// evenly over the new ones, with as few moves as possible.
    pub(crate) fn update(
        &mut self,
        servers: Vec<Arc<str>>,
        here: Option<&str>,
        rng: &mut Rng,
    ) -> bool {
        let before = self.servers.len() as u64;
        // Also if an earlier list has told it to leave, which it has not done yet.
        let is_here = |server: &Arc<str>| here.is_some_and(|here| **server == *here);
        let is_listed = servers.iter().any(is_here);
        // Where a move to a new server would lead.
        let is_new = is_listed && !self.servers.iter().any(is_here);
        let (mut kept, mut added): (Vec<_>, Vec<_>) =
            servers.into_iter().partition(|server| self.servers.contains(server));
        rng.shuffle(&mut kept);
        rng.shuffle(&mut added);
        let total = (kept.len() as u64).saturating_add(added.len() as u64);
        // The share of all clients that must move to the added servers: those servers' share of a larger ensemble.
        let stays = if is_listed {
            is_new || total <= before || rng.up_to(total.saturating_sub(1)) < before
        } else {
            here.is_none()
        };
        let added_first = if is_listed || total > before {
            is_listed || rng.up_to(total.saturating_sub(1)) < added.len() as u64
        } else {
            // Clients of removed servers fill up the remaining and the new servers to the same level.
            let gone = before.saturating_sub(kept.len() as u64);
            let to_kept = (kept.len() as u64).saturating_mul(before.saturating_sub(total));
            let all = total.saturating_mul(gone).max(1);
            rng.up_to(all.saturating_sub(1)) >= to_kept
        };
        let (mut first, mut then) = if added_first { (added, kept) } else { (kept, added) };
        first.append(&mut then);
        self.servers = first;
        (self.next, self.failures) = (0, 0);
        stays
    }

    /// Makes `server` the next one.
    pub(crate) fn prefer(&mut self, server: &str) {
        if let Some(index) = self.servers.iter().position(|known| &**known == server) {
            self.next = index;
        }
    }

    pub(crate) const fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    pub(crate) const fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// The pause before the next attempt of a session with the timeout `life`.
    ///
    /// After a loss a random part of a twentieth of the timeout; none between the servers of the first round; from then
    /// on a backoff before each attempt, half of it random, that doubles with each round. All servers get their turn
    /// within a quarter of the timeout, unless there are too many of them for that. The time left of the timeout makes
    /// no difference: a client that dials faster near the end does so together with all others.
    ///
    /// A useless established connection (`was_up`) is worse evidence than an unreachable server: the backoff after it
    /// grows each time.
    pub(crate) fn pause(&self, life: Duration, was_up: bool, rng: &mut Rng) -> Duration {
        let servers = u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        match self.failures.checked_div(servers).unwrap_or_default() {
            _ if was_up || self.failures == 0 => {
                let spread = life.checked_div(20).unwrap_or_default().min(SPREAD_MAX);
                let spread = rng.duration_up_to(spread);
                if self.failures == 0 {
                    spread
                } else {
                    spread.max(self.backoff(life, self.failures, rng))
                }
            }
            0 => Duration::ZERO,
            rounds => self.backoff(life, rounds, rng),
        }
    }

    /// A backoff that grows each time, half of it random.
    fn backoff(&self, life: Duration, times: u32, rng: &mut Rng) -> Duration {
        let doublings = times.saturating_sub(1).min(16);
        let share = u32::try_from(self.servers.len().max(2)).unwrap_or(u32::MAX);
        let cap = life.min(PAUSE_MAX.saturating_mul(2).saturating_mul(ROUND_SHARE));
        let cap = cap.checked_div(share.saturating_mul(ROUND_SHARE)).unwrap_or_default();
        let pause = PAUSE_MIN.saturating_mul(2_u32.pow(doublings)).min(cap.max(PAUSE_CAP_MIN));
        let half = pause.checked_div(2).unwrap_or_default();
        half.saturating_add(rng.duration_up_to(half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotation(servers: &[&str]) -> (Rotation, Rng) {
        let mut rng = Rng::new(7);
        let servers = servers.iter().map(|&server| Arc::from(server)).collect();
        (Rotation::new(servers, &mut rng), rng)
    }

    #[test]
    fn every_server_is_tried_before_any_repeats() {
        let (mut rotation, _) = rotation(&["a", "b", "c"]);
        let first: alloc::collections::BTreeSet<_> = (0..3).map(|_| rotation.advance()).collect();
        assert_eq!(first.len(), 3);
        let again = (0..3).map(|_| rotation.advance()).collect();
        assert_eq!(first, again);
    }

    /// The times, in seconds, at which a session with this timeout dials unreachable servers.
    fn dials(servers: &[&str], life: u64, until: f64) -> Vec<f64> {
        let (mut rotation, mut rng) = rotation(servers);
        let (mut at, mut dials) = (0.0, Vec::new());
        while at < until {
            dials.push(at);
            rotation.failed();
            at += rotation.pause(Duration::from_secs(life), false, &mut rng).as_secs_f64();
        }
        dials
    }

    #[test]
    fn backoff_starts_after_the_first_round() {
        let (mut rotation, mut rng) = rotation(&["a", "b"]);
        let mut pauses = Vec::new();
        for _ in 0..40 {
            rotation.failed();
            pauses.push(rotation.pause(Duration::MAX, false, &mut rng));
        }
        let [none, first, second, third, .., last] = *pauses else { panic!("forty attempts") };
        assert_eq!(none, Duration::ZERO);
        for pause in [first, second] {
            assert!(pause >= PAUSE_MIN / 2 && pause <= PAUSE_MIN, "{pauses:?}");
        }
        assert!(third >= PAUSE_MIN && third <= PAUSE_MIN * 2, "{pauses:?}");
        assert!(last >= PAUSE_MAX / 2 && last <= PAUSE_MAX, "{pauses:?}");
    }

    #[test]
    fn dialing_slows_until_the_session_ends() {
        for servers in [&["a"][..], &["a", "b", "c"], &["a", "b", "c", "d", "e"]] {
            for life in [1, 4, 10, 30, 600] {
                let end = life as f64 * 4.0 / 3.0;
                let dials = dials(servers, life, end.max(5.0));
                let in_second =
                    |from: f64| dials.iter().filter(|at| (from..from + 1.0).contains(at)).count();
                assert!(in_second(0.0) <= 6 + 2 * servers.len(), "{life} s: {dials:?}");
                assert!((1..60).all(|from| in_second(f64::from(from)) <= 8), "{life} s: {dials:?}");
                let gaps: Vec<_> =
                    dials.iter().skip(1).zip(&dials).map(|(at, last)| at - last).collect();
                let longest = gaps.iter().fold(0.0, |longest: f64, &gap| longest.max(gap));
                assert!(gaps.last() >= Some(&(longest * 0.45)), "{life} s: {gaps:?}");
                // Every server gets its turn while there is time.
                let round = longest * servers.len() as f64;
                let share = (life as f64 / 4.0).max(0.25 * servers.len() as f64);
                assert!(round <= share, "{life} s: {gaps:?}");
            }
        }
    }

    #[test]
    fn clients_of_one_server_dial_out_of_step() {
        let dials = |seed| {
            let mut rng = Rng::new(seed);
            let mut rotation = Rotation::new([Arc::from("a")].to_vec(), &mut rng);
            let mut at = Duration::ZERO;
            for _ in 0..12 {
                rotation.failed();
                at += rotation.pause(Duration::from_secs(10), false, &mut rng);
            }
            at
        };
        let mut at: Vec<_> = (0..100).map(dials).collect();
        at.sort_unstable();
        let crowd =
            |from: Duration| at.iter().filter(|at| (from..from + PAUSE_MIN).contains(at)).count();
        assert!(at.iter().all(|&from| crowd(from) < 25), "{at:?}");
    }

    /// The servers of a thousand clients per old server, spread evenly before a change of servers, after it.
    fn spread(old: &[&str], new: &[&str]) -> (alloc::collections::BTreeMap<Arc<str>, u32>, u32) {
        let mut rng = Rng::new(7);
        let list = |servers: &[&str]| -> Vec<Arc<str>> {
            servers.iter().map(|&server| Arc::from(server)).collect()
        };
        let mut places = alloc::collections::BTreeMap::new();
        let mut moved = 0_u32;
        for here in old.iter().cycle().take(old.len().saturating_mul(1000)) {
            let mut rotation = Rotation::new(list(old), &mut rng);
            let place = if rotation.update(list(new), Some(here), &mut rng) {
                Arc::from(*here)
            } else {
                moved = moved.saturating_add(1);
                rotation.advance()
            };
            let there: &mut u32 = places.entry(place).or_default();
            *there = there.saturating_add(1);
        }
        (places, moved)
    }

    #[test]
    fn clients_rebalance_with_minimal_moves() {
        for (old, new, must_move) in [
            (&["a", "b", "c"][..], &["a", "b", "c", "d", "e"][..], 1200),
            (&["a", "b", "c", "d", "e"], &["a", "b", "c"], 2000),
            (&["a", "b", "c"], &["b", "c", "d"], 1000),
            (&["a", "b", "c"], &["d", "e", "f"], 3000),
            (&["a", "b", "c", "d"], &["c", "d", "e"], 2000),
            (&["a", "b"], &["b", "a"], 0),
        ] {
            let (places, moved) = spread(old, new);
            let clients = u32::try_from(old.len() * 1000 / new.len()).unwrap();
            for server in new {
                let there = places.get(*server).copied().unwrap_or_default();
                assert!(there.abs_diff(clients) < clients / 8, "{old:?} to {new:?}: {places:?}");
            }
            assert!(moved.abs_diff(must_move) <= must_move / 8, "{old:?} to {new:?}: {moved}");
        }
    }

    /// It is where a move to a new server would lead.
    #[test]
    fn server_that_is_listed_again_is_never_left() {
        for seed in 0..64 {
            let mut rng = Rng::new(seed);
            let list = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect();
            let mut rotation = Rotation::new(list(&["a", "b", "c"]), &mut rng);
            assert!(!rotation.update(list(&["b", "c"]), Some("a"), &mut rng));
            assert!(rotation.update(list(&["a", "b", "c"]), Some("a"), &mut rng), "seed {seed}");
        }
    }
}
