//! Creating, reading, writing, listing, deleting.

use std::time::Duration;

use zk_client::{
    Acl, AclList, Cause, CreateMode, OpCode, ReadError, Rejection, WriteError, path::PathFault,
};

use zk_testkit::proxy::{Kind as FrameKind, Match};
use zk_tests::{feature::Feature, test_with};

use crate::api::{Place, behind_proxy, client, on_each_release, on_each_release_to_restart};

const UNIMPLEMENTED: WriteError = WriteError::Rejected(Rejection::Unimplemented);
const NO_NODE: ReadError = ReadError::Rejected(Rejection::NoNode);

#[test_with(on_each_release)]
async fn nodes_are_created_read_written_deleted(server: &Place) {
    let zk = client(server).await;
    let created = zk.create("/a", b"one").await.unwrap();
    assert_eq!((created.path.as_str(), created.stat.version), ("/a", 0));
    let exists = WriteError::Rejected(Rejection::NodeExists);
    assert_eq!(zk.create("/a", b"two").await.unwrap_err(), exists);

    let (data, stat) = zk.get("/a").await.unwrap();
    assert_eq!(&*data, b"one");
    server.assert_told(&created.stat, &stat);
    assert_eq!(zk.set("/a", b"two").version(0).await.unwrap().version, 1);
    let old = WriteError::Rejected(Rejection::BadVersion);
    assert_eq!(zk.set("/a", b"three").version(0).await, Err(old.clone()));
    assert_eq!(zk.exists("/a").await.unwrap().unwrap().version, 1);
    assert_eq!(zk.exists("/b").await.unwrap(), None);

    zk.create("/a/b", b"").await.unwrap();
    let (children, parent) = zk.children("/a").await.unwrap();
    assert_eq!((children, parent.num_children), (vec!["b".to_owned()], 1));
    assert_eq!(zk.delete("/a").await, Err(WriteError::Rejected(Rejection::NotEmpty)));
    zk.delete("/a/b").await.unwrap();
    assert_eq!(zk.delete("/a").version(7).await, Err(old));
    zk.delete("/a").version(1).await.unwrap();
    assert_eq!(zk.get("/a").await.unwrap_err(), NO_NODE);
    zk.sync("/").await.unwrap();
}

/// Servers make of a create what its operation says, and not its flags: a container that is asked for like other nodes
/// is a persistent node.
#[test_with(on_each_release)]
async fn container_and_ttl_nodes_have_own_opcodes(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let (plain, ttl) = (server.create_op(), Duration::from_millis(3_600_001));
    zk.create("/modes", b"").await.unwrap();
    for (mode, op, flags) in [
        (CreateMode::Persistent, plain, 0),
        (CreateMode::Ephemeral, plain, 1),
        (CreateMode::PersistentSequential, plain, 2),
        (CreateMode::EphemeralSequential, plain, 3),
        (CreateMode::Container, OpCode::CREATE_CONTAINER, 4),
        (CreateMode::PersistentTtl(ttl), OpCode::CREATE_TTL, 5),
        (CreateMode::PersistentSequentialTtl(ttl), OpCode::CREATE_TTL, 6),
    ] {
        let mark = proxy.mark();
        let path = format!("/modes/{flags}-");
        let created = zk.create(&path, b"x").mode(mode).await;
        if flags < 4 || server.has(Feature::TimeToLive) {
            let created = created.unwrap();
            // The counter counts all children, whatever their mode.
            let is_sequential = [2, 3, 6].contains(&flags);
            let number = is_sequential.then_some(i32::from(flags));
            assert_eq!(created.sequence(&path), number, "{mode:?}");
            let stat = zk.exists(&created.path).await.unwrap().unwrap();
            let is_ephemeral = stat.ephemeral_owner == zk.session().id();
            assert_eq!(is_ephemeral, [1, 3].contains(&flags), "{mode:?}");
            if mode != CreateMode::Container {
                server.assert_told(&created.stat, &stat);
            }
        } else {
            assert_eq!(created.unwrap_err(), UNIMPLEMENTED);
            if flags == 6 {
                // It was refused just before, and is not asked for again.
                continue;
            }
        }
        let sent = proxy.wait_for_since(mark, |frame| frame.is_request(op)).await;
        let behind = if op == OpCode::CREATE_TTL { 8 } else { 0 };
        let at = sent.payload().len() - behind - 4;
        assert_eq!(sent.payload()[at..at + 4], [0, 0, 0, flags], "{mode:?}");
        assert!(behind == 0 || sent.payload()[at + 4..] == [0, 0, 0, 0, 0, 0x36, 0xee, 0x81]);
    }
}

#[test_with(on_each_release)]
async fn protected_node_is_named_as_by_curator(server: &Place) {
    let zk = client(server).await;
    let protected = || zk.create("/p-", b"").mode(CreateMode::EphemeralSequential).protected();
    let node = protected().await.unwrap().owned.unwrap();
    assert!(node.path().starts_with("/_c_"), "{}", node.path());
    assert!(node.path().ends_with("-p-0000000000"), "{}", node.path());
    server.assert_told(node.stat(), &zk.exists(node.path()).await.unwrap().unwrap());
    let path = node.path().to_owned();
    drop(node);
    // Behind the delete, on the same connection.
    assert_eq!(zk.exists(&path).await.unwrap(), None);

    drop(protected().submit());
    let node = protected().await.unwrap().owned.unwrap();
    assert_eq!(node.sequence(), Some(2), "the dropped create was carried out");
    node.delete().await.unwrap();
    let ours = |name: &String| name.starts_with("_c_");
    assert!(!zk.children("/").await.unwrap().0.iter().any(ours));

    let persistent = zk.create("/p-", b"").protected().await.unwrap_err();
    let cause = Cause::InvalidArgument("only ephemeral nodes can be protected");
    assert_eq!(persistent, WriteError::NotApplied(cause));
}

#[test_with(on_each_release)]
async fn invalid_paths_never_reach_a_server(server: &Place) {
    let zk = client(server).await;
    for (path, fault) in [
        ("", PathFault::NotAbsolute),
        ("a", PathFault::NotAbsolute),
        ("/a/", PathFault::EmptyComponent),
        ("/a/../b", PathFault::RelativeComponent),
    ] {
        let ReadError::Unavailable(Cause::InvalidPath(error)) = zk.get(path).await.unwrap_err()
        else {
            panic!("{path:?} was not refused as a path")
        };
        assert_eq!(error.fault, fault);
        let error = zk.delete(path).await.unwrap_err();
        assert!(matches!(error, WriteError::NotApplied(Cause::InvalidPath(_))), "{error:?}");
    }
}

/// Servers take -1 for any version. A caller who has computed one does not mean that.
#[test_with(on_each_release)]
async fn no_version_stands_for_any(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/a", b"0").await.unwrap();
    let not_sent = |error| {
        assert!(matches!(error, WriteError::NotApplied(Cause::InvalidArgument(_))), "{error:?}");
    };
    not_sent(zk.set("/a", b"1").version(-1).await.unwrap_err());
    not_sent(zk.delete("/a").version(-1).await.unwrap_err());
    not_sent(zk.multi().set_version("/a", b"1", -1).await.unwrap_err());
    not_sent(zk.multi().delete_version("/a", -1).await.unwrap_err());
    not_sent(zk.multi().set("/a", b"1").check_version("/a", -1).await.unwrap_err());
    let node = zk.create("/p-", b"").mode(CreateMode::EphemeralSequential).protected();
    let nodes = zk.create_all_protected([node]).check_version("/a", -1).await;
    not_sent(nodes.map(drop).unwrap_err());
    assert_eq!(zk.get("/a").await.unwrap().0, b"0"[..]);
    let counts = proxy.counts();
    for op in [OpCode::SET_DATA, OpCode::DELETE, OpCode::MULTI] {
        assert_eq!(counts.requests(op), 0, "{op}");
    }
    zk.set("/a", b"1").await.unwrap();
    zk.multi().check("/a").delete("/a").await.unwrap().unwrap();
}

#[test_with(on_each_release)]
async fn oversized_request_is_refused_alone(server: &Place) {
    let zk = client(server).await;
    let epoch = zk.session().epoch();
    let error = zk.create("/large", &vec![0; 1 << 20]).await.unwrap_err();
    assert!(matches!(error, WriteError::NotApplied(Cause::TooLarge { .. })), "{error:?}");
    zk.create("/large", &vec![7; 1_000_000]).await.unwrap();
    assert_eq!(zk.get("/large").await.unwrap().0, vec![7; 1_000_000]);
    assert_eq!(zk.session().epoch(), epoch);
}

#[test_with(on_each_release)]
async fn acls_apply_and_credentials_authenticate(server: &Place) {
    let owner = server.options().auth("digest", "ann:secret").connect().await.unwrap();
    let acl = AclList::from_iter([Acl::creator_all()]);
    owner.create("/private", b"x").acl(&acl).await.unwrap();
    let stranger = client(server).await;
    let refused = ReadError::Rejected(Rejection::NoAuth);
    assert_eq!(stranger.get("/private").await.unwrap_err(), refused);
    assert_eq!(&*owner.get("/private").await.unwrap().0, b"x");
}

/// Since 3.8.4 and 3.9.2 servers do not even tell a stranger whether a node exists.
#[test_with(on_each_release_to_restart)]
async fn unreadable_node_is_not_a_missing_node(server: &Place) {
    let owner = server.options().auth("digest", "ann:secret").connect().await.unwrap();
    owner.create("/private", b"x").acl(&AclList::from_iter([Acl::creator_all()])).await.unwrap();
    let stranger = client(server).await;
    match stranger.exists("/private").await {
        Ok(there) => assert!(there.is_some()),
        Err(error) => assert_eq!(error, ReadError::Rejected(Rejection::NoAuth)),
    }
    // A watch that was refused is not armed, and is not armed again later either.
    if stranger.exists("/private").watch().await.is_err() {
        server.restart_under(&stranger).await;
        assert_eq!(stranger.exists("/missing").await.unwrap(), None);
    }
}

/// An xid is assigned when the bytes are written: the first by its xid is the first on the wire.
#[test_with(on_each_release)]
async fn xids_grow_by_one_across_threads(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/n", b"").await.unwrap();
    let mark = proxy.mark();
    let handle = tokio::runtime::Handle::current();
    let askers: Vec<_> = (0..4)
        .map(|_| {
            let (zk, handle) = (zk.clone(), handle.clone());
            std::thread::spawn(move || {
                let _runtime = handle.enter();
                let (get, set) = (|| zk.get("/n").submit(), || zk.set("/n", b"x").submit());
                (0..50).map(|_| (get(), set())).collect::<Vec<_>>()
            })
        })
        .collect();
    for asker in askers {
        for (get, set) in asker.join().unwrap() {
            get.await.unwrap();
            set.await.unwrap();
        }
    }
    let frames = proxy.frames_since(mark);
    let asked = frames.iter().filter(|frame| frame.kind == FrameKind::Request);
    let numbers: Vec<i32> = asked.map(|frame| frame.xid.unwrap().0).collect();
    assert_eq!(numbers.len(), 400);
    assert!(numbers.is_sorted_by(|before, after| before + 1 == *after), "{numbers:?}");
}

/// What is taken out of the order would move all later answers to others.
#[test_with(on_each_release)]
async fn answers_match_after_callers_are_dropped(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let path = |n: usize| format!("/n{n}");
    for n in 0..60 {
        zk.create(&path(n), n.to_string().as_bytes()).await.unwrap();
    }
    let epoch = zk.session().epoch();
    let held = proxy.on(Match::replies().once()).hold();
    let mut asked: Vec<_> = (0..60).map(|n| Some(zk.get(&path(n)).submit())).collect();
    held.fired().await;
    // All but each third are given up, when all are on their way.
    for (n, get) in asked.iter_mut().enumerate() {
        get.take_if(|_| n % 3 != 1);
    }
    held.release();
    for (n, get) in asked.into_iter().enumerate() {
        if let Some(get) = get {
            assert_eq!(get.await.unwrap().0, n.to_string());
        }
    }
    assert_eq!(zk.session().epoch(), epoch, "over one connection");
}
