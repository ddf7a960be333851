//! Paused requests, which a server has throttled.

use alloc::{boxed::Box, collections::BTreeMap};
use core::time::Duration;

use super::{output::Place, pending_request::PendingRequest};
use crate::{rng::Rng, time::Time};

/// Pause after the first refusal of a request; doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Longest pause: a server that has recovered must not be idle for long.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The longest pause after this many refusals of a request; the shortest is half as long. A part of it is random, since
/// many clients are refused at once.
fn longest_pause(refusals: u8) -> Duration {
    let doubled = 2_u32.saturating_pow(u32::from(refusals.saturating_sub(1)));
    PAUSE_MIN.saturating_mul(doubled).min(PAUSE_MAX)
}

/// Paused requests, and the present places of requests that have paused. Takes a pointer until one has.
#[derive(Debug)]
pub(crate) struct Pausing<R, W>(Option<Box<Paused<R, W>>>);

#[derive(Debug)]
struct Paused<R, W> {
    /// By their due times and their first places.
    slots: BTreeMap<(Time, Place), PendingRequest<R, W>>,
    /// By their first places.
    whereabouts: BTreeMap<Place, PauseState>,
    /// The end of the latest pause, by the number of refusals.
    latest: BTreeMap<u8, Time>,
}

/// The place of a request that has been refused at least once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PauseState {
    /// It pauses until this time.
    Pausing(Time),
    /// It is waiting or sent, at this place.
    InLine(Place),
}

impl<R, W> Pausing<R, W> {
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    fn paused(&mut self) -> &mut Paused<R, W> {
        self.0.get_or_insert_with(|| {
            let (slots, whereabouts) = (BTreeMap::new(), BTreeMap::new());
            Box::new(Paused { slots, whereabouts, latest: BTreeMap::new() })
        })
    }

    /// Keeps a request that has been refused this often. Requests that are refused about together are resent together,
    /// in the order of their first places: a sequence of requests stays one if all of it is refused.
    pub(crate) fn put(
        &mut self,
        now: Time,
        refusals: u8,
        slot: PendingRequest<R, W>,
        rng: &mut Rng,
    ) {
        let longest = longest_pause(refusals);
        let half = longest.checked_div(2).unwrap_or_default();
        let fits = |until: &Time| (half..=longest).contains(&until.since(now));
        let paused = self.paused();
        let until = match paused.latest.get(&refusals).copied().filter(fits) {
            Some(until) => until,
            None => {
                let quarter = half.checked_div(2).unwrap_or_default();
                now.after(longest.saturating_sub(rng.duration_up_to(quarter)))
            }
        };
        paused.latest.insert(refusals, until);
        let first = slot.first();
        paused.slots.insert((until, first), slot);
        paused.whereabouts.insert(first, PauseState::Pausing(until));
    }

    /// Takes the request that has been due for the longest time.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<PendingRequest<R, W>> {
        let due = self.0.as_mut()?.slots.first_entry()?;
        (due.key().0 <= now).then(|| due.remove())
    }

    /// Takes a request out of its pause.
    pub(crate) fn take(&mut self, until: Time, first: Place) -> Option<PendingRequest<R, W>> {
        self.0.as_mut()?.slots.remove(&(until, first))
    }

    /// Records the new place of a request that may have paused.
    pub(crate) fn moved(&mut self, first: Place, present: Place) {
        if first != present {
            self.paused().whereabouts.insert(first, PauseState::InLine(present));
        }
    }

    /// Whether any request that has paused is unfinished.
    pub(crate) fn has_moved_any(&self) -> bool {
        self.0.as_ref().is_some_and(|paused| !paused.whereabouts.is_empty())
    }

    /// Forgets a finished request that may have paused.
    #[cold]
    pub(crate) fn forget(&mut self, first: Place) {
        if let Some(paused) = &mut self.0 {
            paused.whereabouts.remove(&first);
        }
    }

    /// `None` if the request has never paused.
    pub(crate) fn find(&self, first: Place) -> Option<PauseState> {
        self.0.as_ref()?.whereabouts.get(&first).copied()
    }

    /// When the first request is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.as_ref()?.slots.first_key_value().map(|((until, _), _)| *until)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |paused| paused.slots.len())
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = &PendingRequest<R, W>> {
        self.0.iter().flat_map(|paused| paused.slots.values())
    }

    pub(crate) fn slots_mut(&mut self) -> impl Iterator<Item = &mut PendingRequest<R, W>> {
        self.0.iter_mut().flat_map(|paused| paused.slots.values_mut())
    }

    /// Takes all requests in the order of their first places.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = PendingRequest<R, W>> + use<R, W> {
        let slots = self.0.as_mut().map(|paused| core::mem::take(&mut paused.slots));
        let slots = slots.unwrap_or_default().into_values();
        slots.map(|slot| (slot.first(), slot)).collect::<BTreeMap<_, _>>().into_values()
    }

    #[cfg(debug_assertions)]
    pub(crate) fn whereabouts(&self) -> usize {
        self.0.as_ref().map_or(0, |paused| paused.whereabouts.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        frame::RequestFrame,
        request::Ping,
        session::{OnLoss, Outgoing, Patience},
    };

    fn slot(first: u64) -> PendingRequest<u64, ()> {
        let mut slot = PendingRequest::user(Outgoing {
            frame: RequestFrame::of(&Ping),
            token: first,
            watch: None,
            on_loss: OnLoss::Report,
            patience: Patience::Throttling,
        });
        slot.put(Place(first));
        slot
    }

    #[test]
    fn pauses_grow_to_a_bound_and_are_random() {
        let mut rng = Rng::new(7);
        for refusals in 1..=u8::MAX {
            let whole = PAUSE_MIN.saturating_mul(1 << (refusals - 1).min(20)).min(PAUSE_MAX);
            let mut ends = [Time::ZERO; 20];
            for end in &mut ends {
                let mut pausing = Pausing::new();
                pausing.put(Time::ZERO, refusals, slot(1), &mut rng);
                *end = pausing.next().unwrap();
                assert!((whole / 2..=whole).contains(&end.since_epoch()), "{end}");
            }
            assert!(ends.iter().any(|end| *end != ends[0]), "{ends:?}");
        }
    }

    #[test]
    fn requests_throttled_together_keep_order() {
        let (mut pausing, mut rng) = (Pausing::new(), Rng::new(7));
        let mut now = Time::ZERO;
        for first in [3, 1, 4, 2] {
            pausing.put(now, 1, slot(first), &mut rng);
            now = now.after(Duration::from_millis(1));
        }
        assert!(pausing.take_due(now).is_none());
        let due = pausing.next().unwrap();
        let tokens = core::iter::from_fn(|| pausing.take_due(due)?.into_token());
        assert_eq!(tokens.collect::<alloc::vec::Vec<_>>(), [1, 2, 3, 4]);
    }
}
