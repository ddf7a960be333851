//! The session's timers: a small table with the next deadline.

use core::fmt;

use crate::time::Time;

/// The events that a session can wait for. The order is the order in which timers due at once fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The servers must have ended the session by now.
    Expiry,
    /// A close has taken too long.
    Close,
    /// A connection attempt has taken too long.
    Dial,
    /// The server has been silent for too long.
    Silence,
    /// The leader is to confirm that it knows the session. If both are due, no ping is.
    Confirm,
    /// We have been silent for long enough.
    Ping,
    /// Time for the next connection attempt.
    Retry,
    /// Time to probe for a writable server.
    Probe,
    /// A throttled request is to be resent.
    Pause,
    /// Watches are to be removed that the server had no time to remove.
    Unwatch,
    /// The connection has been observed for long enough.
    Probation,
}

impl Timer {
    const ALL: [Self; 11] = [
        Self::Expiry,
        Self::Close,
        Self::Dial,
        Self::Silence,
        Self::Confirm,
        Self::Ping,
        Self::Retry,
        Self::Probe,
        Self::Pause,
        Self::Unwatch,
        Self::Probation,
    ];
}

/// The table's size is tied to the list, and the list to the discriminants.
const _: () = {
    let mut index = 0;
    while index < Timer::ALL.len() {
        #[expect(clippy::indexing_slicing, reason = "in a constant: an error at compile time")]
        {
            assert!(Timer::ALL[index] as usize == index);
        }
        index = index.wrapping_add(1);
    }
};

/// The running timers and their deadlines.
#[derive(Clone, Default)]
pub(crate) struct Timers([Option<Time>; Timer::ALL.len()]);

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Time) {
        self.put(timer, Some(at));
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        self.put(timer, None);
    }

    pub(crate) fn stop_all(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn at(&self, timer: Timer) -> Option<Time> {
        self.0.get(timer as usize).copied().flatten()
    }

    /// When the first timer fires.
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.iter().flatten().min().copied()
    }

    /// Stops a timer that is due and returns it; `None` if none is.
    pub(crate) fn expire(&mut self, now: Time) -> Option<Timer> {
        let due = |timer: &Timer| self.at(*timer).is_some_and(|at| at <= now);
        let timer = Timer::ALL.into_iter().find(due)?;
        self.stop(timer);
        Some(timer)
    }

    fn put(&mut self, timer: Timer, at: Option<Time>) {
        if let Some(slot) = self.0.get_mut(timer as usize) {
            *slot = at;
        }
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = Timer::ALL.into_iter().filter_map(|timer| Some((timer, self.at(timer)?)));
        f.debug_map().entries(running).finish()
    }
}
