//! What goes wrong, as data: a schedule of faults can be repeated, enumerated and shrunk.

use std::{fmt, time::Duration};

use zk_proto::Time;
use zk_testkit::sim::{Fault, Rng, Target};

/// What can go wrong with a client, or with the link that it has at that moment.
const OF_CLIENT: [Fault; 12] = [
    Fault::Reset,
    Fault::Finish,
    Fault::Forget,
    Fault::HoleUp,
    Fault::HoleDown,
    Fault::Late,
    Fault::Slow,
    Fault::Choppy,
    Fault::Flap,
    Fault::Stall,
    Fault::Isolate,
    Fault::Expire,
];

/// What can go wrong with a member, which closes all its connections if these finish.
const OF_MEMBER: [Fault; 6] =
    [Fault::Kill, Fault::CutOff, Fault::Lag, Fault::Refuse, Fault::Silent, Fault::Finish];

/// How many kinds there are.
pub(crate) const KINDS: usize = OF_CLIENT.len() + OF_MEMBER.len() + 1;

/// All faults, for so many clients and members.
pub(crate) fn all(clients: usize, members: usize) -> Vec<(Fault, Target)> {
    let client = |number| Target::Client(u32::try_from(number).unwrap_or(u32::MAX));
    let of_clients = OF_CLIENT
        .into_iter()
        .flat_map(|fault| (0..clients).map(move |number| (fault, client(number))));
    let of_members = OF_MEMBER
        .into_iter()
        .flat_map(|fault| (0..members).map(move |number| (fault, Target::Member(number))));
    of_clients.chain(of_members).chain([(Fault::Depose, Target::All)]).collect()
}

/// When a fault begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// At this time.
    At(Time),
    /// Before so many deliveries were made.
    Delivery(usize),
}

/// One entry of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Planned {
    /// When it begins.
    pub when: When,
    /// What.
    pub fault: Fault,
    /// Whom it strikes: a client, a member, or all of these.
    pub target: Target,
    /// How long it lasts, if it lasts.
    pub duration: Duration,
}

impl Planned {
    /// What strikes what, to be counted.
    pub(crate) const fn kind(&self) -> (Fault, &'static str) {
        (
            self.fault,
            match self.target {
                Target::Client(_) | Target::Path(..) => "client",
                Target::Member(_) => "member",
                Target::All => "all",
            },
        )
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { when, fault, target, duration } = self;
        match when {
            When::At(at) => write!(f, "{at}: ")?,
            When::Delivery(count) => write!(f, "delivery {count}: ")?,
        }
        write!(f, "{} {target} for {duration:?}", fault.name())
    }
}

/// A schedule of so many faults between these times, made up.
pub(crate) fn schedule(
    rng: &mut Rng,
    count: usize,
    (clients, members): (usize, usize),
    (from, until): (Duration, Duration),
    timeout: Duration,
) -> Vec<Planned> {
    let mut all = all(clients, members);
    // These come from [`breaks`].
    all.retain(|(fault, _)| *fault != Fault::Flap);
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let mut planned: Vec<_> = (0..count)
        .map(|_| {
            let when = When::At(Time::new(rng.micros(micros(from), micros(until))));
            // Short ones strike within a conversation, long ones outlast a session.
            let most = if rng.per_mille(600) { micros(timeout) / 20 } else { micros(timeout) * 2 };
            let (fault, target) = *rng.pick(&all);
            Planned { when, fault, target, duration: rng.micros(100, most.max(200)) }
        })
        .collect();
    planned.sort_unstable();
    planned
}

/// Times that connections are made to break between two deliveries.
const BREAKS_MAX: u64 = 24;

/// Deliveries to and from one client in a second, about.
const DELIVERIES_PER_SECOND: u64 = 60;

/// Connections that break between two deliveries, made up: between two events of one transaction, or two
/// answers that arm watches again, there is hardly any time.
pub(crate) fn breaks(rng: &mut Rng, clients: usize, until: Duration) -> Vec<Planned> {
    let of_link = [Fault::Reset, Fault::Finish, Fault::HoleDown];
    let deliveries = until.as_secs() * clients as u64 * DELIVERIES_PER_SECOND;
    let mut planned: Vec<_> = (0..rng.below(BREAKS_MAX))
        .map(|_| {
            let target = Target::Client(u32::try_from(rng.index(clients)).unwrap_or(u32::MAX));
            let delivery = usize::try_from(rng.below(deliveries)).unwrap_or(usize::MAX);
            let is_frail = rng.per_mille(500);
            let fault = if is_frail { Fault::Flap } else { *rng.pick(&of_link) };
            let duration = rng.micros(100, 2_000_000);
            Planned { when: When::Delivery(delivery), fault, target, duration }
        })
        .collect();
    planned.sort_unstable();
    planned
}
