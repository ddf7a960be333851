//! Transactions.

use zk_client::{CreateMode, MultiError, OpResult, Rejection};

use crate::{client, on_each_release};

#[tokio::test]
async fn a_transaction_happens_as_a_whole_and_tells_what_each_operation_did() {
    on_each_release(async |server| {
        let zk = client(server).await;
        zk.create("/m", b"").await.unwrap();
        let results = zk
            .multi()
            .check_version("/m", 0)
            .create("/m/a-", b"x", CreateMode::EphemeralSequential)
            .create("/m/c", b"", CreateMode::Container)
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
        let OpResult::Created { path, .. } = created else { panic!("{created:?}") };
        assert_eq!(path, "/m/a-0000000000");
        assert!(matches!(container, OpResult::Created { path, .. } if path == "/m/c"));
        assert_eq!(stat.version, 1);
    })
    .await;
}

#[tokio::test]
async fn a_failed_transaction_changes_nothing_and_names_the_culprit() {
    on_each_release(async |server| {
        let zk = client(server).await;
        zk.create("/m", b"").await.unwrap();
        let outcome = zk.multi().set("/m", b"x").check("/nowhere").delete("/m").await.unwrap();
        let error = MultiError { index: 1, rejection: Rejection::NoNode };
        assert_eq!(outcome, Err(error));
        assert_eq!(zk.exists("/m").await.unwrap().unwrap().version, 0);
    })
    .await;
}

#[tokio::test]
async fn an_empty_transaction_succeeds() {
    on_each_release(async |server| {
        assert_eq!(client(server).await.multi().await.unwrap(), Ok(Vec::new()));
    })
    .await;
}
