//! Who is killed when, and how long it takes until locks are granted again.

use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, timeout};
use zk_testkit::real::{self, Ensemble};

use super::{super::Report, Options, arena::Arena};

/// When recipes count as stuck: several times longer than sessions live, so that those that expire do not matter.
const RECOVERY_LIMIT: Duration = Duration::from_secs(120);

/// Members that were killed, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Kills {
    leaders: Vec<Recovery>,
    followers: Vec<Recovery>,
    stuck: Vec<String>,
}

/// How long it took from the end of the member.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// Until the servers that were left said that they serve.
    quorum: Duration,
    /// Until somebody got a lock that was asked for after that end.
    first: Duration,
    /// The same for a lock of each recipe.
    last: Duration,
}

/// Kills members until there have been enough of them and the time is over. All members run when this returns.
pub(super) async fn run(
    ensemble: &Ensemble,
    arena: &Arena,
    options: Options,
) -> Result<Kills, real::Error> {
    let mut kills = Kills::default();
    let begun = Instant::now();
    let mut turns = interval(options.every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    turns.tick().await;
    for number in 0.. {
        let leader = ensemble.wait_for_all().await?;
        if begun.elapsed() >= options.time && number >= options.kills {
            break;
        }
        turns.tick().await;
        // Two leaders in five, and the followers in turn.
        let is_leader = number % 5 == 0 || number % 5 == 2;
        let others = ensemble.len() - 1;
        let victim =
            if is_leader { leader } else { (leader + 1 + number % others) % ensemble.len() };
        ensemble.kill(victim).await?;
        arena.killed();
        let killed = Instant::now();
        let quorum = async {
            ensemble.wait_for_quorum().await?;
            Ok::<_, real::Error>(killed.elapsed())
        };
        let (quorum, recovered) = tokio::join!(quorum, timeout(RECOVERY_LIMIT, arena.recovered()));
        match (quorum?, recovered) {
            (quorum, Ok((first, last))) => {
                let kind = if is_leader { &mut kills.leaders } else { &mut kills.followers };
                kind.push(Recovery { quorum, first, last });
            }
            (_, Err(_)) => {
                let waiting = arena.waiting();
                kills.stuck.push(format!("after kill {number} {waiting:?} were not granted"));
            }
        }
        ensemble.restart(victim).await?;
    }
    Ok(kills)
}

impl Kills {
    pub(super) fn tell(self, report: &mut Report) {
        report.figure("kills", self.leaders.len() + self.followers.len() + self.stuck.len());
        report.figure("of them: leaders", self.leaders.len());
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
