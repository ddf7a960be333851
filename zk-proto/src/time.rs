//! Time as a value: the driver passes it to the session, which never asks for it.

use core::{fmt, num::NonZeroU64, time::Duration};

/// A moment, as the time since an epoch that the driver of the session has chosen.
///
/// Must never go back, and should advance while the machine sleeps: sessions expire on the servers'
/// clocks meanwhile. Ends after 584 years.
///
/// In 8 bytes, and so is an `Option` of it: a session keeps two dozen of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(NonZeroU64);

/// Nanoseconds of a duration; the most there are if it is longer.
const fn nanoseconds(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(duration.subsec_nanos() as u64)
}

impl Time {
    /// The epoch itself.
    pub const ZERO: Self = Self(NonZeroU64::MIN);

    /// The moment `since_epoch` after the epoch.
    #[must_use]
    pub const fn new(since_epoch: Duration) -> Self {
        Self::ZERO.after(since_epoch)
    }

    /// Time since the epoch.
    #[must_use]
    pub const fn since_epoch(self) -> Duration {
        self.since(Self::ZERO)
    }

    /// This much later; the end of time on overflow.
    #[must_use]
    pub const fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(duration)))
    }

    /// Time since `earlier`; zero if that is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Default for Time {
    fn default() -> Self {
        Self::ZERO
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.since_epoch();
        write!(f, "t={}.{:03}s", time.as_secs(), time.subsec_millis())
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
