//! Many sequences on one server.

use std::fmt::{self, Display, Formatter};

use zk_testkit::{real::Release, sim::Rng};

use super::{
    generate::generate, play::play, record::Record, setup::Setup, step::Sequence, wire::Wire,
};

/// Sequences that are played one after the other on one server, each under a top-level path of its
/// own. What they see of the rest of the tree is what those before them have left there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The server.
    pub setup: Setup,
    /// Where the sequences come from.
    pub seed: u64,
    /// The number of the first one.
    pub first: u64,
    /// How many there are.
    pub count: u64,
}

impl Batch {
    /// The sequences.
    pub fn sequences(&self) -> impl Iterator<Item = Sequence> {
        let Self { setup, seed, first, count } = *self;
        (first..first + count).map(move |index| {
            let sequence = generate(Rng::stream(seed, index));
            match setup.release {
                // They would not survive it.
                Release::V3_4 | Release::V3_5 | Release::V3_6 => {
                    sequence.without_checks().without_quotas().one_by_one()
                }
                Release::V3_7 => sequence.without_checks(),
                _ => sequence,
            }
        })
    }

    /// Plays all of them on a server that has just been started.
    pub fn play(&self, wire: &mut dyn Wire) -> Vec<Record> {
        let mut roots = roots();
        let mut root = || roots.next().expect("there is always another one");
        self.sequences().map(|sequence| play(&sequence, &root(), wire)).collect()
    }

    /// Where two servers have not done the same.
    pub fn differences(&self, ours: &[Record], theirs: &[Record]) -> Vec<Difference> {
        let both = self.sequences().zip(ours.iter().zip(theirs));
        let difference = |(index, (sequence, (ours, theirs))): (u64, _)| {
            Difference::between(index, sequence, ours, theirs)
        };
        (self.first..).zip(both).filter_map(difference).collect()
    }

    /// Requests and handshakes in it, without those that only wait for others.
    pub fn operations(&self) -> usize {
        self.sequences().map(|sequence| sequence.operations()).sum()
    }
}

/// The top-level paths of sequences on one server.
pub fn roots() -> impl Iterator<Item = String> {
    (0..).map(|number: u32| format!("/d{number:05}"))
}

/// A sequence on which two servers have not done the same.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The sequence's number.
    pub index: u64,
    /// The sequence.
    pub sequence: Sequence,
    /// The first step that differs.
    pub step: usize,
    /// What one of them did.
    pub ours: Record,
    /// What the other did.
    pub theirs: Record,
}

impl Difference {
    /// The difference between what two servers did, if there is one.
    pub fn between(index: u64, sequence: Sequence, ours: &Record, theirs: &Record) -> Option<Self> {
        let step = ours.first_difference(theirs)?;
        Some(Self { index, sequence, step, ours: ours.clone(), theirs: theirs.clone() })
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "sequence {}, step {}:", self.index, self.step)?;
        for (at, step) in self.sequence.steps.iter().enumerate().take(self.step + 1) {
            writeln!(f, "  {step:?}")?;
            let said = |record: &Record| record.steps.get(at).cloned().unwrap_or_default();
            let (ours, theirs) = (said(&self.ours), said(&self.theirs));
            if ours == theirs {
                ours.iter().try_for_each(|line| writeln!(f, "      {line}"))?;
            } else {
                ours.iter().try_for_each(|line| writeln!(f, "    - {line}"))?;
                theirs.iter().try_for_each(|line| writeln!(f, "    + {line}"))?;
            }
        }
        Ok(())
    }
}
