//! How long it takes until locks are granted again when a member was killed.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use zk_testkit::real::{self, Ensemble};

use super::{
    super::{RECOVERY_LIMIT, Report},
    Options,
    shared::Shared,
};
use crate::faults::{Fault, Strike, Struck, strike_members};

/// Members that were killed, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Kills {
    struck: Struck,
    leaders: Vec<Recovery>,
    followers: Vec<Recovery>,
    stuck: Vec<String>,
}

/// How long it took from the end of the member.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// Until the servers that were left said that they serve.
    quorum: Duration,
    /// Until a contender got a lock that was asked for after that end.
    first: Duration,
    /// The same for a lock of each recipe.
    last: Duration,
}

const fn kill(is_leader: bool) -> Strike {
    Strike { fault: Fault::Kill, is_leader, time: None }
}

/// Two leaders in five, and the followers in turn.
const ROUND: [Strike; 5] = [kill(true), kill(false), kill(true), kill(false), kill(false)];

/// Kills members until there have been enough of them and the time is over. All members run when this returns.
pub(super) async fn run(
    ensemble: &Ensemble,
    shared: &Shared,
    options: Options,
) -> Result<Kills, real::Error> {
    let mut kills = Kills::default();
    let Options { every, time, kills: count, .. } = options;
    kills.struck = strike_members(ensemble, &ROUND, every, (time, count), async |strike| {
        shared.killed();
        let killed = Instant::now();
        let quorum = async {
            ensemble.wait_for_quorum().await?;
            Ok::<_, real::Error>(killed.elapsed())
        };
        let (quorum, recovered) = tokio::join!(quorum, timeout(RECOVERY_LIMIT, shared.recovered()));
        let quorum = quorum?;
        match recovered {
            Ok((first, last)) => {
                let whose =
                    if strike.is_leader { &mut kills.leaders } else { &mut kills.followers };
                whose.push(Recovery { quorum, first, last });
            }
            Err(_) => {
                let waiting = shared.waiting();
                kills.stuck.push(format!("after a kill {waiting:?} were not granted"));
            }
        }
        Ok(())
    })
    .await?;
    Ok(kills)
}

impl Kills {
    pub(super) fn tell(self, report: &mut Report) {
        report.struck(&self.struck);
        for (whose, recoveries) in [("a leader", self.leaders), ("a follower", self.followers)] {
            let mut spread = |until: &str, duration: fn(&Recovery) -> Duration| {
                let durations = recoveries.iter().map(duration).collect();
                report.spread(&format!("from the end of {whose} {until}"), durations);
            };
            spread("to a quorum", |recovery| recovery.quorum);
            spread("to the next grant", |recovery| recovery.first);
            spread("to a grant of each recipe", |recovery| recovery.last);
        }
        for stuck in self.stuck {
            report.violation(stuck);
        }
    }
}
