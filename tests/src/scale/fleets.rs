//! Sessions that idle, hear of one change, or all lose their servers.

use std::time::Duration;

use tokio::time::timeout;
use zk_client::{Cache, Client, SessionState};

use super::{
    site::{Outage, SESSION_TIMEOUT, Site, pass, with},
    traffic::Counts,
};

/// How long idle sessions are looked at.
pub(super) const IDLE: Duration = Duration::from_secs(100);

/// When servers go.
const OUTAGE_AT: Duration = Duration::from_secs(60);

/// Dials are counted in spans of this length.
pub(super) const SPAN: Duration = Duration::from_millis(100);

/// Sessions that do nothing, for [`IDLE`].
pub(super) fn idle(sessions: usize, timeout: Duration) -> Counts {
    with(sessions, None, async |site| {
        let clients = site.connect_with(sessions, timeout).await;
        // Until the last ones have idled, too.
        pass(Duration::from_secs(20)).await;
        site.traffic.take();
        pass(IDLE).await;
        drop(clients);
        site.traffic.take()
    })
}

/// Each session follows the same node, which is written once.
pub(super) fn one_change(sessions: usize) -> Counts {
    with(sessions, None, async |site| {
        let clients = site.connect(sessions).await;
        clients[0].create("/settings", b"old").await.expect("it can be created");
        let mut caches = Vec::with_capacity(sessions);
        for client in &clients {
            caches.push(Cache::node(client, "/settings").start().expect("the path is sound"));
        }
        for cache in &caches {
            cache.ready().await.expect("it is read");
        }
        pass(Duration::from_secs(20)).await;
        site.traffic.take();
        clients[0].set("/settings", b"new").await.expect("it can be written");
        let caches = site.gather(caches.into_iter().map(heard)).await;
        let counts = site.traffic.take();
        // What they cost in the end is not of the change.
        drop(caches);
        counts
    })
}

async fn heard(cache: Cache) -> Cache {
    let mut events = cache.events_from_the_start();
    while cache.get("/settings").is_none_or(|node| node.data != "new") {
        events.next().await.expect("the session goes on");
    }
    cache
}

/// How sessions came back.
pub(super) struct Return {
    /// Until half of the sessions had a connection again, and all of them, since servers could be reached.
    pub(super) half: Duration,
    pub(super) all: Duration,
    pub(super) lost: usize,
    pub(super) counts: Counts,
}

/// All servers are away for so long.
pub(super) fn ensemble_away(sessions: usize, timeout: Duration, lasts: Duration) -> Return {
    back(sessions, timeout, Outage { at: OUTAGE_AT, lasts, member: None }, OUTAGE_AT + lasts)
}

/// One of three members is gone for good.
pub(super) fn member_gone(sessions: usize) -> Return {
    let outage = Outage { at: OUTAGE_AT, lasts: Duration::from_secs(3600), member: Some(0) };
    back(sessions, SESSION_TIMEOUT, outage, OUTAGE_AT)
}

fn back(sessions: usize, life: Duration, outage: Outage, reachable: Duration) -> Return {
    with(sessions, Some(outage), async |site| {
        let clients = site.connect_with(sessions, life).await;
        assert!(site.elapsed() < OUTAGE_AT, "all are connected before servers go");
        pass(OUTAGE_AT - site.elapsed()).await;
        site.traffic.take();
        let waits = clients.iter().map(|client| connected_again(site.clone(), client));
        let mut times = site.gather(waits).await;
        let lost = times.iter().filter(|time| time.is_none()).count();
        times.sort_unstable();
        // Those that were not cut off did not have to come back.
        let since = |time: Option<Duration>| time.unwrap_or_default().saturating_sub(reachable);
        let (half, all) = (since(times[times.len() / 2]), since(times[times.len() - 1]));
        Return { half, all, lost, counts: site.traffic.take() }
    })
}

/// When a session has a connection again, at once if it does not lose the present one within seconds; `None` if it is lost.
fn connected_again(
    site: Site,
    client: &Client,
) -> impl Future<Output = Option<Duration>> + Send + use<> {
    let mut session = client.session();
    async move {
        if timeout(Duration::from_secs(2), session.changed()).await.is_err() {
            return Some(Duration::ZERO);
        }
        loop {
            match session.state() {
                SessionState::Connected { .. } => return Some(site.elapsed()),
                SessionState::Ended(_) => return None,
                _ => _ = session.changed().await,
            }
        }
    }
}

/// Most dials in one [`SPAN`].
pub(super) fn most_dials(counts: &Counts) -> usize {
    let span = u64::try_from(SPAN.as_millis()).unwrap_or(u64::MAX);
    let mut dials: Vec<u64> = counts.dials.iter().map(|at| at / span).collect();
    dials.sort_unstable();
    dials.chunk_by(|one, other| one == other).map(<[u64]>::len).max().unwrap_or_default()
}
