//! What can be asked for beyond nodes and their data.

use std::collections::BTreeSet;

use zk_client::{
    Acl, AclList, Client, CreateMode, OpCode, Perms, ReadError, ReadResult, Rejection, SessionEnd,
    WriteError, Zxid,
};
use zk_tests::{feature::Feature, test_with};

use crate::api::{Place, behind_proxy, client, on_each_release, on_each_release_to_restart};

const UNIMPLEMENTED: ReadError = ReadError::Rejected(Rejection::Unimplemented);

#[test_with(on_each_release)]
async fn access_is_read_and_changed_by_version(server: &Place) {
    let zk = server.options().auth("digest", "ann:secret").connect().await.unwrap();
    zk.create("/a", b"").await.unwrap();
    let (acl, stat) = zk.acl("/a").await.unwrap();
    assert_eq!((acl.to_vec(), stat.aversion), (vec![Acl::open_unsafe()], 0));
    let mine = AclList::from_iter([Acl::creator_all(), Acl::world_readable()]);
    assert_eq!(zk.set_acl("/a", &mine).version(0).await.unwrap().aversion, 1);
    let old = zk.set_acl("/a", &mine).version(0).await;
    assert_eq!(old, Err(WriteError::Rejected(Rejection::BadVersion)));
    let stranger = client(server).await;
    stranger.get("/a").await.unwrap();
    let refused = WriteError::Rejected(Rejection::NoAuth);
    assert_eq!(stranger.set("/a", b"").await, Err(refused.clone()));
    let readable = AclList::from_iter([Acl::world_readable()]);
    assert_eq!(stranger.set_acl("/a", &readable).await, Err(refused));
    // Over TLS the creator has an identity more.
    let (acl, _) = zk.acl("/a").await.unwrap();
    let perms: BTreeSet<i32> = acl.iter().map(|acl| acl.perms.0).collect();
    assert_eq!(perms, BTreeSet::from([Perms::ALL.0, Perms::READ.0]));
    let empty = zk.set_acl("/a", &AclList::default()).await;
    assert_eq!(empty, Err(WriteError::Rejected(Rejection::InvalidAcl)));
}

#[test_with(on_each_release)]
async fn or_exists_and_if_exists_accept_the_state(server: &Place) {
    let zk = client(server).await;
    let created = zk.create("/a", b"").or_exists().await.unwrap();
    assert_eq!((&*created.path, created.existed), ("/a", false));
    let existing = zk.create("/a", b"").or_exists().await.unwrap();
    assert_eq!((&*existing.path, existing.existed), ("/a", true));
    assert!(zk.delete("/a").if_exists().await.unwrap());
    assert!(!zk.delete("/a").if_exists().await.unwrap());
    let sequential = zk.create("/a-", b"").mode(CreateMode::PersistentSequential);
    assert!(matches!(sequential.or_exists().await, Err(WriteError::NotApplied(_))));
}

#[test_with(on_each_release)]
async fn subtree_is_deleted_or_the_obstacle_named(server: &Place) {
    let zk = client(server).await;
    assert_eq!(zk.delete_recursive("/t").await, Ok(0));
    for n in 0..300 {
        zk.create(&format!("/t/{}/{n}", n % 7), b"").parents().await.unwrap();
    }
    assert_eq!(zk.delete_recursive("/t").await, Ok(1 + 7 + 300));
    assert_eq!(zk.exists("/t").await.unwrap(), None);

    let owner = server.options().auth("digest", "ann:secret").connect().await.unwrap();
    zk.create("/t/a", b"").parents().await.unwrap();
    owner.create("/t/b", b"").await.unwrap();
    let acl = AclList::from_iter([Acl::creator_all(), Acl::world_readable()]);
    owner.create("/t/b/c", b"").await.unwrap();
    owner.set_acl("/t/b", &acl).await.unwrap();
    let error = zk.delete_recursive("/t").await.unwrap_err();
    assert_eq!(error.rejection(), Some(Rejection::NoAuth));
    assert!(error.to_string().starts_with("0 nodes deleted before /t/b/c: "), "{error}");
    assert!(zk.delete_recursive("/").await.is_err());
}

/// Nothing is deleted where nothing is, so nobody has to be allowed to.
#[test_with(on_each_release)]
async fn missing_subtree_needs_no_permission(server: &Place) {
    let zk = client(server).await;
    let acl =
        AclList::from_iter([Acl { perms: Perms::READ | Perms::CREATE, ..Acl::open_unsafe() }]);
    zk.create("/kept", b"").acl(&acl).await.unwrap();
    assert_eq!(zk.delete_recursive("/kept/missing").await, Ok(0));
    zk.create("/kept/there", b"").await.unwrap();
    let error = zk.delete_recursive("/kept/there").await.unwrap_err();
    assert_eq!(error.rejection(), Some(Rejection::NoAuth));
}

#[test_with(on_each_release)]
async fn multi_read_answers_each_read_by_itself(server: &Place) {
    let zk = client(server).await.chrooted("/app").unwrap();
    zk.create("/a/b", b"data").parents().await.unwrap();
    let reads = zk.multi_read().get("/a/b").get("/missing").children("/a").get("/");
    if !server.has(Feature::MultiRead) {
        assert_eq!(reads.await.unwrap_err(), UNIMPLEMENTED);
        return;
    }
    let results = reads.await.unwrap();
    let [Ok(ReadResult::Data(data, stat)), missing, children, root] = &results[..] else {
        panic!("{results:?}")
    };
    assert!(matches!(root, Ok(ReadResult::Data(_, stat)) if stat.num_children == 1), "{root:?}");
    assert_eq!((&**data, stat.data_length), (&b"data"[..], 4));
    assert_eq!(*missing, Err(Rejection::NoNode));
    assert_eq!(*children, Ok(ReadResult::Children(vec!["b".into()])));
    assert_eq!(zk.multi_read().await.unwrap(), []);
}

#[test_with(on_each_release_to_restart)]
async fn ephemerals_and_identities_are_reported(server: &Place) {
    let root = client(server).await;
    root.create("/app/sub/x", b"").parents().await.unwrap();
    let zk = root.chrooted("/app").unwrap();
    let ephemeral = async |zk: &Client, path: &str| {
        zk.create(path, b"").mode(CreateMode::Ephemeral).await.unwrap();
    };
    ephemeral(&root, "/apple").await;
    ephemeral(&zk, "/e1").await;
    ephemeral(&zk, "/sub/e2").await;
    let sorted = async |zk: &Client, prefix: &str| {
        let mut paths = zk.ephemerals(prefix).await.unwrap();
        paths.sort();
        paths
    };
    if server.has(Feature::Ephemerals) {
        assert_eq!(sorted(&zk, "/").await, ["/e1", "/sub/e2"]);
        assert_eq!(sorted(&zk, "/sub/").await, ["/sub/e2"]);
        assert_eq!(sorted(&root, "/app").await, ["/app/e1", "/app/sub/e2", "/apple"]);
    } else {
        assert_eq!(zk.ephemerals("/").await.unwrap_err(), UNIMPLEMENTED);
    }
    let counted = zk.descendant_count("/").await;
    let is_known = server.has(Feature::DescendantCount);
    assert_eq!(counted, if is_known { Ok(4) } else { Err(UNIMPLEMENTED) });
    if !server.has(Feature::WhoAmI) {
        assert_eq!(zk.who_am_i().await.unwrap_err(), UNIMPLEMENTED);
        return;
    }

    let schemes = async || {
        let mut schemes: Vec<String> =
            zk.who_am_i().await.unwrap().iter().map(|it| it.auth_scheme.to_string()).collect();
        schemes.sort();
        // Over TLS there is one more from the start.
        schemes.retain(|scheme| scheme != "x509");
        schemes
    };
    assert_eq!(schemes().await, ["ip"]);
    zk.add_auth("digest", "ann:secret").await.unwrap();
    assert_eq!(schemes().await, ["digest", "ip"]);
    // Also on the next connection.
    server.restart_under(&zk).await;
    assert_eq!(schemes().await, ["digest", "ip"]);
    zk.add_auth("nonsense", "x").await.unwrap_err();
    assert_eq!(zk.session().ended().await, SessionEnd::AuthFailed);
}

#[test_with(on_each_release)]
async fn standalone_server_has_no_reconfig(server: &Place) {
    let zk = client(server).await.chrooted("/app").unwrap();
    if !server.has(Feature::Config) {
        let missing = ReadError::Rejected(Rejection::NoNode);
        assert_eq!(zk.config().watch().await.map(drop), Err(missing));
        let refused = zk.reconfig().leave(1).await;
        assert_eq!(refused, Err(WriteError::Rejected(Rejection::Unimplemented)));
        return;
    }
    let ((config, _), _changed) = zk.config().watch().await.unwrap();
    assert_eq!((config.members.len(), config.connect_string()), (0, String::new()));
    let error = zk.reconfig().join(4, "zk4:2888:3888;2181").leave(1).await.unwrap_err();
    assert!(matches!(error, WriteError::Rejected(_)), "{error:?}");
    let nonsense = [
        zk.reconfig(),
        zk.reconfig().leave(1).members([(1, "zk1:1:2;3")]),
        zk.reconfig().members([] as [(i64, &str); 0]),
        zk.reconfig().leave(1).version(Zxid(-1)),
    ];
    for nonsense in nonsense {
        assert!(matches!(nonsense.await, Err(WriteError::NotApplied(_))));
    }
}

/// Servers that do not know an operation drop the connection over it.
#[test_with(on_each_release)]
async fn unknown_operation_costs_one_connection(server: &Place) {
    if server.has(Feature::WhoAmI) {
        return;
    }
    let (proxy, zk) = behind_proxy(server).await;
    let epoch = zk.session().epoch();
    let many: Vec<_> = (0..10).map(|_| zk.who_am_i().submit()).collect();
    for asked in many {
        assert_eq!(asked.await.unwrap_err(), UNIMPLEMENTED);
    }
    for _ in 0..10 {
        assert_eq!(zk.who_am_i().await.unwrap_err(), UNIMPLEMENTED);
    }
    zk.get("/").await.unwrap();
    assert!(zk.session().epoch() <= epoch + 1, "{} connections", zk.session().epoch());

    // The next server may be another one.
    let epoch = zk.session().epoch();
    let mark = proxy.mark();
    proxy.cut_all();
    while zk.session().epoch() == epoch {
        zk.get("/").await.unwrap();
    }
    assert_eq!(zk.who_am_i().await.unwrap_err(), UNIMPLEMENTED);
    let frames = proxy.frames_since(mark);
    assert!(frames.iter().any(|frame| frame.is_request(OpCode::WHO_AM_I)), "{frames}");
}
