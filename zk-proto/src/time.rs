//! Time as a value: the driver passes it to the session, which never asks for it.

use core::{fmt, time::Duration};

/// A moment, as the time since an epoch that the driver of the session has chosen.
///
/// Must never go back, and should advance while the machine sleeps: sessions expire on the servers'
/// clocks meanwhile.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Duration);

impl Time {
    /// The epoch itself.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The moment `since_epoch` after the epoch.
    #[must_use]
    pub const fn new(since_epoch: Duration) -> Self {
        Self(since_epoch)
    }

    /// Time since the epoch.
    #[must_use]
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// This much later; the end of time on overflow.
    #[must_use]
    pub const fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// Time since `earlier`; zero if that is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={}.{:03}s", self.0.as_secs(), self.0.subsec_millis())
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
