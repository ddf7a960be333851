//! What each identity may do.

use std::net::{IpAddr, Ipv4Addr};

use zk_client::{Acl, AclList, CreateMode, Id, Perms, ReadError, Rejection, WriteError, digest_id};
use zk_locks::Lock;
use zk_tests::site::Site;

#[tokio::test]
async fn acl_admits_only_listed_identities() {
    for kind in Site::PLAIN {
        println!("on {kind}");
        let server = Site::start(kind).await;
        let bob = server.options().auth("digest", "bob:long and secret").connect().await.unwrap();
        let eve = server.options().auth("digest", "bob:guessed").connect().await.unwrap();
        let home = IpAddr::from(Ipv4Addr::LOCALHOST);
        let list = AclList::from_iter([
            digest_id("bob", "long and secret").may(Perms::READ | Perms::WRITE),
            Id::anyone().may(Perms::CREATE),
        ]);
        eve.create("/bobs", b"x").acl(&list).await.unwrap();
        assert_eq!(&*bob.get("/bobs").await.unwrap().0, b"x");
        bob.set("/bobs", b"y").await.unwrap();
        eve.create("/bobs/child", b"").await.unwrap();
        assert_eq!(eve.get("/bobs").await.unwrap_err(), ReadError::Rejected(Rejection::NoAuth));
        let delete = eve.delete("/bobs/child").await.unwrap_err();
        assert_eq!(delete, WriteError::Rejected(Rejection::NoAuth));

        for (number, id) in [Id::address(home), Id::network(home, 8)].into_iter().enumerate() {
            let path = format!("/home-{number}");
            eve.create(&path, b"").acl(&AclList::from_iter([id.may(Perms::READ)])).await.unwrap();
            eve.get(&path).await.unwrap();
            let set = eve.set(&path, b"x").await.unwrap_err();
            assert_eq!(set, WriteError::Rejected(Rejection::NoAuth));
        }
        let away = Id::network(IpAddr::from([10, 0, 0, 0]), 8).may(Perms::ALL);
        eve.create("/away", b"").acl(&AclList::from_iter([away])).await.unwrap();
        assert_eq!(eve.get("/away").await.unwrap_err(), ReadError::Rejected(Rejection::NoAuth));
    }
}

#[tokio::test]
async fn default_acl_closes_every_node_to_others() {
    for kind in Site::PLAIN {
        println!("on {kind}");
        let server = Site::start(kind).await;
        let mine = AclList::from_iter([Acl::creator_all()]);
        let ann = server.options().auth("digest", "ann:long and secret").default_acl(&mine);
        let ann = ann.connect().await.unwrap();
        let eve = server.options().connect().await.unwrap();

        ann.create("/a/b", b"").parents().await.unwrap();
        ann.multi().create("/c", b"", CreateMode::Persistent).await.unwrap().unwrap();
        ann.create("/d", b"").or_exists().await.unwrap();
        let lock = Lock::new(&ann, "/locks/l");
        let held = lock.acquire().await.unwrap();
        let ours = ["/a", "/a/b", "/c", "/d", "/locks", "/locks/l", held.path()];
        for path in ours {
            let get = eve.get(path).await.unwrap_err();
            assert_eq!(get, ReadError::Rejected(Rejection::NoAuth), "{path}");
            let (acl, _) = ann.acl(path).await.unwrap();
            assert_eq!(acl.iter().count(), 1, "{path}");
        }
        // One that is chosen for a node goes before.
        let all = AclList::from_iter([Acl::open_unsafe()]);
        ann.create("/open", b"").acl(&all).await.unwrap();
        eve.get("/open").await.unwrap();
    }
}
