//! Faults of real processes: contenders, and members of an ensemble.

use std::{
    future::pending,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use tokio::time::{MissedTickBehavior, interval, timeout};
use zk_testkit::{
    real::{self, Ensemble},
    sim::Rng,
};

/// A fault. Those of contenders that last do so for a bit longer than a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// The connections of a process break.
    Cut,
    /// A process is killed by SIGKILL, and another one started in its place.
    Kill,
    /// A process stops in the middle of whatever it does (SIGSTOP), and goes on when its session is over.
    Pause,
    /// A process does not hear from the servers until its session is over, and they not from it.
    Silence,
    /// A member of the ensemble is killed by SIGKILL, and started again.
    Member,
}

impl Fault {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "connections cut",
            Self::Kill => "processes killed",
            Self::Pause => "processes stopped",
            Self::Silence => "processes cut off",
            Self::Member => "members killed",
        }
    }
}

/// What comes next: shuffled, as many of each kind as in [`Deck::CARDS`], and then all over again.
#[derive(Debug)]
pub(crate) struct Deck {
    faults: Vec<Fault>,
    left: Vec<Fault>,
}

impl Deck {
    const CARDS: [Fault; 10] = [
        Fault::Cut,
        Fault::Cut,
        Fault::Cut,
        Fault::Cut,
        Fault::Cut,
        Fault::Kill,
        Fault::Kill,
        Fault::Pause,
        Fault::Silence,
        Fault::Member,
    ];

    /// A deck of these, or of all.
    pub(crate) fn of(only: Option<Fault>) -> Self {
        let faults = only.map_or_else(|| Self::CARDS.to_vec(), |fault| vec![fault]);
        Self { faults, left: Vec::new() }
    }

    pub(crate) fn draw(&mut self, rng: &mut Rng) -> Fault {
        if self.left.is_empty() {
            self.left.clone_from(&self.faults);
        }
        self.left.swap_remove(rng.index(self.left.len()))
    }
}

/// A fault of a member: [`Fault::Kill`] or [`Fault::Pause`].
#[derive(Clone, Copy, Debug)]
pub struct Strike {
    /// Which of the two.
    pub fault: Fault,
    /// Whether it is the leader's.
    pub is_leader: bool,
    /// How long it lasts; without, until the others have a quorum, with another leader if it was the leader's.
    pub time: Option<Duration>,
}

/// Lets time go by, for a fault that lasts so long or a workload that pauses: nothing is waited for.
pub(crate) async fn last(time: Duration) {
    let _ = timeout(time, pending::<()>()).await;
}

/// How often members had which fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Struck {
    /// Members that were killed.
    pub kills: usize,
    /// Those of them that led.
    pub leaders_killed: usize,
    /// Members that were stopped for a while.
    pub pauses: usize,
    /// Those of them that led.
    pub leaders_paused: usize,
    /// How often another member led than before.
    pub leader_changes: usize,
    leader: Option<usize>,
}

impl Struck {
    fn leads(&mut self, leader: usize) {
        let before = self.leader.replace(leader);
        self.leader_changes += usize::from(before.is_some_and(|before| before != leader));
    }

    fn count(&mut self, strike: Strike) {
        let (all, leaders) = match strike.fault {
            Fault::Kill => (&mut self.kills, &mut self.leaders_killed),
            _ => (&mut self.pauses, &mut self.leaders_paused),
        };
        *all += 1;
        *leaders += usize::from(strike.is_leader);
    }
}

/// Gives these faults to members in turn, with so much time from one to the next at least, until the time is over and there
/// were so many. All members serve before each, and when this returns. `down` takes place while a member is down.
///
/// # Errors
/// Members do not start, or do not serve.
pub async fn strike_members(
    ensemble: &Ensemble,
    round: &[Strike],
    every: Duration,
    (time, count): (Duration, usize),
    mut down: impl AsyncFnMut(Strike) -> Result<(), real::Error>,
) -> Result<Struck, real::Error> {
    let mut struck = Struck::default();
    let begun = Instant::now();
    let mut turns = interval(every.max(Duration::from_millis(1)));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    turns.tick().await;
    for number in 0.. {
        let leader = ensemble.wait_for_all().await?;
        struck.leads(leader);
        if begun.elapsed() >= time && number >= count {
            break;
        }
        turns.tick().await;
        let strike = round[number % round.len()];
        let follower = (leader + 1 + number % (ensemble.len() - 1)) % ensemble.len();
        let victim = if strike.is_leader { leader } else { follower };
        struck.count(strike);
        match strike.fault {
            Fault::Kill => ensemble.kill(victim).await?,
            _ => ensemble.pause(victim)?,
        }
        down(strike).await?;
        match strike.time {
            Some(time) => last(time).await,
            None => struck.leads(ensemble.wait_for_quorum().await?),
        }
        match strike.fault {
            Fault::Kill => ensemble.restart(victim).await?,
            _ => ensemble.resume(victim)?,
        }
    }
    Ok(struck)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_up_in_a_while() {
        let (mut deck, mut rng) = (Deck::of(None), Rng::new(1));
        let mut drawn: Vec<Fault> = Deck::CARDS.iter().map(|_| deck.draw(&mut rng)).collect();
        assert_ne!(drawn, Deck::CARDS);
        drawn.sort();
        assert_eq!(drawn, Deck::CARDS);
    }
}
