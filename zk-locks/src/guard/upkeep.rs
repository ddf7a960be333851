//! Locks that are held for long are watched, even if no task waits for their loss; the others cost nothing.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};
use zk_client::Client;

use super::node::HeldNode;

/// Nodes held for longer are watched: as long as a wait that is worth a watch on the own node.
const LONG_HOLD: Duration = Duration::from_secs(1);

/// How many locks may be listed before released ones are looked for.
const UNSORTED: usize = 64;

/// The locks of a session that have not been held for long, the oldest first. One for all recipes, with one task as
/// long as there are any.
#[derive(Debug, Default)]
pub(crate) struct Upkeep(Mutex<Young>);

#[derive(Debug, Default)]
struct Young {
    nodes: VecDeque<(Instant, Weak<HeldNode>)>,
    /// How many there may be before released ones are removed.
    limit: usize,
    has_task: bool,
}

impl Upkeep {
    /// The one of a client's session.
    pub(crate) fn of(client: &Client) -> Arc<Self> {
        client.extension()
    }

    /// Has the node watched if it is held for long.
    pub(super) fn add(self: Arc<Self>, node: &Arc<HeldNode>) {
        let mut young = self.young();
        young.forget();
        young.nodes.push_back((Instant::now() + LONG_HOLD, Arc::downgrade(node)));
        if !std::mem::replace(&mut young.has_task, true) {
            drop(young);
            node.client.spawn(self.run());
        }
    }

    async fn run(self: Arc<Self>) {
        while let Some(at) = self.next() {
            sleep_until(at).await;
            while let Some(node) = self.grown_up() {
                if let Some(node) = node.upgrade() {
                    node.keep();
                }
            }
        }
    }

    /// The oldest, if it has been held for long.
    fn grown_up(&self) -> Option<Weak<HeldNode>> {
        let mut young = self.young();
        let now = Instant::now();
        young.nodes.front().filter(|(at, _)| *at <= now)?;
        young.nodes.pop_front().map(|(_, node)| node)
    }

    /// When the next node is due; `None` if there is none, and the task ends.
    fn next(&self) -> Option<Instant> {
        let mut young = self.young();
        young.forget();
        let next = young.nodes.front().map(|(at, _)| *at);
        young.has_task = next.is_some();
        next
    }

    fn young(&self) -> MutexGuard<'_, Young> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Young {
    /// Removes released locks at the front, and all released ones now and then.
    fn forget(&mut self) {
        let is_gone = |(_, node): &(Instant, Weak<HeldNode>)| node.strong_count() == 0;
        while self.nodes.front().is_some_and(is_gone) {
            self.nodes.pop_front();
        }
        if self.nodes.len() > self.limit.max(UNSORTED) {
            self.nodes.retain(|node| !is_gone(node));
            self.limit = 2 * self.nodes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use zk_testkit::TestServer;

    use super::*;

    #[tokio::test]
    async fn released_locks_are_forgotten() {
        let server = TestServer::start().await.unwrap();
        let zk = Client::connect(&server.connect_string()).await.unwrap();
        let held = Arc::new(HeldNode::new(zk, "/held".to_owned(), None));
        let mut young = Young::default();
        let add = |young: &mut Young, node| young.nodes.push_back((Instant::now(), node));

        (0..10).for_each(|_| add(&mut young, Weak::new()));
        young.forget();
        assert!(young.nodes.is_empty(), "they were the oldest");

        // Behind one that is held, not at each call.
        add(&mut young, Arc::downgrade(&held));
        let lengths = (0..3 * UNSORTED).map(|_| {
            add(&mut young, Weak::new());
            young.forget();
            young.nodes.len()
        });
        let lengths: Vec<_> = lengths.collect();
        assert_eq!(lengths.iter().max(), Some(&UNSORTED));
        assert_eq!(lengths.iter().filter(|&&len| len == 1).count(), 3);
        assert!(young.nodes[0].1.upgrade().is_some());
    }
}
