//! Sessions of an ensemble, in virtual time.

use std::{future::Future, time::Duration};

use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use zk_client::{Client, ConnectOptions};
use zk_testkit::{
    server::Config,
    sim::{
        Cluster, Fault, Incident, Process, Rng, Schedule, Setup, SimConnect, State, Target, Tasks,
        servers, sim_clock,
    },
};

use super::traffic::{CountedConnect, Traffic};
use crate::paused;

/// Where chance comes from.
const SEED: u64 = 21;

const MEMBERS: usize = 3;

/// Bound on the virtual time of all of it: what is stuck is a failure and not a hang.
const LIFE_MAX: Duration = Duration::from_secs(3600);

/// How long a message takes, in milliseconds.
const LATENCY: u64 = 1;

/// From a request to its answer.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(2 * LATENCY);

/// The client's default.
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest that servers grant by default.
pub(super) const SESSION_TIMEOUT_MAX: Duration = Duration::from_secs(40);

/// The process of what is not a session's.
const WORLD: Process = Process(0);

/// What may connect at the same time.
const CONNECTING: usize = 500;

/// An ensemble, and the sessions that there may be.
#[derive(Clone)]
pub(super) struct Site {
    tasks: Tasks,
    cluster: Cluster,
    begin: Instant,
    pub(super) traffic: Traffic,
}

/// A fault that hits servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    /// When, since the beginning.
    pub(super) at: Duration,
    pub(super) lasts: Duration,
    /// A member; all if there is none.
    pub(super) member: Option<usize>,
}

impl Outage {
    fn incident(self) -> Incident {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Incident {
            at: millis(self.at),
            fault: Fault::Kill,
            target: self.member.map_or(Target::All, Target::Member),
            lasts: millis(self.lasts),
            amount: 0,
        }
    }
}

/// Does something with so many sessions.
pub(super) fn with<T, F>(sessions: usize, outage: Option<Outage>, work: impl FnOnce(Site) -> F) -> T
where
    F: Future<Output = T>,
{
    let runtime = paused::runtime();
    let tasks = Tasks::new(Rng::new(SEED));
    let output = runtime.block_on(tokio::task::unconstrained(async {
        let mut config = Config::default();
        config.members = MEMBERS;
        config.seed = SEED;
        let setup = Setup {
            seed: SEED,
            clients: u32::try_from(sessions).expect("few enough"),
            servers: config,
            latency: (LATENCY, LATENCY),
            schedule: Schedule(outage.into_iter().map(Outage::incident).collect()),
        };
        let cluster = Cluster::new(setup, &tasks);
        let traffic = Traffic::default();
        cluster.state().observer = Some(Box::new(traffic.clone()));
        tasks.spawn(WORLD, cluster.pump());
        let site = Site { tasks: tasks.clone(), cluster, begin: Instant::now(), traffic };
        tasks.run(timeout(LIFE_MAX, work(site))).await.expect("it comes to an end")
    }));
    // What still runs goes before its runtime.
    let _inside = runtime.enter();
    tasks.clear();
    output
}

impl Site {
    /// How long it has been there.
    pub(super) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Sessions, by number.
    pub(super) async fn connect(&self, count: usize) -> Vec<Client> {
        self.connect_with(count, SESSION_TIMEOUT).await
    }

    /// Sessions with this timeout.
    pub(super) async fn connect_with(&self, count: usize, timeout: Duration) -> Vec<Client> {
        let mut clients = Vec::with_capacity(count);
        while clients.len() < count {
            let some = clients.len()..count.min(clients.len() + CONNECTING);
            clients.extend(self.gather(some.map(|number| self.session(number, timeout))).await);
        }
        clients
    }

    fn session(
        &self,
        number: usize,
        timeout: Duration,
    ) -> impl Future<Output = Client> + Send + use<> {
        let number = u32::try_from(number).expect("few enough");
        let (tasks, process) = (self.tasks.clone(), State::process(number));
        let connect = SimConnect::new(&self.cluster, number);
        let (traffic, begin) = (self.traffic.clone(), self.begin);
        let options = ConnectOptions::new(&servers(MEMBERS))
            .expect("the names are sound")
            .session_timeout(timeout)
            .connector(CountedConnect { connect, traffic, begin })
            .clock(sim_clock(0))
            .seed(SEED + u64::from(number))
            .spawn_with(move |task| tasks.spawn(process, task));
        async move { options.connect().await.expect("nothing is wrong with the servers") }
    }

    /// Does all of this at once, and waits for it.
    pub(super) async fn gather<T, F>(&self, work: impl Iterator<Item = F>) -> Vec<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (done, mut outputs) = mpsc::unbounded_channel();
        for (number, work) in work.enumerate() {
            let done = done.clone();
            self.spawn(async move {
                let _ = done.send((number, work.await));
            });
        }
        drop(done);
        let mut all = Vec::new();
        while let Some(output) = outputs.recv().await {
            all.push(output);
        }
        all.sort_unstable_by_key(|&(number, _)| number);
        all.into_iter().map(|(_, output)| output).collect()
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(WORLD, work);
    }
}

/// Lets so much virtual time pass.
pub(super) async fn pass(time: Duration) {
    tokio::time::sleep_until(Instant::now() + time).await;
}
