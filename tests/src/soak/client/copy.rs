//! A cache, which is equal to the servers' nodes at the end.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::timeout;
use zk_client::{Cache, CacheEvent};

use super::{
    layout,
    session::Seat,
    shared::{Phase, Stop, count},
    verdict,
};

/// How long the copy may take to become equal, when nothing changes any more.
const LIMIT: Duration = Duration::from_secs(30);

/// A task that has a copy of everything, from one session to the next.
#[derive(Debug, Default)]
pub(super) struct Copy {
    cache: Option<Cache>,
}

impl Copy {
    pub(super) async fn run(&mut self, seat: &Seat) -> Result<(), Stop> {
        let cache = match &self.cache {
            Some(cache) => {
                cache.move_to(&seat.zk);
                cache.clone()
            }
            None => {
                let cache = Cache::subtree(&seat.zk, layout::ROOT).start();
                self.cache.insert(cache.map_err(|error| Stop::Broken(error.to_string()))?).clone()
            }
        };
        let mut events = cache.events();
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = seat.shared.reached(Phase::Quiet) => break,
            };
            hear(seat, event)?;
        }
        let expected = verdict::expected(&seat.shared.models());
        let equal = async {
            while differences(&cache, &expected) > 0 {
                hear(seat, events.next().await)?;
            }
            Ok(())
        };
        let ended = timeout(LIMIT, equal).await.unwrap_or_else(|_| {
            let differ = differences(&cache, &expected);
            Err(Stop::Broken(format!("a cache differs in {differ} nodes after {LIMIT:?}")))
        });
        if ended.is_ok() {
            self.cache = None;
        }
        ended
    }
}

fn hear(seat: &Seat, event: Option<CacheEvent>) -> Result<(), Stop> {
    match event {
        Some(CacheEvent::Changed { old, new }) if new.stat.mzxid <= old.stat.mzxid => {
            return Err(Stop::Broken(format!("a cache goes back: {old:?}, {new:?}")));
        }
        Some(CacheEvent::Ended(end)) => return Err(Stop::by(Some(end), "cache", &end)),
        Some(CacheEvent::Lagged) => seat.shared.count(count::CACHES_BEHIND),
        Some(_) => seat.shared.count(count::CACHED),
        None => return Err(Stop::Broken("a cache has ended".to_owned())),
    }
    Ok(())
}

/// In how many nodes the copy differs from what there should be.
fn differences(cache: &Cache, expected: &BTreeMap<String, verdict::Node>) -> usize {
    let nodes = cache.nodes();
    let equal = nodes.iter().filter(|node| {
        expected.get(&*node.path).is_some_and(|expected| expected.is_like(&node.data, &node.stat))
    });
    let equal = equal.count();
    (nodes.len() - equal) + (expected.len() - equal)
}
