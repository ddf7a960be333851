//! Statistics of a client.

#[cfg(feature = "trace-requests")]
use std::sync::{Mutex, PoisonError};
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use zk_proto::{OpCode, Time};

#[cfg(feature = "metrics")]
use crate::report::metrics::session::SessionMetrics;
use crate::{
    error::{LinkError, SessionEnd},
    report::{
        histogram::{Histogram, raise_alone},
        observe::{Answered, Connected, Ending, SessionObserver},
    },
};

/// Counters of a session's clients together: see [`Client::stats`](crate::Client::stats).
///
/// The counters are read one after the other: they need not be consistent with each other.
///
/// Requests are those that callers have asked for, directly or through caches and locks. A
/// [protected](crate::Create::protected) create counts once, with its final outcome, and so does the delete of an
/// [`OwnedNode`](crate::OwnedNode), awaited or not, and each time that a server refuses it; it does not if the session
/// was over before. Not counted is what the session asks for by itself: pings, the `sync`s of its lease, watches armed
/// again or removed, and the search for what has become of a create or a delete.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// zk.create("/a", b"").await?;
/// let before = zk.stats();
/// zk.create("/a", b"").await.unwrap_err();
/// let after = zk.stats();
/// assert_eq!(after.answered - before.answered, 1);
/// assert_eq!(after.rejected - before.rejected, 1);
/// println!("half of all answers within {:?}", after.latency().quantile(0.5));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Requests that servers have answered, whatever the reply, or would have refused as they refused an operation before.
    pub answered: u64,
    /// Of those, how many were answered with an error; a transaction, if one of its operations was.
    pub rejected: u64,
    /// Requests that were certainly not carried out: never sent, such as after the end of the session, or withdrawn before.
    pub not_sent: u64,
    /// Requests that were sent and whose outcome is unknown.
    pub unknown: u64,
    /// Requests that wait for a connection or for their reply, including the session's own.
    pub in_flight: usize,
    /// Bytes of those requests.
    pub in_flight_bytes: usize,
    /// Connections so far.
    pub connects: u64,
    /// How many of them were lost.
    pub disconnects: u64,
    /// Failed connection attempts.
    pub failed_attempts: u64,
    /// Events passed on to watches, also to slow readers. What was dropped hears nothing.
    pub watch_events: u64,
    /// How often a stream's reader was too slow: see [`Resync::Lagged`](crate::Resync::Lagged).
    pub lagged: u64,
    latency: Arc<Counters>,
}

impl Stats {
    /// Latency of replies, from when the session had the request: including the wait for a connection, but not the wait
    /// for [room](crate::ConnectOptions::requests_max). Continues to be updated.
    #[must_use]
    pub fn latency(&self) -> &Histogram {
        self.latency.latency()
    }
}

/// The live counters, written by the driver and read by any task; and the observer.
#[derive(Default)]
pub(crate) struct Counters {
    answered: AtomicU64,
    rejected: AtomicU64,
    not_sent: AtomicU64,
    unknown: AtomicU64,
    in_flight: AtomicUsize,
    in_flight_bytes: AtomicUsize,
    connects: AtomicU64,
    disconnects: AtomicU64,
    failed_attempts: AtomicU64,
    watch_events: AtomicU64,
    lagged: AtomicU64,
    /// Made for the first answer: it is most of this.
    latency: OnceLock<Box<Histogram>>,
    observer: Option<Arc<dyn SessionObserver>>,
    #[cfg(feature = "metrics")]
    metrics: Option<SessionMetrics>,
    /// The one that serves the session.
    #[cfg(feature = "trace-requests")]
    server: Mutex<Option<Arc<str>>>,
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The others are the fields of `Stats`.
        self.latency().fmt(f)
    }
}

/// Increments a counter of which the driver is the only writer.
fn one_more(count: &AtomicU64) {
    raise_alone(count, 1);
}

impl Counters {
    pub(crate) fn new(observer: Option<Arc<dyn SessionObserver>>) -> Self {
        Self { observer, ..Self::default() }
    }

    pub(crate) fn snapshot(self: &Arc<Self>) -> Stats {
        Stats {
            answered: self.answered.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            not_sent: self.not_sent.load(Relaxed),
            unknown: self.unknown.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
            in_flight_bytes: self.in_flight_bytes.load(Relaxed),
            connects: self.connects.load(Relaxed),
            disconnects: self.disconnects.load(Relaxed),
            failed_attempts: self.failed_attempts.load(Relaxed),
            watch_events: self.watch_events.load(Relaxed),
            lagged: self.lagged.load(Relaxed),
            latency: self.clone(),
        }
    }

    /// Reports to the recorder of the program, too.
    #[cfg(feature = "metrics")]
    pub(crate) fn with_metrics(self, metrics: SessionMetrics) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    fn tell(&self, what: impl Fn(&dyn SessionObserver)) {
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            what(metrics);
        }
        if let Some(observer) = &self.observer {
            what(&**observer);
        }
    }

    pub(crate) fn load(&self, requests: usize, bytes: usize) {
        self.in_flight.store(requests, Relaxed);
        self.in_flight_bytes.store(bytes, Relaxed);
    }

    /// What only a recorder is told: the requests that servers had no time for, and the unconfirmed deletes.
    #[cfg(feature = "metrics")]
    pub(crate) fn record_load(
        &self,
        (requests, bytes): (usize, usize),
        throttled: u64,
        orphans: usize,
    ) {
        if let Some(metrics) = &self.metrics {
            metrics.load(requests, bytes, throttled, orphans);
        }
    }

    fn latency(&self) -> &Histogram {
        self.latency.get_or_init(Box::default)
    }

    /// Counts a caller's request that has ended.
    pub(crate) fn concluded(&self, now: Time, (op, since): (OpCode, Duration), ending: Ending) {
        let took = now.since_epoch().saturating_sub(since);
        match ending {
            Ending::Ok | Ending::Rejected(_) => {
                one_more(&self.answered);
                self.latency().add_alone(took);
            }
            Ending::NotSent => return self.not_submitted(op, took),
            Ending::Unknown => one_more(&self.unknown),
        }
        if let Ending::Rejected(_) = ending {
            one_more(&self.rejected);
        }
        self.tell(|observer| observer.answered(&Answered { op, took, ending }));
    }

    /// Counts a request that the session has never had. Any task may call this.
    pub(crate) fn refused(&self, op: OpCode) {
        self.not_submitted(op, Duration::ZERO);
    }

    fn not_submitted(&self, op: OpCode, took: Duration) {
        // Not by the driver alone.
        self.not_sent.fetch_add(1, Relaxed);
        self.tell(|observer| observer.answered(&Answered { op, took, ending: Ending::NotSent }));
    }

    #[cfg(feature = "trace-requests")]
    fn serves(&self, server: Option<Arc<str>>) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
    }

    /// The server that serves the session, as `host:port`.
    #[cfg(feature = "trace-requests")]
    pub(crate) fn server(&self) -> Option<Arc<str>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn connected(&self, connected: &Connected<'_>) {
        one_more(&self.connects);
        #[cfg(feature = "trace-requests")]
        self.serves(Some(connected.server.into()));
        self.tell(|observer| observer.connected(connected));
    }

    pub(crate) fn disconnected(&self, why: &LinkError) {
        one_more(&self.disconnects);
        #[cfg(feature = "trace-requests")]
        self.serves(None);
        self.tell(|observer| observer.disconnected(why));
    }

    pub(crate) fn attempt_failed(&self, server: &str, why: &LinkError) {
        one_more(&self.failed_attempts);
        self.tell(|observer| observer.attempt_failed(server, why));
    }

    pub(crate) fn ended(&self, end: SessionEnd) {
        self.tell(|observer| observer.ended(end));
    }

    pub(crate) fn watch_event(&self) {
        one_more(&self.watch_events);
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.watch_event();
        }
    }

    pub(crate) fn lagged(&self) {
        one_more(&self.lagged);
        self.tell(|observer| observer.lagged());
    }
}
