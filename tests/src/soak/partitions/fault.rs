//! What goes wrong, and how often.

use std::time::Duration;

use clap::ValueEnum;
use zk_testkit::sim::Rng;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// A minority of the members is cut off, half of the time with half of the clients.
    Minority,
    /// Two halves see each other through one member only.
    Bridge,
    /// A member is not heard by the others, or does not hear them.
    OneWay,
    /// Each member sees its neighbours only.
    Ring,
    /// A member is cut off from its leader, with clients on it.
    Severed,
    /// Clients are cut off from one member, or from all.
    Clients,
    /// Any pairs are cut, packets are lost, and a member is stopped.
    Everything,
    /// One packet in twenty is lost.
    Loss,
    /// Few packets a second get through; the others come later.
    Slow,
    /// A member is killed (SIGKILL).
    Kill,
    /// A member is stopped (SIGSTOP).
    Stop,
    /// A member's disk is full.
    FullDisk,
    /// A member is killed, and cannot read its own data any more.
    Damage,
    /// A member's clock jumps, and back again.
    Clock,
    /// A member leaves by reconfiguration, and joins again.
    Reconfig,
    /// A process of clients is killed, and another one started.
    KillClient,
    /// A process of clients is stopped until its sessions are over.
    StopClient,
    /// The clock of the clients in processes of their own jumps, and back again.
    ClientClock,
}

impl Fault {
    /// Of how many faults in a round it is each.
    const fn weight(self) -> usize {
        match self {
            Self::Minority => 4,
            Self::OneWay | Self::Severed | Self::Kill => 3,
            Self::Stop => 2,
            _ => 1,
        }
    }

    /// Its name in tables.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether members, or clients and members, do not hear each other.
    pub(super) const fn is_partition(self) -> bool {
        matches!(
            self,
            Self::Minority
                | Self::Bridge
                | Self::OneWay
                | Self::Ring
                | Self::Severed
                | Self::Clients
                | Self::Everything
        )
    }

    /// Whether it is a member that it happens to, and it can be the leader.
    const fn has_victim(self) -> bool {
        matches!(
            self,
            Self::Minority
                | Self::OneWay
                | Self::Everything
                | Self::Kill
                | Self::Stop
                | Self::FullDisk
                | Self::Damage
                | Self::Clock
        )
    }

    /// Whether it takes processes of clients.
    const fn needs_processes(self) -> bool {
        matches!(self, Self::KillClient | Self::StopClient | Self::ClientClock)
    }
}

/// A fault as it happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blow {
    pub(super) fault: Fault,
    /// Whether it is the leader's.
    pub(super) is_leader: bool,
    /// How long it lasts.
    pub(super) time: Duration,
}

/// What comes next: shuffled rounds of all of them.
#[derive(Debug)]
pub(super) struct Deck {
    rng: Rng,
    faults: Vec<Fault>,
    left: Vec<Fault>,
    session_timeout: Duration,
}

impl Deck {
    /// Of these, each as often, or of all that there is anything for.
    pub(super) fn new(
        seed: u64,
        only: &[Fault],
        session_timeout: Duration,
        processes: bool,
    ) -> Self {
        let possible = |fault: &&Fault| processes || !fault.needs_processes();
        let wanted = |fault: &&Fault| only.is_empty() || only.contains(fault);
        let faults = Fault::value_variants().iter().filter(possible).filter(wanted);
        let times = |fault: &Fault| if only.is_empty() { fault.weight() } else { 1 };
        let faults = faults.flat_map(|fault| vec![*fault; times(fault)]).collect();
        Self { rng: Rng::new(seed), faults, left: Vec::new(), session_timeout }
    }

    /// Two in three of those that can be a leader's are. One in three lasts for longer than a session.
    pub(super) fn draw(&mut self) -> Option<Blow> {
        if self.left.is_empty() {
            self.left.clone_from(&self.faults);
        }
        if self.left.is_empty() {
            return None;
        }
        let fault = self.left.swap_remove(self.rng.index(self.left.len()));
        let session = u64::try_from(self.session_timeout.as_millis()).unwrap_or(u64::MAX);
        let time = match fault {
            Fault::StopClient => session + session / 4,
            _ if self.rng.one_in(3) => self.rng.within(session, 2 * session),
            _ => self.rng.scaled(session / 20, session / 2),
        };
        let is_leader = fault.has_victim() && !self.rng.one_in(3);
        Some(Blow { fault, is_leader, time: Duration::from_millis(time) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_partitions_and_leaders_enough() {
        let mut deck = Deck::new(1, &[], Duration::from_secs(6), true);
        let blows: Vec<Blow> = (0..1_000).filter_map(|_| deck.draw()).collect();
        let partitions = blows.iter().filter(|blow| blow.fault.is_partition()).count();
        let leaders = blows.iter().filter(|blow| blow.is_leader).count();
        assert!(partitions >= 400 && leaders >= 300, "{partitions}, {leaders}");
        let kinds = |fault: &&Fault| !blows.iter().any(|blow| blow.fault == **fault);
        assert_eq!(Fault::value_variants().iter().find(kinds), None);
    }

    #[test]
    fn without_processes_none_is_killed() {
        let mut deck = Deck::new(1, &[Fault::KillClient], Duration::from_secs(6), false);
        assert!(deck.draw().is_none());
    }
}
