//! Which server next, and when.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use crate::rng::Rng;

/// Longest pause before the first attempt after an established connection was lost, for sessions that
/// live long enough: as long as in other clients, so that a server's clients do not come back as one.
const SPREAD_MAX: Duration = Duration::from_secs(1);

/// Pause after the first round in which no server could be had; doubles with each further round.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// Longest pause between rounds.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The servers in the order of this session, and how attempts have been going.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    servers: Vec<Arc<str>>,
    /// Index of the next one to try.
    next: usize,
    /// Attempts since the last one that led to a session with all its watches.
    failures: u32,
}

impl Rotation {
    pub(crate) fn new(mut servers: Vec<Arc<str>>, rng: &mut Rng) -> Self {
        rng.shuffle(&mut servers);
        Self { servers, next: 0, failures: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.servers.len()
    }

    /// The next server in turn; goes round.
    pub(crate) fn advance(&mut self) -> Arc<str> {
        let server = self.servers.get(self.next).cloned().unwrap_or_else(|| Arc::from(""));
        if !planted!(AlwaysTheFirst) {
            self.next =
                self.next.saturating_add(1).checked_rem(self.servers.len()).unwrap_or_default();
        }
        server
    }

    /// Replaces the servers. Returns whether to stay where we are, at `here`; if not, the next one is where to go.
    ///
    /// As the Java client does it: with these chances, clients that were spread evenly over the old servers are
    /// spread evenly over the new ones, with as few of them moving as can be.
    pub(crate) fn update(
        &mut self,
        servers: Vec<Arc<str>>,
        here: Option<&str>,
        rng: &mut Rng,
    ) -> bool {
        let before = self.servers.len() as u64;
        let (mut kept, mut added): (Vec<_>, Vec<_>) =
            servers.into_iter().partition(|server| self.servers.contains(server));
        rng.shuffle(&mut kept);
        rng.shuffle(&mut added);
        let total = (kept.len() as u64).saturating_add(added.len() as u64);
        let is_listed = here.is_some_and(|here| kept.iter().any(|server| **server == *here));
        // The share of all clients that has to come to the added servers: theirs of a larger ensemble.
        let stays = if is_listed {
            total <= before || rng.up_to(total.saturating_sub(1)) < before
        } else {
            here.is_none()
        };
        let added_first = if is_listed || total > before {
            is_listed || rng.up_to(total.saturating_sub(1)) < added.len() as u64
        } else {
            // Those whose server is gone fill up what is left and what is new to the same height.
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

    /// How long to wait before the next attempt.
    ///
    /// After a loss a random part of a twentieth of the session's life; none between the servers of a
    /// round; after each round twice the pause of the one before, half of it random. Hardly more than a
    /// quarter of what the session has `left`: better to dial in vain than to let it die waiting. But
    /// that quarter has a floor, or the last moments would be spent on dialing ever faster.
    pub(crate) fn pause(
        &self,
        timeout: Duration,
        left: Option<Duration>,
        rng: &mut Rng,
    ) -> Duration {
        let servers = u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        let rounds = self.failures.checked_div(servers).unwrap_or_default();
        let round_is_over = self.failures.checked_rem(servers) == Some(0);
        let pause = match (self.failures, round_is_over) {
            (0, _) => {
                rng.duration_up_to(timeout.checked_div(20).unwrap_or_default().min(SPREAD_MAX))
            }
            (_, false) => Duration::ZERO,
            (_, true) => {
                let doublings_max = if planted!(BackoffOverflows) { u32::MAX } else { 16 };
                let doublings = rounds.saturating_sub(1).min(doublings_max);
                let half = PAUSE_MIN
                    .saturating_mul(2_u32.pow(doublings))
                    .min(PAUSE_MAX)
                    .checked_div(2)
                    .unwrap_or_default();
                half.saturating_add(rng.duration_up_to(half))
            }
        };
        let bound = left.and_then(|left| left.checked_div(4)).unwrap_or(Duration::MAX);
        pause.min(bound.max(PAUSE_MIN))
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
    fn every_server_gets_its_turn_before_any_is_tried_twice() {
        let (mut rotation, _) = rotation(&["a", "b", "c"]);
        let first: alloc::collections::BTreeSet<_> = (0..3).map(|_| rotation.advance()).collect();
        assert_eq!(first.len(), 3);
        let again = (0..3).map(|_| rotation.advance()).collect();
        assert_eq!(first, again);
    }

    #[test]
    fn there_is_no_pause_within_a_round_and_a_growing_bounded_one_between_rounds() {
        let (mut rotation, mut rng) = rotation(&["a", "b"]);
        let timeout = Duration::from_secs(30);
        let mut pauses = Vec::new();
        for _ in 0..40 {
            rotation.failed();
            assert_eq!(rotation.pause(timeout, None, &mut rng), Duration::ZERO);
            rotation.failed();
            pauses.push(rotation.pause(timeout, None, &mut rng));
        }
        let [first, .., last] = *pauses else { panic!("forty rounds have forty pauses") };
        assert!(first >= PAUSE_MIN / 2 && first <= PAUSE_MIN, "{pauses:?}");
        assert!(last >= PAUSE_MAX / 2 && last <= PAUSE_MAX, "{pauses:?}");
    }

    /// Where a thousand clients, spread evenly over the old servers, are after a change.
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
    fn clients_stay_spread_over_changing_servers_and_no_more_of_them_move_than_must() {
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

    #[test]
    fn a_pause_leaves_the_session_three_quarters_of_its_life_but_is_not_pointlessly_short() {
        let (mut rotation, mut rng) = rotation(&["a"]);
        for _ in 0..20 {
            rotation.failed();
        }
        for (left, pause) in [(8_000, 2_000), (400, 100), (100, 100), (0, 100)] {
            let left = Duration::from_millis(left);
            let paused = rotation.pause(Duration::from_secs(30), Some(left), &mut rng);
            assert_eq!(paused, Duration::from_millis(pause), "{left:?}");
        }
    }
}
