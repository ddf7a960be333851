//! Who comes when.

use zk_client::CreateMode;
use zk_locks::{Lock, Lost};

use crate::support::{Stage, emptied, joined, on_each_release, within};

/// The watch on the own node is used up when the one in front goes, which is not to be forgotten. It takes
/// luck for both events to come just between two looks; about one time in ten thousand it did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_node_is_written_as_the_one_in_front_goes_is_granted_and_can_be_lost() {
    on_each_release(async |stage: Stage| {
        let zk = stage.client().await;
        let path = stage.existing("written").await;
        for _ in 0..100 {
            let name = format!("{path}/lock-");
            let ahead = stage.outsider.create(&name, b"");
            let ahead = ahead.mode(CreateMode::EphemeralSequential).await.unwrap().path;
            let lock = Lock::new(&zk, &path);
            let waiter = tokio::spawn(async move { lock.acquire().await.unwrap() });
            joined(&stage.outsider, &path, 2).await;
            let (names, _) = stage.outsider.children(&path).await.unwrap();
            let own = names.into_iter().find(|name| name.starts_with("_c_")).unwrap();
            let own = format!("{path}/{own}");
            zk.sync("/").await.unwrap();
            zk.sync("/").await.unwrap();
            stage.outsider.multi().delete(&ahead).set(&own, b"news").await.unwrap().unwrap();
            let guard = within(waiter).await.unwrap();
            let delete = async { stage.outsider.delete(&own).await.unwrap() };
            let (lost, ()) = within(async { tokio::join!(guard.lost(), delete) }).await;
            assert_eq!(lost, Lost::NodeDeleted);
            drop(guard);
            emptied(&zk, &path).await;
        }
    })
    .await;
}
