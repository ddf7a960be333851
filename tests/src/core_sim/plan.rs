//! One run, as data: the same plan is the same run.

use std::time::Duration;

use zk_testkit::{
    real::Release,
    sim::{Incident, Rng, Schedule, Stage},
};

use super::{fault, workload::Wish};

/// What is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Where chance comes from.
    pub seed: u64,
    /// How many clients.
    pub clients: u32,
    /// How many members the ensemble has.
    pub members: usize,
    /// Of which release they are.
    pub release: Release,
    /// The session timeout that clients wish for.
    pub timeout: Duration,
    /// What goes wrong, and when.
    pub schedule: Schedule,
    /// What goes wrong before so many deliveries were made, the next first.
    pub by_delivery: Vec<(u64, Incident)>,
    /// When nothing goes wrong any more.
    pub heal: Duration,
    /// How long bytes are on their way, in microseconds, first and last included.
    pub latency: (u64, u64),
    /// Whether users ask for anything, at times and in sizes that chance decides, or for what
    /// `script` says.
    pub is_scripted: bool,
    /// Whether every other client sends such short requests only that it takes several to arm all watches
    /// again.
    pub is_cramped: bool,
    /// Whether members without a quorum serve reads, to every other client.
    pub has_readers: bool,
}

/// The unit of the servers' timers: small, so that sessions can be short.
pub(crate) const TICK: Duration = Duration::from_millis(500);

/// The part of chance that decides on members that serve those who only read.
const READERS: u64 = 0x2EAD;

/// How long a new leader takes to be found: in proportion to the tick, as where that has two seconds.
pub(crate) const ELECTION: Duration = Duration::from_millis(75);

impl Plan {
    /// A run that follows from its number alone.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let clients = rng.within(1, 5) as u32;
        let members = *rng.pick(&[1, 1, 3, 3, 5]);
        let session_timeout = *rng.pick(&[1_000, 2_500, 4_000, 10_000]);
        let timeout = Duration::from_millis(session_timeout);
        let until = session_timeout * 12;
        let (newest, older) = Release::ALL.split_last().expect("there are releases");
        let release = if rng.per_mille(500) { *newest } else { *rng.pick(older) };
        let pause = until / rng.within(4, 31);
        let stage =
            Stage { from: session_timeout / 2, until, clients, members, session_timeout, pause };
        let mut schedule = fault::schedule(&mut rng, &stage, timeout);
        // From a chance of its own, so that other seeds stand for what they did before.
        let mut apart = Rng::new(seed).fork(READERS);
        let has_readers = members > 2 && apart.one_in(2);
        if has_readers {
            fault::leave_alone(&mut schedule, &mut apart, &stage);
        }
        Self {
            seed,
            clients,
            members,
            release,
            timeout,
            schedule,
            by_delivery: fault::breaks(&mut rng, &stage),
            heal: timeout * 12,
            latency: *rng.pick(&[(50, 400), (200, 5_000), (20, 60_000)]),
            is_scripted: false,
            is_cramped: rng.per_mille(500),
            has_readers,
        }
    }

    /// Whether a client takes members without a quorum.
    #[must_use]
    pub const fn reads_alone(&self, client: usize) -> bool {
        self.has_readers && client % 2 == 0
    }

    /// Two clients and two members, and conversations that begin the same each time.
    #[must_use]
    pub fn small(by_delivery: Vec<(u64, Incident)>) -> Self {
        Self {
            seed: 1,
            clients: 2,
            members: 2,
            release: Release::NEWEST,
            timeout: Duration::from_millis(1_500),
            schedule: Schedule::default(),
            by_delivery,
            heal: Duration::from_secs(6),
            latency: (1_000, 1_000),
            is_scripted: true,
            is_cramped: false,
            has_readers: false,
        }
    }
}

/// What a client of a scripted run asks for, batch by batch, each once the one before has its outcomes.
pub(crate) const fn script(client: usize) -> &'static [&'static [Wish]] {
    use Wish::{Children, Create, DeleteMarked, Exists, Follow, Get, Set, Sync};
    use zk_proto::{AddWatchMode, CreateFlags};
    match client {
        0 => &[
            &[Create("/log", CreateFlags::PERSISTENT), Create("/a", CreateFlags::EPHEMERAL)],
            &[Get("/a", true), Exists("/b", true), Children("/", true)],
            &[Set("/a"), Set("/log"), Get("/log", false)],
            &[Sync, DeleteMarked("/b"), Exists("/b", true)],
        ],
        _ => &[
            &[Exists("/a", true), Follow("/", AddWatchMode::PERSISTENT_RECURSIVE)],
            &[Create("/b", CreateFlags::EPHEMERAL), Get("/a", true)],
            &[Set("/b"), Children("/", true)],
            &[Sync, Get("/a", true), DeleteMarked("/a")],
        ],
    }
}
