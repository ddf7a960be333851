//! Sessions that are left to others: the client that resumes one knows nothing of abandoned nodes.

use std::{future::poll_fn, task::Poll};

use zk_client::BoxFuture;
use zk_locks::{
    AcquireError, Client, CohortLock, ConnectOptions, Election, LatchState, Lock, SessionEnd,
    SimpleLock,
};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::test_with;

use crate::locks::support::{
    Setup, closed, dropped_when, joined, on_each_release, options_for, spawning_others, within,
};

/// How often all others have a chance before a slow task goes on.
const CHANCES: usize = 64;

/// Options for a session whose tasks dawdle, but for the one that drives it.
fn with_tasks_that_dawdle(options: ConnectOptions) -> ConnectOptions {
    spawning_others(options, |task| drop(tokio::spawn(dawdling(task))))
}

async fn dawdling(mut task: BoxFuture<'static, ()>) {
    let mut chances = CHANCES;
    poll_fn(|cx| {
        if chances > 0 {
            chances -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        chances = CHANCES;
        task.as_mut().poll(cx)
    })
    .await;
}

/// Leaves a session, and lists what the next client of it finds there.
async fn handed_over(zk: Client, options: ConnectOptions, path: &str) -> Vec<String> {
    let credentials = within(zk.detach()).await.expect("a session to leave");
    let heir = within(options.resume(credentials).connect()).await.unwrap();
    let (names, _) = heir.children(path).await.unwrap();
    names
}

#[test_with(on_each_release)]
async fn dropped_acquire_is_gone_at_handover(setup: Setup) {
    let path = setup.existing("handed-over").await;
    for lost in [OpCode::CREATE2, OpCode::DELETE] {
        let (proxy, zk) = setup.proxied().await;
        let unheard = proxy.on(Match::reply(lost).once()).reset();
        if lost == OpCode::CREATE2 {
            let lock = Lock::new(&zk, &path);
            dropped_when(async { drop(unheard.fired().await) }, lock.acquire()).await;
        } else {
            drop(within(Lock::new(&zk, &path).acquire()).await.unwrap());
        }
        let credentials = within(zk.detach()).await.unwrap();
        assert_eq!(unheard.times_fired(), 1);
        let heir = within(options_for(&proxy).resume(credentials).connect()).await.unwrap();
        let (names, _) = heir.children(&path).await.unwrap();
        assert!(names.is_empty(), "{names:?}");
    }
}

#[test_with(on_each_release)]
async fn dropped_simple_lock_is_gone_at_handover(setup: Setup) {
    let path = setup.existing("simple").await;
    let node = format!("{path}/node");
    let options = || with_tasks_that_dawdle(setup.options());
    let zk = within(options().connect()).await.unwrap();
    drop(within(SimpleLock::new(&zk, &node).acquire()).await.unwrap());
    assert_eq!(handed_over(zk, options(), &path).await, [""; 0]);

    // One that does not know the outcome of its create.
    let proxy = setup.proxy().await;
    let options = || with_tasks_that_dawdle(options_for(&proxy));
    let zk = within(options().connect()).await.unwrap();
    let unheard = proxy.on(Match::reply(OpCode::MULTI).once()).reset();
    let lock = SimpleLock::new(&zk, &node);
    dropped_when(async { drop(unheard.fired().await) }, lock.acquire()).await;
    assert_eq!(handed_over(zk, options(), &path).await, [""; 0]);
}

#[test_with(on_each_release)]
async fn dropped_latch_is_gone_at_handover(setup: Setup) {
    let path = setup.existing("latch").await;
    for leads in [true, false] {
        let other = match leads {
            true => None,
            false => {
                Some(within(Election::new(&setup.outsider, &path).campaign(b"")).await.unwrap())
            }
        };
        let options = || with_tasks_that_dawdle(setup.options());
        let zk = within(options().connect()).await.unwrap();
        let latch = Election::new(&zk, &path).latch(b"");
        if leads {
            within(latch.subscribe().changed()).await.unwrap();
        }
        joined(&setup.outsider, &path, 1 + usize::from(other.is_some())).await;
        assert_eq!(latch.is_leader(), leads);
        drop(latch);
        let left = handed_over(zk, options(), &path).await;
        assert_eq!(left.len(), usize::from(other.is_some()), "{left:?}");
    }
}

/// A latch that stands on does not keep its session: it is told that it has ended.
#[test_with(on_each_release)]
async fn standing_latch_does_not_delay_a_handover(setup: Setup) {
    let path = setup.existing("standing").await;
    let zk = within(setup.options().connect()).await.unwrap();
    let latch = Election::new(&zk, &path).latch(b"");
    let mut states = latch.subscribe();
    within(states.wait_for(|state| matches!(state, LatchState::Leading { .. }))).await.unwrap();
    within(zk.detach()).await.expect("a session to leave");
    let ended = LatchState::Ended(AcquireError::SessionEnded(SessionEnd::Closed));
    within(states.wait_for(|state| *state == ended)).await.unwrap();
}

#[test_with(on_each_release)]
async fn abandoned_cohort_is_gone_at_handover(setup: Setup) {
    let path = setup.existing("cohort").await;
    let holder = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let options = || with_tasks_that_dawdle(setup.options());
    let zk = within(options().connect()).await.unwrap();
    let lock = CohortLock::new(&zk, &path);
    dropped_when(joined(&setup.outsider, &path, 2), lock.acquire()).await;
    let left = handed_over(zk, options(), &path).await;
    assert_eq!(left.len(), 1, "{left:?}");
    holder.release().await.unwrap();
}

/// What docs/decisions/0018 says can be done by hand: the node is the lock, and tells whose it is.
#[test_with(on_each_release)]
async fn held_lock_is_handed_over(setup: Setup) {
    let path = setup.existing("held").await;
    let zk = setup.client().await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let (node, token) = (guard.path().to_owned(), guard.token().get());
    let credentials = within(zk.detach()).await.unwrap();
    // It has gone to others, as far as this process is concerned.
    assert!(matches!(guard.status(), zk_locks::Status::Lost(_)));
    drop(guard);
    let options = setup.options().resume(credentials.clone());
    let heir = within(options.connect()).await.unwrap();
    let (_, stat) = heir.get(&node).await.unwrap();
    assert_eq!((stat.czxid.0, stat.ephemeral_owner), (token, heir.session().id()));
    assert!(within(Lock::new(&setup.outsider, &path).try_acquire()).await.unwrap().is_none());
    // Held still, in one transaction with what it protects; and given back.
    heir.multi().check(&node).await.unwrap().unwrap();
    heir.delete(&node).if_exists().await.unwrap();
    let next = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    assert!(next.token().get() > token);
    closed(&heir).await;

    // A client that comes too late gets no session.
    let late = within(setup.options().resume(credentials).connect()).await.map(drop);
    let expired = zk_client::ConnectError::SessionEnded(SessionEnd::Expired);
    assert_eq!(late, Err(expired));
}
