//! What goes wrong, as data: a schedule of faults can be repeated, enumerated and shrunk.

use std::{fmt, time::Duration};

use zk_proto::Time;

use super::rng::Rng;

/// Something that goes wrong. Faults of links strike the one that the client has at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Both sides hear at once of a reset; what is on its way is lost.
    Reset(usize),
    /// The connection is closed, behind what is on its way.
    Fin(usize),
    /// Nothing gets through any more, and nobody is told.
    BlackHole(usize),
    /// The same, only towards the server.
    BlackHoleUp(usize),
    /// The same, only towards the client.
    BlackHoleDown(usize),
    /// Everything on the way, and behind it, arrives only when this is over; even if the client has
    /// left by then, and lives on another connection.
    Stall(usize),
    /// Everything that this client sends and is sent takes longer.
    Slow(usize),
    /// Bytes of this client come in ones, twos and threes.
    Crumbs(usize),
    /// Connections of this client break after a few deliveries, this one and all that follow.
    Frail(usize),
    /// The client's process stands still.
    Pause(usize),
    /// The client reaches no server: its dials get no answer, its connection is a black hole.
    Isolate(usize),
    /// The servers forget the client's session.
    Expire(usize),
    /// A member dies, and is started again when this is over.
    Stop(usize),
    /// A member is cut off from the others.
    CutOff(usize),
    /// A member lags.
    Lag(usize),
    /// A member takes no connections.
    Refuse(usize),
    /// A member takes connections and says nothing.
    Hang(usize),
    /// A member closes all its connections.
    DropConnections(usize),
    /// The members look for a leader anew.
    Depose,
}

/// How many kinds there are.
pub(crate) const KINDS: usize = 19;

impl Fault {
    /// All of them, for so many clients and members.
    #[must_use]
    pub fn all(clients: usize, members: usize) -> Vec<Self> {
        let of_client: [fn(usize) -> Self; 12] = [
            Self::Reset,
            Self::Fin,
            Self::BlackHole,
            Self::BlackHoleUp,
            Self::BlackHoleDown,
            Self::Stall,
            Self::Slow,
            Self::Crumbs,
            Self::Frail,
            Self::Pause,
            Self::Isolate,
            Self::Expire,
        ];
        let of_member: [fn(usize) -> Self; 6] =
            [Self::Stop, Self::CutOff, Self::Lag, Self::Refuse, Self::Hang, Self::DropConnections];
        let of_clients = of_client.iter().flat_map(|fault| (0..clients).map(fault));
        let of_members = of_member.iter().flat_map(|fault| (0..members).map(fault));
        of_clients.chain(of_members).chain([Self::Depose]).collect()
    }

    /// The class that the guide to the simulator lists it under.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Reset(_) => "N4",
            Self::Fin(_) | Self::DropConnections(_) => "N5",
            Self::BlackHole(_) => "N6",
            Self::BlackHoleUp(_) => "N7u",
            Self::BlackHoleDown(_) => "N7d",
            Self::Stall(_) => "N12",
            Self::Slow(_) => "N8",
            Self::Crumbs(_) => "N10",
            Self::Frail(_) => "N13",
            Self::Pause(_) => "C1",
            Self::Isolate(_) => "N15",
            Self::Expire(_) => "V5",
            Self::Stop(_) => "V1",
            Self::CutOff(_) => "V8",
            Self::Lag(_) => "V4",
            Self::Refuse(_) => "N1",
            Self::Hang(_) => "N3",
            Self::Depose => "V3",
        }
    }

    /// Its kind, as a number and by name.
    pub(crate) const fn kind(self) -> (usize, &'static str) {
        match self {
            Self::Reset(_) => (0, "reset"),
            Self::Fin(_) => (1, "fin"),
            Self::BlackHole(_) => (2, "black hole"),
            Self::BlackHoleUp(_) => (3, "black hole up"),
            Self::BlackHoleDown(_) => (4, "black hole down"),
            Self::Stall(_) => (5, "stall"),
            Self::Slow(_) => (6, "slow"),
            Self::Crumbs(_) => (7, "crumbs"),
            Self::Pause(_) => (8, "pause"),
            Self::Isolate(_) => (9, "isolate"),
            Self::Expire(_) => (10, "expire"),
            Self::Stop(_) => (11, "stop"),
            Self::CutOff(_) => (12, "cut off"),
            Self::Lag(_) => (13, "lag"),
            Self::Refuse(_) => (14, "refuse"),
            Self::Hang(_) => (15, "hang"),
            Self::DropConnections(_) => (16, "drop connections"),
            Self::Depose => (17, "depose"),
            Self::Frail(_) => (18, "frail"),
        }
    }
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
    /// How long it lasts, if it lasts.
    pub duration: Duration,
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { when, fault, duration } = self;
        match when {
            When::At(at) => write!(f, "{at}: {fault:?} for {duration:?}"),
            When::Delivery(count) => write!(f, "delivery {count}: {fault:?} for {duration:?}"),
        }
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
    let mut all = Fault::all(clients, members);
    // These come from [`breaks`].
    all.retain(|fault| !matches!(fault, Fault::Frail(_)));
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let mut planned: Vec<_> = (0..count)
        .map(|_| {
            let when = When::At(Time::new(rng.micros(micros(from), micros(until))));
            // Short ones strike within a conversation, long ones outlast a session.
            let most = if rng.chance(600) { micros(timeout) / 20 } else { micros(timeout) * 2 };
            Planned { when, fault: rng.pick(&all), duration: rng.micros(100, most.max(200)) }
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
    let of_link: [fn(usize) -> Fault; 3] = [Fault::Reset, Fault::Fin, Fault::BlackHoleDown];
    let deliveries = until.as_secs() * clients as u64 * DELIVERIES_PER_SECOND;
    let mut planned: Vec<_> = (0..rng.below(BREAKS_MAX))
        .map(|_| {
            let client = rng.index(clients);
            let delivery = usize::try_from(rng.below(deliveries)).unwrap_or(usize::MAX);
            let is_frail = rng.chance(500);
            let fault = if is_frail { Fault::Frail(client) } else { rng.pick(&of_link)(client) };
            let duration = rng.micros(100, 2_000_000);
            Planned { when: When::Delivery(delivery), fault, duration }
        })
        .collect();
    planned.sort_unstable();
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_number_of_its_own() {
        let mut kinds: Vec<_> = Fault::all(1, 1).iter().map(|fault| fault.kind().0).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, (0..KINDS).collect::<Vec<_>>());
    }
}
