//! Contenders for one lock.

use std::time::Duration;

use tokio::sync::mpsc;
use zk_locks::{CohortLock, Guard, Lock};

use super::{
    site::{Site, pass, with},
    traffic::Counts,
};

const PATH: &str = "/locks/report";

/// Contenders that join at the same time.
const JOINING: usize = 50;

/// Hand-overs that are looked at.
const HAND_OVERS: usize = 100;

/// Tasks of a session that shares its place in the queue among them.
const TASKS_OF_A_COHORT: usize = 16;

/// What a queue costs.
pub(super) struct Queue {
    /// The last to join: so many did at once.
    pub(super) joined: usize,
    pub(super) joining: Counts,
    /// What passed while the lock was handed over so many times.
    pub(super) hand_overs: usize,
    pub(super) handing: Counts,
    pub(super) took: Duration,
}

/// So many sessions, each of which wants the lock.
pub(super) fn lock(contenders: usize, look_ahead: bool) -> Queue {
    with(contenders, None, async |site| {
        let clients = site.connect(contenders).await;
        let mut tickets = Vec::with_capacity(contenders);
        let (mut joining, mut joined) = (Counts::default(), 0);
        for some in clients.chunks(JOINING) {
            site.traffic.take();
            let joins = some.iter().map(|client| {
                let lock = Lock::builder(client, PATH).look_ahead(look_ahead).build();
                async move { lock.enqueue().await.expect("the lock can be waited for") }
            });
            tickets.extend(site.gather(joins).await);
            (joining, joined) = (site.traffic.take(), some.len());
        }
        let (granted, grants) = mpsc::unbounded_channel();
        for mut ticket in tickets {
            let granted = granted.clone();
            site.spawn(async move {
                let _ = granted.send(ticket.wait().await.expect("its turn comes"));
            });
        }
        let (hand_overs, handing, took) = hand_over(&site, grants, contenders).await;
        Queue { joined, joining, hand_overs, handing, took }
    })
}

async fn hand_over(
    site: &Site,
    mut grants: mpsc::UnboundedReceiver<Guard>,
    contenders: usize,
) -> (usize, Counts, Duration) {
    // All have armed their watches by then.
    pass(Duration::from_secs(5)).await;
    site.traffic.take();
    let begin = site.elapsed();
    let hand_overs = HAND_OVERS.min(contenders - 1);
    let mut guard = grants.recv().await.expect("the first one has it");
    for _ in 0..hand_overs {
        let released = guard.release();
        site.spawn(async move { released.await.expect("it is released") });
        guard = grants.recv().await.expect("the next one gets it");
    }
    let took = site.elapsed() - begin;
    (hand_overs, site.traffic.take(), took)
}

/// As many tasks, of so many times fewer sessions: each has the lock once. Returns the number of sections, and what passed.
pub(super) fn cohort(tasks: usize) -> (usize, Counts) {
    let sessions = tasks.div_ceil(TASKS_OF_A_COHORT);
    with(sessions, None, async |site| {
        let clients = site.connect(sessions).await;
        site.traffic.take();
        let locks: Vec<_> = clients.iter().map(|client| CohortLock::new(client, PATH)).collect();
        let sections = (0..tasks).map(|number| {
            let lock = locks[number % sessions].clone();
            async move {
                let guard = lock.acquire().await.expect("its turn comes");
                guard.release().await.expect("it is released");
            }
        });
        let sections = site.gather(sections).await.len();
        (sections, site.traffic.take())
    })
}
