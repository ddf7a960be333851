//! The metrics of one session.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use metrics::{Counter, Gauge, Histogram, SharedString};
use zk_proto::{ErrorCode, OpCode};

use super::{list, metric::Metric};
use crate::{
    error::{LinkError, SessionEnd},
    report::{
        level::Level,
        observe::{Answered, Connected, Ending, SessionObserver},
    },
};

/// The name of sessions that the program has not named.
pub(crate) const UNNAMED: &str = "default";

/// The metrics of one session. Only its driver writes them.
pub(crate) struct SessionMetrics {
    client: SharedString,
    states: [Level; STATES.len()],
    ended: [Counter; ENDS.len()],
    timeout: Gauge,
    connections: Counter,
    watch_events: Counter,
    overflows: Counter,
    throttled: Growing,
    in_flight: Level,
    in_flight_bytes: Level,
    orphans: Level,
    operations: Table<Operation>,
    rejections: Table<Counter>,
}

/// The values of the label `state`.
const STATES: [&str; 4] = ["connecting", "connected", "read_only", "disconnected"];

#[derive(Clone, Copy, PartialEq)]
enum State {
    Connecting,
    Connected,
    ReadOnly,
    Disconnected,
}

const ENDS: [(SessionEnd, &str); 3] = [
    (SessionEnd::Expired, "expired"),
    (SessionEnd::AuthFailed, "auth_failed"),
    (SessionEnd::Closed, "closed"),
];

/// What may be in doubt.
const WRITES: [OpCode; 9] = [
    OpCode::CREATE,
    OpCode::CREATE2,
    OpCode::CREATE_CONTAINER,
    OpCode::CREATE_TTL,
    OpCode::DELETE,
    OpCode::SET_DATA,
    OpCode::SET_ACL,
    OpCode::MULTI,
    OpCode::RECONFIG,
];

/// The codes of refusals by which identities or permissions are not what they should be.
const DENIALS: [ErrorCode; 3] =
    [ErrorCode::NO_AUTH, ErrorCode::INVALID_ACL, ErrorCode::AUTH_FAILED];

/// What is counted of an operation.
struct Operation {
    ok: Counter,
    rejected: Counter,
    not_sent: Counter,
    unknown: Counter,
    duration: Histogram,
}

impl SessionMetrics {
    /// What can be registered beforehand is, if it is rare and alerts are made of it: Prometheus does not see the first
    /// increase of a counter that appears with it.
    pub(crate) fn new(client: SharedString) -> Self {
        list::LIST.iter().for_each(Metric::describe);
        for op in WRITES {
            let name = SharedString::const_str(op.name().unwrap_or_default());
            drop(list::REQUESTS.count([&client, &name, &"unknown".into()]));
        }
        for code in DENIALS {
            let name = SharedString::const_str(code.name().unwrap_or_default());
            drop(list::REJECTIONS.count([&client, &name]));
        }
        let metrics = Self {
            states: STATES.map(|state| Level::of(list::SESSIONS.level([&client, &state.into()]))),
            ended: ENDS.map(|(_, reason)| list::SESSIONS_ENDED.count([&client, &reason.into()])),
            timeout: list::SESSION_TIMEOUT.level([&client]),
            connections: list::CONNECTIONS.count([&client]),
            watch_events: list::WATCH_EVENTS.count([&client]),
            overflows: list::WATCH_OVERFLOWS.count([&client]),
            throttled: Growing::of(list::THROTTLED.count([&client])),
            in_flight: Level::of(list::IN_FLIGHT.level([&client])),
            in_flight_bytes: Level::of(list::IN_FLIGHT_BYTES.level([&client])),
            orphans: Level::of(list::ORPHANS.level([&client])),
            operations: Table::of(OpCode::KNOWN.len()),
            rejections: Table::of(ErrorCode::KNOWN.len()),
            client,
        };
        metrics.is(Some(State::Connecting));
        metrics
    }

    /// The requests that wait for room, as their queue counts them.
    pub(crate) fn waiting(client: &SharedString) -> Level {
        Level::of(list::WAITING.level([client]))
    }

    /// What has become of the session's load since.
    pub(crate) fn load(&self, requests: usize, bytes: usize, throttled: u64, orphans: usize) {
        self.in_flight.set(requests);
        self.in_flight_bytes.set(bytes);
        self.throttled.set(throttled);
        self.orphans.set(orphans);
    }

    pub(crate) fn watch_event(&self) {
        self.watch_events.increment(1);
    }

    /// `None` once it has ended.
    fn is(&self, now: Option<State>) {
        let all = [State::Connecting, State::Connected, State::ReadOnly, State::Disconnected];
        for (state, level) in all.into_iter().zip(&self.states) {
            level.set(usize::from(now == Some(state)));
        }
    }

    fn operation(&self, op: OpCode) -> &Operation {
        let (client, name) = (&self.client, op.name());
        self.operations.get(OpCode::KNOWN.iter().position(|known| *known == op), || {
            let name = SharedString::const_str(name.unwrap_or("other"));
            let ending =
                |outcome: &'static str| list::REQUESTS.count([client, &name, &outcome.into()]);
            Operation {
                ok: ending("ok"),
                rejected: ending("rejected"),
                not_sent: ending("not_sent"),
                unknown: ending("unknown"),
                duration: list::REQUEST_DURATION.histogram([client, &name]),
            }
        })
    }

    fn rejection(&self, code: ErrorCode) -> &Counter {
        let (client, name) = (&self.client, code.name());
        self.rejections.get(ErrorCode::KNOWN.iter().position(|known| *known == code), || {
            list::REJECTIONS.count([client, &SharedString::const_str(name.unwrap_or("other"))])
        })
    }
}

impl SessionObserver for SessionMetrics {
    fn connected(&self, connected: &Connected<'_>) {
        self.connections.increment(1);
        self.timeout.set(connected.timeout.as_secs_f64());
        self.is(Some(if connected.read_only { State::ReadOnly } else { State::Connected }));
    }

    fn disconnected(&self, why: &LinkError) {
        list::DISCONNECTIONS.count([&self.client, &reason(why).into()]).increment(1);
        self.is(Some(State::Disconnected));
    }

    fn attempt_failed(&self, _server: &str, why: &LinkError) {
        list::CONNECTION_FAILURES.count([&self.client, &reason(why).into()]).increment(1);
    }

    fn ended(&self, end: SessionEnd) {
        for (_, counter) in ENDS.iter().zip(&self.ended).filter(|((known, _), _)| *known == end) {
            counter.increment(1);
        }
        self.is(None);
    }

    fn answered(&self, answered: &Answered) {
        let operation = self.operation(answered.op);
        let counter = match answered.ending {
            Ending::Ok => &operation.ok,
            Ending::Rejected(_) => &operation.rejected,
            Ending::NotSent => &operation.not_sent,
            Ending::Unknown => &operation.unknown,
        };
        counter.increment(1);
        if let Ending::Ok | Ending::Rejected(_) = answered.ending {
            operation.duration.record(answered.took);
        }
        if let Ending::Rejected(code) = answered.ending {
            self.rejection(code).increment(1);
        }
    }

    fn lagged(&self) {
        self.overflows.increment(1);
    }
}

/// The value of the label `reason`.
const fn reason(error: &LinkError) -> &'static str {
    match error {
        LinkError::Unresolved(_) => "unresolved",
        LinkError::Refused => "refused",
        LinkError::Reset => "reset",
        LinkError::Closed => "closed",
        LinkError::TimedOut => "timed_out",
        LinkError::NotServed => "not_served",
        LinkError::Protocol(_) => "protocol",
        LinkError::Moved => "moved",
        LinkError::Unrestored(_) => "unrestored",
        LinkError::Superseded => "superseded",
        LinkError::Tls(_) => "tls",
        LinkError::Sasl(_) => "sasl",
        LinkError::Rebalanced => "rebalanced",
        LinkError::Other(_) => "other",
    }
}

/// A counter that is told a sum instead of what is new.
struct Growing {
    counter: Counter,
    last: AtomicU64,
}

impl Growing {
    const fn of(counter: Counter) -> Self {
        Self { counter, last: AtomicU64::new(0) }
    }

    fn set(&self, sum: u64) {
        let last = self.last.load(Relaxed);
        if sum != last {
            self.last.store(sum, Relaxed);
            self.counter.increment(sum.saturating_sub(last));
        }
    }
}

/// What is made when it is first needed: most programs use few operations. The last place is for all that are unknown.
struct Table<T>(Box<[OnceLock<Box<T>>]>);

impl<T> Table<T> {
    fn of(len: usize) -> Self {
        Self((0..=len).map(|_| OnceLock::new()).collect())
    }

    fn get(&self, place: Option<usize>, make: impl FnOnce() -> T) -> &T {
        self.0[place.unwrap_or(self.0.len() - 1)].get_or_init(|| Box::new(make()))
    }
}
