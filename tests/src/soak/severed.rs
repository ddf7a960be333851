//! Holders on a member that is cut off from its leader, which gives their locks away, or on a leader that stands still.
//! None may believe in a lock that another was granted.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use tokio::{task::JoinSet, time::timeout};
use zk_client::Session;
use zk_locks::{Client, ConnectOptions, Guard, Lease, Lock, Status};
use zk_testkit::real::{Ensemble, Release};

use super::{Report, in_millis};

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
    /// What becomes of the member that they are on.
    #[arg(long, value_enum, default_value_t = Trouble::Severed)]
    pub trouble: Trouble,
    /// What their leases are counted by.
    #[arg(long, value_enum, default_value_t = By::Confirmed)]
    pub lease: By,
    /// The unit of the servers' timers.
    #[arg(long = "tick", value_name = "MS", default_value = "2000", value_parser = in_millis)]
    pub tick: Duration,
    /// For how many of them a member goes on that does not hear of its leader, or of its followers.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub sync_limit: u32,
    /// What holders and waiters wish for.
    #[arg(long = "timeout", value_name = "MS", default_value = "6000", value_parser = in_millis)]
    pub session_timeout: Duration,
    /// Has all of them do nothing besides, where most of them read, write or ask for a `sync` all the time.
    #[arg(long)]
    pub idle: bool,
    /// The servers.
    #[arg(skip = Release::V3_9)]
    pub release: Release,
}

/// What becomes of a member, without its clients' hearing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Trouble {
    /// A follower: cut off from its leader.
    Severed,
    /// A leader: stopped for longer than its followers wait for it.
    Stopped,
}

/// What leases are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// What the leader says.
    Confirmed,
    /// Every answer.
    Connection,
}

impl By {
    const fn lease(self) -> Lease {
        match self {
            Self::Confirmed => Lease::Confirmed,
            Self::Connection => Lease::Connection,
        }
    }
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

/// Of the sessions that no trouble is meant for.
const LASTING: Duration = Duration::from_secs(60);

/// Runs the test.
///
/// # Errors
/// What kept the servers from being started, or the locks from being taken.
pub async fn run(options: Options) -> Result<Report, Box<dyn Error>> {
    let builder = Ensemble::builder().release(options.release).tick_time(options.tick);
    let severable = options.trouble == Trouble::Severed;
    let ensemble = builder.sync_limit(options.sync_limit).severable(severable).start().await?;
    // It is a follower that is to be cut off.
    while severable && ensemble.wait_for_all().await? == 0 {
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
        ensemble.wait_for_all().await?;
    }
    report.figure("holders", options.holders * options.rounds);
    report.figure("locks that were given to somebody else", changes);
    report.figure("holders that believed in them still", believed);
    report.figure("longest time they would have gone on for, ms", latest.as_secs_f64() * 1e3);
    // Once it runs again, a leader that was stopped follows another, and its clients go on with their sessions.
    let expected = match options.trouble {
        Trouble::Severed => options.holders * options.rounds,
        Trouble::Stopped => 0,
    };
    report.expect(changes == expected, || format!("{expected} locks were to change hands"));
    if options.lease != By::Connection {
        report.expect(believed == 0, || format!("{believed} holders believed for too long"));
    }
    Ok(report)
}

/// Troubles the member once; of each lock that has changed hands, for how long its holder was sure of it still.
async fn round(ensemble: &Ensemble, options: Options) -> Result<Vec<Belief>, Box<dyn Error>> {
    let leader = ensemble.wait_for_all().await?;
    let (troubled, others) = match options.trouble {
        Trouble::Severed => (0, vec![leader]),
        Trouble::Stopped => {
            (leader, (0..ensemble.len()).filter(|member| *member != leader).collect())
        }
    };
    let connect = async |members: &[usize], session_timeout| {
        let servers = ConnectOptions::new(&ensemble.connect_string_of(members))?;
        servers.session_timeout(session_timeout).lease(options.lease.lease()).connect().await
    };
    let (mut changes, mut pastimes) = (JoinSet::new(), JoinSet::new());
    let holders = u32::try_from(options.holders.max(1))?;
    let stage = connect(&others, LASTING).await?;
    let _ = stage.create(STAGE, b"").await;
    for number in 0..options.holders {
        let path = format!("{STAGE}/{number}");
        let zk = connect(&[troubled], options.session_timeout).await?;
        let guard = Arc::new(Lock::new(&zk, &path).acquire().await?);
        let pastime = match options.idle {
            true => Pastime::Nothing,
            false => Pastime::ALL[number % Pastime::ALL.len()],
        };
        pastimes.spawn(pastime.pass(zk.clone()));
        let next = connect(&others, LASTING).await?;
        changes.spawn(change(next, path, guard, zk.session()));
        // Not all of them ask the leader at one time.
        pass(options.session_timeout / 3 / holders).await;
    }
    for number in 0..options.holders {
        // Its holder, and the one that is to have it next.
        while stage.children(&format!("{STAGE}/{number}")).await?.0.len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    // Until no lease is fresh.
    pass(options.session_timeout / 2).await;
    match options.trouble {
        Trouble::Severed => ensemble.sever(true),
        Trouble::Stopped => {
            ensemble.pause(troubled)?;
            // Almost until clients try another connection.
            pass(options.session_timeout.mul_f64(0.63)).await;
            ensemble.resume(troubled)?;
        }
    }
    let mut believed = Vec::new();
    let patience = options.session_timeout
        * match options.trouble {
            Trouble::Severed => PATIENCE,
            Trouble::Stopped => 2,
        };
    while let Ok(Some(change)) = timeout(patience, changes.join_next()).await {
        believed.extend(change?);
    }
    pastimes.shutdown().await;
    if options.trouble == Trouble::Severed {
        ensemble.sever(false);
    }
    Ok(believed)
}

async fn pass(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
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
