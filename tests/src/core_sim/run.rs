//! The shape of a run: trouble, healing, coming together again, the end.

use std::time::Duration;

use zk_proto::Time;

use super::{
    plan::{Plan, script},
    report::Report,
    workload::{WATCHES_MAX, Wish},
    world::World,
};

/// How often the end looks whether it has come, in microseconds.
const LOOK: u64 = 50_000;

/// How often a user gives a watch up when it asks for something.
const UNWATCHED_PER_MILLE: u64 = 60;

/// How often it begins to rely on the session then, or ceases to.
const RELIES_OTHERWISE_PER_MILLE: u64 = 5;

/// Events of one run above which it is taken to run in circles.
const EVENTS_MAX: u64 = 5_000_000;

/// How far the end of a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Trouble,
    /// All clients must be connected by this time.
    Healed(Time),
    /// All clients must know the newest state by this time.
    Reading(Time),
    /// All sessions must be closed by this time.
    Closing(Time),
    Done,
}

/// What went wrong in a run, and the last things that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// Which promises were broken, in the order of finding it.
    pub violations: Vec<String>,
    /// The last things that happened.
    pub trace: Vec<String>,
}

/// Carries out a plan.
///
/// # Errors
/// [`Failure`] at the first broken promise.
///
/// # Panics
/// If an assertion of the session's own fails.
pub fn run(plan: &Plan) -> Result<Report, Failure> {
    let mut world = World::new(plan);
    while world.ending != Ending::Done && world.violations.is_empty() {
        world.step();
    }
    let World { violations, state, mut report, .. } = world;
    if !violations.is_empty() {
        let trace = state.trace.last().map(ToString::to_string).collect();
        return Err(Failure { violations, trace });
    }
    report.millis = state.now() / 1000;
    report.hash = state.trace.hash();
    report.fired = state.fired;
    Ok(report)
}

impl World<'_> {
    /// What is due next happens, and all clients do what follows.
    fn step(&mut self) {
        let by_clients = (0..self.clients.len()).filter_map(|client| self.due(client));
        let by_others = [Some(self.phase_at), self.state.next_at()].into_iter().flatten();
        let now = by_clients.chain(by_others).min().unwrap_or(self.phase_at);
        let now = now.max(self.state.now());
        if self.state.net.next_at().is_some_and(|at| at <= now) && self.state.net.next_is_delivery()
        {
            let faults = &self.plan.by_delivery;
            let is_due = |world: &Self| {
                let next = faults.get(world.struck);
                world.ending == Ending::Trouble
                    && next.is_some_and(|(before, _)| *before <= world.deliveries)
            };
            while is_due(self) {
                self.strike();
            }
            self.deliveries += 1;
        }
        self.state.advance(now);
        self.log.learn(self.state.ensemble.history());
        self.look_at_ends();
        self.report.events += 1;
        if self.report.events > EVENTS_MAX {
            self.violations.push(format!("{EVENTS_MAX} events until {}", self.now()));
        }
        if self.phase_at <= now {
            self.phase();
        }
        for client in 0..self.clients.len() {
            self.turn(client);
        }
        self.violations.append(&mut self.log.violations);
    }

    pub(crate) fn reborn(&mut self, client: usize) {
        if matches!(self.ending, Ending::Closing(_) | Ending::Done) {
            self.clients[client].reborn_at = None;
            return;
        }
        self.close_checker(client);
        let (config, seed, now) = (self.config(client), self.rng.next(), self.now());
        self.clients[client].begin(config, seed, now);
        let relies = self.relies(client);
        self.clients[client].rely(relies);
        self.settle(client);
    }

    fn close_checker(&mut self, client: usize) {
        let checker = &mut self.clients[client].checker;
        checker.close(&self.log);
        self.violations.append(&mut checker.violations);
        for (what, count) in std::mem::take(&mut checker.counts) {
            *self.report.counts.entry(what).or_default() += count;
        }
    }

    pub(crate) fn plan_ask(&mut self, number: usize) {
        let is_scripted = self.plan.is_scripted;
        let client = &mut self.clients[number];
        let is_told_all = is_scripted && client.batches == script(number).len();
        client.ask_at = match (is_scripted, client.checker.connected) {
            _ if is_told_all || self.ending != Ending::Trouble => u64::MAX,
            (true, true) => self.state.now() + 500,
            (true, false) => self.state.now() + 20_000,
            (false, _) => self.state.now() + self.rng.within(1, 60_000),
        };
    }

    /// A user asks for something, while there is trouble.
    pub(crate) fn ask(&mut self, number: usize) {
        let now = self.now();
        let client = &mut self.clients[number];
        let is_over = client.checker.over.is_some();
        if is_over || self.ending != Ending::Trouble {
        } else if !self.plan.is_scripted {
            if self.rng.per_mille(RELIES_OTHERWISE_PER_MILLE) {
                client.rely(!client.is_relied_on);
            }
            if self.rng.per_mille(UNWATCHED_PER_MILLE) {
                let choice = self.rng.next();
                client.unwatch(now, choice);
            }
            // These set no watches: on a full member they may report again what a member without a quorum has shown.
            let reads_alone = self.plan.reads_alone(number);
            for _ in 0..=self.rng.below(3) {
                let watches = if reads_alone { WATCHES_MAX } else { client.checker.watches() };
                let wish = Wish::any(&mut self.rng, watches, self.plan.release);
                client.ask(now, wish, self.plan.release);
            }
        } else if let Some(batch) = script(number).get(client.batches) {
            if client.checker.is_idle() {
                client.batches += 1;
                let release = self.plan.release;
                batch.iter().for_each(|wish| client.ask(now, *wish, release));
            }
        }
        self.settle(number);
        self.plan_ask(number);
    }

    /// How long it may take to be connected to healthy servers. A new session has as long as it wants for
    /// its first dial, and one with a dead connection two thirds of that; the longest pause is five
    /// seconds.
    fn bound(&self) -> Duration {
        self.plan.timeout + Duration::from_secs(7)
    }

    /// Looks whether the run is where it should be, and goes on.
    fn phase(&mut self) {
        let now = self.now();
        let bound = now.after(self.bound());
        let clients = &mut self.clients;
        let (is_there, by, late) = match self.ending {
            Ending::Trouble => {
                self.state.heal();
                clients.iter_mut().for_each(|client| client.frail.0 = 0);
                self.ending = Ending::Healed(bound);
                (false, bound, "")
            }
            Ending::Healed(by) => {
                let is_there = clients.iter().all(|client| client.checker.connected);
                if is_there {
                    for wish in Wish::last() {
                        let release = self.plan.release;
                        clients.iter_mut().for_each(|client| client.ask(now, wish, release));
                    }
                    self.ending = Ending::Reading(bound);
                }
                (is_there, by, "L1: somebody is not connected")
            }
            Ending::Reading(by) => {
                let is_there = clients.iter().all(|client| client.checker.is_idle());
                if is_there {
                    clients.iter_mut().for_each(|client| client.close(now));
                    self.ending = Ending::Closing(now.after(self.config(0).close_timeout));
                }
                (is_there, by, "L1: somebody has no answers")
            }
            Ending::Closing(by) => {
                let is_there = clients.iter().all(|client| client.checker.over.is_some());
                if is_there {
                    self.ending = Ending::Done;
                    self.at_end();
                }
                (is_there, by, "L4: somebody is not closed")
            }
            Ending::Done => return,
        };
        if !is_there && now > by {
            self.violations.push(format!("{late} by {by}"));
        }
        self.phase_at = self.state.now() + LOOK;
    }

    /// Nothing is left over.
    fn at_end(&mut self) {
        for client in 0..self.clients.len() {
            self.close_checker(client);
        }
        let watches = self.state.ensemble.watch_count();
        let live: Vec<_> = self.clients.iter().filter_map(|client| client.checker.id).collect();
        let left = self.state.ensemble.sessions().filter(|(id, _)| live.contains(id)).count();
        if left > 0 {
            self.violations
                .push(format!("X2: {left} closed sessions and {watches} watches are left"));
        }
    }
}
