//! Places in a queue that are kept without a waiting task.

use std::time::Duration;

use tokio::time::interval;
use zk_client::{AclList, Id, Perms, Rejection};
use zk_locks::{AcquireError, Builder, Client, Layout, Lock, MultiLock, RwLock, Status};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::{
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{
    Setup, client_on, dropped_after, emptied, in_virtual_time, joined, on_each_release, ops, within,
};

/// Scenario 58.
#[test_with(on_each_release)]
async fn ticket_survives_a_thousand_dropped_waits(setup: Setup) {
    let path = setup.existing("ticket").await;
    let holder = Lock::new(&setup.outsider, &path).acquire().await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let lock = Lock::new(&zk, &path);
    let mark = proxy.mark();
    let mut ticket = within(lock.enqueue()).await.unwrap();
    let mut tick = interval(Duration::from_millis(1));
    for _ in 0..1000 {
        tokio::select! {
            biased;
            guard = ticket.wait() => panic!("granted beside the holder: {guard:?}"),
            _ = tick.tick() => {}
        }
    }
    assert_eq!(ticket.ahead(), Some(1));
    let creates = ops(&proxy.frames_since(mark));
    assert_eq!(creates.iter().filter(|op| **op == OpCode::CREATE2).count(), 1, "{creates:?}");
    assert!(creates.len() < 10, "{creates:?}");

    within(holder.release()).await.unwrap();
    let guard = within(ticket.wait()).await.unwrap();
    assert!(matches!(within(ticket.wait()).await, Err(AcquireError::Used)));
    assert_eq!(ticket.path(), None);
    within(guard.release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn read_and_write_tickets_keep_their_places(setup: Setup) {
    let path = setup.existing("sides").await;
    let outside = RwLock::new(&setup.outsider, &path);
    let writing = outside.write().await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let lock = RwLock::new(&zk, &path);
    let mark = proxy.mark();
    let mut first = within(lock.enqueue_read()).await.unwrap();
    let mut between = within(lock.enqueue_write()).await.unwrap();
    let mut last = within(lock.enqueue_read()).await.unwrap();
    for _ in 0..100 {
        tokio::select! {
            biased;
            read = first.wait() => panic!("granted beside a writer: {read:?}"),
            write = between.wait() => panic!("granted beside a writer: {write:?}"),
            read = last.wait() => panic!("granted beside a writer: {read:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
    let creates = ops(&proxy.frames_since(mark));
    assert_eq!(creates.iter().filter(|op| **op == OpCode::CREATE2).count(), 3, "{creates:?}");

    within(writing.release()).await.unwrap();
    let first = within(first.wait()).await.unwrap();
    assert!(within(between.try_wait()).await.unwrap().is_none());
    assert!(within(last.try_wait()).await.unwrap().is_none());
    assert!(last.path().is_some());
    within(first.release()).await.unwrap();
    let written = within(between.wait()).await.unwrap();
    // A writer that has waited with a ticket may go on as any other one.
    let reading = within(written.downgrade()).await.unwrap();
    let last = within(last.wait()).await.unwrap();
    assert!(matches!(within(between.wait()).await, Err(AcquireError::Used)));
    within(reading.release()).await.unwrap();
    within(last.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// Also of changes that a waiter does not hear of, which watches the nearest only.
#[test_with(on_each_release)]
async fn ticket_position_is_followed_to_the_end(setup: Setup) {
    let path = setup.existing("followed").await;
    let outside = Lock::new(&setup.outsider, &path);
    let first = within(outside.acquire()).await.unwrap();
    let (second, third) = (outside.enqueue().await.unwrap(), outside.enqueue().await.unwrap());
    let (proxy, zk) = setup.proxied().await;
    let mut ticket = within(Lock::new(&zk, &path).enqueue()).await.unwrap();
    let mut positions = ticket.positions().unwrap();
    let mark = proxy.mark();
    assert_eq!(within(positions.next()).await, Ok(Some(3)));
    drop(second);
    assert_eq!(within(positions.next()).await, Ok(Some(2)));
    assert_eq!(ticket.ahead(), Some(3));
    // Contenders behind are no news.
    let behind = within(outside.enqueue()).await.unwrap();
    within(first.release()).await.unwrap();
    assert_eq!(within(positions.next()).await, Ok(Some(1)));
    drop((third, behind));
    assert_eq!(within(positions.next()).await, Ok(Some(0)));
    let frames = proxy.frames_since(mark);
    assert!(ops(&frames).iter().all(|op| *op == OpCode::GET_CHILDREN2), "{frames}");
    assert!(ops(&frames).len() <= 7, "{frames}");

    let guard = within(ticket.wait()).await.unwrap();
    assert!(ticket.positions().is_none());
    within(guard.release()).await.unwrap();
    assert_eq!(within(positions.next()).await, Ok(None));
}

#[test_with(on_each_release)]
async fn full_queue_refuses_and_keeps_no_node(setup: Setup) {
    let path = setup.existing("full").await;
    let lock = Lock::builder(&setup.outsider, &path).max_waiters(1).build();
    let holder = lock.acquire().await.unwrap();
    let waiting = lock.enqueue().await.unwrap();
    let refused = lock.acquire().await;
    assert!(matches!(refused, Err(AcquireError::QueueFull { ahead: 2 })), "{refused:?}");
    joined(&setup.outsider, &path, 2).await;
    drop((holder, waiting));
    emptied(&setup.outsider, &path).await;
}

/// Where a session may have one request at a time, the listing behind the create is refused.
#[test_with(on_each_release)]
async fn full_queue_refuses_sessions_of_one_request(setup: Setup) {
    let path = setup.existing("narrow").await;
    let zk = within(setup.options().requests_max(1).connect()).await.unwrap();
    let holder = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let lock = Lock::builder(&zk, &path).max_waiters(0).build();
    let refused = within(lock.enqueue()).await.map(drop);
    assert_eq!(refused, Err(AcquireError::QueueFull { ahead: 1 }));
    let paths = [&path, &setup.path("beside")].map(|path| Lock::builder(&zk, path).max_waiters(0));
    let both = MultiLock::of(paths.map(Builder::build));
    let refused = within(both.acquire()).await.map(drop);
    assert_eq!(refused, Err(AcquireError::QueueFull { ahead: 1 }));
    joined(&setup.outsider, &path, 1).await;
    within(holder.release()).await.unwrap();
    within(lock.acquire()).await.unwrap().release().await.unwrap();
}

/// 0 round trips between the release of the one in front and the grant, although three were in line; for two
/// notifications per release.
#[test_with(on_each_release)]
async fn look_ahead_grants_without_a_listing(setup: Setup) {
    let path = setup.existing("ahead").await;
    let outside = Lock::new(&setup.outsider, &path);
    let first = outside.acquire().await.unwrap();
    let mut second = outside.enqueue().await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let lock = Lock::builder(&zk, &path).look_ahead(true).build();
    let mut third = within(lock.enqueue()).await.unwrap();
    let armed = proxy.on(Match::reply(OpCode::GET_DATA).nth(3)).watch();
    let listed = proxy.on(Match::reply(OpCode::GET_CHILDREN2).once()).watch();
    let third = tokio::spawn(async move { third.wait().await });
    within(armed.fired()).await;

    within(first.release()).await.unwrap();
    let second = within(second.wait()).await.unwrap();
    // It looks while the second one holds the lock.
    within(listed.fired()).await;
    zk.sync("/").await.unwrap();
    let mark = proxy.mark();
    within(second.release()).await.unwrap();
    let guard = within(third).await.unwrap().unwrap();
    within(guard.release()).await.unwrap();
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::DELETE], "{frames}");
}

/// A place that could not be looked at is given up, though the ticket is still there.
#[test_with(on_each_release)]
async fn failed_look_gives_up_the_place(setup: Setup) {
    let path = setup.existing("unseen").await;
    let holder = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let zk = setup.client().await;
    let mut ticket = within(Lock::new(&zk, &path).enqueue()).await.unwrap();
    // From now on it looks anew each time.
    assert!(within(ticket.try_wait()).await.unwrap().is_none());
    let (acl, _) = setup.outsider.acl(&path).await.unwrap();
    let blind = Perms::CREATE | Perms::WRITE | Perms::DELETE | Perms::ADMIN;
    let blind = AclList::from_iter([Id::anyone().may(blind)]);
    setup.outsider.set_acl(&path, &blind).await.unwrap();
    let unseen = within(ticket.try_wait()).await;
    assert_eq!(unseen.map(drop), Err(AcquireError::Rejected(Rejection::NoAuth)));
    setup.outsider.set_acl(&path, &acl).await.unwrap();
    within(holder.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
    assert_eq!(within(ticket.try_wait()).await.map(drop), Err(AcquireError::Used));
}

/// A wait that was dropped has asked for the queue. What was answered since is no news by the time of the next one.
#[test_with(in_virtual_time)]
async fn answer_to_a_dropped_wait_is_not_believed_later(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    for tries in [true, false] {
        let path = format!("/kept-{tries}");
        let held = Lock::new(&other, &path).acquire().await.unwrap();
        let mut ticket = Lock::new(&zk, &path).enqueue().await.unwrap();
        // It looks anew the next time.
        assert!(ticket.try_wait().await.unwrap().is_none());
        held.release().await.unwrap();
        assert!(dropped_after(1, ticket.wait()).await.is_none());
        pass(Duration::from_secs(1)).await;
        other.delete(ticket.path().unwrap()).await.unwrap();
        let theirs = Lock::new(&other, &path).acquire().await.unwrap();
        pass(Duration::from_secs(1)).await;
        let late = match tries {
            true => within(ticket.try_wait()).await.map(drop),
            false => within(ticket.wait()).await.map(drop),
        };
        assert_eq!((late, theirs.status()), (Err(AcquireError::NodeDeleted), Status::Held));
    }
}

/// However long answers take, they come to the waits, whatever it is that the lock asks for.
#[test_with(in_virtual_time)]
async fn slow_answers_reach_waits_that_are_dropped_early(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let builder = || Lock::builder(&zk, "/slow");
    let named = |zk: &Client| Lock::named(zk, "/slow", "a").build();
    let delay = Duration::from_secs(2);
    let locks = [
        ("plain", builder().build(), Lock::new(&other, "/slow")),
        ("herd", builder().herd().build(), Lock::new(&other, "/slow")),
        ("named", named(&zk), named(&other)),
        ("without ids", builder().layout(Layout::Bare).build(), Lock::new(&other, "/slow")),
        ("delayed", builder().lock_delay(delay).build(), Lock::new(&other, "/slow")),
        (
            "delayed, without ids",
            builder().layout(Layout::Bare).lock_delay(delay).build(),
            Lock::new(&other, "/slow"),
        ),
    ];
    for (what, lock, others) in locks {
        for is_held in [false, true] {
            let held = if is_held { Some(others.acquire().await.unwrap()) } else { None };
            let mut ticket = lock.enqueue().await.unwrap();
            drop(held);
            network.direct(|_, op| match op {
                OpCode::EXISTS | OpCode::GET_DATA | OpCode::GET_CHILDREN2 => {
                    Disposition::Late(Duration::from_secs(3))
                }
                _ => Disposition::Answered,
            });
            let waits = async {
                loop {
                    tokio::select! {
                        biased;
                        guard = ticket.wait() => return guard.unwrap(),
                        () = pass(Duration::from_millis(400)) => {}
                    }
                }
            };
            let granted = tokio::time::timeout(Duration::from_secs(60), waits).await;
            assert!(granted.is_ok(), "{what}, held by another: {is_held}");
            network.direct(|_, _| Disposition::Answered);
        }
    }
}
