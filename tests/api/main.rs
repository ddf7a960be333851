//! The client's operations on real servers.

use zk_client::{Client, CreateMode, Rejection, SessionEnd, SessionState, WriteError};
use zk_testkit::real::{Release, Server};

#[tokio::test]
async fn nodes_are_created_read_written_listed_and_deleted() {
    let server = Server::start(Release::V3_9).await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    assert_eq!(zk.session().state(), SessionState::Connected { read_only: false });

    let created = zk.create("/a", b"one").await.unwrap();
    assert_eq!((created.path.as_str(), created.stat.version), ("/a", 0));
    let exists = WriteError::Rejected(Rejection::NodeExists);
    assert_eq!(zk.create("/a", b"two").await, Err(exists));

    let ((data, stat), changed) = zk.get("/a").watch().await.unwrap();
    assert_eq!((&*data, stat), (&b"one"[..], created.stat));
    assert_eq!(zk.set("/a", b"two").version(0).await.unwrap().version, 1);
    assert_eq!(changed.await.unwrap().path, "/a");

    let child = zk.create("/a/b-", b"").mode(CreateMode::EphemeralSequential).await.unwrap();
    assert_eq!(child.sequence("/a/b-"), Some(0));
    assert_eq!(zk.children("/a").await.unwrap().0, ["b-0000000000"]);
    assert_eq!(zk.delete("/a").await, Err(WriteError::Rejected(Rejection::NotEmpty)));

    let node =
        zk.create("/a/p-", b"").mode(CreateMode::EphemeralSequential).protected().await.unwrap();
    assert_eq!(node.sequence(), Some(1));
    node.delete().await.unwrap();
    assert_eq!(zk.children("/a").await.unwrap().0, ["b-0000000000"]);

    zk.close().await.unwrap();
    assert_eq!(zk.session().state(), SessionState::Ended(SessionEnd::Closed));
}
