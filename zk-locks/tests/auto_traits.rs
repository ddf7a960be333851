//! Promises that the compiler checks: what can be moved between threads, shared, and kept.

use std::time::Duration;

use zk_locks::{
    AcquireError, Barrier, CheckError, CohortGuard, CohortLock, Contender, DoubleBarrier, Election,
    Follow, Group, GroupMember, Guard, Guards, LeaderLatch, Leadership, Lock, Lost, MultiLock,
    Participation, PersistentNode, ReadGuard, ReleaseError, RwLock, Semaphore, SharedGuard,
    SimpleGuard, SimpleLock, Ticket, WriteGuard,
};

const fn send_sync<T: Send + Sync + 'static>() {}
const fn error<T: std::error::Error + Clone + Send + Sync + 'static>() {}

const _: () = {
    send_sync::<Lock>();
    send_sync::<Guard>();
    send_sync::<Guards>();
    send_sync::<SharedGuard>();
    send_sync::<RwLock>();
    send_sync::<ReadGuard>();
    send_sync::<WriteGuard>();
    send_sync::<MultiLock>();
    send_sync::<Semaphore>();
    send_sync::<SimpleLock>();
    send_sync::<SimpleGuard>();
    send_sync::<(Election, Leadership, LeaderLatch)>();
    send_sync::<(Ticket, Ticket<ReadGuard>, Ticket<WriteGuard>)>();
    send_sync::<(CohortLock, CohortGuard)>();
    send_sync::<(Barrier, DoubleBarrier, Participation)>();
    send_sync::<(Group, PersistentNode)>();
    send_sync::<(Follow<Vec<Contender>>, Follow<Option<usize>>)>();
    error::<AcquireError>();
    error::<CheckError>();
    error::<ReleaseError>();
    error::<Lost>();
};

fn is_send<T: Send>(future: T) -> T {
    future
}

/// Never called: it is enough that it compiles.
#[expect(dead_code, reason = "only for the compiler")]
fn futures_of_locks_can_be_spawned(lock: &Lock, guard: Guard) {
    drop(is_send(lock.acquire()));
    drop(is_send(lock.acquire_timeout(Duration::ZERO)));
    drop(is_send(lock.try_acquire()));
    drop(is_send(lock.queue().contenders()));
    drop(is_send(guard.lost()));
    drop(is_send(guard.check()));
    drop(is_send(guard.scope(std::future::ready(()))));
    let released = is_send(guard.release());
    fn outlives<T: 'static>(_: T) {}
    outlives(released);
}

/// Never called either.
#[expect(dead_code, reason = "only for the compiler")]
fn futures_of_recipes_can_be_spawned(
    (rw, multi): (&RwLock, &MultiLock),
    (semaphore, simple): (&Semaphore, &SimpleLock),
    (reading, writing): (ReadGuard, WriteGuard),
    (guards, shared, held): (Guards, SharedGuard, SimpleGuard),
) {
    drop(is_send(rw.read()));
    drop(is_send(rw.enqueue_write()));
    drop(is_send(multi.acquire()));
    drop(is_send(multi.try_acquire()));
    drop(is_send(semaphore.acquire_many(2)));
    drop(is_send(semaphore.try_acquire()));
    drop(is_send(simple.acquire()));
    drop(is_send(reading.try_upgrade()));
    drop(is_send(writing.downgrade()));
    drop(is_send(guards.lost()));
    drop(is_send(guards.release()));
    drop(is_send(shared.release()));
    drop(is_send(held.release()));
}

/// Never called either.
#[expect(dead_code, reason = "only for the compiler")]
fn futures_of_other_recipes_can_be_spawned(
    election: &Election,
    leaders: &mut Follow<Option<Contender>>,
    cohort: &CohortLock,
    barriers: (&Barrier, &DoubleBarrier, Participation),
    group: (&Group, &mut Follow<Vec<GroupMember>>),
    node: PersistentNode,
) {
    drop(is_send(election.campaign(b"")));
    drop(is_send(leaders.next()));
    drop(is_send(cohort.acquire()));
    drop(is_send(cohort.try_acquire()));
    let (barrier, double, participation) = barriers;
    drop(is_send(barrier.set()));
    drop(is_send(barrier.remove()));
    drop(is_send(barrier.wait()));
    drop(is_send(double.enter()));
    drop(is_send(participation.leave()));
    let (group, members) = group;
    drop(is_send(group.join(b"")));
    drop(is_send(members.next()));
    drop(is_send(node.close()));
}
