//! What clients do.
//!
//! | module | concern |
//! |---|---|
//! | `turns` | one recipe after the other: a further one is one more line there |
//! | `take`, `hold` | asking for something, in all ways; holding it, and giving it back |
//! | `lock`, `rw_lock`, `multi_lock`, `cohort_lock`, `semaphore`, `election`, `barrier`, `group`, `persistent_node` | recipes |
//! | `settings` | settings of recipes and of requests |
//! | `foreign` | a client that changes the nodes of others |
//! | `watcher`, `stream` | watches, and streams of events, held against all that is read |
//! | `cache` | caches, moved from session to session |
//! | `errands` | everything else, on nodes of one's own |
//! | `solo` | recipes on paths that nobody else uses |
//! | `nodes`, `watches`, `history`, `secret` | nodes, watches, histories and credentials without recipes |

mod barrier;
mod cache;
mod cohort_lock;
mod election;
mod errands;
mod foreign;
mod group;
mod history;
mod hold;
mod lock;
mod multi_lock;
mod nodes;
mod persistent_node;
mod rw_lock;
mod secret;
mod semaphore;
mod settings;
mod solo;
mod stream;
mod take;
mod turns;
mod watcher;
mod watches;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{mpsc, watch};
use zk_client::{Client, Error};
use zk_locks::{AcquireError, CohortLock};
use zk_testkit::sim::{Cluster, Rng, State, Tasks};

pub(crate) use self::{
    cache::ROOTS as CACHED,
    errands::ROOT as ERRANDS,
    nodes::REGISTER,
    persistent_node::{SITE as KEPT, keep},
    secret::identity,
    settings::{Drawn, LOCK_DELAY_MAX, ROTATION_MAX},
    solo::{BY_HAND, ROOT as SOLO},
};
use super::{
    Options,
    check::{Checker, SharedChecker},
    pass,
    recipe::Site,
};

/// The node of a lock that some clients meddle with.
pub(crate) const MEDDLED: &str = "/meddled/simple";

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Sessions come and go.
    Busy,
    /// Faults are over; no client leaves of its own accord.
    Converge,
    /// No client begins anything any more.
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
pub(crate) struct ClientContext {
    pub(crate) number: u32,
    pub(crate) cluster: Cluster,
    pub(crate) checker: SharedChecker,
    pub(crate) tasks: Tasks,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) options: Arc<Options>,
    /// A cache that the next session goes on with.
    pub(crate) cache: Arc<Mutex<Option<cache::Followed>>>,
}

/// What a worker has around it.
pub(crate) struct Worker {
    pub(crate) ctx: ClientContext,
    pub(crate) client: Client,
    pub(crate) rng: Rng,
    /// The settings of the recipe in use, if these are known.
    drawn: Option<Drawn>,
    /// When something was taken last, unless the process stood still meanwhile.
    taken: Option<u64>,
    /// The cohorts of this session.
    cohorts: Arc<Mutex<BTreeMap<Site, CohortLock>>>,
    stop: watch::Receiver<Stop>,
    /// Dropped when the worker is done.
    done: mpsc::Sender<()>,
}

/// The session is over.
struct Over;

/// What came of a request if it has succeeded, unless the session is over.
fn unless_over<T>(outcome: Result<T, impl Into<Error>>) -> Result<Option<T>, Over> {
    match outcome {
        Ok(output) => Ok(Some(output)),
        Err(error) => error.into().session_end().map_or(Ok(None), |_| Err(Over)),
    }
}

/// The same of asking for a recipe's.
fn unless_ended<T>(outcome: Result<T, AcquireError>) -> Result<Option<T>, Over> {
    match outcome {
        Ok(output) => Ok(Some(output)),
        Err(AcquireError::SessionEnded(_)) => Err(Over),
        Err(_) => Ok(None),
    }
}

/// The workers of a session.
pub(crate) struct Workers {
    stop: watch::Sender<Stop>,
    done: mpsc::Receiver<()>,
}

impl ClientContext {
    pub(crate) fn now(&self) -> u64 {
        self.cluster.now()
    }

    /// How long this client has stood still in all.
    pub(crate) fn stalled(&self) -> u64 {
        self.cluster.state().stalled(self.number)
    }

    fn kept_cache(&self) -> MutexGuard<'_, Option<cache::Followed>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No session goes on with a cache.
    pub(crate) fn forget_cache(&self) {
        let kept = self.kept_cache().take();
        drop(kept);
    }

    /// The checks, at the present time.
    pub(crate) fn check(&self) -> MutexGuard<'_, Checker> {
        self.checker.at(self.now())
    }

    pub(crate) fn count(&self, what: &'static str) {
        self.check().count(what);
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

    /// Does something unless there is no time left for it: then it is dropped.
    async fn while_busy<F: Future>(&mut self, work: F) -> Option<F::Output> {
        let over = |stop: &Stop| *stop != Stop::No;
        tokio::select! {
            biased;
            output = work => Some(output),
            _ = self.stop.wait_for(over) => None,
        }
    }

    /// Another one of the same session, with a chance of its own.
    fn another(&mut self, part: u64) -> Self {
        let Self { ctx, client, drawn, cohorts, stop, done, .. } = self;
        let rng = Rng::new(self.rng.next()).fork(part);
        let (ctx, client, cohorts) = (ctx.clone(), client.clone(), cohorts.clone());
        Self {
            ctx,
            client,
            rng,
            drawn: *drawn,
            taken: None,
            cohorts,
            stop: stop.clone(),
            done: done.clone(),
        }
    }

    /// The cohort of this session for a place.
    fn cohort(&mut self, site: Site) -> CohortLock {
        let known = self.cohorts().get(&site).cloned();
        known.unwrap_or_else(|| {
            let cohort = cohort_lock::cohort(self, site);
            self.cohorts().entry(site).or_insert(cohort).clone()
        })
    }

    fn cohorts(&self) -> MutexGuard<'_, BTreeMap<Site, CohortLock>> {
        self.cohorts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reason of a failure must be true.
    fn judge<T>(&self, what: &str, outcome: &Result<T, AcquireError>) {
        if let Err(error) = outcome {
            let Self { ctx, client, drawn, .. } = self;
            ctx.check().failed(ctx.number, &client.session(), *drawn, what, error);
        }
    }

    /// What it was shown cannot be.
    fn shown_wrong(&self, rule: &'static str, text: &str) {
        let number = self.ctx.number;
        self.ctx.check().shown_wrong(number, rule, format!("c{number} {text}"));
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
pub(crate) fn start(ctx: &ClientContext, client: &Client, rng: &Rng) -> Workers {
    let (stop, stopped) = watch::channel(Stop::No);
    let (done, all_done) = mpsc::channel(1);
    let cohorts = Arc::default();
    let worker = |part| Worker {
        ctx: ctx.clone(),
        client: client.clone(),
        rng: rng.fork(part),
        drawn: None,
        taken: None,
        cohorts: Arc::clone(&cohorts),
        stop: stopped.clone(),
        done: done.clone(),
    };
    let only_reads = ctx.options.only_reads(ctx.number);
    if !only_reads {
        spawn(ctx, &stopped, turns::work(worker(1)));
    }
    if rng_says(ctx, 3) && !only_reads {
        spawn(ctx, &stopped, turns::work(worker(2)));
    }
    if !ctx.options.calm {
        if rng_says(ctx, 2) || only_reads {
            spawn(ctx, &stopped, nodes::work(worker(3)));
        }
        if rng_says(ctx, 5) && !only_reads {
            spawn(ctx, &stopped, foreign::work(worker(4)));
        }
        if ctx.number % 3 != 1 {
            spawn(ctx, &stopped, watches::work(worker(5)));
        }
        if ctx.options.histories && !only_reads && ctx.number < history::CLIENTS_MAX {
            spawn(ctx, &stopped, history::work(worker(7)));
        }
        if ctx.options.draws_settings && ctx.number % 3 == 0 && !only_reads {
            spawn(ctx, &stopped, errands::work(worker(9)));
        }
        if ctx.options.draws_settings && ctx.number % 6 == 1 && !only_reads {
            spawn(ctx, &stopped, solo::work(worker(10)));
        }
        if ctx.options.caches && ctx.number % 2 == 0 {
            spawn(ctx, &stopped, cache::work(worker(8)));
        }
        if identity(ctx.number).is_some() {
            spawn(ctx, &stopped, secret::work(worker(6)));
        }
    }
    Workers { stop, done: all_done }
}

/// What a client says of itself.
fn description(worker: &Worker) -> String {
    format!("client {}", worker.ctx.number)
}

/// Every so many clients do something.
const fn rng_says(ctx: &ClientContext, every: u32) -> bool {
    ctx.number % every == every - 1
}

fn spawn(
    ctx: &ClientContext,
    stop: &watch::Receiver<Stop>,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let mut stop = stop.clone();
    ctx.tasks.spawn(State::process(ctx.number), async move {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop == Stop::Drop) => {}
            () = work => {}
        }
    });
}
