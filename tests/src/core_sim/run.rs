//! The shape of a run: trouble, healing, coming together again, the end.

use std::time::Duration;

use zk_proto::Time;
use zk_testkit::{
    server::Member,
    sim::{Actor, Fault, Target},
};

use super::{
    fault::{Planned, When},
    link::Link,
    plan::{Plan, script},
    report::Report,
    schedule::Happening,
    workload::Wish,
    world::World,
};

/// How often the end looks whether it has come.
const LOOK: Duration = Duration::from_millis(50);

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
    for (number, planned) in plan.faults.iter().enumerate() {
        match planned.when {
            When::At(at) => world.schedule.plan(at, Happening::Fault { number }),
            When::Delivery(count) => world.by_delivery.push_back((count, number)),
        }
    }
    world.schedule.plan(Time::new(plan.heal), Happening::Phase);
    while world.ending != Ending::Done && world.violations.is_empty() {
        world.step();
    }
    let World { violations, trace, now, mut report, .. } = world;
    if !violations.is_empty() {
        return Err(Failure { violations, trace: trace.last().map(ToString::to_string).collect() });
    }
    (report.events, report.hash, report.millis) = (trace.count(), trace.hash(), millis(now));
    Ok(report)
}

fn millis(now: Time) -> u64 {
    u64::try_from(now.since_epoch().as_millis()).unwrap_or(u64::MAX)
}

impl World<'_> {
    fn step(&mut self) {
        if self.schedule.next_is_delivery() {
            while let Some(&(count, number)) = self.by_delivery.front() {
                if count > self.deliveries {
                    break;
                }
                self.by_delivery.pop_front();
                self.strike(number);
            }
            self.deliveries += 1;
        }
        let Some((at, happening)) = self.schedule.next() else {
            self.violations.push("nothing happens any more".into());
            return;
        };
        self.now = at;
        let (name, number) = happening.gist();
        self.trace.note(millis(at), Actor::World, name, number as u64);
        if let Happening::Up { bytes, .. } | Happening::Down { bytes, .. } = &happening {
            self.trace.absorb(bytes);
        }
        if self.trace.count() > EVENTS_MAX {
            self.violations.push(format!("{EVENTS_MAX} events until {at}"));
        }
        self.happen(happening);
        let violations = &mut self.log.violations;
        self.violations.append(violations);
    }

    /// The client whose process has to run for this.
    fn needs(&self, happening: &Happening) -> Option<usize> {
        match happening {
            Happening::Dialed { link }
            | Happening::Down { link, .. }
            | Happening::DownEnd { link }
            | Happening::Writable { link } => Some(self.links[*link].client),
            Happening::Wake { client } | Happening::Ask { client } => Some(*client),
            _ => None,
        }
    }

    pub(crate) fn happen(&mut self, happening: Happening) {
        if let Some(client) = self.needs(&happening).filter(|it| self.clients[*it].is_paused) {
            self.clients[client].waiting.push_back(happening);
            return;
        }
        match happening {
            Happening::Dialed { link } => self.dialed(link),
            Happening::Up { link, bytes } => self.arrive_up(link, Some(&bytes)),
            Happening::UpEnd { link } => self.arrive_up(link, None),
            Happening::Down { link, bytes } => self.arrive_down(link, Some(&bytes)),
            Happening::DownEnd { link } => self.arrive_down(link, None),
            Happening::Writable { link } => {
                self.links[link].is_full = false;
                self.settle(self.links[link].client);
            }
            Happening::Wake { client } => {
                self.clients[client].wake = None;
                self.clients[client].session.elapsed(self.now);
                self.settle(client);
            }
            Happening::Tick => self.tick(),
            Happening::Ask { client } => self.ask(client),
            Happening::Reborn { client } => self.reborn(client),
            Happening::Fault { number } => self.strike(number),
            Happening::Mend { number } => self.mend(self.plan.faults[number]),
            Happening::Phase => self.phase(),
        }
    }

    /// The process goes on: what it has missed comes first, as it would from sockets.
    fn awake(&mut self, client: usize) {
        self.clients[client].is_paused = false;
        for happening in std::mem::take(&mut self.clients[client].waiting) {
            self.happen(happening);
        }
    }

    fn reborn(&mut self, client: usize) {
        if matches!(self.ending, Ending::Closing(_) | Ending::Done) {
            return;
        }
        self.close_checker(client);
        let (config, seed) = (self.config(client), self.rng.next());
        self.clients[client].begin(config, seed, self.now);
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

    pub(crate) fn plan_ask(&mut self, client: usize) {
        let is_scripted = self.plan.is_scripted;
        if is_scripted && self.clients[client].batches == script(client).len() {
            return;
        }
        let pause = match (is_scripted, self.clients[client].checker.connected) {
            (true, true) => 500,
            (true, false) => 20_000,
            (false, _) => 1 + self.rng.below(60_000),
        };
        let at = self.now.after(Duration::from_micros(pause));
        self.schedule.plan(at, Happening::Ask { client });
    }

    fn ask(&mut self, client: usize) {
        if self.ending != Ending::Trouble {
            return;
        }
        if self.plan.is_scripted {
            self.ask_by_script(client);
        } else if self.clients[client].checker.over.is_none() {
            for _ in 0..=self.rng.below(3) {
                let watches = self.clients[client].checker.watches();
                let wish = Wish::any(&mut self.rng, watches);
                self.clients[client].ask(self.now, wish);
            }
            self.settle(client);
        }
        self.plan_ask(client);
    }

    fn ask_by_script(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let is_ready = client.checker.over.is_none() && client.checker.is_idle();
        let Some(batch) = script(number).get(client.batches).filter(|_| is_ready) else { return };
        client.batches += 1;
        batch.iter().for_each(|wish| client.ask(self.now, *wish));
        self.settle(number);
    }

    /// A fault begins.
    fn strike(&mut self, number: usize) {
        let planned = self.plan.faults[number];
        if self.ending != Ending::Trouble {
            return;
        }
        let until = self.now.after(planned.duration);
        self.schedule.plan(until, Happening::Mend { number });
        *self.report.fired.entry(planned.kind()).or_default() += 1;
        match planned.target {
            Target::Client(client) | Target::Path(client, _) => {
                self.strike_client(planned.fault, client as usize, until);
            }
            Target::Member(member) => self.strike_member(planned.fault, member),
            Target::All => self.ensemble.depose(self.now),
        }
        self.pump();
    }

    fn strike_client(&mut self, fault: Fault, client: usize, until: Time) {
        let now = self.now;
        match fault {
            Fault::Slow => self.clients[client].slow = self.plan.timeout / 8,
            Fault::Choppy => self.clients[client].in_crumbs = true,
            Fault::Stall => self.clients[client].is_paused = true,
            Fault::Flap => self.clients[client].is_frail = true,
            Fault::Isolate => self.clients[client].is_isolated = true,
            Fault::Expire => {
                if let Some(session) = self.clients[client].checker.id {
                    self.forced.insert(session);
                    self.ensemble.expire(now, session);
                }
            }
            _ => {}
        }
        let Some(link) = self.clients[client].link else { return };
        let [up, down] = {
            let link = &mut self.links[link];
            [&mut link.up, &mut link.down]
        };
        match fault {
            Fault::Reset => self.reset(link),
            Fault::Finish => {
                let at = now.after(self.latency(client));
                let Link { up, down, .. } = &mut self.links[link];
                let (up, down) = (up.arrival(at), down.arrival(at));
                self.schedule.plan(down, Happening::DownEnd { link });
                self.schedule.plan(up, Happening::UpEnd { link });
            }
            Fault::Forget | Fault::Isolate => (up.is_hole, down.is_hole) = (true, true),
            Fault::HoleUp => up.is_hole = true,
            Fault::HoleDown => down.is_hole = true,
            // Even if the client has left by then, and lives on another connection.
            Fault::Late => (up.stalled, down.stalled) = (until, until),
            Fault::Flap => self.weaken(link),
            _ => {}
        }
    }

    fn strike_member(&mut self, fault: Fault, member: usize) {
        let (now, number) = (self.now, Member(member));
        match fault {
            Fault::Kill => self.ensemble.stop(now, number),
            Fault::CutOff => {
                self.has_cut_off = true;
                self.ensemble.cut_off(now, number);
            }
            Fault::Lag => self.ensemble.set_lag(now, number, self.plan.timeout / 10),
            Fault::Finish => self.ensemble.drop_connections(now, Some(number)),
            Fault::Refuse => drop(self.refusing.insert(member)),
            Fault::Silent => drop(self.hanging.insert(member)),
            _ => {}
        }
    }

    /// A fault ends. Harmless if it has ended before.
    fn mend(&mut self, Planned { fault, target, .. }: Planned) {
        let now = self.now;
        match (fault, target) {
            (Fault::Slow, Target::Client(it)) => self.clients[it as usize].slow = Duration::ZERO,
            (Fault::Choppy, Target::Client(it)) => self.clients[it as usize].in_crumbs = false,
            (Fault::Isolate, Target::Client(it)) => self.clients[it as usize].is_isolated = false,
            (Fault::Stall, Target::Client(it)) => self.awake(it as usize),
            (Fault::Flap, Target::Client(it)) => {
                let client = &mut self.clients[it as usize];
                client.is_frail = false;
                if let Some(link) = client.link {
                    self.links[link].frail = None;
                }
            }
            (Fault::Refuse, Target::Member(member)) => drop(self.refusing.remove(&member)),
            (Fault::Silent, Target::Member(member)) => drop(self.hanging.remove(&member)),
            (Fault::Kill, Target::Member(member)) => self.ensemble.start(now, Member(member)),
            (Fault::CutOff, Target::Member(member)) => self.ensemble.rejoin(now, Member(member)),
            (Fault::Lag, Target::Member(member)) => {
                self.ensemble.set_lag(now, Member(member), Duration::ZERO);
            }
            _ => {}
        }
        self.pump();
    }

    /// How long it may take to be connected to healthy servers. A new session has as long as it wants for
    /// its first dial, and one with a dead connection two thirds of that; the longest pause is five
    /// seconds.
    fn bound(&self) -> Duration {
        self.plan.timeout + Duration::from_secs(7)
    }

    /// Looks whether the run is where it should be, and goes on.
    fn phase(&mut self) {
        let is_late = |by: Time| self.now > by;
        match self.ending {
            Ending::Trouble => {
                for planned in &self.plan.faults {
                    self.mend(*planned);
                }
                self.ending = Ending::Healed(self.now.after(self.bound()));
            }
            Ending::Healed(by) => {
                if self.clients.iter().all(|client| client.checker.connected) {
                    for client in 0..self.clients.len() {
                        let wishes = Wish::last();
                        wishes.iter().for_each(|wish| self.clients[client].ask(self.now, *wish));
                        self.settle(client);
                    }
                    self.ending = Ending::Reading(self.now.after(self.bound()));
                } else if is_late(by) {
                    self.violations.push(format!("L1: somebody is not connected by {by}"));
                }
            }
            Ending::Reading(by) => {
                if self.clients.iter().all(|client| client.checker.is_idle()) {
                    for client in 0..self.clients.len() {
                        self.clients[client].close(self.now);
                        self.settle(client);
                    }
                    let bound = self.config(0).close_timeout;
                    self.ending = Ending::Closing(self.now.after(bound));
                } else if is_late(by) {
                    self.violations.push(format!("L1: somebody has no answers by {by}"));
                }
            }
            Ending::Closing(by) => {
                if self.clients.iter().all(|client| client.checker.over.is_some()) {
                    self.ending = Ending::Done;
                    self.at_end();
                } else if is_late(by) {
                    self.violations.push(format!("L4: somebody is not closed by {by}"));
                }
            }
            Ending::Done => {}
        }
        self.schedule.plan(self.now.after(LOOK), Happening::Phase);
    }

    /// Nothing is left over.
    fn at_end(&mut self) {
        for client in 0..self.clients.len() {
            self.close_checker(client);
        }
        let watches = self.ensemble.watch_count();
        let live: Vec<_> = self.clients.iter().filter_map(|client| client.checker.id).collect();
        let left = self.ensemble.sessions().filter(|(id, _)| live.contains(id)).count();
        if left > 0 {
            self.violations
                .push(format!("X2: {left} closed sessions and {watches} watches are left"));
        }
    }
}
