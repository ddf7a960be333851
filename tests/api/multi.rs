//! Transactions.

use zk_client::{CreateMode, MultiError, OpCode, OpResult, Rejection, WriteError};
use zk_tests::{feature::Feature, patience::within, test_with};

use crate::api::{Place, behind_proxy, client, on_each_release, on_each_release_to_restart};

#[test_with(on_each_release)]
async fn multi_is_atomic_and_reports_each_result(server: &Place) {
    let zk = client(server).await;
    zk.create("/m", b"").await.unwrap();
    let mut container = CreateMode::Container;
    if !server.has(Feature::Containers) {
        // As a whole, since it makes nothing of what it does not know.
        let refused = zk.multi().check("/m").create("/m/c", b"", container).await;
        assert_eq!(refused, Err(WriteError::Rejected(Rejection::Unimplemented)));
        container = CreateMode::Persistent;
    }
    let results = zk
        .multi()
        .check_version("/m", 0)
        .create("/m/a-", b"x", CreateMode::EphemeralSequential)
        .create("/m/c", b"", container)
        .set("/m", b"y")
        .delete("/m/c")
        .await
        .unwrap()
        .unwrap();
    let [OpResult::Checked, created, container, OpResult::Set(stat), OpResult::Deleted] =
        &results[..]
    else {
        panic!("{results:?}")
    };
    // Old servers do not tell the metadata of nodes created in a transaction.
    let OpResult::Created { path, stat: told } = created else { panic!("{created:?}") };
    assert_eq!(path, "/m/a-0000000000");
    assert_eq!(told.is_some(), server.has(Feature::StatInMulti));
    assert!(matches!(container, OpResult::Created { path, .. } if path == "/m/c"));
    assert_eq!(stat.version, 1);
}

#[test_with(on_each_release)]
async fn failed_multi_changes_nothing(server: &Place) {
    let zk = client(server).await;
    zk.create("/m", b"").await.unwrap();
    let outcome = zk.multi().set("/m", b"x").check("/nowhere").delete("/m").await.unwrap();
    let error = MultiError { index: 1, rejection: Rejection::NoNode };
    assert_eq!(outcome, Err(error));
    assert_eq!(zk.exists("/m").await.unwrap().unwrap().version, 0);
}

#[test_with(on_each_release)]
async fn an_empty_transaction_succeeds(server: &Place) {
    assert_eq!(client(server).await.multi().await.unwrap(), Ok(Vec::new()));
}

/// Servers before 3.8.5 and 3.9.3 cannot start again after a check that came by itself (ZOOKEEPER-2623).
#[test_with(on_each_release_to_restart)]
async fn single_check_is_sent_as_a_multi(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    assert_eq!(zk.multi().check("/").await.unwrap(), Ok(vec![OpResult::Checked]));
    let missing = MultiError { index: 0, rejection: Rejection::NoNode };
    assert_eq!(zk.multi().check("/nowhere").await.unwrap(), Err(missing));
    let old = MultiError { index: 0, rejection: Rejection::BadVersion };
    assert_eq!(zk.multi().check_version("/", 77).await.unwrap(), Err(old));
    let counts = proxy.counts();
    assert_eq!((counts.requests(OpCode::CHECK), counts.requests(OpCode::MULTI)), (0, 3));
    server.restart_under(&zk).await;
    zk.get("/").await.unwrap();
}

/// Of a session that has not heard yet what its servers do not know.
#[test_with(on_each_release)]
async fn first_request_of_a_session_may_be_a_multi(server: &Place) {
    let other = client(server).await;
    other.create("/m", b"").await.unwrap();
    let zk = server.options().connect().await.unwrap();
    let multi = zk.multi().set("/m", b"x").create("/m/c", b"", CreateMode::Persistent);
    within(multi.into_future()).await.unwrap().unwrap();
    other.sync("/m").await.unwrap();
    assert!(other.exists("/m/c").await.unwrap().is_some());
}
