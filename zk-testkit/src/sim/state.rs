//! Clients, network and ensemble in one place, and how their time passes.

use std::{collections::BTreeMap, fmt, task::Waker, time::Duration};

use tokio::time::Instant;
use zk_proto::{SessionId, Time};

use super::{
    Fault, Fired, Incident, Observer, Process, Rng, Schedule, Tasks, Trace,
    frames::Tap,
    net::{ConnectorId, LinkId, Net},
};
use crate::server::{Config, Conn, Ensemble, Output};

/// Everything of a [`Cluster`](super::Cluster).
pub struct State {
    pub(super) clock: Clock,
    /// The network.
    pub net: Net,
    /// The servers.
    pub ensemble: Ensemble,
    /// What has happened.
    pub trace: Trace,
    /// Which faults have hit which clients.
    pub fired: Fired,
    /// The observer.
    pub observer: Option<Box<dyn Observer>>,
    /// What goes wrong, so far and later.
    pub schedule: Schedule,
    pub(super) tasks: Tasks,
    /// Whether faults are over: what is still to come of the schedule does not happen.
    pub(super) healed: bool,
    /// Sessions, as far as servers have reported them to their clients.
    pub(super) sessions: Vec<SessionId>,
    /// Sessions that were ended by a fault.
    pub(super) expired: Vec<SessionId>,
    /// Names that do not resolve, by client, and how long it takes to find out.
    pub(super) unresolved: Vec<Option<u64>>,
    /// Forgeries to come, by client.
    pub(super) forgeries: Vec<Vec<(Fault, u64)>>,
    /// How long each client has stood still in all, and since when it does.
    pub(super) stalls: Vec<(u64, Option<u64>)>,
    pub(super) crashed: Vec<u32>,
    pub(super) connectors: u32,
    /// Faults that have begun, and not ended.
    pub(super) underway: Vec<Incident>,
    pub(super) conns: BTreeMap<Conn, LinkId>,
    pub(super) wires: Vec<Wire>,
    pub(super) pump: Option<Waker>,
}

/// Where time comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    /// The paused runtime, since then.
    Runtime(Instant),
    /// Calls of [`State::advance`]; it is so late.
    Steps(u64),
}

/// What is known of a connection beyond the network's own view.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) connector: ConnectorId,
    pub(super) conn: Option<Conn>,
    pub(super) tap: Tap,
    pub(super) greeted: bool,
    pub(super) forged: bool,
}

/// How to set up a cluster.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where chance comes from.
    pub seed: u64,
    /// Number of clients.
    pub clients: u32,
    /// The servers.
    pub servers: Config,
    /// Milliseconds that one way takes, first and last included.
    pub latency: (u64, u64),
    /// What goes wrong.
    pub schedule: Schedule,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

impl State {
    /// What stands between clients that are values and need no runtime: its times are microseconds, but for those
    /// of the schedule, and pass by [`advance`](Self::advance).
    #[must_use]
    pub fn without_runtime(setup: Setup) -> Self {
        let tasks = Tasks::new(Rng::new(setup.seed));
        Self::new(setup, &tasks, Clock::Steps(0), 1000)
    }

    pub(super) fn new(setup: Setup, tasks: &Tasks, clock: Clock, per_milli: u64) -> Self {
        let Setup { seed, clients, servers, latency, schedule } = setup;
        let rng = Rng::new(seed);
        let count = clients as usize;
        let mut net = Net::new(rng.fork(1), count, servers.members, latency);
        net.per_milli = per_milli;
        for (number, incident) in (0..).zip(&schedule.0) {
            net.remind(incident.at * per_milli, number * 2);
        }
        Self {
            clock,
            net,
            ensemble: Ensemble::new(servers),
            trace: Trace::default(),
            fired: Fired::default(),
            observer: None,
            schedule,
            tasks: tasks.clone(),
            healed: false,
            sessions: vec![SessionId(0); count],
            expired: Vec::new(),
            unresolved: vec![None; count],
            forgeries: vec![Vec::new(); count],
            stalls: vec![(0, None); count],
            crashed: Vec::new(),
            connectors: 0,
            underway: Vec::new(),
            conns: BTreeMap::new(),
            wires: Vec::new(),
            pump: None,
        }
    }

    /// Milliseconds since the beginning; microseconds [without a runtime](Self::without_runtime).
    #[must_use]
    pub fn now(&self) -> u64 {
        match self.clock {
            Clock::Runtime(epoch) => epoch.elapsed().as_millis() as u64,
            Clock::Steps(now) => now,
        }
    }

    /// When a number of those is.
    #[must_use]
    pub const fn time(&self, now: u64) -> Time {
        Time::new(Duration::from_micros(now * (1000 / self.net.per_milli)))
    }

    /// When that is in numbers of those, rounded up: never too early.
    #[must_use]
    pub fn at(&self, time: Time) -> u64 {
        time.since_epoch().as_nanos().div_ceil(1_000_000 / u128::from(self.net.per_milli)) as u64
    }

    /// Counts a fault that was injected elsewhere.
    pub fn hit(&mut self, fault: Fault) {
        *self.fired.entry(fault).or_default() += 1;
    }

    /// The session that a server has given to this client last; 0 if none has.
    #[must_use]
    pub fn session(&self, client: u32) -> SessionId {
        self.sessions[client as usize]
    }

    /// How many milliseconds a client has stood still so far.
    #[must_use]
    pub fn stalled(&self, client: u32) -> u64 {
        let (sum, since) = self.stalls[client as usize];
        sum + since.map_or(0, |since| self.now() - since)
    }

    /// Clients whose processes were killed since this was last asked.
    pub fn take_crashed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.crashed)
    }

    /// Clients and worlds have processes of their own: this is a client's.
    #[must_use]
    pub const fn process(client: u32) -> Process {
        Process(client + 1)
    }

    /// Whether a client stands still.
    #[must_use]
    pub fn is_stalled(&self, client: u32) -> bool {
        self.stalls[client as usize].1.is_some()
    }

    /// Whether a fault has ended this session.
    #[must_use]
    pub fn was_expired(&self, session: SessionId) -> bool {
        self.expired.contains(&session)
    }

    /// When something is due next.
    #[must_use]
    pub fn next_at(&self) -> Option<u64> {
        let deadline = self.ensemble.deadline().map(|deadline| self.at(deadline));
        self.net.next_at().into_iter().chain(deadline).min()
    }

    /// It is so late now, and the first thing happens that is due.
    pub fn advance(&mut self, now: u64) {
        self.clock = Clock::Steps(now);
        if self.net.next_at().is_some_and(|at| at <= now) {
            if let Some(arrival) = self.net.turn(now) {
                self.arrived(now, arrival);
            }
        } else {
            self.ensemble.elapsed(self.time(now));
        }
        self.settle(now);
    }

    /// Does all that is due, and says when to go on.
    pub(super) fn step(&mut self) -> Option<u64> {
        loop {
            let now = self.now();
            while let Some(arrival) = self.net.pop(now) {
                self.arrived(now, arrival);
                self.settle(now);
            }
            if self.ensemble.deadline().is_some_and(|deadline| self.at(deadline) <= now) {
                self.ensemble.elapsed(self.time(now));
                self.settle(now);
                continue;
            }
            self.settle(now);
            let next = self.next_at()?;
            if next > now {
                return Some(next);
            }
        }
    }

    /// Passes on what the ensemble wants sent, and counts what went wrong.
    pub(super) fn settle(&mut self, now: u64) {
        while let Some(output) = self.ensemble.poll() {
            match output {
                Output::Write { conn, bytes } => self.write(now, conn, bytes),
                Output::Close { conn } => {
                    if let Some(link) = self.conns.remove(&conn) {
                        self.wires[link.0].conn = None;
                        self.net.close(now, link);
                    }
                }
            }
        }
        for fault in std::mem::take(&mut self.net.effects) {
            self.hit(fault);
        }
        if let Some(mut observer) = self.observer.take() {
            observer.stepped(now, &self.ensemble);
            self.observer = Some(observer);
        }
    }

    pub(super) fn wake_pump(&mut self) {
        if let Some(pump) = self.pump.take() {
            pump.wake();
        }
    }
}
