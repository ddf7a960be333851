//! Clients, network and ensemble in one place, and what makes them go on.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, Sleep};
use zk_proto::{SessionId, Time, traffic::Received};

use super::{
    Fault, Fired, Incident, Observer, Process, Rng, Schedule, Seen, Tasks, Trace,
    forge::forge,
    frames::{Tap, last_frame, received_as, sent_as},
    net::{Arrival, ConnectorId, LinkId, Net},
    trace::Actor,
};
use crate::server::{Config, Conn, Ensemble, Member, Output};

/// Clients, network and ensemble. Clones share them.
#[derive(Clone)]
pub struct Cluster(Arc<Mutex<State>>);

/// Everything of a [`Cluster`].
pub struct State {
    clock: Clock,
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
    connectors: u32,
    /// Faults that have begun, and not ended.
    pub(super) underway: Vec<Incident>,
    conns: BTreeMap<Conn, LinkId>,
    wires: Vec<Wire>,
    pump: Option<Waker>,
}

/// Where time comes from.
#[derive(Clone, Copy, Debug)]
enum Clock {
    /// The paused runtime, since then.
    Runtime(Instant),
    /// Whoever calls [`State::advance`]; it is so late.
    Steps(u64),
}

/// What is known of a connection beyond the network's own view.
#[derive(Debug, Default)]
struct Wire {
    connector: ConnectorId,
    conn: Option<Conn>,
    tap: Tap,
    greeted: bool,
    forged: bool,
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

impl Cluster {
    /// Sets up a cluster in the present moment of a paused runtime.
    #[must_use]
    pub fn new(setup: Setup, tasks: &Tasks) -> Self {
        Self(Arc::new(Mutex::new(State::new(setup, tasks, Clock::Runtime(Instant::now()), 1))))
    }

    /// Everything, for as long as it has no other user.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`state`](Cluster::state), and the ensemble and network are looked at afterwards.
    pub fn act<T>(&self, act: impl FnOnce(&mut State, u64) -> T) -> T {
        let mut state = self.state();
        let now = state.now();
        let output = act(&mut state, now);
        let pump = state.pump.take();
        drop(state);
        if let Some(pump) = pump {
            pump.wake();
        }
        output
    }

    /// Milliseconds since the beginning.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.state().now()
    }

    /// Notes an event.
    pub fn note(&self, actor: Actor, what: &'static str, argument: u64) {
        let mut state = self.state();
        let now = state.now();
        state.trace.note(now, actor, what, argument);
    }

    /// What moves bytes, servers and faults on; never ends. Must be polled by a task that never stands still.
    #[must_use]
    pub fn pump(&self) -> Pump {
        Pump { cluster: self.clone(), sleep: Box::pin(tokio::time::sleep(Duration::ZERO)) }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

/// See [`Cluster::pump`].
#[derive(Debug)]
pub struct Pump {
    cluster: Cluster,
    sleep: Pin<Box<Sleep>>,
}

impl Future for Pump {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let cluster = self.cluster.clone();
        let mut state = cluster.state();
        loop {
            let next = state.step();
            state.pump = Some(cx.waker().clone());
            let Some(next) = next else { return Poll::Pending };
            let Clock::Runtime(epoch) = state.clock else { return Poll::Pending };
            let at = epoch + Duration::from_millis(next);
            if self.sleep.deadline() != at {
                self.sleep.as_mut().reset(at);
            }
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
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

    fn new(setup: Setup, tasks: &Tasks, clock: Clock, per_milli: u64) -> Self {
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
    fn step(&mut self) -> Option<u64> {
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

    fn write(&mut self, now: u64, conn: Conn, bytes: Bytes) {
        let Some(&link) = self.conns.get(&conn) else { return };
        let (client, _) = self.net.ends(link);
        let wire = &mut self.wires[link.0];
        let is_greeting = !std::mem::replace(&mut wire.greeted, true);
        let forgeries = &mut self.forgeries[client as usize];
        let mut bytes = bytes;
        if let Some(&(fault, chance)) = forgeries.first() {
            let (front, last) = last_frame(&bytes);
            if let Some(forged) = last.and_then(|last| forge(fault, chance, is_greeting, &last)) {
                forgeries.remove(0);
                wire.forged = true;
                *self.fired.entry(fault).or_default() += 1;
                self.trace.note(now, Actor::Client(client), fault.name(), chance);
                let session = self.sessions[client as usize];
                if let (true, Some(observer)) = (fault.damages(), &mut self.observer) {
                    observer.damaged(now, session);
                }
                bytes = [front, forged].concat().into();
            }
        }
        self.net.send(now, link, bytes);
    }

    fn arrived(&mut self, now: u64, arrival: Arrival) {
        match arrival {
            Arrival::Syn(link) => {
                let (client, member) = self.net.ends(link);
                let peer = IpAddr::V4(Ipv4Addr::from(0x0A00_0001 + client));
                let conn = self.ensemble.accept(self.time(now), Member(member), peer);
                self.wires[link.0].conn = conn;
                self.conns.extend(conn.map(|conn| (conn, link)));
                self.net.accepted(now, link, conn.is_some());
            }
            Arrival::Bytes(link, bytes) => {
                if let Some(conn) = self.wires[link.0].conn {
                    self.ensemble.received(self.time(now), conn, &bytes);
                }
            }
            Arrival::Gone(link) => {
                if let Some(conn) = self.wires[link.0].conn.take() {
                    self.conns.remove(&conn);
                    self.ensemble.hung_up(self.time(now), conn);
                }
            }
            Arrival::Delivered(link, bytes) => self.delivered(now, link, &bytes),
            Arrival::Reminder(what) => self.incident(now, what),
        }
    }

    fn delivered(&mut self, now: u64, link: LinkId, bytes: &[u8]) {
        let seen = self.seen(now, link);
        self.trace.absorb(bytes);
        if let Some(observer) = &mut self.observer {
            observer.heard(now, link);
        }
        self.wires[link.0].tap.down(bytes, |frame| {
            let (what, argument) = received_as(frame);
            self.trace.note(now, Actor::Client(seen.client), what, argument);
            if let Received::Connect(greeting) = frame {
                let accepted = greeting.session_id != SessionId(0) && greeting.time_out > 0;
                if accepted {
                    self.sessions[seen.client as usize] = greeting.session_id;
                }
            }
            if let Some(observer) = &mut self.observer {
                observer.received(&seen, frame);
            }
        });
    }

    /// A frame at the client's end of a connection.
    fn seen(&self, at: u64, link: LinkId) -> Seen {
        let (client, member) = self.net.ends(link);
        let cut = !self.ensemble.is_in_touch(Member(member));
        let Wire { connector, forged, .. } = self.wires[link.0];
        Seen { at, client, connector, member, link, forged, cut }
    }

    /// A client is about to make one more session, or none.
    pub fn new_connector(&mut self) -> ConnectorId {
        self.connectors += 1;
        ConnectorId(self.connectors)
    }

    /// A client begins to connect.
    pub fn dial(&mut self, client: u32, connector: ConnectorId, member: usize) -> LinkId {
        let now = self.now();
        let link = match self.unresolved[client as usize] {
            Some(after) => self.net.dial_in_vain(now, client, member, after),
            None => self.net.dial(now, client, member),
        };
        self.trace.note(now, Actor::Client(client), "dials", member as u64);
        if let Some(observer) = &mut self.observer {
            observer.dialed(now, client);
        }
        self.wires.push(Wire { connector, ..Wire::default() });
        self.wake_pump();
        link
    }

    /// A client has written this much of its bytes.
    pub fn written(&mut self, link: LinkId, bytes: &[u8]) {
        let now = self.now();
        let seen = self.seen(now, link);
        self.trace.absorb(bytes);
        self.wires[link.0].tap.up(bytes, |frame| {
            let (what, argument) = sent_as(frame);
            self.trace.note(now, Actor::Client(seen.client), what, argument);
            if let Some(observer) = &mut self.observer {
                observer.sent(&seen, frame);
            }
        });
        let ends_frame = self.wires[link.0].tap.is_up_whole();
        if let Some(observer) = &mut self.observer {
            observer.wrote(now, seen.client, ends_frame);
        }
        self.wake_pump();
    }

    /// A client lets go of a connection.
    pub fn left(&mut self, link: LinkId) {
        let now = self.now();
        let (client, member) = self.net.ends(link);
        self.trace.note(now, Actor::Client(client), "leaves", member as u64);
        if let Some(observer) = &mut self.observer {
            observer.left(now, client, link);
        }
        self.net.leave(now, link);
        self.wake_pump();
    }

    fn wake_pump(&mut self) {
        if let Some(pump) = self.pump.take() {
            pump.wake();
        }
    }
}
