//! Lost replies: what is known afterwards, and what is not.

use zk_client::{Acl, AclList, OpCode, WriteError};
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

/// Whatever it is: it may have been carried out, and is not sent again.
#[test_with(on_each_release)]
async fn write_whose_answer_is_lost_is_in_doubt(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/a", b"").await.unwrap();
    let acl = AclList::from_iter([Acl::open_unsafe()]);
    let writes =
        [OpCode::SET_DATA, OpCode::SET_ACL, OpCode::MULTI, server.create_op(), OpCode::DELETE];
    for op in writes {
        for with_version in [false, true] {
            if op == OpCode::DELETE {
                zk.create("/b", b"").await.unwrap();
            }
            let lost = proxy.on(Match::reply(op).once()).reset();
            let (_, stat) = zk.get("/a").await.unwrap();
            let outcome = match op {
                OpCode::SET_DATA if with_version => {
                    zk.set("/a", b"").version(stat.version).await.map(drop)
                }
                OpCode::SET_DATA => zk.set("/a", b"").await.map(drop),
                OpCode::SET_ACL if with_version => {
                    zk.set_acl("/a", &acl).version(stat.aversion).await.map(drop)
                }
                OpCode::SET_ACL => zk.set_acl("/a", &acl).await.map(drop),
                OpCode::MULTI => zk.multi().set("/a", b"").await.map(drop),
                OpCode::DELETE if with_version => zk.delete("/b").version(0).await,
                OpCode::DELETE => zk.delete("/b").await,
                _ => zk.create("/b", b"").await.map(drop),
            };
            assert_eq!(lost.times_fired(), 1, "{op:?}");
            let Err(WriteError::InDoubt { op: told, .. }) = outcome else {
                panic!("{op:?}: {outcome:?}")
            };
            assert_eq!(told, op);
            zk.resolve_in_doubt().await.unwrap();
            if op == server.create_op() {
                zk.delete("/b").await.unwrap();
            }
        }
    }
}
