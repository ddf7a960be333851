//! What observers are told of locks: each place that is joined is left, each grant ends with one release, and times are
//! those that have passed.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use zk_locks::{FencingToken, Grant, LockObserver, Release};

use crate::sim::{check::ROUNDING, workload::ClientContext};

pub(super) struct Tally {
    ctx: ClientContext,
    told: Mutex<Told>,
}

/// All that is open, and what was wrong.
#[derive(Debug, Default)]
struct Told {
    /// How many wait, by paths.
    waiting: BTreeMap<String, usize>,
    /// What is held, since when. A lock that is downgraded has another node then.
    held: BTreeMap<FencingToken, Vec<(String, u64)>>,
    first_joined: Option<u64>,
    /// How often something has been held for too long.
    too_long: usize,
    wrong: Vec<String>,
}

impl Tally {
    pub(super) fn new(ctx: &ClientContext) -> Self {
        Self { ctx: ctx.clone(), told: Mutex::default() }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether observers know that it is held.
    pub(super) fn knows(&self, path: &str, token: FencingToken) -> bool {
        let told = self.told();
        told.held.get(&token).is_some_and(|held| held.iter().any(|(it, _)| it == path))
    }

    /// How often something has been held for too long, since the last time this was asked.
    pub(super) fn held_too_long(&self) -> usize {
        std::mem::take(&mut self.told().too_long)
    }

    /// What is wrong when all is given back.
    pub(super) fn mistakes(&self) -> Option<String> {
        let told = self.told();
        let is_over = told.waiting.is_empty()
            && told.held.is_empty()
            && told.too_long == 0
            && told.wrong.is_empty();
        (!is_over).then(|| format!("{told:?}"))
    }

    /// Nobody has waited for longer than since the first has joined.
    fn waited(&self, told: &mut Told, path: &str, waited: Duration) {
        let longest = told.first_joined.map_or(0, |since| self.ctx.now() - since);
        let waited = waited.as_millis() as u64;
        if waited > longest + self.ctx.check().drift(self.ctx.number, longest) + ROUNDING {
            told.wrong.push(format!("{path} is said to have waited {waited} of {longest} ms"));
        }
    }

    /// How long something has taken, against what is told of it.
    fn takes(&self, what: &str, since: u64, told: Duration) -> Option<String> {
        let took = self.ctx.now() - since;
        let told = told.as_millis() as u64;
        let drift = self.ctx.check().drift(self.ctx.number, took) + ROUNDING;
        (told.abs_diff(took) > drift).then(|| format!("{what} for {told} ms, not {took}"))
    }
}

impl LockObserver for Tally {
    fn joined(&self, path: &str) {
        let now = self.ctx.now();
        let mut told = self.told();
        *told.waiting.entry(path.to_owned()).or_default() += 1;
        told.first_joined.get_or_insert(now);
    }

    fn left(&self, path: &str) {
        let mut told = self.told();
        match told.waiting.get_mut(path) {
            Some(waiting) if *waiting > 1 => *waiting -= 1,
            Some(_) => drop(told.waiting.remove(path)),
            None => told.wrong.push(format!("{path} is left by nobody")),
        }
    }

    fn granted(&self, grant: &Grant<'_>) {
        let now = self.ctx.now();
        let mut told = self.told();
        self.waited(&mut told, grant.path, grant.waited);
        told.held.entry(grant.token).or_default().push((grant.path.to_owned(), now));
    }

    fn given_up(&self, path: &str, waited: Duration) {
        self.waited(&mut self.told(), path, waited);
    }

    fn held_too_long(&self, grant: &Grant<'_>) {
        let mut told = self.told();
        told.too_long += 1;
        if !told.held.contains_key(&grant.token) {
            told.wrong.push(format!("{grant:?} is held for too long, and is not held"));
        }
    }

    fn released(&self, release: &Release<'_>) {
        let mut told = self.told();
        let Some(mut held) = told.held.remove(&release.token) else {
            return told.wrong.push(format!("{release:?} was not granted"));
        };
        let at = held.iter().position(|(path, _)| path == release.path).unwrap_or_default();
        let (_, since) = held.swap_remove(at);
        if !held.is_empty() {
            told.held.insert(release.token, held);
        }
        told.wrong.extend(self.takes("is held", since, release.held));
    }
}
