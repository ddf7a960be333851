//! Locks that processes of Curator, kazoo and `zk-locks` share, on three real servers: see docs/interop.md.
//!
//! The scenarios take place one after the other, on one ensemble.

use std::time::Duration;

use tokio::{
    sync::{Mutex, MutexGuard, OnceCell},
    time::{sleep, timeout},
};
use zk_testkit::real::{Ensemble, Release};
use zk_tests::interop::{
    Claim, Contend, Counts, Demands, Mode, Options, Party, Process, Report, Resource, Scenario,
    Tools, Violation, run,
};

/// What starts our contenders.
const ZK_INTEROP: &str = env!("CARGO_BIN_EXE_zk-interop");

/// Short, so that contenders that die in the queue do not hold it up for long.
const SESSION: Duration = Duration::from_secs(2);

/// On a machine that is busy with other things.
const EXTRA_TIME: Duration = Duration::from_secs(60);

/// Every contender gets its turn, but a killed one is away for a while, and JVMs for longer.
const DEMANDS: Demands =
    Demands { entered_min: 100, share_min: 10.0, pause_max: Duration::from_secs(30) };

/// Everything fetched, and an ensemble. Its watchdogs end it with this process.
static WORLD: OnceCell<(Tools, Ensemble)> = OnceCell::const_new();

/// One at a time: three servers and a handful of JVMs are enough for a machine.
static TURN: Mutex<()> = Mutex::const_new(());

async fn world() -> (MutexGuard<'static, ()>, &'static (Tools, Ensemble)) {
    let turn = TURN.lock().await;
    let start = async || {
        let tools =
            Tools::prepare(ZK_INTEROP.into()).await.expect("Curator and kazoo are needed here");
        (tools, Ensemble::start(Release::V3_9).await.unwrap())
    };
    (turn, WORLD.get_or_init(start).await)
}

async fn report(options: &Options) -> Report {
    let (_turn, (tools, ensemble)) = world().await;
    run(options, ensemble, tools).await.unwrap()
}

/// So long under faults, and as long as it takes until every pair of parties has been seen in every way.
async fn shared(scenario: Scenario, seconds: u64) {
    let mut options = Options::new(scenario, Duration::from_secs(seconds));
    (options.session, options.extra_time) = (SESSION, EXTRA_TIME);
    options.demands = DEMANDS;
    let report = report(&options).await;
    println!("{report}");
    let failures = report.failures();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curator_kazoo_and_we_exclude_each_other() {
    // Each sort of fault comes within that time.
    shared(Scenario::Exclusive, 26).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rw_locks_interoperate_with_curator() {
    shared(Scenario::ReadWrite, 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_shared_with_curator_stay_bounded() {
    shared(Scenario::Semaphore, 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_alternates_with_curator() {
    shared(Scenario::Leader, 8).await;
}

/// The resource reports it: a contender that does not wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contender_ignoring_the_queue_is_reported() {
    let violations = violations_of(&[Party::Ours, Party::Impatient]).await;
    let overlaps = violations.iter().filter(|one| matches!(one, Violation::Overlap { .. }));
    assert!(overlaps.clone().count() > 0, "{violations:?}");
    for violation in overlaps {
        assert!(violation.to_string().contains("impatient"), "{violation}");
    }
}

/// Two programs that follow their manuals, on one path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_kazoo_and_curator_do_not_exclude() {
    let violations = violations_of(&[Party::Curator, Party::KazooAsIs]).await;
    assert!(
        violations.iter().any(|one| matches!(one, Violation::Overlap { .. })),
        "{violations:?}"
    );
}

async fn violations_of(parties: &[Party]) -> Vec<Violation> {
    let mut options = Options::new(Scenario::Exclusive, Duration::from_secs(2));
    (options.parties, options.session, options.faults) = (parties.to_vec(), SESSION, false);
    // Long enough for any other contender to come in.
    options.hold = Duration::from_millis(20);
    let report = report(&options).await;
    assert!(!report.failures().is_empty());
    report.counts.told
}

/// Two processes of one contender each, without faults but for those that a test makes up.
struct Pair {
    resource: Resource,
    ours: Process,
    curator: Process,
    _logs: tempfile::TempDir,
}

impl Pair {
    async fn start(tools: &Tools, ensemble: &Ensemble, path: &str) -> Self {
        let servers = ensemble.connect_string();
        let resource = Resource::open(&servers, 1).await.unwrap();
        let logs = tempfile::tempdir().unwrap();
        let start = |party| {
            let told = contender(party, &servers, path, &resource);
            Process::start(tools.command(&told), &logs.path().join(told.name)).unwrap()
        };
        let (ours, curator) = (start(Party::Ours), start(Party::Curator));
        Self { resource, ours, curator, _logs: logs }
    }

    fn process(&self, party: Party) -> &Process {
        if party == Party::Ours { &self.ours } else { &self.curator }
    }

    /// Stops a process between its write lock and the read lock that this is to become, until its session is over
    /// and the other one has been let in.
    async fn stop_in_downgrade(&self, party: Party) {
        let downgrades = |claim: &Claim| {
            let has_read_lock = claim.node.contains("READ");
            claim.party == party && claim.mode == Mode::Downgraded && !has_read_lock
        };
        let superseded =
            |counts: &Counts| counts.superseded.get(&party).copied().unwrap_or_default();
        let before = superseded(&self.resource.counts().await);
        let stop = |_: &str| self.process(party).pause().unwrap();
        in_the_end(self.resource.to_somebody_inside(downgrades, stop)).await;
        self.until(|counts| superseded(counts) > before).await;
        self.process(party).resume().unwrap();
    }

    async fn until(&self, reached: impl Fn(&Counts) -> bool) {
        in_the_end(async {
            while !reached(&self.resource.counts().await) {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

/// Longer than anything takes here that happens at all.
async fn in_the_end<F: IntoFuture>(future: F) -> F::Output {
    timeout(Duration::from_secs(240), future.into_future()).await.expect("it did not happen")
}

fn contender(party: Party, servers: &str, path: &str, resource: &Resource) -> Contend {
    Contend {
        scenario: Scenario::ReadWrite,
        servers: servers.to_owned(),
        path: path.to_owned(),
        resource: resource.addr(),
        party,
        name: party.to_string(),
        tasks: 1,
        hold: 500,
        session: 4_000,
        permits: 1,
    }
}

/// A finding about Curator 5.9.0, and that the resource notices it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curator_downgrade_outlives_its_session() {
    let (_turn, (tools, ensemble)) = world().await;
    let pair = Pair::start(tools, ensemble, "/interop-curator-downgrades").await;
    // It may have had its read lock already when it was stopped: what it says of itself comes later.
    in_the_end(async {
        while pair.resource.counts().await.jumped_in == 0 {
            pair.stop_in_downgrade(Party::Curator).await;
            let entered = pair.resource.counts().await.entered_by(Party::Curator);
            pair.until(|counts| {
                counts.jumped_in > 0 || counts.entered_by(Party::Curator) > entered
            })
            .await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_downgrade_ends_with_its_session() {
    let (_turn, (tools, ensemble)) = world().await;
    let pair = Pair::start(tools, ensemble, "/interop-we-downgrade").await;
    pair.stop_in_downgrade(Party::Ours).await;
    // It says so, and goes on with another session.
    pair.until(|counts| counts.notes.keys().any(|(party, _)| *party == Party::Ours)).await;
    let before = pair.resource.counts().await.entered_by(Party::Ours);
    pair.until(|counts| counts.entered_by(Party::Ours) > before).await;
    assert_eq!(pair.resource.counts().await.violations, 0);
}

/// No process is left running when a test is killed, even if it is in the middle of waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contender_ends_with_its_parent_process() {
    let (_turn, (tools, _)) = world().await;
    let logs = tempfile::tempdir().unwrap();
    for party in [Party::Ours, Party::Curator, Party::Kazoo] {
        // There is no server.
        let nowhere = "127.0.0.1:1";
        let resource = Resource::open(nowhere, 1).await.unwrap();
        let told = contender(party, nowhere, "/interop", &resource);
        let log = logs.path().join(party.to_string());
        let mut process = Process::start(tools.command(&told), &log).unwrap();
        in_the_end(async {
            while resource.contenders().await == 0 {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        assert_eq!(process.ended().unwrap(), None);
        process.abandon();
        in_the_end(async {
            while process.ended().unwrap().is_none() {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}
