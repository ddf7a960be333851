//! Transactions.

use zk_client::{CreateMode, MultiError, OpCode, OpResult, Rejection};

use crate::{behind_proxy, client, on_each_release};

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

/// Servers before 3.8.5 and 3.9.3 cannot start again after a check that came by itself (ZOOKEEPER-2623).
#[tokio::test]
async fn a_check_by_itself_is_a_transaction_of_one() {
    on_each_release(async |server| {
        let (proxy, zk) = behind_proxy(server).await;
        assert_eq!(zk.multi().check("/").await.unwrap(), Ok(vec![OpResult::Checked]));
        let missing = MultiError { index: 0, rejection: Rejection::NoNode };
        assert_eq!(zk.multi().check("/nowhere").await.unwrap(), Err(missing));
        let old = MultiError { index: 0, rejection: Rejection::BadVersion };
        assert_eq!(zk.multi().check_version("/", 77).await.unwrap(), Err(old));
        let counts = proxy.counts();
        assert_eq!((counts.requests(OpCode::CHECK), counts.requests(OpCode::MULTI)), (0, 3));
        crate::restart_under(server, &zk).await;
        zk.get("/").await.unwrap();
    })
    .await;
}
