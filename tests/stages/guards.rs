//! What is held.

use std::{future::ready, time::Duration};

use zk_locks::{
    CohortLock, DurableLock, Guard, Guards, Lock, MultiLock, RwLock, Semaphore, SharedGuard,
    SimpleLock,
};
use zk_tests::network::pass;

use crate::stages::{
    fate::Moment,
    play::{BRIEF, PATH, Play, awaits, brief, says},
};

/// Whatever is held by a node of the session.
pub(crate) async fn guard(play: &Play, guard: &Guard) {
    says!(play, guard.status());
    says!(play, guard.cancellation_token().is_cancelled());
    awaits!(play, guard.check());
    says!(play, guard.status());
    awaits!(play, guard.scope(ready("done")));
    awaits!(play, guard.scope(pass(BRIEF)));
    awaits!(play, guard.transaction().set(PATH, b"written"));
    awaits!(play, guard.revoked());
    awaits!(play, guard.lost());
    says!(play, guard.cancellation_token().is_cancelled());
}

pub(crate) async fn lock(play: &Play) {
    let lock = play.build(Lock::builder(&play.subject, PATH));
    let Some(Ok(held)) = awaits!(play, lock.acquire()) else { return };
    for moment in Moment::ALL {
        play.reach(moment).await;
        guard(play, &held).await;
        awaits!(play, lock.try_acquire());
    }
    awaits!(play, held.release());
    for _ in 0..2 {
        let Some(Ok(held)) = awaits!(play, lock.acquire_timeout(BRIEF)) else { continue };
        says!(play, drop(held));
    }
}

/// Locks that are given back at each moment: released, and dropped.
pub(crate) async fn released_lock(play: &Play) {
    let mut held = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let path = format!("{PATH}/{name}");
        let lock = play.build(Lock::builder(&play.subject, &path));
        held.extend(lock.acquire().await);
    }
    for moment in Moment::ALL {
        play.reach(moment).await;
        let (Some(one), Some(other)) = (held.pop(), held.pop()) else { return };
        awaits!(play, one.release());
        says!(play, drop(other));
        pass(BRIEF).await;
        says!(play, play.subject.session().orphans());
    }
}

pub(crate) async fn read_lock(play: &Play) {
    let lock = play.build(RwLock::builder(&play.subject, PATH));
    let Some(Ok(mut held)) = awaits!(play, lock.read()) else { return };
    for moment in Moment::ALL {
        play.reach(moment).await;
        guard(play, &held).await;
        let upgraded = awaits!(play, held.try_upgrade());
        let Some(upgraded) = upgraded else { return };
        held = match upgraded {
            Err(error) => error.guard,
            Ok(written) => match awaits!(play, written.downgrade()) {
                Some(Ok(read)) => read,
                Some(Err(error)) => {
                    awaits!(play, error.guard.release());
                    return;
                }
                None => return,
            },
        };
        awaits!(play, lock.try_read());
        awaits!(play, lock.try_write());
    }
    awaits!(play, held.release());
    awaits!(play, lock.read_timeout(BRIEF));
    awaits!(play, lock.write_timeout(BRIEF));
}

pub(crate) async fn write_lock(play: &Play) {
    let lock = play.build(RwLock::builder(&play.subject, PATH));
    let Some(Ok(mut held)) = awaits!(play, lock.write()) else { return };
    for moment in Moment::ALL {
        play.reach(moment).await;
        guard(play, &held).await;
        let downgraded = awaits!(play, held.downgrade());
        let Some(downgraded) = downgraded else { return };
        held = match downgraded {
            Err(error) => error.guard,
            Ok(read) => match awaits!(play, read.try_upgrade()) {
                Some(Ok(written)) => written,
                Some(Err(error)) => {
                    awaits!(play, error.guard.release());
                    return;
                }
                None => return,
            },
        };
        awaits!(play, lock.try_read());
    }
    awaits!(play, held.release());
    awaits!(play, lock.write_timeout(BRIEF));
}

pub(crate) async fn shared_lock(play: &Play) {
    let lock = play.build(Lock::builder(&play.subject, PATH));
    let Some(Ok(held)) = awaits!(play, lock.acquire()) else { return };
    let held = says!(play, held.share());
    let mut more: Vec<SharedGuard> = Vec::new();
    for moment in Moment::ALL {
        play.reach(moment).await;
        says!(play, held.status());
        more.extend(says!(play, held.reenter()));
        says!(play, held.count());
        awaits!(play, held.check());
        more.extend(says!(play, held.reenter()));
        if let Some(one) = more.pop() {
            awaits!(play, one.release());
        }
        says!(play, held.count());
    }
    awaits!(play, held.release());
    for one in more {
        says!(play, one.count());
        says!(play, one.status());
        awaits!(play, one.release());
    }
}

pub(crate) async fn cohort_lock(play: &Play) {
    let lock = play.build(
        CohortLock::builder(&play.subject, PATH).linger(Duration::from_secs(2)).max_sections(3),
    );
    let Some(Ok(held)) = awaits!(play, lock.acquire()) else { return };
    for moment in Moment::ALL {
        play.reach(moment).await;
        guard(play, &held).await;
        awaits!(play, lock.try_acquire());
        says!(play, lock.waiting());
    }
    awaits!(play, held.release());
    let rival = play.build_other(Lock::builder(&play.rival, PATH));
    let rival = tokio::spawn(async move { rival.acquire_timeout(BRIEF * 4).await });
    // As many sections as it has while somebody else waits, and one more.
    for _ in 0..4 {
        let Some(Ok(held)) = awaits!(play, lock.acquire_timeout(BRIEF)) else { continue };
        says!(play, held.token().local());
        pass(BRIEF / 10).await;
        awaits!(play, held.release());
    }
    awaits!(play, rival);
    awaits!(play, lock.acquire_timeout(BRIEF));
}

pub(crate) async fn simple_lock(play: &Play) {
    let path = "/place/simple";
    let lock = play.build(SimpleLock::builder(&play.subject, path));
    let Some(Ok(held)) = awaits!(play, lock.acquire()) else { return };
    for moment in Moment::ALL {
        play.reach(moment).await;
        says!(play, held.status());
        awaits!(play, held.check());
        says!(play, held.status());
        awaits!(play, held.scope(ready("done")));
        awaits!(play, held.scope(pass(BRIEF)));
        awaits!(play, held.lost());
        awaits!(play, lock.holder());
        awaits!(play, lock.try_acquire());
    }
    awaits!(play, held.release());
    awaits!(play, lock.holder());
    awaits!(play, lock.acquire_timeout(BRIEF));
}

pub(crate) async fn durable_lock(play: &Play) {
    let lock = play.build(DurableLock::builder(&play.subject, PATH));
    let lock = lock.owned_by("owner").lease(Duration::from_secs(20));
    let Some(Ok(mut held)) = awaits!(play, lock.acquire()) else { return };
    for moment in Moment::ALL {
        play.reach(moment).await;
        says!(play, held.status());
        says!(play, held.lease_left());
        awaits!(play, held.check());
        says!(play, held.status());
        awaits!(play, held.scope(ready("done")));
        awaits!(play, held.scope(pass(BRIEF)));
        awaits!(play, held.transaction().set(PATH, b"written"));
        awaits!(play, held.lost());
        awaits!(play, lock.holder());
        awaits!(play, lock.try_acquire());
        says!(play, held.lease_left());
    }
    says!(play, held.carry_on(&play.rival));
    awaits!(play, held.check());
    says!(play, held.lease_left());
    awaits!(play, held.release());
    awaits!(play, lock.holder());
    awaits!(play, lock.acquire_timeout(BRIEF));
}

/// Whatever is held by several nodes of the session.
async fn several(play: &Play, held: &Guards) {
    says!(play, held.status());
    says!(play, held.iter().map(Guard::status).collect::<Vec<_>>());
    awaits!(play, held.check());
    says!(play, held.status());
    awaits!(play, held.scope(ready("done")));
    awaits!(play, held.scope(pass(BRIEF)));
    if let Some(transaction) = held.transaction() {
        awaits!(play, transaction.set("/other", b"written"));
    }
    awaits!(play, held.lost());
}

pub(crate) async fn semaphore(play: &Play) {
    play.keeper.create("/other", b"").await.expect("a node");
    let semaphore = play.build(Semaphore::builder(&play.subject, PATH)).with_permits(3);
    let Some(Ok(held)) = awaits!(play, semaphore.acquire_many(2)) else { return };
    let mut following = semaphore.follow();
    for moment in Moment::ALL {
        play.reach(moment).await;
        several(play, &held).await;
        awaits!(play, semaphore.try_acquire());
        awaits!(play, semaphore.try_acquire_many(2));
        awaits!(play, brief(semaphore.holders()));
        awaits!(play, brief(semaphore.waiters()));
        awaits!(play, brief(following.next()));
    }
    awaits!(play, held.release());
    awaits!(play, semaphore.acquire_many_timeout(3, BRIEF));
    awaits!(play, semaphore.resize(1));
}

pub(crate) async fn multi_lock(play: &Play) {
    play.keeper.create("/other", b"").await.expect("a node");
    let paths = ["/place/b", "/other/a"];
    let locks = paths.map(|path| play.build(Lock::builder(&play.subject, path)));
    let lock = MultiLock::of(locks);
    let Some(Ok(held)) = awaits!(play, lock.acquire()) else { return };
    says!(play, (held.len(), held.is_empty(), held.get("/place/b").map(Guard::token)));
    for moment in Moment::ALL {
        play.reach(moment).await;
        several(play, &held).await;
        awaits!(play, lock.try_acquire());
    }
    awaits!(play, held.release());
    awaits!(play, lock.acquire_timeout(BRIEF));
}
