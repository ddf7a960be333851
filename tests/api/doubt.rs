//! Lost replies: what is known afterwards, and what is not.

use zk_client::{CreateMode, OpCode, WriteError};
use zk_testkit::proxy::Match;
use zk_tests::test_with;

use crate::{Place, behind_proxy, on_each_release};

#[test_with(on_each_release)]
async fn write_in_doubt_is_resolved_by_a_read(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;

    let lost = proxy.on(Match::reply(server.create_op()).once()).reset();
    let error = zk.create("/a", b"").await.unwrap_err();
    assert_eq!(lost.times_fired(), 1);
    let WriteError::InDoubt(doubt) = error else { panic!("{error:?}") };
    assert_eq!(doubt.op, server.create_op());
    zk.resolve_in_doubt().await.unwrap();
    assert!(zk.exists("/a").await.unwrap().is_some(), "the server had carried it out");

    let lost = proxy.on(Match::request(server.create_op()).once()).reset();
    let error = zk.create("/b", b"").await.unwrap_err();
    assert_eq!(lost.times_fired(), 1);
    assert!(matches!(error, WriteError::InDoubt(_)), "{error:?}");
    zk.resolve_in_doubt().await.unwrap();
    assert_eq!(zk.exists("/b").await.unwrap(), None, "the server had never seen it");
}

#[test_with(on_each_release)]
async fn read_with_lost_reply_is_retried(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let lost = proxy.on(Match::reply(OpCode::GET_DATA).once()).cut();
    let epoch = zk.session().epoch();
    zk.get("/").await.unwrap();
    assert_eq!((lost.times_fired(), zk.session().epoch()), (1, epoch + 1));
}

#[test_with(on_each_release)]
async fn unsent_write_waits_for_a_connection(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let mut session = zk.session();
    proxy.refuse_connections().await;
    proxy.cut_all();
    while zk.session().state() != zk_client::SessionState::Disconnected {
        session.changed().await;
    }
    let create = zk.create("/a", b"").submit();
    proxy.accept_connections().await;
    assert_eq!(create.await.unwrap().path, "/a");
}

#[test_with(on_each_release)]
async fn protected_create_makes_exactly_one_node(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/q", b"").await.unwrap();
    for part in [Match::reply(server.create_op()), Match::request(server.create_op())] {
        let lost = proxy.on(part.once()).reset();
        let mode = CreateMode::EphemeralSequential;
        let node = zk.create("/q/p-", b"x").mode(mode).protected().await.unwrap().owned.unwrap();
        assert_eq!(lost.times_fired(), 1);
        assert_eq!(zk.children("/q").await.unwrap().0, [node.name()]);
        server.assert_told(node.stat(), &zk.exists(node.path()).await.unwrap().unwrap());
        node.delete().await.unwrap();
    }
}
