//! Locks that are taken from holders who hold them for too long.

use std::{
    future::{pending, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use zk_client::Id;
use zk_locks::{
    AclList, AcquireError, Builder, Client, CohortLock, Election, Grant, Lock, LockObserver, Lost,
    Metrics, MultiLock, Perms, Rejection, RwLock, Semaphore, Status,
};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::{network::Network, test_with};

use crate::locks::support::{
    Setup, client_on, dropped_after, emptied, in_virtual_time, joined, on_each_release,
    on_each_release_threaded, within,
};

/// How long is too long.
const LIMIT: Duration = Duration::from_millis(50);

/// A limit within which any machine can downgrade a lock.
const PATIENCE: Duration = Duration::from_secs(60);

/// Set when it goes.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn limited<R>(builder: Builder<R>) -> R {
    builder.release_after(LIMIT).build()
}

#[test_with(on_each_release_threaded)]
async fn scoped_work_ends_before_the_next_grant(setup: Setup) {
    let path = setup.existing("scope").await;
    let zk = setup.client().await;
    let metrics = Arc::new(Metrics::default());
    let lock = limited(Lock::builder(&zk, &path).observer(metrics.clone()));
    for _ in 0..10 {
        let guard = within(lock.acquire()).await.unwrap();
        let (stopped, token) = (Arc::new(AtomicBool::new(true)), guard.cancellation_token());
        let begins = stopped.clone();
        let work = tokio::spawn(async move {
            let worked = guard
                .scope(async move {
                    begins.store(false, Ordering::SeqCst);
                    let _at_work = Gone(begins);
                    pending::<()>().await;
                })
                .await;
            (worked, guard)
        });
        let next = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
        assert!(stopped.load(Ordering::SeqCst), "two at work");
        let (worked, guard) = within(work).await.unwrap();
        assert_eq!(worked, Err(Lost::HeldTooLong));
        assert_eq!(guard.status(), Status::Lost(Lost::HeldTooLong));
        within(token.cancelled()).await;
        assert!(next.token() > guard.token());
        within(guard.release()).await.unwrap();
        next.check().await.unwrap();
        within(next.release()).await.unwrap();
    }
    assert_eq!((metrics.alarms(), metrics.losses()), (10, 10));
    emptied(&setup.outsider, &path).await;
}

/// Hears that it is too long.
#[derive(Default)]
struct Ear(Notify);

impl LockObserver for Ear {
    fn held_too_long(&self, _grant: &Grant<'_>) {
        self.0.notify_one();
    }
}

/// Work that has not been dropped yet, since its scope has not been polled.
#[test_with(in_virtual_time)]
async fn node_stays_until_the_work_is_dropped(network: Network) {
    let zk = client_on(&network, "a").await;
    let ear = Arc::new(Ear::default());
    let guard = limited(Lock::builder(&zk, "/lock").observer(ear.clone())).acquire().await.unwrap();
    let mut scope = pin!(guard.scope(pending::<()>()));
    assert!(poll_fn(|cx| Poll::Ready(scope.as_mut().poll(cx).is_pending())).await);
    within(ear.0.notified()).await;
    // All others have had a turn; what they have asked for is done before what is asked for now.
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
    assert!(zk.exists(guard.path()).await.unwrap().is_some(), "given away while work goes on");
    assert_eq!(guard.status(), Status::Lost(Lost::HeldTooLong));
    assert_eq!(within(scope).await, Err(Lost::HeldTooLong));
    emptied(&zk, "/lock").await;
}

/// Work that never reaches an `await` must not keep the lock from all others.
#[test_with(in_virtual_time)]
async fn node_goes_a_second_later_in_any_case(network: Network) {
    let (zk, other) = (client_on(&network, "a").await, client_on(&network, "b").await);
    let guard = within(limited(Lock::builder(&zk, "/lock")).acquire()).await.unwrap();
    let held = Instant::now();
    // It is not polled any more.
    let mut scope = pin!(guard.scope(pending::<()>()));
    assert_eq!(dropped_after(1, scope.as_mut()).await, None);
    let next = within(Lock::new(&other, "/lock").acquire()).await.unwrap();
    let (took, limit) = (held.elapsed(), LIMIT + Duration::from_secs(1));
    assert!(took >= limit && took < limit + Duration::from_millis(100), "{took:?}");
    assert_eq!(within(scope).await, Err(Lost::HeldTooLong));
    assert_eq!(within(next.check()).await, Ok(()));
}

/// The same for work under several locks at once.
#[test_with(in_virtual_time)]
async fn nodes_stay_until_the_work_under_all_of_them_is_dropped(network: Network) {
    let zk = client_on(&network, "a").await;
    let ear = Arc::new(Ear::default());
    let semaphore = limited(Semaphore::builder(&zk, "/permits").observer(ear.clone()));
    let guards = semaphore.with_permits(2).acquire_many(2).await.unwrap();
    let mut scope = pin!(guards.scope(pending::<()>()));
    assert!(poll_fn(|cx| Poll::Ready(scope.as_mut().poll(cx).is_pending())).await);
    within(ear.0.notified()).await;
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
    for guard in &guards {
        assert!(zk.exists(guard.path()).await.unwrap().is_some(), "given away while work goes on");
    }
    assert_eq!(within(scope).await, Err(Lost::HeldTooLong));
    emptied(&zk, "/permits/leases").await;
}

/// Whatever is held through a guard, and not released.
#[test_with(on_each_release)]
async fn overlong_hold_is_lost_and_node_deleted(setup: Setup) {
    let zk: Client = setup.client().await;
    macro_rules! taken_away {
        ($name:literal, $recipe:ident, $take:expr, $nodes:literal) => {{
            let path = setup.existing($name).await;
            let recipe = limited($recipe::builder(&zk, &path));
            let guard = within($take(&recipe)).await.unwrap();
            assert_eq!(within(guard.lost()).await, Lost::HeldTooLong, $name);
            emptied(&setup.outsider, &format!("{path}{}", $nodes)).await;
            // Though the guard is still there.
            drop(within($take(&recipe)).await.unwrap());
            drop(guard);
        }};
    }
    taken_away!("lock", Lock, Lock::acquire, "");

    taken_away!("read", RwLock, RwLock::read, "");
    taken_away!("write", RwLock, RwLock::write, "");

    taken_away!("semaphore", Semaphore, Semaphore::acquire, "/leases");
    taken_away!("cohort", CohortLock, CohortLock::acquire, "");
    taken_away!("election", Election, |election| Election::campaign(election, b""), "");
}

/// A guard that comes back from a trade that was refused has no more time than before, and its work ends with that.
#[test_with(on_each_release)]
async fn limit_counts_on_after_a_refused_downgrade(setup: Setup) {
    let (path, zk) = (setup.existing("refused").await, &setup.outsider);
    let (acl, _) = zk.acl(&path).await.unwrap();
    let no_create = Perms::READ | Perms::WRITE | Perms::DELETE | Perms::ADMIN;
    let no_create: AclList = [Id::anyone().may(no_create)].into_iter().collect();
    let mut limit = 4 * LIMIT;
    let guard = loop {
        assert!(limit < PATIENCE, "no downgrade is refused in time");
        let lock = RwLock::builder(zk, &path).release_after(limit).build();
        let guard = within(lock.write()).await.unwrap();
        zk.set_acl(&path, &no_create).await.unwrap();
        let refused = within(guard.downgrade()).await.unwrap_err();
        zk.set_acl(&path, &acl).await.unwrap();
        if refused.cause == AcquireError::Rejected(Rejection::NoAuth) {
            break refused.guard;
        }
        // That has taken too long.
        limit *= 2;
    };
    assert_eq!(within(guard.scope(pending::<()>())).await, Err(Lost::HeldTooLong));
    emptied(zk, &path).await;
}

/// What is held for reading instead is held no longer either.
#[test_with(on_each_release)]
async fn limit_counts_on_after_a_downgrade(setup: Setup) {
    let (path, zk) = (setup.existing("lowered").await, &setup.outsider);
    let mut limit = 4 * LIMIT;
    let reading = loop {
        assert!(limit < PATIENCE, "no downgrade is in time");
        let lock = RwLock::builder(zk, &path).release_after(limit).build();
        let guard = within(lock.write()).await.unwrap();
        match within(guard.downgrade()).await {
            Ok(reading) => break reading,
            // That has taken too long.
            Err(refused) => {
                assert_eq!(refused.cause, AcquireError::HeldTooLong);
                limit *= 2;
            }
        }
    };
    assert_eq!(within(reading.scope(pending::<()>())).await, Err(Lost::HeldTooLong));
    emptied(zk, &path).await;
}

/// The node that it has by then goes too, whatever becomes of the guard; and it is lost whether servers answer or not.
#[test_with(on_each_release)]
async fn limit_during_a_downgrade_frees_the_lock(setup: Setup) {
    let path = setup.existing("between").await;
    let (proxy, zk) = setup.proxied().await;
    let metrics = Arc::new(Metrics::default());
    let lock = RwLock::builder(&zk, &path).release_after(100 * LIMIT).observer(metrics.clone());
    let writing = within(lock.build().write()).await.unwrap();
    let connection = zk.session().epoch();
    let traded = proxy.on(Match::reply(OpCode::MULTI).once()).hold();
    let deleted = proxy.on(Match::reply(OpCode::DELETE).once()).hold();
    let limit_strikes = async {
        traded.fired().await;
        while metrics.alarms() == 0 {
            tokio::task::yield_now().await;
        }
        traded.release();
    };
    let (refused, ()) = within(async { tokio::join!(writing.downgrade(), limit_strikes) }).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.cause, AcquireError::HeldTooLong);
    assert_eq!(within(refused.guard.lost()).await, Lost::HeldTooLong);
    assert_eq!(zk.session().epoch(), connection, "no reconnect was needed");
    drop(deleted);
    emptied(&setup.outsider, &path).await;
    drop(refused);
}

/// No leader stays for ever: one that has led for long enough stands again behind the others.
#[test_with(on_each_release)]
async fn time_limited_latches_lead_in_turn(setup: Setup) {
    let path = setup.existing("turns").await;
    let (one, other) = (setup.client().await, setup.client().await);
    let latch = |zk| limited(Election::builder(zk, &path)).latch(b"");
    let (first, second) = (latch(&one), latch(&other));
    for _ in 0..3 {
        for latch in [&first, &second] {
            let mut states = latch.subscribe();
            let leads = |state: &_| matches!(state, zk_locks::LatchState::Leading { .. });
            within(states.wait_for(leads)).await.unwrap();
            within(states.wait_for(|state| !leads(state))).await.unwrap();
        }
    }
    drop((first, second));
    emptied(&setup.outsider, &path).await;
}

/// Counts grants.
#[derive(Default)]
struct Grants(AtomicUsize);

impl LockObserver for Grants {
    fn granted(&self, _: &Grant<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Taken in one transaction or one after the other: limits count from there.
#[test_with(on_each_release)]
async fn several_locks_are_held_when_the_last_is_granted(setup: Setup) {
    let (one, other) = (setup.client().await, setup.client().await);
    for (clients, name) in [([&one, &one], "same"), ([&one, &other], "others")] {
        let free = setup.existing(&format!("{name}-a")).await;
        let taken = setup.existing(&format!("{name}-b")).await;
        let grants = Arc::new(Grants::default());
        let lock = |zk, path: &str| Lock::builder(zk, path).observer(grants.clone()).build();
        let both = MultiLock::of([lock(clients[0], &free), lock(clients[1], &taken)]);
        let last = within(Lock::new(&setup.outsider, &taken).acquire()).await.unwrap();
        let waiting = tokio::spawn(async move { both.acquire().await });
        // Where it asks for one after the other, the first is its own by then.
        joined(&setup.outsider, &taken, 2).await;
        assert_eq!(grants.0.load(Ordering::SeqCst), 0);
        within(last.release()).await.unwrap();
        let guards = within(waiting).await.unwrap().unwrap();
        assert_eq!((grants.0.load(Ordering::SeqCst), guards.len()), (2, 2));
        within(guards.release()).await.unwrap();
    }
}

#[test_with(on_each_release)]
async fn timely_release_costs_nothing_extra(setup: Setup) {
    let path = setup.existing("in-time").await;
    let (proxy, zk) = setup.proxied().await;
    let long = Lock::builder(&zk, &path).release_after(Duration::from_secs(3600)).build();
    within(within(long.acquire()).await.unwrap().release()).await.unwrap();
    zk.sync("/").await.unwrap();
    assert_eq!(proxy.counts().requests(OpCode::DELETE), 1);
}

/// The answer to the delete never comes: it is asked again.
#[test_with(on_each_release)]
async fn overrun_release_survives_reconnects(setup: Setup) {
    let path = setup.existing("broken").await;
    for passes in [false, true] {
        let (proxy, zk) = setup.proxied().await;
        let delete = match passes {
            true => Match::reply(OpCode::DELETE),
            false => Match::request(OpCode::DELETE),
        };
        let broken = proxy.on(delete.once()).reset();
        let guard = within(limited(Lock::builder(&zk, &path)).acquire()).await.unwrap();
        let next = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
        within(broken.fired()).await;
        assert_eq!(guard.status(), Status::Lost(Lost::HeldTooLong));
        within(next.release()).await.unwrap();
    }
    emptied(&setup.outsider, &path).await;
}
