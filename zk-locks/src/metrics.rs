//! What locks do, in numbers, for the recorder of the crate `metrics` that the program has installed.
//!
//! Every recipe that tells an [observer](crate::Builder::observer) reports by itself;
//! [`Builder::metrics_name`](crate::Builder::metrics_name) tells the locks of one program apart.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

pub use zk_client::metrics::{Kind, Metric};

use metrics::{Counter, Gauge, Histogram, SharedString, Unit};
use zk_client::{Client, SessionEnd};

use crate::{
    error::Lost,
    observe::{Grant, LockObserver, Release},
};

/// The name of locks that the program has not named.
pub(crate) const UNNAMED: &str = "default";

/// From a free lock to a job of hours.
const SPANS: &[f64] = &[
    0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0,
];

/// All metrics of locks. Those of several locks with the same name are added up.
pub const LIST: &[Metric] = &[ACQUISITIONS, WAITS, HOLDS, HELD, WAITING, QUEUE, LOSSES, OVERRUNS];

const ACQUISITIONS: Metric = Metric::counter(
    "zookeeper_lock_acquisitions_total",
    &["lock", "outcome"],
    "Attempts that have ended after they joined the queue: granted, given_up (dropped, timed out or failed).",
);

const WAITS: Metric = Metric::durations(
    "zookeeper_lock_wait_duration_seconds",
    SPANS,
    &["lock", "outcome"],
    "Time from joining the queue to the grant, or to giving up.",
);

const HOLDS: Metric = Metric::durations(
    "zookeeper_lock_hold_duration_seconds",
    SPANS,
    &["lock"],
    "Time from the grant until the guard was dropped or released.",
);

const HELD: Metric = Metric::gauge(
    "zookeeper_lock_held",
    Unit::Count,
    &["lock"],
    "Guards that have not been dropped or released.",
);

const WAITING: Metric = Metric::gauge(
    "zookeeper_lock_waiting",
    Unit::Count,
    &["lock"],
    "Attempts of this process that wait in a queue.",
);

const QUEUE: Metric = Metric::gauge(
    "zookeeper_lock_queue_length",
    Unit::Count,
    &["lock"],
    "Contenders of all processes that were ahead of the attempt that was granted last, when it joined.",
);

const LOSSES: Metric = Metric::counter(
    "zookeeper_lock_losses_total",
    &["lock", "reason"],
    "Guards whose lock was lost before they were dropped or released: session_expired, session_closed, \
     session_auth_failed, lease_ran_out, node_deleted, held_too_long.",
);

const OVERRUNS: Metric = Metric::counter(
    "zookeeper_lock_overruns_total",
    &["lock"],
    "Times that a lock was held for longer than one of its limits.",
);

/// The metrics of the locks of one name.
struct LockMetrics {
    granted: Counter,
    given_up: Counter,
    waits: Histogram,
    vain_waits: Histogram,
    holds: Histogram,
    held: Gauge,
    waiting: Gauge,
    queue: Gauge,
    losses: [Counter; LOST.len()],
    overruns: Counter,
}

/// The values of the label `reason`.
const LOST: [(Lost, &str); 6] = [
    (Lost::SessionEnded(SessionEnd::Expired), "session_expired"),
    (Lost::SessionEnded(SessionEnd::Closed), "session_closed"),
    (Lost::SessionEnded(SessionEnd::AuthFailed), "session_auth_failed"),
    (Lost::LeaseRanOut, "lease_ran_out"),
    (Lost::NodeDeleted, "node_deleted"),
    (Lost::HeldTooLong, "held_too_long"),
];

/// Those of a session's locks, so that a lock that is built anew for each use registers nothing.
#[derive(Default)]
struct Known(Mutex<HashMap<String, Arc<LockMetrics>>>);

/// The observer that counts for all locks of this name.
pub(crate) fn named(client: &Client, name: &str) -> Arc<dyn LockObserver> {
    let known = client.extension::<Known>();
    let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(metrics) = known.get(name) {
        return metrics.clone();
    }
    let metrics = Arc::new(LockMetrics::new(name.to_owned().into()));
    known.insert(name.to_owned(), metrics.clone());
    metrics
}

impl LockMetrics {
    fn new(lock: SharedString) -> Self {
        LIST.iter().for_each(Metric::describe);
        let [granted, given_up] = ["granted", "given_up"].map(SharedString::const_str);
        Self {
            granted: ACQUISITIONS.count([&lock, &granted]),
            given_up: ACQUISITIONS.count([&lock, &given_up]),
            waits: WAITS.histogram([&lock, &granted]),
            vain_waits: WAITS.histogram([&lock, &given_up]),
            holds: HOLDS.histogram([&lock]),
            held: HELD.level([&lock]),
            waiting: WAITING.level([&lock]),
            queue: QUEUE.level([&lock]),
            losses: LOST.map(|(_, reason)| LOSSES.count([&lock, &reason.into()])),
            overruns: OVERRUNS.count([&lock]),
        }
    }
}

impl LockObserver for LockMetrics {
    fn joined(&self, _path: &str) {
        self.waiting.increment(1.0);
    }

    fn left(&self, _path: &str) {
        self.waiting.decrement(1.0);
    }

    fn granted(&self, grant: &Grant<'_>) {
        self.granted.increment(1);
        self.waits.record(grant.waited);
        self.held.increment(1.0);
        if let Some(ahead) = grant.ahead {
            self.queue.set(u32::try_from(ahead).map_or(f64::MAX, f64::from));
        }
    }

    fn given_up(&self, _path: &str, waited: Duration) {
        self.given_up.increment(1);
        self.vain_waits.record(waited);
    }

    fn released(&self, release: &Release<'_>) {
        self.holds.record(release.held);
        self.held.decrement(1.0);
        let lost = LOST.iter().zip(&self.losses);
        for (_, counter) in lost.filter(|((lost, _), _)| Some(*lost) == release.lost) {
            counter.increment(1);
        }
    }

    fn held_too_long(&self, _grant: &Grant<'_>) {
        self.overruns.increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alerts and their instructions go by these words.
    #[test]
    fn reasons_are_called_what_they_are() {
        for (lost, reason) in LOST {
            let name = format!("{lost:?}").replace("SessionEnded(", "Session").replace(')', "");
            let words = name.split_inclusive(char::is_uppercase);
            let snake: String = words
                .enumerate()
                .map(|(number, word)| match word.strip_suffix(char::is_uppercase) {
                    Some(rest) if number > 0 => format!("{rest}_{}", &word[rest.len()..]),
                    _ => word.to_owned(),
                })
                .collect();
            assert_eq!(snake.to_lowercase(), reason);
        }
    }
}
