//! Following who holds a lock, from outside.

use zk_client::CreateMode;
use zk_locks::{Contender, Follow, Kind, Lock, RwLock, Semaphore};
use zk_proto::OpCode;
use zk_testkit::proxy::Kind as Frame;
use zk_tests::test_with;

use crate::locks::support::{Setup, joined, on_each_release, within};

fn tokens(holders: &[Contender]) -> Vec<i64> {
    holders.iter().map(|holder| holder.token.get()).collect()
}

/// Follows until these are the holders. What was between two looks may be reported or not.
async fn until(holders: &mut Follow<Vec<Contender>>, wanted: &[i64]) {
    let seen = async { while tokens(&holders.next().await.unwrap()) != wanted {} };
    within(seen).await;
}

#[test_with(on_each_release)]
async fn observer_sees_each_holder_and_none(setup: Setup) {
    let path = setup.path("none/yet");
    let (holding, watching) = (setup.client().await, setup.client().await);
    let lock = Lock::builder(&holding, &path).description("the one").build();
    let mut holders = Lock::new(&watching, &path).queue().follow();
    until(&mut holders, &[]).await;
    for _ in 0..5 {
        let guard = within(lock.acquire()).await.unwrap();
        let held = guard.token().get();
        let told = within(holders.next()).await.unwrap();
        assert_eq!(tokens(&told), [held]);
        assert_eq!((&*told[0].description(), told[0].kind), ("the one", Kind::Exclusive));
        assert_eq!(told[0].session, holding.session().id());
        let mut waiting = within(lock.enqueue()).await.unwrap();
        within(guard.release()).await.unwrap();
        let next = within(waiting.wait()).await.unwrap();
        assert_eq!(tokens(&within(holders.next()).await.unwrap()), [next.token().get()]);
        within(next.release()).await.unwrap();
        until(&mut holders, &[]).await;
    }
}

/// Those behind the holder come and go, and no observer is notified, or asks anything.
#[test_with(on_each_release)]
async fn waiters_cost_an_observer_nothing(setup: Setup) {
    let path = setup.existing("quiet").await;
    let guard = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let (proxy, watching) = setup.proxied().await;
    let mut holders = Lock::new(&watching, &path).queue().follow();
    until(&mut holders, &[guard.token().get()]).await;
    let before = proxy.mark();
    for _ in 0..5 {
        drop(within(Lock::new(&setup.outsider, &path).enqueue()).await.unwrap());
    }
    joined(&setup.outsider, &path, 1).await;
    // Whatever the server has to say comes before this.
    watching.sync("/").await.unwrap();
    let counts = proxy.frames_since(before).counts();
    assert_eq!(counts.of(Frame::Notification), 0);
    within(guard.release()).await.unwrap();
    until(&mut holders, &[]).await;
    let counts = proxy.frames_since(before).counts();
    // A listing, and without a holder another one that watches.
    let reads = [OpCode::GET_CHILDREN2, OpCode::GET_DATA].map(|op| counts.requests(op));
    assert_eq!(reads, [2, 0]);
}

#[test_with(on_each_release)]
async fn all_readers_are_reported_as_holders(setup: Setup) {
    let path = setup.existing("readers").await;
    let lock = RwLock::new(&setup.outsider, &path);
    let mut holders = RwLock::new(&setup.client().await, &path).queue().follow();
    until(&mut holders, &[]).await;
    let first = within(lock.read()).await.unwrap();
    until(&mut holders, &[first.token().get()]).await;
    let second = within(lock.read()).await.unwrap();
    until(&mut holders, &[first.token().get(), second.token().get()]).await;
    // Behind a writer: not with the others.
    let mut writer = within(lock.enqueue_write()).await.unwrap();
    let mut third = within(lock.enqueue_read()).await.unwrap();
    within(first.release()).await.unwrap();
    until(&mut holders, &[second.token().get()]).await;
    within(second.release()).await.unwrap();
    let writer = within(writer.wait()).await.unwrap();
    until(&mut holders, &[writer.token().get()]).await;
    within(writer.release()).await.unwrap();
    let third = within(third.wait()).await.unwrap();
    until(&mut holders, &[third.token().get()]).await;
}

#[test_with(on_each_release)]
async fn permit_owners_are_reported_as_holders(setup: Setup) {
    let path = setup.existing("permits").await;
    let semaphore = Semaphore::new(&setup.outsider, &path, 2);
    let mut holders = Semaphore::new(&setup.client().await, &path, 2).follow();
    let first = within(semaphore.acquire()).await.unwrap();
    let second = within(semaphore.acquire()).await.unwrap();
    until(&mut holders, &[first.token().get(), second.token().get()]).await;
    within(first.release()).await.unwrap();
    until(&mut holders, &[second.token().get()]).await;
}

/// A node that an operator has made there takes a permit too, and neither hides others nor keeps observers from them.
#[test_with(on_each_release)]
async fn permit_of_another_kind_hides_none(setup: Setup) {
    let path = setup.existing("maintained").await;
    let semaphore = Semaphore::new(&setup.outsider, &path, 4);
    let name = format!("{path}/leases/by-hand-");
    let by_hand = setup.outsider.create(&name, b"").mode(CreateMode::EphemeralSequential);
    let by_hand = by_hand.parents().await.unwrap().stat.czxid.0;
    let mut holders = Semaphore::new(&setup.client().await, &path, 4).follow();
    until(&mut holders, &[by_hand]).await;
    let first = within(semaphore.acquire()).await.unwrap();
    until(&mut holders, &[by_hand, first.token().get()]).await;
    assert_eq!(tokens(&within(semaphore.holders()).await.unwrap()).len(), 2);
    within(first.release()).await.unwrap();
    until(&mut holders, &[by_hand]).await;
}
