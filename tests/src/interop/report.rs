//! What came of a run.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{
    claim::Party,
    counts::{Counts, Who},
    run::Options,
};
use crate::faults::Fault;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was run.
    pub options: Options,
    /// The servers' version.
    pub version: String,
    /// How long, since every party had had the lock once.
    pub time: Duration,
    /// The longest time without a grant of it.
    pub longest_pause: Duration,
    /// What went wrong shortly before that, and while it lasted.
    pub before_pause: Vec<Fault>,
    /// How much of it there was no quorum.
    pub outage_during_pause: Duration,
    /// What has happened.
    pub counts: Counts,
    /// What went wrong on purpose.
    pub faults: BTreeMap<Fault, u64>,
    /// Processes that ended when they should not, or did not when they should, with what they say.
    pub stuck: Vec<String>,
    /// Nodes that are still there though all contenders have gone.
    pub left_behind: Vec<String>,
}

/// What is asked of a run, beside that nothing is violated.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// Visits in all.
    pub entered_min: u64,
    /// Visits of each party, in percent of all.
    pub share_min: f64,
    /// How long it may take until a grant of it. A contender that dies in the queue holds it up for a session.
    pub pause_max: Duration,
}

impl Demands {
    /// None.
    pub const NONE: Self = Self { entered_min: 0, share_min: 0.0, pause_max: Duration::MAX };

    /// What visits are missing.
    pub(super) fn unmet(&self, parties: &[Party], counts: &Counts) -> Vec<String> {
        let entered = counts.entered_in_all();
        let mut unmet = Vec::new();
        if entered < self.entered_min {
            unmet.push(format!("{entered} visits instead of {}", self.entered_min));
        }
        for &party in parties {
            let share = percent(counts.entered_by(party), entered);
            if share < self.share_min {
                let least = self.share_min;
                unmet
                    .push(format!("{share:.1} % of the visits are {party}'s, less than {least} %"));
            }
        }
        unmet
    }
}

impl Report {
    /// What is wrong with it; nothing if it is as demanded.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let Self { options, counts, .. } = self;
        let mut failures: Vec<String> = counts.told.iter().map(ToString::to_string).collect();
        let untold = counts.violations - counts.told.len() as u64;
        failures.extend((untold > 0).then(|| format!("and {untold} more violations")));
        failures.extend(self.stuck.iter().cloned());
        failures.extend(self.left_behind.iter().map(|node| format!("{node} is still there")));
        let unseen = options.scenario.unseen(&options.parties, counts);
        failures.extend(unseen.into_iter().map(|pair| format!("never seen: {pair}")));
        // That nothing is granted without a quorum is as it should be.
        let pause = self.longest_pause.saturating_sub(self.outage_during_pause);
        if pause > options.demands.pause_max {
            failures.push(format!("nobody was granted it for {pause:?} with a quorum"));
        }
        failures.extend(options.demands.unmet(&options.parties, counts));
        failures
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options, version, time, counts, .. } = self;
        let entered = counts.entered_in_all();
        writeln!(
            f,
            "{}, {:.0} s, three servers of {version}, {} processes x {} contenders each, seed {}",
            options.scenario,
            time.as_secs_f64(),
            options.processes,
            options.tasks,
            options.seed
        )?;
        writeln!(
            f,
            "{:12}{:>10}{:>9}{:>14}{:>10}",
            "", "visits", "share", "superseded", "refused"
        )?;
        for &party in &options.parties {
            let visits = counts.entered_by(party);
            let count = |of: &BTreeMap<_, u64>| of.get(&party).copied().unwrap_or_default();
            let share = percent(visits, entered);
            let (superseded, refused) = (count(&counts.superseded), count(&counts.refused));
            writeln!(f, "{party:12}{visits:>10}{share:>8.1}%{superseded:>14}{refused:>10}")?;
        }
        writeln!(f, "{:12}{entered:>10}", "together")?;
        pairs(f, "handed over, from left to right", &counts.handed_over)?;
        pairs(f, "side by side, left one first", &counts.shared)?;
        if !counts.notes.is_empty() {
            writeln!(f, "told by contenders")?;
        }
        for ((party, word), count) in &counts.notes {
            writeln!(f, "{count:>8}  {party}: {word}")?;
        }
        if counts.jumped_in > 0 {
            writeln!(f, "{:>8}  downgrades of Curator's that jumped in", counts.jumped_in)?;
        }
        if !self.faults.is_empty() {
            writeln!(f, "faults")?;
        }
        for (fault, count) in &self.faults {
            writeln!(f, "{count:>8}  {}", fault.name())?;
        }
        let around: Vec<&str> = self.before_pause.iter().map(|fault| fault.name()).collect();
        let (pause, around) = (self.longest_pause.as_secs_f64(), around.join(", "));
        let outage = self.outage_during_pause.as_secs_f64();
        writeln!(f, "nobody was granted it for {pause:.1} s at most")?;
        writeln!(f, "    around that: {around}; without a quorum for {outage:.1} s of it")?;
        writeln!(f, "{} violations", counts.violations)
    }
}

fn pairs(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    pairs: &BTreeMap<(Who, Who), u64>,
) -> fmt::Result {
    let foreign = || pairs.iter().filter(|(((first, _), (second, _)), _)| first != second);
    if foreign().next().is_some() {
        writeln!(f, "{title}")?;
    }
    for (((first, was), (second, is)), count) in foreign() {
        writeln!(f, "{count:>8}  {first} ({was}), {second} ({is})")?;
    }
    Ok(())
}

fn percent(part: u64, whole: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of visits are small")]
    let share = part as f64 / whole.max(1) as f64;
    100.0 * share
}
