//! Nodes of ours that have no id in their names: found again after a lost reply, distinguished, and no others
//! deleted in their place.

use zk_client::{Client, CreateMode};
use zk_locks::{
    AcquireError, Builder, ForeignNodes, Guard, Layout, Lock, Lost, MultiLock, Names, RwLock,
};
use zk_proto::OpCode;
use zk_testkit::{TestServer, proxy::Match};
use zk_tests::patience::within;

pub(crate) async fn stage() -> (TestServer, Client) {
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    zk.create("/lock", b"").await.unwrap();
    (server, zk)
}

fn named(zk: &Client) -> Builder<Lock> {
    Lock::named(zk, "/lock", "report")
}

fn bare(zk: &Client) -> Builder<Lock> {
    Lock::builder(zk, "/lock").layout(Layout::Bare)
}

type Recipe = fn(&Client) -> Builder<Lock>;

/// Both ways to have no id.
pub(crate) const BOTH: [Recipe; 2] = [named, bare];

pub(crate) async fn names(zk: &Client) -> Vec<String> {
    zk.sync("/lock").await.unwrap();
    zk.children("/lock").await.unwrap().0
}

/// Deletes a contender's node and the path, and has another contender take the lock: by a node of the same name.
pub(crate) async fn replaced(node: &str, other: &Client, builder: Recipe) -> Guard {
    other.delete(node).await.unwrap();
    other.delete("/lock").await.unwrap();
    let theirs = within(builder(other).build().acquire()).await.unwrap();
    assert_eq!(theirs.path(), node);
    theirs
}

/// The first holds the lock, the second and the third ask for it at once, all in one session, and the connection is lost
/// before or after the server has heard of it.
#[tokio::test]
async fn lost_reply_leaves_one_node_per_attempt() {
    for builder in BOTH {
        for lost in [Match::request(OpCode::CREATE2), Match::reply(OpCode::CREATE2)] {
            for which in [1, 2] {
                let (server, zk) = stage().await;
                let lock = builder(&zk).recheck(None).build();
                let first = within(lock.acquire()).await.unwrap();
                let broken = server.on(lost.clone().nth(which)).reset();
                let others = [1, 2].map(|_| {
                    let lock = lock.clone();
                    tokio::spawn(async move { lock.acquire().await.unwrap() })
                });
                within(broken.fired()).await;
                let both = async {
                    while names(&zk).await.len() != 3 {
                        tokio::task::yield_now().await;
                    }
                };
                within(both).await;
                assert!(others.iter().all(|other| !other.is_finished()));
                let mut held = vec![first.path().to_owned()];
                within(first.release()).await.unwrap();
                let [mut a, mut b] = others;
                for _ in 0..2 {
                    let guard = within(async {
                        tokio::select! {
                            guard = &mut a, if !a.is_finished() || held.len() == 1 => guard,
                            guard = &mut b => guard,
                        }
                    });
                    let guard = guard.await.unwrap();
                    assert!(!held.iter().any(|path| path == guard.path()), "{held:?}");
                    held.push(guard.path().to_owned());
                    within(guard.release()).await.unwrap();
                }
                assert!(names(&zk).await.is_empty());
            }
        }
    }
}

/// An acquire that is dropped while its create is in doubt.
#[tokio::test]
async fn abandoned_attempt_deletes_only_its_node() {
    for builder in BOTH {
        let (server, zk) = stage().await;
        let lock = builder(&zk).build();
        let held = within(lock.acquire()).await.unwrap();
        let broken = server.on(Match::reply(OpCode::CREATE2).once()).reset();
        let attempt = tokio::spawn({
            let lock = lock.clone();
            async move { lock.acquire().await.map(drop) }
        });
        within(broken.fired()).await;
        attempt.abort();
        within(async { while names(&zk).await.len() != 1 {} }).await;
        assert_eq!(within(held.check()).await, Ok(()));
        within(held.release()).await.unwrap();
    }
}

/// Numbers begin anew with the path.
#[tokio::test]
async fn release_spares_other_node_of_same_number() {
    for builder in BOTH {
        let (server, zk) = stage().await;
        let other = Client::connect(&server.connect_string()).await.unwrap();
        let lost = within(builder(&zk).build().acquire()).await.unwrap();
        let theirs = replaced(lost.path(), &other, builder).await;
        within(lost.release()).await.unwrap();
        assert_eq!(within(theirs.check()).await, Ok(()));
        let waiting = within(builder(&zk).build().try_acquire()).await.unwrap();
        assert!(waiting.is_none());
    }
}

/// Such a holder hears that the node of its name is another one.
#[tokio::test]
async fn replaced_node_means_the_lock_is_lost() {
    let (server, zk) = stage().await;
    let other = Client::connect(&server.connect_string()).await.unwrap();
    let held = within(named(&zk).build().acquire()).await.unwrap();
    other.delete(held.path()).await.unwrap();
    other.delete("/lock").await.unwrap();
    let _theirs = within(named(&other).build().acquire()).await.unwrap();
    assert_eq!(within(held.lost()).await, Lost::NodeDeleted);
}

#[tokio::test]
async fn nodes_without_id_are_taken_together() {
    for lost in [Match::request(OpCode::MULTI), Match::reply(OpCode::MULTI)] {
        let (server, zk) = stage().await;
        let both = || {
            let (a, b) = (Lock::named(&zk, "/lock", "a").build(), named(&zk).build());
            MultiLock::of([a, b])
        };
        let broken = server.on(lost.once()).reset();
        let guards = within(both().acquire()).await.unwrap();
        within(broken.fired()).await;
        assert_eq!(names(&zk).await.len(), 2);
        assert!(within(both().try_acquire()).await.unwrap().is_none());
        within(guards.release()).await.unwrap();
        assert!(names(&zk).await.is_empty());
    }
}

#[tokio::test]
async fn description_is_reported_without_the_id() {
    let (_server, zk) = stage().await;
    let lock = named(&zk).description("night shift").build();
    let held = within(lock.acquire()).await.unwrap();
    zk.create("/lock/report_lock_", b"theirs says this")
        .mode(CreateMode::EphemeralSequential)
        .await
        .unwrap();
    let said = lock
        .queue()
        .contenders()
        .await
        .unwrap()
        .into_iter()
        .map(|one| one.description().into_owned());
    assert_eq!(said.collect::<Vec<_>>(), ["night shift", "theirs says this"]);
    within(held.release()).await.unwrap();
}

#[tokio::test]
async fn ambiguous_names_are_refused() {
    let (_server, zk) = stage().await;
    for name in ["", "a/b", "a_lock_b", "_lock_"] {
        let refused = within(Lock::named(&zk, "/lock", name).build().acquire()).await;
        assert!(matches!(refused, Err(AcquireError::Unavailable(_))), "{name:?}: {refused:?}");
    }
    assert!(names(&zk).await.is_empty());
    // These look like ids.
    for name in ["_c_", "_c_x", "-", "lock", "latch-"] {
        let lock = Lock::named(&zk, "/lock", name).build();
        let held = within(lock.acquire()).await.unwrap();
        assert!(within(lock.try_acquire()).await.unwrap().is_none());
        within(held.release()).await.unwrap();
    }
    // And these like custom markers of readers, which say nothing of locks that have a name.
    let marked = Names::new("lock-").read_write("read-", "write-").marker_first();
    let ending = Names::new("_lock_").read_write("-r_lock_", "-w_lock_");
    for (name, names) in [("read-model", marked), ("report-r", ending)] {
        let lock = Lock::named(&zk, "/lock", name).layout(Layout::Custom(names)).build();
        let held = within(lock.acquire()).await.unwrap();
        assert!(within(lock.try_acquire()).await.unwrap().is_none(), "{name}");
        // One that waits knows itself by its name as well.
        let mut second = within(lock.enqueue()).await.unwrap();
        assert!(within(second.try_wait()).await.unwrap().is_none(), "{name}");
        within(held.release()).await.unwrap();
    }
}

/// Several locks on one path refuse strangers, and not each other.
#[tokio::test]
async fn neighbours_are_no_strangers() {
    let (_server, zk) = stage().await;
    let refusing =
        |name| Lock::named(&zk, "/lock", name).foreign_nodes(ForeignNodes::Refuse).build();
    let one = within(refusing("one").acquire()).await.unwrap();
    let other = within(refusing("other").acquire()).await.unwrap();
    zk.create("/lock/notes", b"").await.unwrap();
    let stranger = AcquireError::Stranger { name: "notes".to_owned() };
    assert_eq!(within(refusing("third").acquire()).await.map(drop), Err(stranger));
    within(one.release()).await.unwrap();
    within(other.release()).await.unwrap();
}

#[tokio::test]
async fn writer_without_id_cannot_downgrade() {
    let (_server, zk) = stage().await;
    let lock = RwLock::builder(&zk, "/lock").layout(Layout::Bare).build();
    let writing = within(lock.write()).await.unwrap();
    let refused = within(writing.downgrade()).await.unwrap_err();
    assert_eq!(refused.cause, AcquireError::NoDowngrade);
    within(refused.guard.release()).await.unwrap();
}

#[tokio::test]
async fn release_without_id_costs_an_extra_read() {
    let (server, zk) = stage().await;
    let held = within(named(&zk).build().acquire()).await.unwrap();
    let mark = server.proxy().mark();
    within(held.release()).await.unwrap();
    let frames = server.proxy().frames_since(mark);
    let ops: Vec<OpCode> = frames.requests().iter().filter_map(|frame| frame.op).collect();
    assert_eq!(ops, [OpCode::EXISTS, OpCode::DELETE], "{frames}");
}
