//! Who is killed or stopped, and when.

use std::{
    future::pending,
    time::{Duration, Instant},
};

use tokio::time::{MissedTickBehavior, interval, timeout};
use zk_testkit::real::{self, Ensemble};

use super::{super::Report, Options};

/// Long enough for sessions to notice: they hear nothing for two thirds of their timeout.
const LONG: Duration = Duration::from_secs(5);

/// Too short for that, and for the leader to give a follower up.
const SHORT: Duration = Duration::from_millis(800);

/// What happens to a member.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Until the others have a quorum.
    Kill,
    /// Until the others have a quorum, in which somebody else leads if it was the leader.
    Pause,
    PauseFor(Duration),
}

/// One after the other, each with whether it is the leader's.
const ROUND: [(Fault, bool); 6] = [
    (Fault::Kill, true),
    (Fault::PauseFor(LONG), false),
    (Fault::Kill, false),
    (Fault::Pause, true),
    (Fault::PauseFor(SHORT), false),
    (Fault::PauseFor(SHORT), true),
];

/// What has happened to members.
#[derive(Debug, Default)]
pub(super) struct Faults {
    kills: usize,
    leaders_killed: usize,
    pauses: usize,
    leaders_paused: usize,
    leader: Option<usize>,
    leader_changes: usize,
}

/// Kills and stops members until the time is over, and once each way at the least, however long that takes. All members
/// serve when this returns.
pub(super) async fn run(ensemble: &Ensemble, options: Options) -> Result<Faults, real::Error> {
    let mut faults = Faults::default();
    let begun = Instant::now();
    let mut turns = interval(options.every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    turns.tick().await;
    for number in 0.. {
        let leader = ensemble.wait_for_all().await?;
        faults.leads(leader);
        if begun.elapsed() >= options.time && number >= ROUND.len() {
            break;
        }
        turns.tick().await;
        let (fault, is_leader) = ROUND[number % ROUND.len()];
        let others = ensemble.len() - 1;
        let victim =
            if is_leader { leader } else { (leader + 1 + number % others) % ensemble.len() };
        match fault {
            Fault::Kill => {
                faults.kills += 1;
                faults.leaders_killed += usize::from(is_leader);
                ensemble.kill(victim).await?;
                faults.leads(ensemble.wait_for_quorum().await?);
                ensemble.restart(victim).await?;
            }
            Fault::Pause | Fault::PauseFor(_) => {
                faults.pauses += 1;
                faults.leaders_paused += usize::from(is_leader);
                ensemble.pause(victim)?;
                if let Fault::PauseFor(time) = fault {
                    let _ = timeout(time, pending::<()>()).await;
                } else {
                    faults.leads(ensemble.wait_for_quorum().await?);
                }
                ensemble.resume(victim)?;
            }
        }
    }
    Ok(faults)
}

impl Faults {
    /// This one leads now.
    fn leads(&mut self, leader: usize) {
        let before = self.leader.replace(leader);
        self.leader_changes += usize::from(before.is_some_and(|before| before != leader));
    }

    pub(super) fn tell(&self, report: &mut Report) {
        report.figure("members killed", self.kills);
        report.figure("of them: leaders", self.leaders_killed);
        report.figure("members stopped for a while", self.pauses);
        report.figure("of them: leaders that were stopped", self.leaders_paused);
        report.figure("changes of the leader", self.leader_changes);
    }
}
