//! Nodes under a lock's path that are not ours: other implementations', and those of none.

use zk_client::{CreateMode, path};
use zk_locks::{AcquireError, Client, ForeignNodes, Kind, Layout, Lock, MultiLock, Names, Status};
use zk_proto::OpCode;
use zk_testkit::proxy::{Frame, Match};
use zk_tests::test_with;

use crate::locks::support::{Setup, Waiter, emptied, joined, on_each_release, within};

/// What stands before the number in the nodes of other implementations' exclusive locks.
const FOREIGN: [&str; 5] = [
    // Curator, with and without dashes in the id; the bare name of its unprotected nodes, and of others.
    "_c_3b5f6a0e-0000-4000-8000-0123456789ab-lock-",
    "_c_3b5f6a0e0000400080000123456789ab-lock-",
    "lock-",
    // kazoo.
    "3b5f6a0e0000400080000123456789ab__lock__",
    // The ZooKeeper distribution's own recipe: its session's number, which may be negative.
    "x-72057858583691264-",
];

#[test_with(on_each_release)]
async fn holder_of_each_implementation_is_awaited(setup: Setup) {
    for (number, name) in FOREIGN.iter().enumerate() {
        let path = setup.existing(&format!("foreign-{number}")).await;
        let node = format!("{path}/{name}");
        let create = setup.outsider.create(&node, b"other");
        let ahead = create.mode(CreateMode::EphemeralSequential).await.unwrap().path;
        assert!(Lock::new(&setup.outsider, &path).try_acquire().await.unwrap().is_none());
        let mut waiter = Waiter::asleep(&setup, &path).await;
        assert!(waiter.still_waits().await, "{name}");
        let queue = Lock::new(&setup.outsider, &path).queue().contenders().await.unwrap();
        assert!(queue.iter().all(|one| one.kind == Kind::Exclusive), "{queue:?}");
        assert_eq!(queue[0].description(), "other");
        setup.outsider.delete(&ahead).await.unwrap();
        within(waiter.outcome().await.unwrap().release()).await.unwrap();
    }
}

#[test_with(on_each_release)]
async fn unnumbered_nodes_have_no_place_in_queue(setup: Setup) {
    let path = setup.existing("strangers").await;
    for name in ["0", "zzz", "meta", "x-1-", "lock-", "lock-12", "lock-00000000012x"] {
        setup.outsider.create(&format!("{path}/{name}"), b"").await.unwrap();
    }
    let lock = Lock::new(&setup.outsider, &path);
    let guard = within(lock.try_acquire()).await.unwrap().expect("nobody has the lock");
    within(guard.release()).await.unwrap();
    let guard = within(lock.acquire()).await.unwrap();
    let queue = lock.queue().contenders().await.unwrap();
    assert_eq!(queue.len(), 1, "{queue:?}");
    assert!(guard.path().ends_with(&queue[0].name));
    within(guard.release()).await.unwrap();
}

/// Whatever it is, it has a place in the sequence: better to wait for it than to collide with it.
#[test_with(on_each_release)]
async fn numbered_foreign_node_ahead_is_awaited(setup: Setup) {
    let path = setup.existing("numbered").await;
    let ahead = format!("{path}/member-0000000000");
    setup.outsider.create(&ahead, b"").await.unwrap();
    setup.outsider.create(&format!("{path}/member-2147483647"), b"").await.unwrap();
    let mut waiter = Waiter::asleep(&setup, &path).await;
    assert!(waiter.still_waits().await);
    let queue = Lock::new(&setup.outsider, &path).queue().contenders().await.unwrap();
    let kinds: Vec<Kind> = queue.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [Kind::Unknown, Kind::Exclusive, Kind::Unknown]);
    setup.outsider.delete(&ahead).await.unwrap();
    within(waiter.outcome().await.unwrap().release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn foreign_readers_and_writers_are_awaited(setup: Setup) {
    let path = setup.existing("rw").await;
    for (name, kind) in [
        ("_c_6e9a-__READ__", Kind::Read),
        ("_c_6e9a-__WRIT__", Kind::Write),
        ("6e9a__rlock__", Kind::Read),
    ] {
        let node = format!("{path}/{name}");
        let create = setup.outsider.create(&node, b"");
        let ahead = create.mode(CreateMode::EphemeralSequential).await.unwrap().path;
        let mut waiter = Waiter::asleep(&setup, &path).await;
        assert!(waiter.still_waits().await, "{name}");
        let queue = Lock::new(&setup.outsider, &path).queue().contenders().await.unwrap();
        assert_eq!(queue[0].kind, kind);
        setup.outsider.delete(&ahead).await.unwrap();
        within(waiter.outcome().await.unwrap().release()).await.unwrap();
    }
    emptied(&setup.outsider, &path).await;
}

/// The id of an attempt is in front of the description then.
#[test_with(on_each_release)]
async fn names_without_ids_are_told_apart_by_their_data(setup: Setup) {
    let path = setup.existing("bare").await;
    let names = Names::new("turn-").without_id();
    let of = |zk: &Client| {
        let builder = Lock::builder(zk, &path).layout(Layout::Custom(names));
        builder.description("ours").build()
    };
    let zk = setup.client().await;
    let (lock, other) = (of(&setup.outsider), of(&zk));
    let first = within(lock.acquire()).await.unwrap();
    assert_eq!(first.path(), format!("{path}/turn-0000000000"));
    let (data, _) = setup.outsider.get(first.path()).await.unwrap();
    let text = String::from_utf8(data.to_vec()).unwrap();
    let (id, description) = text.split_once(' ').unwrap();
    assert_eq!((id.len(), description), (36, "ours"));
    let mut second = within(other.enqueue()).await.unwrap();
    assert!(within(lock.try_acquire()).await.unwrap().is_none());
    within(first.release()).await.unwrap();
    let second = within(second.wait()).await.unwrap();
    within(second.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// A lock whose path is to be its own.
fn refusing(zk: &Client, path: &str) -> Lock {
    Lock::builder(zk, path).foreign_nodes(ForeignNodes::Refuse).build()
}

/// The stranger comes between the look at the path and the create, and has the number in front.
#[test_with(on_each_release)]
async fn stranger_that_was_faster_is_refused(setup: Setup) {
    let creates = |frame: &Frame| matches!(frame.op, Some(OpCode::CREATE2 | OpCode::MULTI));
    for as_one_of_several in [false, true] {
        let path = setup.existing(&format!("faster-{as_one_of_several}")).await;
        let (proxy, zk) = setup.proxied().await;
        let lock = refusing(&zk, &path);
        let create = proxy.on(Match::requests().when(creates).once()).hold();
        let asking = tokio::spawn(async move {
            match as_one_of_several {
                true => MultiLock::of([lock]).acquire().await.map(drop),
                false => lock.acquire().await.map(drop),
            }
        });
        within(create.fired()).await;
        let member = format!("{path}/member-");
        let member = setup.outsider.create(&member, b"").mode(CreateMode::EphemeralSequential);
        let name = path::name(&member.await.unwrap().path).to_owned();
        create.release();
        assert_eq!(within(asking).await.unwrap(), Err(AcquireError::Stranger { name }));
        joined(&setup.outsider, &path, 1).await;
    }
}

/// It is met with the next listing, by those who wait.
#[test_with(on_each_release)]
async fn late_stranger_ends_waits_and_spares_holders(setup: Setup) {
    let path = setup.existing("late").await;
    let (first, second) = (setup.client().await, setup.client().await);
    let holder = within(refusing(&first, &path).acquire()).await.unwrap();
    let nearest = within(refusing(&second, &path).enqueue()).await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let lock = refusing(&zk, &path);
    let mut waiter = Waiter::of(proxy, zk, lock);
    waiter.has_read(1).await;
    setup.outsider.create(&format!("{path}/notes"), b"").await.unwrap();
    assert!(waiter.still_waits().await);
    drop(nearest);
    let stranger = AcquireError::Stranger { name: "notes".to_owned() };
    assert_eq!(waiter.outcome().await.map(drop), Err(stranger));
    joined(&setup.outsider, &path, 2).await;
    assert_eq!(holder.status(), Status::Held);
    assert_eq!(within(holder.check()).await, Ok(()));
    within(holder.release()).await.unwrap();
}

/// Before any of the locks is asked for.
#[test_with(on_each_release)]
async fn multi_lock_looks_for_strangers_first(setup: Setup) {
    let (free, strange) = (setup.existing("a").await, setup.existing("b").await);
    setup.outsider.create(&format!("{strange}/notes"), b"").await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let both = MultiLock::of([Lock::new(&zk, &free), refusing(&zk, &strange)]);
    let stranger = AcquireError::Stranger { name: "notes".to_owned() };
    assert_eq!(within(both.acquire()).await.map(drop), Err(stranger.clone()));
    assert_eq!(within(both.try_acquire()).await.map(drop), Err(stranger));
    let frames = proxy.frames();
    assert_eq!(proxy.counts().requests(OpCode::MULTI), 0, "{frames}");
    for path in [&free, &strange] {
        let changes = setup.outsider.exists(path).await.unwrap().unwrap().cversion;
        assert_eq!(changes, i32::from(path == &strange), "{frames}");
    }
}
