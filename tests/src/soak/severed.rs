//! Holders on a member that is cut off from its leader, which gives their locks away: none may believe in what
//! the grants of others.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use tokio::{task::JoinSet, time::timeout};
use zk_client::Session;
use zk_locks::{Client, ConnectOptions, Guard, Lease, Lock, Status};
use zk_testkit::real::{Ensemble, Release};

use super::Report;

/// How long it may take until the last lock has changed hands, in session timeouts.
const PATIENCE: u32 = 10;

/// What a soak test is to be like.
#[derive(Args, Clone, Copy, Debug)]
pub struct Options {
    /// How many hold a lock each, in each round.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub holders: usize,
    /// How often the member is cut off.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Whether every answer counts, as by `Lease::Connection`: they believe for too long then.
    #[arg(long)]
    pub by_connection: bool,
    /// The unit of the servers' timers, as most servers have it.
    #[arg(skip = Duration::from_secs(2))]
    pub tick: Duration,
    /// For how many of them a member goes on that does not hear of its leader.
    #[arg(skip = 5u32)]
    pub sync_limit: u32,
    /// What holders and waiters wish for.
    #[arg(skip = Duration::from_secs(6))]
    pub session_timeout: Duration,
    /// The servers.
    #[arg(skip = Release::V3_9)]
    pub release: Release,
}

/// What holders do besides.
#[derive(Clone, Copy, Debug)]
enum Pastime {
    Nothing,
    /// All of these without a pause.
    Reads,
    Writes,
    Syncs,
}

impl Pastime {
    const ALL: [Self; 4] = [Self::Nothing, Self::Reads, Self::Writes, Self::Syncs];

    async fn pass(self, zk: Client) {
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        loop {
            tick.tick().await;
            let done = match self {
                Self::Nothing => std::future::pending().await,
                Self::Reads => zk.exists("/").await.is_ok(),
                Self::Writes => zk.set(STAGE, b"").await.is_ok(),
                Self::Syncs => zk.sync("/").await.is_ok(),
            };
            if !done {
                return;
            }
        }
    }
}

const STAGE: &str = "/severed";

/// Runs the test.
///
/// # Errors
/// What kept the servers from being started, or the locks from being taken.
pub async fn run(options: Options) -> Result<Report, Box<dyn Error>> {
    let builder = Ensemble::builder().release(options.release).tick_time(options.tick);
    let ensemble = builder.sync_limit(options.sync_limit).severable(true).start().await?;
    if ensemble.wait_for_all().await? == 0 {
        // It is a follower that is to be cut off.
        ensemble.kill(0).await?;
        ensemble.wait_for_quorum().await?;
        ensemble.restart(0).await?;
        ensemble.wait_for_all().await?;
    }
    let mut report = Report::new("severed");
    let (mut changes, mut believed, mut latest) = (0, 0, Duration::ZERO);
    for _ in 0..options.rounds {
        let round = round(&ensemble, options).await?;
        changes += round.len();
        for left in round.into_iter().flatten() {
            believed += 1;
            latest = latest.max(left);
        }
        ensemble.sever(false);
        ensemble.wait_for_all().await?;
    }
    report.figure("holders", options.holders * options.rounds);
    report.figure("locks that were given to somebody else", changes);
    report.figure("holders that believed in them still", believed);
    report.figure("longest time they would have gone on for, ms", latest.as_secs_f64() * 1e3);
    report.expect(changes == options.holders * options.rounds, || "locks are stuck".to_owned());
    if !options.by_connection {
        report.expect(believed == 0, || format!("{believed} holders believed for too long"));
    }
    Ok(report)
}

/// Cuts the member off once; of each lock that has changed hands, for how long its holder was sure of it still.
async fn round(ensemble: &Ensemble, options: Options) -> Result<Vec<Belief>, Box<dyn Error>> {
    let leader = ensemble.wait_for_all().await?;
    let connect = async |servers: String| {
        let wished = ConnectOptions::new(&servers)?.session_timeout(options.session_timeout);
        let lease = if options.by_connection { Lease::Connection } else { Lease::default() };
        wished.lease(lease).connect().await
    };
    let (mut changes, mut pastimes) = (JoinSet::new(), JoinSet::new());
    let stage = connect(ensemble.connect_string_of(&[leader])).await?;
    let _ = stage.create(STAGE, b"").await;
    for number in 0..options.holders {
        let path = format!("{STAGE}/{number}");
        let zk = connect(ensemble.connect_string_of(&[0])).await?;
        let guard = Arc::new(Lock::new(&zk, &path).acquire().await?);
        let pastime = Pastime::ALL[number % Pastime::ALL.len()];
        pastimes.spawn(pastime.pass(zk.clone()));
        let next = connect(ensemble.connect_string_of(&[leader])).await?;
        changes.spawn(change(next, path, guard, zk.session()));
    }
    for number in 0..options.holders {
        // Its holder, and the one that is to have it next.
        while stage.children(&format!("{STAGE}/{number}")).await?.0.len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let standing = Instant::now();
    // Until no lease is fresh.
    while standing.elapsed() < options.session_timeout / 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ensemble.sever(true);
    let mut believed = Vec::new();
    let patience = options.session_timeout * PATIENCE;
    while let Ok(Some(change)) = timeout(patience, changes.join_next()).await {
        believed.extend(change?);
    }
    pastimes.shutdown().await;
    Ok(believed)
}

/// Waits for a lock. Once it has it: for how long its former holder is sure of it, if that still believes to have it.
async fn change(zk: Client, path: String, former: Arc<Guard>, session: Session) -> Option<Belief> {
    let guard = Lock::new(&zk, &path).acquire().await.ok()?;
    let belief = match former.status() {
        Status::Lost(_) => None,
        _ => Some(session.lease_left()),
    };
    // The one that comes next is not asked about.
    drop(guard.release().await);
    Some(belief)
}

/// For how long a client would go on believing to have a lock, if at all.
type Belief = Option<Duration>;
