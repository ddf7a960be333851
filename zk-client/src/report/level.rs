//! A quantity of a session that goes up and down.

#[cfg(feature = "metrics")]
pub(crate) use counted::Level;
#[cfg(not(feature = "metrics"))]
pub(crate) use uncounted::Level;

#[cfg(feature = "metrics")]
mod counted {
    use std::{
        fmt,
        sync::atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use metrics::Gauge;

    /// One session's part of a gauge, which has the sum over all sessions. Given back when this is dropped.
    pub(crate) struct Level {
        gauge: Gauge,
        last: AtomicUsize,
    }

    impl Level {
        pub(crate) const fn of(gauge: Gauge) -> Self {
            Self { gauge, last: AtomicUsize::new(0) }
        }

        /// One caller at a time.
        pub(crate) fn set(&self, value: usize) {
            let last = self.last.load(Relaxed);
            if value == last {
                return;
            }
            self.last.store(value, Relaxed);
            let by = u32::try_from(value.abs_diff(last)).map_or(f64::MAX, f64::from);
            if value > last {
                self.gauge.increment(by);
            } else {
                self.gauge.decrement(by);
            }
        }
    }

    impl Default for Level {
        fn default() -> Self {
            Self::of(Gauge::noop())
        }
    }

    impl Drop for Level {
        fn drop(&mut self) {
            self.set(0);
        }
    }

    impl fmt::Debug for Level {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_tuple("Level").field(&self.last).finish()
        }
    }
}

#[cfg(not(feature = "metrics"))]
mod uncounted {
    /// A level that is not reported anywhere.
    #[derive(Debug, Default)]
    pub(crate) struct Level(());

    impl Level {
        #[expect(clippy::unused_self, reason = "stands for one that counts")]
        pub(crate) const fn set(&self, _value: usize) {}
    }
}
