//! What waits, and what others see of it.

use zk_client::CreateMode;
use zk_locks::{Lock, Queue};
use zk_tests::network::pass;

use crate::stages::{
    fate::Moment,
    play::{BRIEF, PATH, Play, awaits, brief, says},
};

/// A place in a queue that is asked for again and again, behind a rival until all is over.
pub(crate) async fn ticket(play: &Play) {
    let ahead =
        play.build_other(Lock::builder(&play.rival, PATH)).acquire().await.expect("it is free");
    let lock = play.build(Lock::builder(&play.subject, PATH));
    let Some(Ok(mut ticket)) = awaits!(play, lock.enqueue()) else { return };
    let mut ahead = Some(ahead);
    for moment in Moment::ALL {
        if moment == Moment::Afterwards {
            // Somebody else may have deleted it.
            let _ = ahead.take().expect("it is held").release().await;
        }
        play.reach(moment).await;
        says!(play, ticket.path());
        says!(play, ticket.ahead());
        awaits!(play, ticket.try_wait());
        if let Some(mut positions) = ticket.positions() {
            awaits!(play, positions.next());
            awaits!(play, positions.next());
        }
        if let Some(Ok(held)) = awaits!(play, ticket.wait()) {
            says!(play, held.status());
            awaits!(play, held.release());
        }
    }
    says!(play, drop(ticket));
    awaits!(play, lock.try_acquire());
}

/// A place at the head of a queue that is not made use of at once.
pub(crate) async fn first_ticket(play: &Play) {
    let lock = play.build(Lock::builder(&play.subject, PATH));
    let (mut first, mut second) = (lock.enqueue().await.ok(), lock.enqueue().await.ok());
    pass(2 * BRIEF).await;
    for moment in Moment::ALL {
        play.reach(moment).await;
        let Some(ticket) = &mut first else { return };
        says!(play, ticket.ahead());
        // Again and again, and the one behind it gets the lock for another while.
        if let Some(Ok(Some(held))) = awaits!(play, ticket.try_wait()) {
            says!(play, held.status());
            awaits!(play, held.check());
            awaits!(play, held.release());
        }
        awaits!(play, ticket.wait());
        (first, second) = (second, lock.enqueue().await.ok());
    }
    says!(play, drop((first, second)));
}

/// One that waits all the time, until its turn comes.
pub(crate) async fn waiting_lock(play: &Play) {
    let mut ahead = Some(
        play.build_other(Lock::builder(&play.rival, PATH)).acquire().await.expect("it is free"),
    );
    let lock = play.build(Lock::builder(&play.subject, PATH));
    let mut waits = Box::pin(lock.acquire());
    for moment in Moment::ALL {
        if moment == Moment::Afterwards {
            // Somebody else may have deleted it.
            let _ = ahead.take().expect("it is held").release().await;
        }
        play.reach(moment).await;
        if let Some(outcome) = awaits!(play, &mut waits) {
            if let Ok(held) = outcome {
                says!(play, held.status());
                awaits!(play, held.release());
            }
            waits = Box::pin(lock.acquire());
        }
    }
    says!(play, drop(waits));
    pass(BRIEF).await;
    awaits!(play, lock.try_acquire());
}

/// An observer of others, who also interferes.
pub(crate) async fn queue(play: &Play) {
    let lock = play.build_other(Lock::builder(&play.rival, PATH));
    let _held = lock.acquire().await.expect("it is free");
    let queue = Queue::new(&play.subject, PATH);
    let mut following = queue.follow();
    for moment in Moment::ALL {
        // One more comes each time.
        let one =
            play.rival.create("/place/lock-", b"theirs").mode(CreateMode::EphemeralSequential);
        let _ = one.submit().await;
        play.reach(moment).await;
        awaits!(play, brief(following.next()));
        awaits!(play, brief(following.next()));
        awaits!(play, async { queue.first(1).await.map(|(first, all)| (first.len(), all)) });
        awaits!(play, brief(queue.contenders()));
        let Ok(there) = Queue::new(&play.keeper, PATH).contenders().await else { continue };
        let Some(last) = there.last() else { continue };
        awaits!(play, queue.revoke(last));
        awaits!(play, queue.revoke(last));
        awaits!(play, queue.evict(last));
        awaits!(play, queue.evict(last));
    }
}
