//! What goes wrong, and how often.

use clap::ValueEnum;

use crate::differential::Chance;

/// Something that goes wrong. Those that last do so for a bit longer than a session.
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
pub(super) struct Deck {
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
    pub(super) fn of(only: Option<Fault>) -> Self {
        let faults = only.map_or_else(|| Self::CARDS.to_vec(), |fault| vec![fault]);
        Self { faults, left: Vec::new() }
    }

    pub(super) fn draw(&mut self, chance: &mut Chance) -> Fault {
        if self.left.is_empty() {
            self.left.clone_from(&self.faults);
        }
        self.left.swap_remove(chance.below(self.left.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_up_in_a_while() {
        let (mut deck, mut chance) = (Deck::of(None), Chance::new(1));
        let mut drawn: Vec<Fault> = Deck::CARDS.iter().map(|_| deck.draw(&mut chance)).collect();
        assert_ne!(drawn, Deck::CARDS);
        drawn.sort();
        assert_eq!(drawn, Deck::CARDS);
    }
}
