//! Promises that the compiler checks: what can be moved between threads, shared, and kept.

use std::time::Duration;

use zk_locks::{
    AcquireError, Barrier, CheckError, CohortGuard, CohortLock, DoubleBarrier, Election, Group,
    Guard, LeaderLatch, Leaders, Leadership, Lock, Lost, Members, Membership, Participation,
    PersistentNode, ReleaseError,
};

const fn send_sync<T: Send + Sync + 'static>() {}
const fn error<T: std::error::Error + Clone + Send + Sync + 'static>() {}

const _: () = {
    send_sync::<Lock>();
    send_sync::<Guard>();
    send_sync::<(Election, Leadership, Leaders, LeaderLatch)>();
    send_sync::<(CohortLock, CohortGuard)>();
    send_sync::<(Barrier, DoubleBarrier, Participation)>();
    send_sync::<(Group, Membership, Members, PersistentNode)>();
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
    drop(is_send(lock.contenders()));
    drop(is_send(guard.lost()));
    drop(is_send(guard.check()));
    drop(is_send(guard.scope(std::future::ready(()))));
    let released = is_send(guard.release());
    fn outlives<T: 'static>(_: T) {}
    outlives(released);
}

/// Never called either.
#[expect(dead_code, reason = "only for the compiler")]
fn futures_of_other_recipes_can_be_spawned(
    election: &Election,
    leaders: &mut Leaders,
    cohort: &CohortLock,
    barriers: (&Barrier, &DoubleBarrier, Participation),
    group: (&Group, &mut Members),
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
