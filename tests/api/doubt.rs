//! Lost replies: what is known afterwards, and what is not.

use zk_client::WriteError;
use zk_testkit::proxy::Match;
use zk_tests::test_with;

use crate::api::{Place, behind_proxy, on_each_release};

#[test_with(on_each_release)]
async fn write_in_doubt_is_resolved_by_a_read(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;

    let lost = proxy.on(Match::reply(server.create_op()).once()).reset();
    let error = zk.create("/a", b"").await.unwrap_err();
    assert_eq!(lost.times_fired(), 1);
    let WriteError::InDoubt { op, .. } = error else { panic!("{error:?}") };
    assert_eq!(op, server.create_op());
    zk.resolve_in_doubt().await.unwrap();
    assert!(zk.exists("/a").await.unwrap().is_some(), "the server had carried it out");

    let lost = proxy.on(Match::request(server.create_op()).once()).reset();
    let error = zk.create("/b", b"").await.unwrap_err();
    assert_eq!(lost.times_fired(), 1);
    assert!(matches!(error, WriteError::InDoubt { .. }), "{error:?}");
    zk.resolve_in_doubt().await.unwrap();
    assert_eq!(zk.exists("/b").await.unwrap(), None, "the server had never seen it");
}
