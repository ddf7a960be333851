//! Creating, reading, writing, listing, deleting.

use std::time::Duration;

use zk_client::{Acl, AclList, Cause, CreateMode, PathFault, ReadError, Rejection, WriteError};

use crate::{client, on_each_release, options};

const NO_NODE: ReadError = ReadError::Rejected(Rejection::NoNode);

#[tokio::test]
async fn nodes_are_created_read_written_listed_and_deleted() {
    on_each_release(async |server| {
        let zk = client(server).await;
        let created = zk.create("/a", b"one").await.unwrap();
        assert_eq!((created.path.as_str(), created.stat.version), ("/a", 0));
        let exists = WriteError::Rejected(Rejection::NodeExists);
        assert_eq!(zk.create("/a", b"two").await, Err(exists));

        let (data, stat) = zk.get("/a").await.unwrap();
        assert_eq!((&*data, stat), (&b"one"[..], created.stat));
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
    })
    .await;
}

#[tokio::test]
async fn every_mode_of_creation_gives_that_kind_of_node() {
    on_each_release(async |server| {
        let zk = client(server).await;
        let session = zk.session().id();
        let parent = zk.create("/modes", b"").mode(CreateMode::Container).await.unwrap();
        assert_eq!(parent.stat.ephemeral_owner.0, 0);
        let ttl = Duration::from_secs(3600);
        let modes = [
            (CreateMode::Persistent, false, false),
            (CreateMode::PersistentSequential, false, true),
            (CreateMode::Ephemeral, true, false),
            (CreateMode::EphemeralSequential, true, true),
            (CreateMode::PersistentTtl(ttl), false, false),
            (CreateMode::PersistentSequentialTtl(ttl), false, true),
        ];
        for (number, (mode, ephemeral, sequential)) in (0..).zip(modes) {
            let path = format!("/modes/{number}-");
            let created = zk.create(&path, b"x").mode(mode).await.unwrap();
            assert_eq!(created.stat.ephemeral_owner == session, ephemeral, "{mode:?}");
            // The counter counts all children, whatever their mode.
            assert_eq!(created.sequence(&path), sequential.then_some(number), "{mode:?}");
            assert_eq!(zk.exists(&created.path).await.unwrap(), Some(created.stat));
        }
    })
    .await;
}

#[tokio::test]
async fn a_protected_node_goes_with_its_owner_and_is_named_as_curator_does() {
    on_each_release(async |server| {
        let zk = client(server).await;
        let protected = || zk.create("/p-", b"").mode(CreateMode::EphemeralSequential).protected();
        let node = protected().await.unwrap();
        assert!(node.path().starts_with("/_c_"), "{}", node.path());
        assert!(node.path().ends_with("-p-0000000000"), "{}", node.path());
        assert_eq!(zk.exists(node.path()).await.unwrap().as_ref(), Some(node.stat()));
        let path = node.path().to_owned();
        drop(node);
        // Behind the delete, on the same connection.
        assert_eq!(zk.exists(&path).await.unwrap(), None);

        drop(protected().submit());
        let node = protected().await.unwrap();
        assert_eq!(node.sequence(), Some(2), "the dropped create was carried out");
        node.delete().await.unwrap();
        let ours = |name: &String| name.starts_with("_c_");
        assert!(!zk.children("/").await.unwrap().0.iter().any(ours));

        let persistent = zk.create("/p-", b"").protected().await.unwrap_err();
        let cause = Cause::InvalidArgument("only ephemeral nodes can be protected");
        assert_eq!(persistent, WriteError::NotApplied(cause));
    })
    .await;
}

#[tokio::test]
async fn invalid_paths_never_reach_a_server() {
    on_each_release(async |server| {
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
    })
    .await;
}

#[tokio::test]
async fn what_is_too_large_for_servers_is_refused_and_costs_nothing_else() {
    on_each_release(async |server| {
        let zk = client(server).await;
        let epoch = zk.session().epoch();
        let error = zk.create("/large", &vec![0; 1 << 20]).await.unwrap_err();
        assert!(matches!(error, WriteError::NotApplied(Cause::TooLarge { .. })), "{error:?}");
        zk.create("/large", &vec![7; 1_000_000]).await.unwrap();
        assert_eq!(zk.get("/large").await.unwrap().0, vec![7; 1_000_000]);
        assert_eq!(zk.session().epoch(), epoch);
    })
    .await;
}

#[tokio::test]
async fn access_control_is_set_at_creation_and_identities_are_proved_on_connecting() {
    on_each_release(async |server| {
        let owner = options(server).auth("digest", "ann:secret").connect().await.unwrap();
        let acl = AclList::from_iter([Acl::creator_all()]);
        owner.create("/private", b"x").acl(&acl).await.unwrap();
        let stranger = client(server).await;
        let refused = ReadError::Rejected(Rejection::NoAuth);
        assert_eq!(stranger.get("/private").await.unwrap_err(), refused);
        assert_eq!(&*owner.get("/private").await.unwrap().0, b"x");
    })
    .await;
}

#[tokio::test]
async fn requests_of_one_client_are_carried_out_in_the_order_of_submission() {
    on_each_release(async |server| {
        let zk = client(server).await;
        let create = zk.create("/n", b"0").submit();
        let sets: Vec<_> =
            (0..500).map(|n: i32| zk.set("/n", n.to_string().as_bytes()).submit()).collect();
        let get = zk.get("/n").submit();
        create.await.unwrap();
        for (version, set) in (1..).zip(sets) {
            assert_eq!(set.await.unwrap().version, version);
        }
        assert_eq!(&*get.await.unwrap().0, b"499");
    })
    .await;
}
