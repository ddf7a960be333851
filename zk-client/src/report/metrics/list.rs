//! The metrics of a session.

use metrics::Unit;

use super::metric::Metric;

/// From what a server in the same room needs to what is as good as a failure.
const LATENCIES: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// All metrics of sessions. Those of several sessions with the same [name](crate::ConnectOptions::metrics_name) are
/// added up.
pub const LIST: &[Metric] = &[
    SESSIONS,
    SESSIONS_ENDED,
    SESSION_TIMEOUT,
    CONNECTIONS,
    DISCONNECTIONS,
    CONNECTION_FAILURES,
    REQUESTS,
    REJECTIONS,
    REQUEST_DURATION,
    IN_FLIGHT,
    IN_FLIGHT_BYTES,
    WAITING,
    THROTTLED,
    WATCH_EVENTS,
    WATCH_OVERFLOWS,
    ORPHANS,
];

pub(super) const SESSIONS: Metric = Metric::gauge(
    "zookeeper_client_sessions",
    Unit::Count,
    &["client", "state"],
    "Sessions by state: connecting (never connected so far), connected, read_only, disconnected. Ended ones do not count.",
);

pub(super) const SESSIONS_ENDED: Metric = Metric::counter(
    "zookeeper_client_sessions_ended_total",
    &["client", "reason"],
    "Sessions that have ended: expired, auth_failed, closed. Their ephemeral nodes and locks went with them.",
);

pub(super) const SESSION_TIMEOUT: Metric = Metric::gauge(
    "zookeeper_client_session_timeout_seconds",
    Unit::Seconds,
    &["client"],
    "Session timeout that the servers have granted to the session that connected last.",
);

pub(super) const CONNECTIONS: Metric = Metric::counter(
    "zookeeper_client_connections_total",
    &["client"],
    "Connections over which a server has served a session.",
);

pub(super) const DISCONNECTIONS: Metric = Metric::counter(
    "zookeeper_client_disconnections_total",
    &["client", "reason"],
    "Such connections that were lost: reset, closed, timed_out, not_served, protocol, moved, unrestored, superseded, \
     rebalanced, other.",
);

pub(super) const CONNECTION_FAILURES: Metric = Metric::counter(
    "zookeeper_client_connection_failures_total",
    &["client", "reason"],
    "Attempts to connect that have failed: unresolved, refused, reset, closed, timed_out, not_served, protocol, moved, \
     unrestored, rebalanced, tls, sasl, other.",
);

pub(super) const REQUESTS: Metric = Metric::counter(
    "zookeeper_client_requests_total",
    &["client", "operation", "outcome"],
    "Requests that have ended: ok, rejected (answered with an error), not_sent (certainly not carried out), unknown \
     (sent, and no reply). What the session asks for by itself does not count.",
);

pub(super) const REJECTIONS: Metric = Metric::counter(
    "zookeeper_client_request_rejections_total",
    &["client", "code"],
    "Rejected requests by the error code of the reply.",
);

pub(super) const REQUEST_DURATION: Metric = Metric::durations(
    "zookeeper_client_request_duration_seconds",
    LATENCIES,
    &["client", "operation"],
    "Time from submission to the reply, waits for a connection included.",
);

pub(super) const IN_FLIGHT: Metric = Metric::gauge(
    "zookeeper_client_requests_in_flight",
    Unit::Count,
    &["client"],
    "Requests that wait for a connection or for their reply.",
);

pub(super) const IN_FLIGHT_BYTES: Metric = Metric::gauge(
    "zookeeper_client_requests_in_flight_bytes",
    Unit::Bytes,
    &["client"],
    "Bytes of those requests.",
);

pub(crate) const WAITING: Metric = Metric::gauge(
    "zookeeper_client_requests_waiting",
    Unit::Count,
    &["client"],
    "Requests that wait for room: the limits of requests in flight are reached.",
);

pub(super) const THROTTLED: Metric = Metric::counter(
    "zookeeper_client_requests_throttled_total",
    &["client"],
    "Replies by which a server had no time for a request.",
);

pub(super) const WATCH_EVENTS: Metric = Metric::counter(
    "zookeeper_client_watch_events_total",
    &["client"],
    "Events passed on to watches.",
);

pub(super) const WATCH_OVERFLOWS: Metric = Metric::counter(
    "zookeeper_client_watch_overflows_total",
    &["client"],
    "Times that the reader of a watch stream was too slow, and has to look again.",
);

pub(super) const ORPHANS: Metric = Metric::gauge(
    "zookeeper_client_orphaned_nodes",
    Unit::Count,
    &["client"],
    "Nodes without an owner whose deletion no server has confirmed. Contenders for a lock wait for them.",
);
