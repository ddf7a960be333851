//! The futures of recipes that are more than a lock.

use std::time::Duration;

use zk_locks::{AcquireError, Barrier, CohortLock, DoubleBarrier, Election, Group, PersistentNode};
use zk_tests::network::pass;

use crate::cancel::{
    scene::{Scene, list, plain},
    stage::{CLIENT, Needs, options},
};

/// Longer than a round trip, and shorter than trouble.
const SOON: Duration = Duration::from_millis(9);

/// What is to time out if nothing goes wrong.
fn timed_out<T: std::fmt::Debug>(result: Result<T, AcquireError>) -> Result<(), String> {
    match result {
        Err(AcquireError::TimedOut) => Ok(()),
        other => plain(other),
    }
}

/// The first failure, if there is any.
fn all<const N: usize>(results: [Result<(), String>; N]) -> Result<(), String> {
    results.into_iter().collect()
}

pub(crate) const COORDINATION: &[Scene] = list! {
    // The second one behind the first one, which resigns.
    "Election::campaign", Needs::Nothing, |props| {
        let election = Election::new(&props.client, "/election");
        let first = election.campaign(b"").await;
        let resign = async {
            pass(SOON).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(election.campaign(b""), resign);
        plain(second)
    }
    "Election::campaign_timeout", Needs::Nothing, |props| {
        let election = Election::new(&props.client, "/election");
        let first = election.campaign(b"").await;
        let second = timed_out(election.campaign_timeout(b"", SOON).await);
        all([plain(first), second])
    }
    "Leadership::proclaim", Needs::Nothing, |props| {
        let election = Election::new(&props.client, "/election");
        let leadership = election.campaign(b"").await.map_err(|error| error.to_string())?;
        plain(leadership.proclaim(b"new").await)
    }
    "Leadership::resign", Needs::Nothing, |props| {
        let election = Election::new(&props.client, "/election");
        let leadership = election.campaign(b"").await.map_err(|error| error.to_string())?;
        plain(leadership.resign().await)
    }
    "Follow::next", Needs::Nothing, |props| {
        let election = Election::new(&props.client, "/election");
        let mut leaders = election.follow();
        let first = leaders.next().await;
        let (next, leadership) = tokio::join!(leaders.next(), election.campaign(b""));
        all([plain(first), plain(next), plain(leadership)])
    }
    "LeaderLatch::resign", Needs::Nothing, |props| {
        let latch = Election::new(&props.client, "/election").latch(b"");
        pass(SOON).await;
        latch.resign().await;
        Ok(())
    }
    // Passed on, and the last one after the node was given back.
    "CohortLock::acquire", Needs::Nothing, |props| {
        let lock = CohortLock::new(&props.client, "/cohort");
        let held_for_a_while = async || {
            let guard = lock.acquire().await;
            pass(Duration::from_millis(3)).await;
            plain(guard)
        };
        let (a, b, c) =
            tokio::join!(held_for_a_while(), held_for_a_while(), held_for_a_while());
        all([a, b, c])
    }
    "CohortLock::acquire_timeout", Needs::Nothing, |props| {
        let lock = CohortLock::new(&props.client, "/cohort");
        let first = lock.acquire().await;
        let second = timed_out(lock.acquire_timeout(SOON).await);
        all([plain(first), second])
    }
    "CohortLock::try_acquire", Needs::Nothing, |props| {
        let lock = CohortLock::new(&props.client, "/cohort");
        plain(lock.try_acquire().await)
    }
    "CohortGuard::release", Needs::Nothing, |props| {
        let lock = CohortLock::new(&props.client, "/cohort");
        let guard = lock.acquire().await.map_err(|error| error.to_string())?;
        plain(guard.release().await)
    }
    "Barrier::set", Needs::Nothing, |props| { plain(Barrier::new(&props.client, "/above/barrier").set().await) }
    "Barrier::is_set", Needs::Nothing, |props| { plain(Barrier::new(&props.client, "/barrier").is_set().await) }
    "Barrier::remove", Needs::Nothing, |props| {
        let barrier = Barrier::new(&props.client, "/barrier");
        all([plain(barrier.set().await), plain(barrier.remove().await)])
    }
    "Barrier::wait", Needs::Nothing, |props| {
        let barrier = Barrier::new(&props.client, "/barrier");
        let set = barrier.set().await;
        let (waited, removed) = tokio::join!(barrier.wait(), async {
            pass(SOON).await;
            barrier.remove().await
        });
        all([plain(set), plain(waited), plain(removed)])
    }
    "Barrier::wait_timeout", Needs::Nothing, |props| {
        let barrier = Barrier::new(&props.client, "/barrier");
        let set = barrier.set().await;
        all([plain(set), timed_out(barrier.wait_timeout(SOON).await)])
    }
    "DoubleBarrier::enter", Needs::Nothing, |props| {
        let barrier = DoubleBarrier::new(&props.client, "/double", 2);
        let (a, b) = tokio::join!(barrier.enter(), barrier.enter());
        all([plain(a), plain(b)])
    }
    "DoubleBarrier::enter_timeout", Needs::Nothing, |props| {
        let barrier = DoubleBarrier::new(&props.client, "/double", 2);
        timed_out(barrier.enter_timeout(SOON).await)
    }
    "Participation::leave", Needs::Nothing, |props| {
        let barrier = DoubleBarrier::new(&props.client, "/double", 2);
        match tokio::join!(barrier.enter(), barrier.enter()) {
            (Ok(a), Ok(b)) => {
                let (a, b) = tokio::join!(a.leave(), b.leave());
                all([plain(a), plain(b)])
            }
            (a, b) => all([plain(a), plain(b)]),
        }
    }
    "Participation::leave_timeout", Needs::Nothing, |props| {
        let barrier = DoubleBarrier::new(&props.client, "/double", 2);
        match tokio::join!(barrier.enter(), barrier.enter()) {
            (Ok(a), b) => all([timed_out(a.leave_timeout(SOON).await), plain(b)]),
            (a, b) => all([plain(a), plain(b)]),
        }
    }
    "Group::join", Needs::Nothing, |props| { plain(Group::new(&props.client, "/group").join(b"").await) }
    "Group::members", Needs::Nothing, |props| {
        let group = Group::new(&props.client, "/group");
        let membership = group.join(b"").await;
        all([plain(group.members().await), plain(membership)])
    }
    "Follow::next", Needs::Nothing, |props| {
        let group = Group::new(&props.client, "/group");
        let mut members = group.follow();
        let first = members.next().await;
        let (next, membership) = tokio::join!(members.next(), group.join(b""));
        all([plain(first), plain(next), plain(membership)])
    }
    "PersistentNode::start", Needs::Nothing, |props| {
        let options = options(&props.network, CLIENT);
        plain(PersistentNode::start(options, "/kept", b"").await)
    }
    "PersistentNode::present", Needs::Nothing, |props| {
        let options = options(&props.network, CLIENT);
        let node = PersistentNode::start(options, "/kept", b"").await;
        let node = node.map_err(|error| error.to_string())?;
        node.present().await;
        Ok(())
    }
    "PersistentNode::close", Needs::Nothing, |props| {
        let options = options(&props.network, CLIENT);
        let node = PersistentNode::start(options, "/kept", b"").await;
        let node = node.map_err(|error| error.to_string())?;
        pass(SOON).await;
        node.close().await;
        Ok(())
    }
};
