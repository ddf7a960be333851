//! What waits for others all the time, until they make way.

use std::{fmt::Debug, pin::Pin};

use zk_client::CreateMode;
use zk_locks::{
    AcquireError, Barrier, CohortLock, DoubleBarrier, Lock, MultiLock, NodeState, PersistentNode,
    RwLock, Semaphore,
};
use zk_tests::network::pass;

use crate::stages::{
    fate::Moment,
    play::{BRIEF, PATH, Play, awaits, says},
};

type Wait<'a, T> = Pin<Box<dyn Future<Output = Result<T, AcquireError>> + 'a>>;

/// Waits at each moment for what has begun before the first one, or for another attempt behind a result.
async fn wait<'a, T: Debug>(
    play: &Play,
    begin: impl Fn() -> Wait<'a, T>,
    mut make_way: Option<impl Future<Output = ()>>,
) {
    let mut waits = begin();
    for moment in Moment::ALL {
        if moment == Moment::Afterwards {
            make_way.take().expect("once").await;
        }
        play.reach(moment).await;
        if let Some(outcome) = awaits!(play, &mut waits) {
            pass(BRIEF).await;
            says!(play, drop(outcome));
            waits = begin();
        }
    }
    says!(play, drop(waits));
    pass(BRIEF).await;
}

/// One of two locks is free, the other is not.
pub(crate) async fn waiting_multi_lock(play: &Play) {
    play.keeper.create("/other", b"").await.expect("a node");
    let theirs = play.build_other(Lock::builder(&play.rival, "/other/a"));
    let Ok(theirs) = theirs.acquire().await else { return };
    let locks = ["/place/b", "/other/a"];
    let locks = locks.map(|path| play.build(Lock::builder(&play.subject, path)));
    let lock = MultiLock::of(locks);
    // Others may have deleted it.
    wait(play, || Box::pin(lock.acquire()), Some(async { drop(theirs.release().await) })).await;
    awaits!(play, lock.try_acquire());
}

/// Two permits are wanted, and one is free.
pub(crate) async fn waiting_semaphore(play: &Play) {
    play.keeper.create("/count", &[0, 0, 0, 2]).await.expect("a node");
    let theirs = play.build_other(Semaphore::builder(&play.rival, PATH)).counted_at("/count");
    let Ok(theirs) = theirs.acquire().await else { return };
    let semaphore = play.build(Semaphore::builder(&play.subject, PATH)).counted_at("/count");
    let make_way = async {
        // By the number, which holders do not hear of.
        play.keeper.set("/count", &[0, 0, 0, 3]).await.expect("a node");
        pass(BRIEF).await;
    };
    wait(play, || Box::pin(semaphore.acquire_many(2)), Some(make_way)).await;
    drop(theirs);
    awaits!(play, semaphore.acquire_timeout(BRIEF));
}

pub(crate) async fn waiting_reader(play: &Play) {
    let theirs = play.build_other(RwLock::builder(&play.rival, PATH));
    let Ok(theirs) = theirs.write().await else { return };
    let lock = play.build(RwLock::builder(&play.subject, PATH));
    wait(play, || Box::pin(lock.read()), Some(async { drop(theirs.release().await) })).await;
    awaits!(play, lock.try_write());
}

pub(crate) async fn waiting_writer(play: &Play) {
    let theirs = play.build_other(RwLock::builder(&play.rival, PATH));
    let Ok(theirs) = theirs.read().await else { return };
    let lock = play.build(RwLock::builder(&play.subject, PATH));
    wait(play, || Box::pin(lock.write()), Some(async { drop(theirs.release().await) })).await;
    awaits!(play, lock.try_read());
}

/// Tasks of one cohort: the first one to be asked waits for another process.
pub(crate) async fn waiting_cohort(play: &Play) {
    let theirs = play.build_other(Lock::builder(&play.rival, PATH));
    let Ok(theirs) = theirs.acquire().await else { return };
    let lock = play.build(CohortLock::builder(&play.subject, PATH).fail_on_loss());
    let mut beside = Box::pin(lock.acquire());
    wait(play, || Box::pin(lock.acquire()), Some(async { drop(theirs.release().await) })).await;
    says!(play, lock.waiting());
    awaits!(play, &mut beside);
}

/// A lock of several under one path, with a delay behind holders that do not give it back.
pub(crate) async fn delayed_lock(play: &Play) {
    let theirs = play.build_other(Lock::builder(&play.rival, PATH));
    let Ok(theirs) = theirs.acquire().await else { return };
    let lock = Lock::builder(&play.subject, PATH).lock_delay(3 * BRIEF);
    let lock = play.build(lock);
    let node = theirs.path().to_owned();
    let make_way = async { drop(play.keeper.delete(&node).await) };
    wait(play, || Box::pin(lock.acquire()), Some(make_way)).await;
    awaits!(play, lock.try_acquire());
    drop(theirs);
}

/// Locks with names of their own under one path.
pub(crate) async fn named_lock(play: &Play) {
    let other = play.build_other(Lock::named(&play.rival, PATH, "bb"));
    let _other = other.acquire().await.expect("it is free");
    let theirs = play.build_other(Lock::named(&play.rival, PATH, "b"));
    let Ok(theirs) = theirs.acquire().await else { return };
    let lock = play.build(Lock::named(&play.subject, PATH, "b"));
    wait(play, || Box::pin(lock.acquire()), Some(async { drop(theirs.release().await) })).await;
    awaits!(play, lock.try_acquire());
}

pub(crate) async fn waiting_at_barrier(play: &Play) {
    let path = "/place/barrier";
    let barrier = play.build(Barrier::builder(&play.subject, path));
    barrier.set().await.expect("a node");
    let make_way = async {
        // Set again at once.
        let _ = play.keeper.delete(path).await;
        let _ = play.keeper.create(path, b"").await;
    };
    wait(play, || Box::pin(barrier.wait()), Some(make_way)).await;
    awaits!(play, barrier.is_set());
}

/// Of two that are to come there is one.
pub(crate) async fn entering(play: &Play) {
    let path = "/place/barrier";
    let barrier = play.build(DoubleBarrier::builder(&play.subject, path)).of(2);
    let theirs = play.build_other(DoubleBarrier::builder(&play.rival, path)).of(2);
    let make_way = async {
        tokio::spawn(async move { drop(theirs.enter_timeout(20 * BRIEF).await) });
    };
    wait(play, || Box::pin(barrier.enter()), Some(make_way)).await;
}

/// Another client has a node at the path.
pub(crate) async fn taken_node(play: &Play) {
    let path = "/place/node";
    let theirs = play.rival.create(path, b"theirs").mode(CreateMode::Ephemeral);
    theirs.await.expect("it is free");
    let node = PersistentNode::start(play.options(), path, b"data").await;
    let Ok(node) = node else { return };
    let mut states = node.subscribe();
    for moment in Moment::ALL {
        if moment == Moment::Afterwards {
            // Others may have deleted it.
            let _ = play.rival.delete(path).await;
        }
        play.reach(moment).await;
        for _ in 0..3 {
            if awaits!(play, states.changed()).is_some() {
                says!(play, states.borrow_and_update().clone());
            }
        }
        says!(play, matches!(node.state(), NodeState::Taken { .. }));
        awaits!(play, node.present());
        says!(play, play.nodes_below("/node"));
    }
    awaits!(play, node.close());
}
