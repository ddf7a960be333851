//! What clients do. A further recipe is one more file here, and one more line in [`start`].

mod foreign;
mod history;
mod lock;
mod nodes;
mod secret;
mod told;

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use zk_client::Client;
use zk_testkit::sim::{Cluster, Rng, State, Tasks};

pub(crate) use self::{lock::lock_path, secret::identity};
use super::{Options, check::Judge, pass};

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Sessions come and go.
    Busy,
    /// Faults are over; nobody leaves of its own accord.
    Converge,
    /// Nobody begins anything any more.
    Drain,
    /// Sessions are closed.
    Close,
}

/// What is asked of the workers of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    /// Go on.
    No,
    /// Begin nothing any more.
    Finish,
    /// Stop where you are.
    Drop,
}

/// What a client has around it.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) number: u32,
    pub(crate) cluster: Cluster,
    pub(crate) judge: Judge,
    pub(crate) tasks: Tasks,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) options: Arc<Options>,
}

/// What a worker has around it.
pub(crate) struct Worker {
    pub(crate) seat: Seat,
    pub(crate) client: Client,
    pub(crate) rng: Rng,
    stop: watch::Receiver<Stop>,
    /// Dropped when the worker is done.
    _done: mpsc::Sender<()>,
}

/// The workers of a session.
pub(crate) struct Workers {
    stop: watch::Sender<Stop>,
    done: mpsc::Receiver<()>,
}

impl Seat {
    pub(crate) fn now(&self) -> u64 {
        self.cluster.now()
    }

    /// How long this client has stood still in all.
    pub(crate) fn stalled(&self) -> u64 {
        self.cluster.state().stalled(self.number)
    }

    pub(crate) fn count(&self, what: &'static str) {
        self.judge.bench().count(what);
    }
}

impl Worker {
    /// Lets some time pass. Returns whether to go on.
    async fn think(&mut self, millis: u64) -> bool {
        let over = |stop: &Stop| *stop != Stop::No;
        tokio::select! {
            biased;
            _ = self.stop.wait_for(over) => false,
            () = pass(millis) => true,
        }
    }
}

impl Workers {
    /// Asks for an end.
    pub(crate) fn stop(&self, how: Stop) {
        self.stop.send_replace(how);
    }

    /// Waits until all are done.
    pub(crate) async fn done(&mut self) {
        while self.done.recv().await.is_some() {}
    }
}

/// Starts what a client does with a session.
pub(crate) fn start(seat: &Seat, client: &Client, rng: &Rng) -> Workers {
    let (stop, stopped) = watch::channel(Stop::No);
    let (done, all_done) = mpsc::channel(1);
    let worker = |part| Worker {
        seat: seat.clone(),
        client: client.clone(),
        rng: rng.fork(part),
        stop: stopped.clone(),
        _done: done.clone(),
    };
    spawn(seat, &stopped, lock::work(worker(1)));
    if rng_says(seat, 3) {
        spawn(seat, &stopped, lock::work(worker(2)));
    }
    if !seat.options.calm {
        if rng_says(seat, 2) {
            spawn(seat, &stopped, nodes::work(worker(3)));
        }
        if rng_says(seat, 5) {
            spawn(seat, &stopped, foreign::work(worker(4)));
        }
        if seat.number % 3 != 1 {
            spawn(seat, &stopped, told::work(worker(5)));
        }
        if seat.options.histories && seat.number < history::CLIENTS_MAX {
            spawn(seat, &stopped, history::work(worker(7)));
        }
        if identity(seat.number).is_some() {
            spawn(seat, &stopped, secret::work(worker(6)));
        }
    }
    Workers { stop, done: all_done }
}

/// Every so many clients do something.
const fn rng_says(seat: &Seat, every: u32) -> bool {
    seat.number % every == every - 1
}

fn spawn(
    seat: &Seat,
    stop: &watch::Receiver<Stop>,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let mut stop = stop.clone();
    seat.tasks.spawn(State::process(seat.number), async move {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop == Stop::Drop) => {}
            () = work => {}
        }
    });
}
