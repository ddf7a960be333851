//! Recipes without a queue of locks, and locks that are more than their nodes, beside theirs.

use std::sync::Arc;

use tokio::sync::Mutex;
use zk_client::{Client, CreateMode, EventType, path::join};
use zk_locks::{Barrier, DoubleBarrier, Election, Layout, Lock, Names};
use zk_testkit::TestServer;
use zk_tests::patience::{joined, within};

use crate::coexistence::theirs::{Class, Mode};

async fn clients() -> (TestServer, Client, Client) {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let (theirs, ours) =
        (Client::connect(&servers).await.unwrap(), Client::connect(&servers).await.unwrap());
    (server, theirs, ours)
}

/// Curator's `DistributedBarrier`, kazoo's `Barrier`.
#[tokio::test]
async fn barrier_node_is_shared_with_others() {
    let (_server, theirs, ours) = clients().await;
    let barrier = Barrier::new(&ours, "/barrier");
    theirs.create("/barrier", b"127.0.0.1").await.unwrap();
    let same = Barrier::new(&ours, "/barrier");
    let waiting = tokio::spawn(async move { same.wait().await });
    for _ in 0..4 {
        ours.sync("/").await.unwrap();
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    theirs.delete("/barrier").await.unwrap();
    within(waiting).await.unwrap().unwrap();
    within(barrier.set()).await.unwrap();
    let (set, removed) = theirs.exists("/barrier").watch().await.unwrap();
    assert!(set.is_some());
    within(barrier.remove()).await.unwrap();
    assert_eq!(within(removed).await.unwrap().kind, EventType::NODE_DELETED);
}

/// Curator's `DistributedDoubleBarrier` and kazoo's `DoubleBarrier`: members by their ids, and a sign that is called `ready`,
/// which the participant creates that sees all of them there.
#[tokio::test]
async fn double_barrier_is_shared_with_others() {
    let (_server, theirs, ours) = clients().await;
    for (layout, id) in [
        (Layout::Curator, "3b5f6a0e-0000-4000-8000-0123456789ab"),
        (Layout::Kazoo, "3b5f6a0e0000400080000123456789ab"),
    ] {
        for ours_is_first in [false, true] {
            let path = format!("/{layout:?}-{ours_is_first}");
            theirs.create(&path, b"").await.unwrap();
            let barrier = DoubleBarrier::builder(&ours, &path).layout(layout).build().of(2);
            let (ready, member) = (join(&path, "ready"), join(&path, id));
            let entering = || {
                let barrier = barrier.clone();
                tokio::spawn(async move { barrier.enter().await })
            };
            let join_them = async {
                theirs.create(&member, b"").mode(CreateMode::Ephemeral).await.unwrap();
            };
            let entered = if ours_is_first {
                let entering = entering();
                joined(&theirs, &path, 1).await;
                join_them.await;
                theirs.create(&ready, b"").await.unwrap();
                entering
            } else {
                join_them.await;
                let (sign, given) = theirs.exists(&ready).watch().await.unwrap();
                assert!(sign.is_none());
                let entering = entering();
                assert_eq!(within(given).await.unwrap().kind, EventType::NODE_CREATED);
                entering
            };
            let entered = within(entered).await.unwrap().unwrap();
            let leaving = tokio::spawn(entered.leave());
            for _ in 0..4 {
                ours.sync("/").await.unwrap();
                tokio::task::yield_now().await;
            }
            assert!(!leaving.is_finished(), "theirs has not left");
            theirs.delete(&member).await.unwrap();
            within(leaving).await.unwrap().unwrap();
        }
    }
}

/// Candidates with names of Curator's `LeaderSelector`, which are those of its mutex.
const SELECTOR: Layout = Layout::Custom(Names::new("-lock-").prefix("_c_").lead("-lock-"));

#[tokio::test]
async fn leader_selector_election_has_one_leader() {
    let (_server, theirs, ours) = clients().await;
    theirs.create("/election", b"").await.unwrap();
    let election = Election::builder(&ours, "/election").layout(SELECTOR).build();
    let led = within(election.campaign(b"us")).await.unwrap();
    let waiting = tokio::spawn(async move {
        Class::InterProcessMutex.acquire(&theirs, "/election", Mode::Write).await
    });
    joined(&ours, "/election", 2).await;
    assert!(!waiting.is_finished());
    within(led.resign()).await.unwrap();
    let their_lead = within(waiting).await.unwrap();
    let campaign = tokio::spawn(async move { election.campaign(b"us").await });
    joined(&ours, "/election", 2).await;
    assert!(!campaign.is_finished());
    their_lead.release().await;
    within(within(campaign).await.unwrap().unwrap().resign()).await.unwrap();
}

/// `DistributedReentrantLock`: threads of a process wait for each other in front of the servers, and ours in between is not
/// passed by.
#[tokio::test]
async fn reentrant_threads_do_not_pass_our_waiter() {
    let (_server, theirs, ours) = clients().await;
    theirs.create("/lock", b"").await.unwrap();
    let local = Arc::new(Mutex::new(()));
    let thread = || {
        let (local, zk) = (local.clone(), theirs.clone());
        async move {
            let local = local.lock_owned().await;
            (Class::DistributedLock.acquire(&zk, "/lock", Mode::Write).await, local)
        }
    };
    let (first, first_local) = within(thread()).await;
    let second = tokio::spawn(thread());
    let between = tokio::spawn(async move { Lock::new(&ours, "/lock").acquire().await });
    joined(&theirs, "/lock", 2).await;
    assert!(!second.is_finished() && !between.is_finished());
    // The lock of the process last.
    first.release().await;
    drop(first_local);
    let guard = within(between).await.unwrap().unwrap();
    joined(&theirs, "/lock", 2).await;
    assert!(!second.is_finished());
    within(guard.release()).await.unwrap();
    within(second).await.unwrap().0.release().await;
}
