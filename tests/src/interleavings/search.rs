//! All runs.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::task::unconstrained;

use super::{judge::Judge, scenario::Scenario, state::fingerprint, step::Step, world::World};
use crate::paused;

/// How much there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Different states, counted again for each number of faults that are still to come.
    pub states: u64,
    /// Steps from one of them to another.
    pub steps: u64,
    /// Runs, most of them from the start to a state that had been there before.
    pub runs: u64,
    /// Runs to the end.
    pub ends: u64,
}

/// A run that has broken a rule.
#[derive(Clone, Debug)]
pub struct Found {
    /// Who contended.
    pub scenario: Scenario,
    /// What happened.
    pub steps: Vec<Step>,
    /// Which rule.
    pub what: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}, after", self.scenario, self.what)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "  {step}"))
    }
}

/// Goes through all states that can be reached with so many faults, with so many threads.
///
/// # Errors
/// [`Found`] for a run that breaks a rule: with as few faults as any, and no shorter one among these.
pub fn explore(scenario: Scenario, faults: usize, jobs: usize) -> Result<Counts, Box<Found>> {
    let search = Search {
        scenario,
        work: Mutex::new(Work {
            pending: (0..=faults).map(|_| Vec::new()).collect(),
            ..Work::default()
        }),
        changed: Condvar::new(),
    };
    search.work().pending[0].push(Arc::default());
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| search.work_through());
        }
    });
    let work = search.work();
    match &work.found {
        Some(found) => Err(found.clone()),
        None => Ok(work.counts),
    }
}

/// The steps to a state, the last one first, each shared with all runs that begin alike.
#[derive(Debug, Default)]
struct Path(Option<(Step, Arc<Self>)>);

impl Path {
    fn steps(&self) -> Vec<Step> {
        let (mut steps, mut path) = (Vec::new(), self);
        while let Some((step, before)) = &path.0 {
            steps.push(*step);
            path = before;
        }
        steps.reverse();
        steps
    }
}

struct Search {
    scenario: Scenario,
    work: Mutex<Work>,
    changed: Condvar,
}

/// A thread at work. One that panics is not waited for by the others.
struct Busy<'a>(&'a Search);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.work().busy -= 1;
        self.0.changed.notify_all();
    }
}

#[derive(Default)]
struct Work {
    /// Runs to begin with these steps, by the number of their faults: those with few go first.
    pending: Vec<Vec<Arc<Path>>>,
    /// How many threads are at work.
    busy: usize,
    /// States, and with how many faults to come they have been gone through.
    visited: HashMap<u64, usize>,
    counts: Counts,
    found: Option<Box<Found>>,
}

impl Search {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work_through(&self) {
        while let Some(path) = self.next() {
            let runtime = paused::runtime();
            let _busy = Busy(self);
            runtime.block_on(unconstrained(self.run(path)));
            self.work().counts.runs += 1;
        }
    }

    fn next(&self) -> Option<Arc<Path>> {
        let mut work = self.work();
        loop {
            if work.found.is_some() {
                return None;
            }
            if let Some(path) = work.pending.iter_mut().find_map(Vec::pop) {
                work.busy += 1;
                return Some(path);
            }
            if work.busy == 0 {
                return None;
            }
            work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// One run: these steps, and then on to where it has been before, or to the end.
    async fn run(&self, mut path: Arc<Path>) {
        let mut world = World::new(self.scenario).await;
        let steps = path.steps();
        for step in &steps {
            world.take(*step).await;
        }
        let faults = steps.iter().filter(|step| step.is_fault()).count();
        loop {
            if self.is_broken(&world, &path) {
                return;
            }
            let Some(choices) = self.visit(&world, faults) else { return };
            let then = |step: Step| Arc::new(Path(Some((step, path.clone()))));
            // Where nothing else is left than faults, the run is over without them, too.
            let next = choices.first().copied().filter(|step| !step.is_fault());
            self.put_off(choices[usize::from(next.is_some())..].iter().map(|step| {
                let faults = faults + usize::from(step.is_fault());
                (faults, then(*step))
            }));
            let Some(next) = next else { break };
            path = then(next);
            world.take(next).await;
        }
        Judge::end(&mut world);
        self.work().counts.ends += 1;
        self.is_broken(&world, &path);
    }

    /// Alternatives, with the numbers of their faults: the first one is the next.
    fn put_off(&self, others: impl DoubleEndedIterator<Item = (usize, Arc<Path>)>) {
        let mut work = self.work();
        for (faults, path) in others.rev() {
            work.pending[faults].push(path);
        }
        drop(work);
        self.changed.notify_all();
    }

    fn is_broken(&self, world: &World, path: &Path) -> bool {
        let Some(what) = &world.judge.verdict else { return false };
        let found = Found { scenario: self.scenario, steps: path.steps(), what: what.clone() };
        self.work().found.get_or_insert_with(|| Box::new(found));
        self.changed.notify_all();
        true
    }

    /// What to do next in this state; `None` if that has been done.
    fn visit(&self, world: &World, faults: usize) -> Option<Vec<Step>> {
        let fingerprint = fingerprint(world);
        let mut work = self.work();
        let left = work.pending.len() - 1 - faults;
        match work.visited.get(&fingerprint) {
            Some(before) if *before >= left => return None,
            _ => {
                work.visited.insert(fingerprint, left);
                work.counts.states += 1;
            }
        }
        let choices = world.choices(left);
        work.counts.steps += choices.len() as u64;
        Some(choices)
    }
}
