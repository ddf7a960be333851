//! What goes wrong, and with which request.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use zk_client::OpCode;
use zk_testkit::real::Release;
use zk_tests::network::{Disposition, Name};

use crate::combinations::scene::SUBJECT;

/// Longer than requests have by [`Way`](crate::combinations::cell::Way), and shorter than a session lives.
const LATE: Duration = Duration::from_millis(1_500);

/// The same of no connection.
const OUTAGE: Duration = Duration::from_secs(2);

/// How long a trouble lasts at most.
pub(crate) const TROUBLE_MAX: Duration = OUTAGE;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    /// One request is refused for now.
    Throttled,
    /// The same, and the next three of its kind too.
    ThrottledOften,
    /// An answer comes late, and whatever is behind it.
    Late,
    /// An answer goes down with its connection.
    AnswerLost,
    /// A request goes down with its connection.
    RequestLost,
    /// An answer goes down with its connection, and servers are out of reach for a while.
    Outage,
}

impl Trouble {
    pub(crate) const ALL: [Self; 6] = [
        Self::Throttled,
        Self::ThrottledOften,
        Self::Late,
        Self::AnswerLost,
        Self::RequestLost,
        Self::Outage,
    ];

    /// Whether servers do this to such a request.
    pub(crate) fn happens_to(self, op: OpCode, release: Release) -> bool {
        match self {
            Self::Throttled | Self::ThrottledOften => {
                release >= Release::V3_7 && op != OpCode::CLOSE_SESSION
            }
            _ => true,
        }
    }

    const fn disposition(self) -> Disposition {
        match self {
            Self::Throttled | Self::ThrottledOften => Disposition::Throttled,
            Self::Late => Disposition::Late(LATE),
            Self::AnswerLost => Disposition::AnswerLost,
            Self::RequestLost => Disposition::Lost,
            Self::Outage => Disposition::Outage(OUTAGE),
        }
    }
}

/// Where the subject of a play stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Nothing has begun; nothing goes wrong.
    Before,
    /// It asks for something.
    Acquiring,
    /// It waits for it.
    Waiting,
    /// It has it.
    Held,
    /// It gives it back.
    Releasing,
    /// It waits no more.
    GivingUp,
    /// Its session is closed.
    Closing,
    /// All is over; nothing goes wrong any more.
    After,
}

/// One request of a play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) stage: Stage,
    pub(crate) op: OpCode,
    /// Counted from 1, among those of this kind in this stage.
    pub(crate) nth: u32,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{}-{}", self.stage, self.op, self.nth)
    }
}

/// The troubles of a play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Troubles {
    pub(crate) first: Option<(Point, Trouble)>,
    /// What happens to the n-th request after the first trouble.
    pub(crate) second: Option<(usize, Trouble)>,
}

/// What has come of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Met {
    /// All requests in the order in which they were sent.
    pub(crate) requests: Vec<Point>,
    pub(crate) first: bool,
    pub(crate) second: bool,
    /// Those after the first trouble.
    pub(crate) followed: Vec<Point>,
}

/// Decides what goes wrong. Clones share the decision.
#[derive(Clone, Debug)]
pub(crate) struct Drill(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    stage: Stage,
    troubles: Troubles,
    counts: BTreeMap<(Stage, OpCode), u32>,
    met: Met,
    /// Requests of this kind that are still to be refused.
    refusals: (OpCode, u32),
    /// Whether nothing more is to go wrong for now.
    calm: bool,
}

impl Drill {
    pub(crate) fn new(troubles: Troubles) -> Self {
        Self(Arc::new(Mutex::new(State {
            stage: Stage::Before,
            troubles,
            counts: BTreeMap::new(),
            met: Met::default(),
            refusals: (OpCode::PING, 0),
            calm: false,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.state().stage = stage;
    }

    /// Whether nothing more is to go wrong for now.
    pub(crate) fn be_calm(&self, calm: bool) {
        self.state().calm = calm;
    }

    pub(crate) fn met(&self) -> Met {
        self.state().met.clone()
    }

    pub(crate) fn decide(&self, name: Name, op: OpCode) -> Disposition {
        let mut state = self.state();
        if name != SUBJECT || op == OpCode::PING {
            return Disposition::Answered;
        }
        match state.decide(op) {
            Some(trouble) => {
                if trouble == Trouble::ThrottledOften {
                    state.refusals = (op, 3);
                }
                trouble.disposition()
            }
            None if state.refusals.0 == op && state.refusals.1 > 0 => {
                state.refusals.1 -= 1;
                Disposition::Throttled
            }
            None => Disposition::Answered,
        }
    }
}

impl State {
    fn decide(&mut self, op: OpCode) -> Option<Trouble> {
        if self.calm || matches!(self.stage, Stage::Before | Stage::After) {
            return None;
        }
        let nth = self.counts.entry((self.stage, op)).or_default();
        *nth += 1;
        let point = Point { stage: self.stage, op, nth: *nth };
        self.met.requests.push(point);
        if self.met.first {
            self.met.followed.push(point);
            let followed = self.met.followed.len();
            let (_, trouble) = self.troubles.second.filter(|(after, _)| *after == followed)?;
            self.met.second = true;
            return Some(trouble);
        }
        let (_, trouble) = self.troubles.first.filter(|(at, _)| *at == point)?;
        self.met.first = true;
        Some(trouble)
    }
}
