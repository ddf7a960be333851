//! What a lock costs: requests, round trips, notifications.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use zk_client::EventType;
use zk_locks::{Guard, Lock};
use zk_proto::OpCode;
use zk_testkit::proxy::{Frame, Frames, Kind, Match, Proxy};
use zk_tests::test_with;

use crate::locks::support::{
    Setup, client_behind, emptied, on_each_release, on_each_release_timeless, ops, within,
};

/// Holds a reply back until a request has been seen: only a client that asks without waiting for the reply
/// gets on.
fn withhold(proxy: &Proxy, reply: Match, until: Match) -> impl Future<Output = ()> {
    let held = proxy.on(reply).hold();
    let requested = proxy.on(until).watch();
    async move {
        within(requested.fired()).await;
        held.release();
    }
}

/// Acquires a lock whose first two requests must not wait for each other.
async fn acquire_in_one_trip(proxy: &Proxy, lock: &Lock) -> Guard {
    let created = Match::reply(OpCode::CREATE2).once();
    let listed = Match::request(OpCode::GET_CHILDREN2).once();
    let (guard, ()) = tokio::join!(lock.acquire(), withhold(proxy, created, listed));
    guard.unwrap()
}

fn notifications(frames: &Frames) -> Vec<&Frame> {
    frames.iter().filter(|frame| frame.kind == Kind::Notification).collect()
}

#[test_with(on_each_release_timeless)]
async fn free_lock_costs_one_round_trip(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let lock = Lock::new(&zk, &setup.existing("free").await);

    let mark = proxy.mark();
    let guard = acquire_in_one_trip(&proxy, &lock).await;
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::CREATE2, OpCode::GET_CHILDREN2], "{frames}");
    let batches: BTreeSet<_> = frames.requests().iter().map(|frame| frame.batch).collect();
    assert_eq!((batches.len(), frames.round_trips()), (1, 1), "{frames}");

    let mark = proxy.mark();
    within(guard.release()).await.unwrap();
    zk.sync("/").await.unwrap();
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::DELETE, OpCode::SYNC], "{frames}");
    assert_eq!(notifications(&frames).len(), 0, "{frames}");
}

#[test_with(on_each_release_timeless)]
async fn two_missing_levels_add_one_round_trip(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let lock = Lock::new(&zk, &setup.path("missing/lock"));
    let mark = proxy.mark();
    let guard = within(lock.acquire()).await.unwrap();
    let frames = proxy.frames_since(mark);
    let expected = [
        OpCode::CREATE2,
        OpCode::GET_CHILDREN2,
        OpCode::CREATE_CONTAINER, // Of the root, which exists.
        OpCode::CREATE_CONTAINER,
        OpCode::CREATE_CONTAINER,
        OpCode::CREATE2,
        OpCode::GET_CHILDREN2,
    ];
    assert_eq!(ops(&frames), expected, "{frames}");
    assert_eq!(frames.round_trips(), 2, "{frames}");
    within(guard.release()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn waiter_costs_two_round_trips_until_grant(setup: Setup) {
    let path = setup.existing("busy").await;
    let holder = Lock::new(&setup.outsider, &path).acquire().await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let lock = Lock::new(&zk, &path);

    let mark = proxy.mark();
    let read = Match::reply(OpCode::GET_DATA).once();
    let both_read = Match::request(OpCode::GET_DATA).nth(2);
    let reads = withhold(&proxy, read, both_read);
    let armed = proxy.on(Match::reply(OpCode::GET_DATA).nth(2)).watch();
    let release = async {
        within(armed.fired()).await;
        within(holder.release()).await.unwrap();
    };
    let (guard, (), ()) = tokio::join!(acquire_in_one_trip(&proxy, &lock), reads, release);
    let frames = proxy.frames_since(mark);
    let expected = [OpCode::CREATE2, OpCode::GET_CHILDREN2, OpCode::GET_DATA, OpCode::GET_DATA];
    assert_eq!(ops(&frames), expected, "{frames}");
    assert_eq!(frames.round_trips(), 2, "{frames}");
    assert_eq!(notifications(&frames).len(), 1, "{frames}");

    within(guard.release()).await.unwrap();
    let frames = proxy.frames_since(mark);
    let granted = notifications(&frames)[0].sequence;
    let next = frames.requests().iter().find(|frame| frame.sequence > granted).cloned();
    assert_eq!(next.and_then(|frame| frame.op), Some(OpCode::DELETE), "{frames}");
    assert_eq!(frames.requests().len(), 5, "{frames}");
}

#[test_with(on_each_release_timeless)]
async fn a_failed_try_costs_one_read_and_no_write(setup: Setup) {
    let path = setup.existing("tried").await;
    let holder = Lock::new(&setup.outsider, &path).acquire().await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let lock = Lock::new(&zk, &path);
    let mark = proxy.mark();
    assert!(within(lock.try_acquire()).await.unwrap().is_none());
    zk.sync("/").await.unwrap();
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::GET_CHILDREN2, OpCode::SYNC], "{frames}");

    within(holder.release()).await.unwrap();
    let mark = proxy.mark();
    let guard = within(lock.try_acquire()).await.unwrap().expect("the lock is free");
    let frames = proxy.frames_since(mark);
    let expected = [OpCode::GET_CHILDREN2, OpCode::CREATE2, OpCode::GET_CHILDREN2];
    assert_eq!(ops(&frames), expected, "{frames}");
    assert_eq!(frames.round_trips(), 2, "{frames}");
    within(guard.release()).await.unwrap();
}

/// A holder that has waited watches its own node already; another one begins to.
#[test_with(on_each_release_timeless)]
async fn watching_for_loss_costs_one_request(setup: Setup) {
    let path = setup.existing("watched").await;
    let (proxy, zk) = setup.proxied().await;
    let first = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let mark = proxy.mark();
    for _ in 0..3 {
        first.scope(async { zk.sync("/").await }).await.unwrap().unwrap();
    }
    let frames = proxy.frames_since(mark);
    let mut asked = ops(&frames);
    asked.sort_by_key(|op| *op == OpCode::SYNC);
    let expected = [OpCode::GET_DATA, OpCode::SYNC, OpCode::SYNC, OpCode::SYNC];
    assert_eq!(asked, expected, "{frames}");

    let second = Lock::new(&zk, &path);
    let armed = proxy.on(Match::reply(OpCode::GET_DATA).nth(2)).watch();
    let release = async {
        within(armed.fired()).await;
        within(first.release()).await.unwrap();
    };
    let (second, ()) = within(async { tokio::join!(Box::pin(second.acquire()), release) }).await;
    let mark = proxy.mark();
    second.unwrap().scope(async { zk.sync("/").await }).await.unwrap().unwrap();
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames)[..1], [OpCode::SYNC], "{frames}");
}

const WAITERS: usize = 50;

/// A waiter that an event may grant the lock watches its own node at once. The others will list the queue again in
/// any case, and watch it only when they wait for longer than this.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// A line of contenders behind one proxy, each with a session of its own.
struct Line {
    /// Each contender's connection and node, in the order of the queue.
    members: Vec<(u64, String)>,
    frames: Frames,
}

impl Line {
    /// Has all take the lock in turn, after all have fallen asleep but the first.
    async fn pass(setup: &Setup) -> Self {
        let path = setup.existing("line").await;
        let proxy = setup.proxy().await;
        let mut clients = Vec::new();
        let mut waiting = Vec::new();
        let mut members = Vec::new();
        let listed = proxy.on(Match::reply(OpCode::GET_CHILDREN2)).watch();
        let mut reads = Vec::new();
        for number in 0..=WAITERS as u64 {
            let zk = client_behind(&proxy).await;
            members.push((proxy.accepted(), String::new()));
            let read = Match::reply(OpCode::GET_DATA).connection(proxy.accepted());
            reads.push(proxy.on(read).watch());
            let lock = Lock::builder(&zk, &path).recheck(None).build();
            clients.push(zk);
            waiting.push(tokio::spawn(async move { lock.acquire().await.unwrap() }));
            // The first one takes the lock; each of the others reads the one in front and falls asleep.
            match reads.last() {
                Some(read) if number > 0 => within(read.fired()).await,
                _ => within(listed.fired()).await,
            };
        }
        // All wait so long that they watch their own nodes too.
        for reads in &reads[1..] {
            within(reads.fired_times(2)).await;
        }
        assert_eq!(setup.watched().await.len(), members.len());
        for ((_, node), guard) in members.iter_mut().zip(waiting) {
            let guard = within(guard).await.unwrap();
            node.push_str(guard.path());
            within(guard.release()).await.unwrap();
        }
        for zk in &clients {
            // Behind every notification there may still be.
            zk.sync("/").await.unwrap();
        }
        emptied(&setup.outsider, &path).await;
        assert_eq!(setup.watched().await, [""; 0]);
        Self { members, frames: proxy.frames() }
    }
}

/// A release wakes the next waiter only. A client that has waited or held for long watches its own node too, and so
/// hears of its own release; that is no news, but to unwatch would cost more than the event.
#[test_with(on_each_release)]
async fn release_notifies_only_the_next_of_fifty(setup: Setup) {
    let Line { members, frames } = Line::pass(&setup).await;
    let mut notified: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    let mut count = 0;
    for event in notifications(&frames) {
        assert_eq!(event.event, Some(EventType::NODE_DELETED), "{event}");
        let path = event.path.clone().unwrap();
        assert!(notified.entry(path).or_default().insert(event.connection), "twice: {event}");
        count += 1;
    }
    for (index, (connection, node)) in members.iter().enumerate() {
        let own = Some(*connection);
        let next = members.get(index + 1).map(|(connection, _)| *connection);
        let expected: BTreeSet<u64> = own.into_iter().chain(next).collect();
        assert_eq!(notified.remove(node), Some(expected), "release number {index} of {node}");
    }
    assert!(notified.is_empty(), "{notified:?}");
    assert_eq!(count, 2 * WAITERS + 1);
}

#[test_with(on_each_release)]
async fn handoff_in_a_queue_costs_one_listing(setup: Setup) {
    let Line { members, frames } = Line::pass(&setup).await;
    let join = [OpCode::CREATE2, OpCode::GET_CHILDREN2];
    // The one in front, and sooner or later its own node.
    let sleep = [OpCode::GET_DATA; 2];
    let look = [OpCode::GET_CHILDREN2];
    let leave = [OpCode::DELETE];
    for (index, (connection, _)) in members.iter().enumerate() {
        let expected = match index {
            // Held for as long as the others fell asleep.
            0 => [&join[..], &sleep[..1], &leave].concat(),
            1 => [&join[..], &sleep, &leave].concat(),
            _ => [&join[..], &sleep, &look, &leave].concat(),
        };
        let own = frames.of_connection(*connection);
        // A holder or waiter sends a `sync` where it would send a ping.
        let asked: Vec<_> = ops(&own).into_iter().filter(|op| *op != OpCode::SYNC).collect();
        assert_eq!(asked, expected, "contender {index}:\n{own}");
        let listed = own.iter().find(|frame| frame.is_reply(OpCode::GET_CHILDREN2)).unwrap();
        let reads: Vec<_> = own.iter().filter(|frame| frame.is_request(OpCode::GET_DATA)).collect();
        if let ([_, own_read], 2..) = (&*reads, index) {
            let pause = own_read.at - listed.at;
            assert!(pause >= LONG_WAIT, "contender {index}, {pause:?}:\n{own}");
        }
    }
}
