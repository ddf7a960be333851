//! Every recipe at once, while the members of an ensemble are killed one after the other.
//!
//! | module | concern |
//! |---|---|
//! | `shared` | what all contenders share: fenced resources, counts, and when it is over |
//! | `contender` | a session whose tasks take one recipe's locks again and again |
//! | `recipes` | a turn under each recipe |
//! | `killer` | how long it takes until locks are granted again when a member was killed |

mod contender;
mod killer;
mod recipes;
mod shared;

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use tokio::{task::JoinSet, time::timeout};
use zk_locks::{Client, ConnectError, ConnectOptions};
use zk_testkit::real::{self, Ensemble, Release};

pub(super) use self::{
    contender::Contender,
    recipes::{ROOT, Recipe},
    shared::{Pace, Shared},
};
use super::{Report, in_seconds};

/// Longer than any outage.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// How long contenders may take to end their last turns: one that is stuck has lost a wake-up.
const FINISH_LIMIT: Duration = Duration::from_secs(120);

/// What a soak test is to be like.
#[derive(Args, Clone, Copy, Debug)]
pub struct Options {
    /// For how long members are killed at least, in seconds.
    #[arg(long = "seconds", value_name = "S", default_value = "1200", value_parser = in_seconds)]
    pub time: Duration,
    /// How many are killed at least.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub kills: usize,
    /// From one kill to the next at least, in seconds.
    #[arg(long, value_name = "S", default_value = "4", value_parser = in_seconds)]
    pub every: Duration,
    /// Sessions for each recipe.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub sessions: usize,
    /// The servers.
    #[arg(skip = Release::V3_9)]
    pub release: Release,
}

/// Runs the test.
///
/// # Errors
/// What kept the servers from being started.
pub async fn run(options: Options) -> Result<Report, real::Error> {
    let begun = Instant::now();
    let ensemble = Ensemble::start(options.release).await?;
    let (pause, hold) = (Duration::ZERO, Duration::ZERO);
    let pace = Pace { session_timeout: SESSION_TIMEOUT, pause, hold };
    let shared = Arc::new(Shared::new(ensemble.connect_string(), pace));
    let mut contenders = JoinSet::new();
    for recipe in Recipe::ALL {
        for number in 0..options.sessions {
            contenders.spawn(Contender::new(shared.clone(), recipe, number).run());
        }
    }
    let killed = killer::run(&ensemble, &shared, options).await;
    shared.end();
    let mut report = Report::new("rolling");
    let finished = timeout(FINISH_LIMIT, async {
        while let Some(ended) = contenders.join_next().await {
            if let Err(panic) = ended {
                shared.unexpected(panic.to_string());
            }
        }
    });
    if finished.await.is_err() {
        let stuck = contenders.len();
        report
            .violation(format!("{stuck} sessions still wait {FINISH_LIMIT:?} after the last kill"));
    }
    report.figure("seconds", begun.elapsed().as_secs());
    report.figure("sessions", Recipe::ALL.len() * options.sessions);
    match killed {
        Ok(kills) => kills.tell(&mut report),
        Err(error) => report.violation(format!("the servers: {error}")),
    }
    shared.tell(&mut report);
    match orphans(&ensemble, ROOT).await {
        Ok(orphans) => {
            report.figure("orphans", orphans.len());
            report.expect(orphans.is_empty(), || format!("orphans: {orphans:?}"));
        }
        Err(error) => report.violation(format!("orphans could not be looked for: {error}")),
    }
    Ok(report)
}

/// What is left of contenders, although all of them have ended: ephemeral nodes below a path, wherever they are.
pub(super) async fn orphans(
    ensemble: &Ensemble,
    root: &str,
) -> Result<Vec<String>, Box<dyn Error>> {
    let zk = connect(&ensemble.connect_string(), SESSION_TIMEOUT).await?;
    zk.sync("/").await?;
    let mut found = Vec::new();
    let mut unseen = vec![root.to_owned()];
    while let Some(path) = unseen.pop() {
        let Some(stat) = zk.exists(&path).await? else { continue };
        if stat.ephemeral_owner.0 != 0 {
            found.push(path);
            continue;
        }
        let (names, _) = zk.children(&path).await?;
        unseen.extend(names.iter().map(|name| zk_client::path::join(&path, name)));
    }
    Ok(found)
}

async fn connect(servers: &str, session_timeout: Duration) -> Result<Client, ConnectError> {
    let options = ConnectOptions::new(servers)?;
    let options = options.session_timeout(session_timeout);
    options.connect_deadline(None).connect().await
}
