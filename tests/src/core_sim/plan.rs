//! One run, as data: the same plan is the same run.

use std::time::Duration;

use zk_testkit::sim::Rng;

use super::{
    fault::{self, Planned},
    workload::Wish,
};

/// What is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Where chance comes from.
    pub seed: u64,
    /// How many clients.
    pub clients: usize,
    /// How many members the ensemble has.
    pub members: usize,
    /// The session timeout that clients wish for.
    pub timeout: Duration,
    /// What goes wrong.
    pub faults: Vec<Planned>,
    /// When nothing goes wrong any more.
    pub heal: Duration,
    /// How long bytes are on their way, in microseconds: at least, and less than.
    pub latency: (u64, u64),
    /// Whether users ask for anything, at times and in sizes that chance decides, or for what
    /// `script` says.
    pub is_scripted: bool,
    /// Whether every other client sends such short requests only that it takes several to arm all watches
    /// again.
    pub is_cramped: bool,
    /// How often what a server sends arrives in pieces, in a thousand.
    pub splits: u64,
}

/// The unit of the servers' timers: small, so that sessions can be short.
pub(crate) const TICK: Duration = Duration::from_millis(500);

impl Plan {
    /// A run that follows from its number alone.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let clients = 1 + rng.index(5);
        let members = *rng.pick(&[1, 1, 3, 3, 5]);
        let timeout = Duration::from_millis(*rng.pick(&[1_000, 2_500, 4_000, 10_000]));
        let heal = timeout * 12;
        let count = 4 + rng.index(28);
        let span = (timeout / 2, heal - timeout / 2);
        let mut faults = fault::schedule(&mut rng, count, (clients, members), span, timeout);
        let latency = *rng.pick(&[(50, 400), (200, 5_000), (20, 60_000)]);
        let (is_cramped, splits) = (rng.per_mille(500), *rng.pick(&[100, 600]));
        faults.extend(fault::breaks(&mut rng, clients, heal));
        Self {
            seed,
            clients,
            members,
            timeout,
            faults,
            heal,
            latency,
            is_scripted: false,
            is_cramped,
            splits,
        }
    }

    /// Two clients and two members, and conversations that begin the same each time.
    #[must_use]
    pub fn small(faults: Vec<Planned>) -> Self {
        Self {
            seed: 1,
            clients: 2,
            members: 2,
            timeout: Duration::from_millis(1_500),
            faults,
            heal: Duration::from_secs(6),
            latency: (1_000, 1_001),
            is_scripted: true,
            is_cramped: false,
            splits: 0,
        }
    }

    /// The same with other faults.
    #[must_use]
    pub fn with_faults(&self, faults: Vec<Planned>) -> Self {
        Self { faults, ..self.clone() }
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
