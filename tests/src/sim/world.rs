//! One run: warm-up, chaos, heal, converge, close.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::sync::watch;
use zk_testkit::sim::{Actor, Cluster, Fired, Process, Rng, Setup, State, Tasks};

use super::{
    Options, Report, alone,
    check::{SharedChecker, Violation},
    life,
    lines::Lines,
    pass,
    workload::{ClientContext, LOCK_DELAY_MAX, Phase, ROTATION_MAX},
};
use crate::{log::listened, paused};

/// The process of whatever must go on when clients stand still.
const WORLD: Process = Process(0);

/// How often the world looks after its clients, in milliseconds.
const STEP: u64 = 50;

/// Milliseconds between two looks at the connections: longer than it takes to begin a session.
const LOOK_AGAIN: u64 = 5_000;

/// Runs a simulation to its end.
///
/// # Panics
/// If there is no runtime to be had.
#[must_use]
pub fn run(options: &Options, keep_trace: bool) -> Report {
    let runtime = paused::runtime();
    let rng = Rng::new(options.seed).fork(0x51B);
    let tasks = Tasks::new(rng.fork(1));
    let checker = SharedChecker::new(options);
    let mut cluster = None;
    let lines = Lines::default();
    let listening = listened(lines.clone());
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(tokio::task::unconstrained(async {
            let world = World::new(options, &rng, &tasks, &checker, keep_trace);
            cluster = Some(world.cluster.clone());
            tasks.run(world.run()).await;
        }));
    }));
    // Whatever still runs goes before its runtime.
    let cleared = catch_unwind(AssertUnwindSafe(|| {
        let _inside = runtime.enter();
        tasks.clear();
    }));
    if outcome.is_err() || cleared.is_err() {
        checker.lock().violated("R3", "somebody panicked, as told above".to_owned());
    }
    drop(listening);
    lines.check(&mut checker.lock());
    report(options, &checker, cluster.as_ref())
}

fn report(options: &Options, checker: &SharedChecker, cluster: Option<&Cluster>) -> Report {
    let mut checker = checker.lock();
    let violations: Vec<Violation> = std::mem::take(&mut checker.violations);
    let mut report = Report {
        options: options.clone(),
        hash: 0,
        events: 0,
        simulated: checker.now,
        counts: std::mem::take(&mut checker.counts),
        fired: Fired::default(),
        violations,
        last: Vec::new(),
    };
    drop(checker);
    if let Some(cluster) = cluster {
        let mut state = cluster.state();
        // The observer keeps what it observes.
        state.observer = None;
        report.hash = state.trace.hash();
        report.events = state.trace.count();
        report.fired = state.fired.clone();
        report.last = state.trace.last().cloned().collect();
    }
    report
}

struct World {
    options: Arc<Options>,
    cluster: Cluster,
    checker: SharedChecker,
    tasks: Tasks,
    phase: watch::Sender<Phase>,
    rng: Rng,
    lives: u64,
    /// When each client was seen to stand still.
    stood_still: BTreeMap<u32, u64>,
}

impl World {
    fn new(
        options: &Options,
        rng: &Rng,
        tasks: &Tasks,
        checker: &SharedChecker,
        keep_trace: bool,
    ) -> Self {
        let setup = Setup {
            seed: options.seed,
            clients: options.clients,
            servers: options.servers(),
            latency: options.latency,
            schedule: options.schedule.clone(),
        };
        let cluster = Cluster::new(setup, tasks);
        {
            let mut state = cluster.state();
            state.observer = Some(Box::new(checker.clone()));
            if keep_trace {
                state.trace.keep_all();
            }
        }
        let (phase, _) = watch::channel(Phase::Busy);
        Self {
            options: Arc::new(options.clone()),
            cluster,
            checker: checker.clone(),
            tasks: tasks.clone(),
            phase,
            rng: rng.fork(2),
            lives: 0,
            stood_still: BTreeMap::new(),
        }
    }

    async fn run(mut self) {
        self.tasks.spawn(WORLD, self.cluster.pump());
        for client in 0..self.options.clients {
            self.start(client);
        }
        let chaos = self.options.duration;
        if self.options.alone.is_some() {
            self.until(chaos - alone::LOOKS).await;
        }
        let readers = self.checker.lock().read_alone();
        self.until(chaos).await;
        self.checker.at(chaos).check_moved(&readers);
        self.enter(Phase::Converge);
        self.cluster.act(|state, _| state.heal());
        let healed = self.cluster.now();
        self.converge(healed).await;
        self.enter(Phase::Drain);
        if self.drain().await {
            self.close().await;
        }
        let now = self.cluster.now();
        let mut checker = self.checker.at(now);
        checker.check_writes();
        checker.check_histories();
        checker.check_twins();
        checker.check_thrift();
    }

    fn enter(&self, phase: Phase) {
        self.cluster.note(Actor::World, "phase", phase as u64);
        self.phase.send_replace(phase);
    }

    fn start(&mut self, client: u32) {
        self.lives += 1;
        let ctx = ClientContext {
            number: client,
            cluster: self.cluster.clone(),
            checker: self.checker.clone(),
            tasks: self.tasks.clone(),
            phase: self.phase.subscribe(),
            options: self.options.clone(),
            cache: Arc::default(),
        };
        let mut rng = self.rng.fork(self.lives);
        self.tasks.spawn(State::process(client), async move {
            pass(rng.within(0, 1_000)).await;
            life::live(ctx, rng).await;
        });
    }

    /// Lets time pass, and starts killed clients again.
    async fn until(&mut self, end: u64) {
        loop {
            let crashed = self.cluster.state().take_crashed();
            for client in crashed {
                self.tasks.kill(State::process(client));
                self.checker.lock().count("crashes");
                self.start(client);
            }
            let now = self.cluster.now();
            self.look_at_states(now);
            if now >= end {
                return;
            }
            pass(STEP.min(end - now)).await;
        }
    }

    /// Looks what clients say of their sessions, but for those that stand still, or did a moment ago.
    fn look_at_states(&mut self, now: u64) {
        let state = self.cluster.state();
        let mut clients = Vec::new();
        for client in 0..self.options.clients {
            if self.tasks.is_stalled(State::process(client)) {
                self.stood_still.insert(client, now);
                self.checker.at(now).stands_still(client);
            }
            if self.stood_still.get(&client).is_none_or(|at| now > at + 2 * STEP) {
                clients.push((client, state.net.open_links(Some(client)).next().is_none()));
            }
        }
        drop(state);
        let mut checker = self.checker.at(now);
        checker.check_states(&clients);
        checker.check_first();
    }

    /// From here on everything is well, and has to become well.
    async fn converge(&mut self, healed: u64) {
        let Options { tick, hold_max, .. } = *self.options;
        let timeout = self.options.longest_timeout();
        let back = healed + timeout + 10_000;
        self.until(back).await;
        let connections = self.connections();
        let (missed, strays) = {
            let checker = self.checker.at(back);
            (checker.unconnected(), checker.strays(&connections))
        };
        self.until(back + LOOK_AGAIN).await;
        let connections = self.connections();
        {
            let mut checker = self.checker.at(back + LOOK_AGAIN);
            checker.check_connected(&missed);
            checker.check_strays(&connections, &strays);
        }
        let settings = if self.options.draws_settings { LOCK_DELAY_MAX + ROTATION_MAX } else { 0 };
        let moved = healed + 2 * timeout + 2 * tick + hold_max + 10_000 + settings;
        let moved = moved.max(back + LOOK_AGAIN);
        self.until(moved).await;
        let mut checker = self.checker.at(moved);
        checker.check_recovered(healed);
        checker.check_kept();
    }

    /// Which clients are connected to which members.
    fn connections(&self) -> Vec<(u32, usize)> {
        let state = self.cluster.state();
        state.net.open_links(None).map(|link| state.net.ends(link)).collect()
    }

    /// All clients finish what was begun. Returns whether that has worked.
    async fn drain(&mut self) -> bool {
        let waiters = self.checker.lock().waiters() as u64;
        let each = self.options.hold_max + 500 + 8 * self.options.latency.1;
        let timeout = self.options.longest_timeout();
        // And clients that hold something now.
        let latest = self.cluster.now() + 30_000 + 2 * timeout + (waiters + 1) * each;
        loop {
            let drained = self.checker.lock().promises.drained.len();
            if drained == self.options.clients as usize {
                return true;
            }
            let now = self.cluster.now();
            if now >= latest {
                let mut checker = self.checker.at(now);
                let waiters = checker.waiters();
                checker.violated("L2", format!("{drained} have finished, {waiters} still wait"));
                return false;
            }
            self.until(now + STEP).await;
        }
    }

    /// All clients leave, and nothing must be left.
    async fn close(&mut self) {
        self.until(self.cluster.now() + 3_000).await;
        self.checker.at(self.cluster.now()).check_swept();
        self.enter(Phase::Close);
        let timeout = self.options.longest_timeout();
        let gone = self.cluster.now() + timeout + 3 * self.options.tick + 5_000;
        self.until(gone).await;
        let tasks = self.tasks.live() - self.tasks.live_in(WORLD);
        let state = self.cluster.state();
        self.checker.at(gone).check_nothing_left(&state, tasks);
    }
}
