//! Nodes of ours that have no id in their names, when another contender's node has the name: their path was deleted, and
//! the numbers have begun anew.

use std::time::Duration;

use zk_client::{Client, WriteError};
use zk_locks::{AcquireError, Guard, Layout, Lock, Lost, MultiLock, RwLock, Ticket};
use zk_proto::OpCode;
use zk_testkit::{
    proxy::{Frame, Match},
    server::Config,
};
use zk_tests::{
    network::{Network, pass},
    patience::within,
    paused,
};

use crate::coexistence::nameless::{BOTH, names, replaced, stage};

/// A test that has to wait for this does not get anything.
const LONG: Duration = Duration::from_secs(3600);

/// A server would check the name, and write under the lock of another.
#[tokio::test]
async fn transaction_without_id_is_refused() {
    for builder in BOTH {
        let (server, zk) = stage().await;
        let other = Client::connect(&server.connect_string()).await.unwrap();
        let lost = within(builder(&zk).build().acquire()).await.unwrap();
        let theirs = replaced(lost.path(), &other, builder).await;
        let alone = within(lost.transaction().set("/lock", b"stale")).await;
        assert!(matches!(alone, Err(WriteError::NotApplied(_))), "{alone:?}");
        within(theirs.release()).await.unwrap();

        let both = MultiLock::of([Lock::new(&zk, "/other"), builder(&zk).build()]);
        let guards = within(both.acquire()).await.unwrap();
        let together = within(guards.transaction().unwrap().set("/lock", b"stale")).await;
        assert!(matches!(together, Err(WriteError::NotApplied(_))), "{together:?}");
        assert_eq!(zk.get("/lock").await.unwrap().0, "");
    }
}

/// The lock is taken away when its node is another's already.
#[tokio::test]
async fn limit_of_time_spares_other_node_of_same_name() {
    for builder in BOTH {
        let (server, zk) = stage().await;
        let other = Client::connect(&server.connect_string()).await.unwrap();
        let lock = builder(&zk).release_after(Duration::from_millis(20)).build();
        let lost = within(lock.acquire()).await.unwrap();
        let given_away = |frame: &Frame| matches!(frame.op, Some(OpCode::DELETE | OpCode::EXISTS));
        let asked = server.on(Match::requests().when(given_away).once()).hold();
        within(asked.fired()).await;
        let theirs = replaced(lost.path(), &other, builder).await;
        asked.release();
        // Behind what was asked for in the same session.
        within(lost.release()).await.unwrap();
        assert_eq!(within(theirs.check()).await, Ok(()));
    }
}

/// A lock that is taken from a holder whose node it still is.
#[tokio::test]
async fn overlong_hold_without_id_is_given_away() {
    for builder in BOTH {
        let (_server, zk) = stage().await;
        let lock = builder(&zk).release_after(Duration::from_millis(20)).build();
        let lost = within(lock.acquire()).await.unwrap();
        let _next = within(builder(&zk).build().acquire()).await.unwrap();
        assert_eq!(within(lost.lost()).await, Lost::HeldTooLong);
    }
}

#[tokio::test]
async fn recorded_release_spares_other_node_of_same_name() {
    for builder in BOTH {
        let (server, zk) = stage().await;
        let other = Client::connect(&server.connect_string()).await.unwrap();
        let lock = builder(&zk).lock_delay(LONG).build();
        // What it records is that it was released.
        within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
        let lost = within(lock.acquire()).await.unwrap();
        other.delete(lost.path()).await.unwrap();
        other.delete("/lock").await.unwrap();
        let theirs = builder(&other).build();
        within(within(theirs.acquire()).await.unwrap().release()).await.unwrap();
        let theirs = within(theirs.acquire()).await.unwrap();
        assert_eq!(theirs.path(), lost.path());
        within(lost.release()).await.unwrap();
        assert_eq!(within(theirs.check()).await, Ok(()));
    }
}

/// Two contenders whose nodes have these names: the first one holds the lock.
async fn joined_anew(nodes: [&str; 2], lock: &Lock) -> (Guard, Ticket) {
    let first = within(lock.acquire()).await.unwrap();
    let second = within(lock.enqueue()).await.unwrap();
    assert_eq!([Some(first.path()), second.path()], nodes.map(Some));
    (first, second)
}

/// It looks at the queue now and then, and finds its name in front.
#[tokio::test]
async fn place_is_not_granted_by_a_name_of_another() {
    for builder in BOTH {
        let (server, zk) = stage().await;
        let other = Client::connect(&server.connect_string()).await.unwrap();
        let lock = builder(&other).build();
        let holder = within(lock.acquire()).await.unwrap();
        let mut waiting = within(builder(&zk).build().enqueue()).await.unwrap();
        let node = waiting.path().unwrap().to_owned();
        other.multi().delete(holder.path()).delete(&node).delete("/lock").await.unwrap().unwrap();
        let (first, mut second) = joined_anew([holder.path(), &node], &lock).await;
        within(first.release()).await.unwrap();
        let second = within(second.wait()).await.unwrap();
        zk.sync("/lock").await.unwrap();
        let granted = within(waiting.try_wait()).await;
        assert_eq!(granted.map(drop), Err(AcquireError::NodeDeleted));
        assert_eq!(within(second.check()).await, Ok(()));
    }
}

/// The same while it was disconnected, with a watch on its node.
#[test]
fn waiter_that_was_away_is_not_granted_by_its_name() {
    paused::block_on(async {
        for builder in BOTH {
            for herd in [false, true] {
                let network = Network::new(Config::default());
                let connect = |name, seed| network.options(name, "", seed).connect();
                let (zk, other) =
                    (connect("away", 1).await.unwrap(), connect("other", 2).await.unwrap());
                other.create("/lock", b"").await.unwrap();
                let lock = builder(&other).build();
                let holder = within(lock.acquire()).await.unwrap();
                let waiter = if herd { builder(&zk).herd() } else { builder(&zk) };
                let mut waiting = within(waiter.build().enqueue()).await.unwrap();
                let node = waiting.path().unwrap().to_owned();
                let waiting = tokio::spawn(async move { waiting.wait().await });
                pass(Duration::from_secs(2)).await;

                network.cut("away");
                let gone = other.multi().delete(holder.path()).delete(&node).delete("/lock");
                gone.await.unwrap().unwrap();
                let (first, mut second) = joined_anew([holder.path(), &node], &lock).await;
                network.heal();
                pass(Duration::from_secs(2)).await;
                within(first.release()).await.unwrap();
                let second = within(second.wait()).await.unwrap();
                let granted = within(waiting).await.unwrap();
                assert_eq!(granted.map(drop), Err(AcquireError::NodeDeleted), "herd: {herd}");
                assert_eq!(within(second.check()).await, Ok(()));
            }
        }
    });
}

/// All that happens between the create and the listing behind it.
#[tokio::test]
async fn free_lock_is_not_granted_by_a_name_of_another() {
    for builder in BOTH {
        let (server, zk) = stage().await;
        let other = Client::connect(&server.connect_string()).await.unwrap();
        let listed = server.on(Match::request(OpCode::GET_CHILDREN2).once()).hold();
        let lock = builder(&zk).build();
        let asking = tokio::spawn(async move { lock.acquire().await });
        within(listed.fired()).await;
        let [node] = &names(&other).await[..] else { panic!("one has joined") };
        let theirs = replaced(&format!("/lock/{node}"), &other, builder).await;
        listed.release();
        let granted = within(asking).await.unwrap();
        assert_eq!(granted.map(drop), Err(AcquireError::NodeDeleted));
        assert_eq!(within(theirs.check()).await, Ok(()));
    }
}

/// The node that it does not wait for is no longer its own.
#[tokio::test]
async fn lost_reader_is_not_upgraded_beside_another() {
    let (server, zk) = stage().await;
    let other = Client::connect(&server.connect_string()).await.unwrap();
    let lock = |zk| RwLock::builder(zk, "/lock").layout(Layout::Bare).build();
    let reading = within(lock(&zk).read()).await.unwrap();
    other.multi().delete(reading.path()).delete("/lock").await.unwrap().unwrap();
    let theirs = within(lock(&other).read()).await.unwrap();
    assert_eq!(theirs.path(), reading.path());
    let refused = within(reading.try_upgrade()).await.unwrap_err();
    assert_eq!(refused.cause, AcquireError::NodeDeleted);
    assert_eq!(within(theirs.check()).await, Ok(()));
}

/// Another contender has the name by now.
#[test]
fn positions_of_a_replaced_place_are_none() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let connect = |name, seed| network.options(name, "", seed).connect();
        let (zk, other) = (connect("away", 1).await.unwrap(), connect("other", 2).await.unwrap());
        let bare = |zk: &Client| Lock::builder(zk, "/l").layout(Layout::Bare).build();
        let first = within(bare(&other).enqueue()).await.unwrap();
        let ticket = within(bare(&zk).enqueue()).await.unwrap();
        let mut positions = ticket.positions().unwrap();
        assert_eq!(within(positions.next()).await.unwrap(), Some(1));
        network.cut("away");
        for name in other.children("/l").await.unwrap().0 {
            other.delete(&format!("/l/{name}")).await.unwrap();
        }
        other.delete("/l").await.unwrap();
        drop(first);
        let before = within(bare(&other).enqueue()).await.unwrap();
        let theirs = within(bare(&other).enqueue()).await.unwrap();
        assert_eq!(theirs.path(), ticket.path());
        network.heal();
        assert_eq!(within(positions.next()).await.unwrap(), None);
        drop((before, theirs));
    });
}
