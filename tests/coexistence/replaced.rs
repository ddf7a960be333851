//! Nodes of ours that have no id in their names, when another contender's node has the name: their path was deleted, and
//! the numbers have begun anew.

use std::time::Duration;

use zk_client::Client;
use zk_locks::{Builder, Guard, Lock, Lost};
use zk_proto::OpCode;
use zk_testkit::proxy::{Frame, Match};
use zk_tests::patience::within;

use crate::coexistence::nameless::{BOTH, stage};

/// A test that has to wait for this does not get anything.
const LONG: Duration = Duration::from_secs(3600);

type Recipe = fn(&Client) -> Builder<Lock>;

/// Deletes a contender's node and the path, and has another contender take the lock: by a node of the same name.
async fn replaced(node: &str, other: &Client, builder: Recipe) -> Guard {
    other.delete(node).await.unwrap();
    other.delete("/lock").await.unwrap();
    let theirs = within(builder(other).build().acquire()).await.unwrap();
    assert_eq!(theirs.path(), node);
    theirs
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
