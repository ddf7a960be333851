//! What each recipe costs, as its documentation says: requests, round trips, notifications. `counts` has the
//! exclusive lock.

use zk_client::EventType;
use zk_locks::{
    Barrier, Client, DoubleBarrier, Election, Group, Lock, MultiLock, PersistentNode, RwLock,
    Semaphore, SimpleLock,
};
use zk_proto::OpCode;
use zk_testkit::proxy::{Frames, Kind, Mark, Match, Proxy};
use zk_tests::test_with;

use crate::locks::support::{
    Setup, emptied, on_each_release, on_each_release_timeless, ops, options_for, within,
};

const JOIN: [OpCode; 2] = [OpCode::CREATE2, OpCode::GET_CHILDREN2];
const LIST: OpCode = OpCode::GET_CHILDREN2;
/// With or without a watch.
const READ: OpCode = OpCode::GET_DATA;

/// A client whose requests are counted.
struct Meter {
    proxy: Proxy,
    zk: Client,
}

impl Meter {
    async fn new(setup: &Setup) -> Self {
        let (proxy, zk) = setup.proxied().await;
        Self { proxy, zk }
    }

    /// What was asked for since: what goes on in the background included, as far as it has been submitted.
    async fn since(&self, mark: Mark) -> Frames {
        self.zk.sync("/").await.unwrap();
        self.proxy.frames_since(mark)
    }

    /// Does something. What it has asked for is this, in so many round trips, and nothing in the background.
    async fn costs<T>(
        &self,
        expected: &[OpCode],
        trips: usize,
        work: impl Future<Output = T>,
    ) -> T {
        let mark = self.proxy.mark();
        let done = within(work).await;
        let frames = self.proxy.frames_since(mark);
        assert_eq!((ops(&frames), frames.round_trips()), (expected.to_vec(), trips), "{frames}");
        let expected = [expected, &[OpCode::SYNC]].concat();
        assert_eq!(ops(&self.since(mark).await), expected);
        done
    }

    /// Begins something that has to wait, and returns when it has asked for this and everything is answered.
    async fn sleeps<T: Send + 'static>(
        &self,
        expected: &[OpCode],
        trips: usize,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Sleeper<T> {
        let mark = self.proxy.mark();
        let work = tokio::spawn(work);
        let answered = |frames: &Frames| {
            let answers = frames.iter().filter(|frame| frame.kind == Kind::Reply).count();
            answers == expected.len()
        };
        within(async {
            while !answered(&self.proxy.frames_since(mark)) {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let frames = self.proxy.frames_since(mark);
        assert_eq!((ops(&frames), frames.round_trips()), (expected.to_vec(), trips), "{frames}");
        self.zk.sync("/").await.unwrap();
        assert!(!work.is_finished());
        Sleeper { mark: self.proxy.mark(), work }
    }
}

/// Something that waits.
struct Sleeper<T> {
    mark: Mark,
    work: tokio::task::JoinHandle<T>,
}

impl<T> Sleeper<T> {
    /// What comes of it, for these requests and so many notifications from when it fell asleep.
    async fn wakes(self, meter: &Meter, expected: &[OpCode], events: usize) -> T {
        let done = within(self.work).await.unwrap();
        let frames = meter.proxy.frames_since(self.mark);
        let heard = frames.iter().filter(|frame| frame.kind == Kind::Notification).count();
        assert_eq!(ops(&frames), expected, "{frames}");
        assert_eq!(heard, events, "{frames}");
        done
    }
}

#[test_with(on_each_release_timeless)]
async fn read_waiter_costs_and_free_grant(setup: Setup) {
    let path = setup.existing("rw").await;
    let writing = within(RwLock::new(&setup.outsider, &path).write()).await.unwrap();
    let meter = Meter::new(&setup).await;
    let lock = RwLock::new(&meter.zk, &path);
    let asleep = [JOIN, [READ; 2]].concat();
    let reader = meter.sleeps(&asleep, 2, async move { lock.read().await }).await;
    within(writing.release()).await.unwrap();
    let reading = reader.wakes(&meter, &[], 1).await.unwrap();
    meter.costs(&[OpCode::DELETE], 1, reading.release()).await.unwrap();

    let lock = RwLock::new(&meter.zk, &path);
    let first = meter.costs(&JOIN, 1, lock.read()).await.unwrap();
    let second = meter.costs(&JOIN, 1, lock.read()).await.unwrap();
    assert!(meter.costs(&[LIST], 1, lock.try_write()).await.unwrap().is_none());
    within(first.release()).await.unwrap();
    within(second.release()).await.unwrap();
    let writing = meter.costs(&JOIN, 1, lock.write()).await.unwrap();
    within(writing.release()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn downgrade_and_upgrade_costs(setup: Setup) {
    let meter = Meter::new(&setup).await;
    let lock = RwLock::new(&meter.zk, &setup.existing("rw").await);
    let writing = within(lock.write()).await.unwrap();
    let mark = meter.proxy.mark();
    let reading = within(writing.downgrade()).await.unwrap();
    assert_eq!(meter.proxy.frames_since(mark).round_trips(), 1);
    let frames = meter.since(mark).await;
    assert_eq!(ops(&frames), [OpCode::MULTI, OpCode::SYNC], "{frames}");

    let mark = meter.proxy.mark();
    let writing = within(reading.try_upgrade()).await.unwrap();
    assert_eq!(meter.proxy.frames_since(mark).round_trips(), 1);
    let frames = meter.since(mark).await;
    // A client may have asked for the lock back, by the node for reading.
    let expected = [&JOIN[..], &[OpCode::GET_DATA, OpCode::DELETE, OpCode::SYNC]].concat();
    assert_eq!(ops(&frames), expected, "{frames}");
    within(writing.release()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn semaphore_wait_costs(setup: Setup) {
    let path = setup.path("permits");
    let taken = within(Semaphore::new(&setup.outsider, &path, 1).acquire()).await.unwrap();
    let meter = Meter::new(&setup).await;
    let semaphore = Semaphore::new(&meter.zk, &path, 1);
    let asleep = [OpCode::CREATE2, LIST, LIST, LIST];
    let waiter = meter.sleeps(&asleep, 2, async move { semaphore.acquire().await }).await;
    within(taken.release()).await.unwrap();
    let permit = waiter.wakes(&meter, &[LIST, OpCode::MULTI], 2).await.unwrap();
    // The second notification was of its own permit: it had watched once more.
    meter.costs(&[OpCode::DELETE], 1, permit.release()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn semaphore_mutex_costs(setup: Setup) {
    let meter = Meter::new(&setup).await;
    let mutex = Semaphore::new(&meter.zk, &setup.path("mutex"), 1);
    within(within(mutex.acquire()).await.unwrap().release()).await.unwrap();
    let free = [OpCode::CREATE2, LIST, LIST, OpCode::MULTI];
    let held = meter.costs(&free, 2, mutex.acquire()).await.unwrap();
    let stat = setup.outsider.exists(held.path()).await.unwrap().unwrap();
    assert_eq!(stat.czxid.0, held.token().get());
    assert!(meter.costs(&[LIST; 2], 1, mutex.try_acquire()).await.unwrap().is_none());
    meter.costs(&[OpCode::DELETE], 1, held.release()).await.unwrap();

    // Several for the price of one, and none for nothing.
    let two = Semaphore::new(&meter.zk, &setup.path("mutex"), 2);
    assert!(meter.costs(&[], 0, two.acquire_many(0)).await.unwrap().is_empty());
    assert!(meter.costs(&[], 0, two.try_acquire_many(0)).await.unwrap().unwrap().is_empty());
    let both = meter.costs(&free, 2, two.acquire_many(2)).await.unwrap();
    assert_eq!(both.len(), 2);
    within(both.release()).await.unwrap();
}

/// The parents that all of them lack are created once.
#[test_with(on_each_release_timeless)]
async fn first_permits_cost_as_much_as_one(setup: Setup) {
    let meter = Meter::new(&setup).await;
    let mut costs = Vec::new();
    // The very first one may find out what the server cannot do.
    for permits in [1, 1, 3] {
        let path = setup.path(&format!("first-{}", costs.len()));
        let semaphore = Semaphore::new(&meter.zk, &path, 3);
        let mark = meter.proxy.mark();
        let guards = within(semaphore.acquire_many(permits)).await.unwrap();
        costs.push(ops(&meter.proxy.frames_since(mark)));
        within(guards.release()).await.unwrap();
    }
    assert_eq!(costs[2], costs[1]);
}

#[test_with(on_each_release_timeless)]
async fn multi_lock_wait_costs(setup: Setup) {
    let paths = [setup.existing("a").await, setup.existing("b").await];
    let held = within(MultiLock::new(&setup.outsider, &paths).acquire()).await.unwrap();
    let meter = Meter::new(&setup).await;
    let both = MultiLock::new(&meter.zk, &paths);
    assert!(meter.costs(&[LIST; 2], 1, both.try_acquire()).await.unwrap().is_none());
    let asleep = [&[OpCode::MULTI, LIST, LIST][..], &[READ; 4]].concat();
    let waiter = meter.sleeps(&asleep, 2, async move { both.acquire().await }).await;
    within(held.release()).await.unwrap();
    let guards = waiter.wakes(&meter, &[], 2).await.unwrap();
    meter.costs(&[OpCode::MULTI; 2], 1, guards.check()).await.unwrap();
    meter.costs(&[OpCode::DELETE; 2], 1, guards.release()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn proclaim_and_observe_costs(setup: Setup) {
    let path = setup.existing("election").await;
    let theirs = Meter::new(&setup).await;
    let election = Election::new(&theirs.zk, &path);
    let lead = theirs.costs(&JOIN, 1, election.campaign(b"one")).await.unwrap();

    let meter = Meter::new(&setup).await;
    let mut leaders = Election::new(&meter.zk, &path).follow();
    let leader = meter.costs(&[LIST, READ], 2, leaders.next()).await.unwrap();
    assert_eq!(leader.map(|leader| leader.token), Some(lead.token()));
    let follower = tokio::spawn(async move { (leaders.next().await, leaders) });
    let mark = meter.proxy.mark();
    theirs.costs(&[OpCode::MULTI], 1, lead.proclaim(b"two")).await.unwrap();
    let (leader, _leaders) = within(follower).await.unwrap();
    assert_eq!(&*leader.unwrap().unwrap().data, b"two");
    let frames = meter.proxy.frames_since(mark);
    let heard = frames.iter().filter(|frame| frame.kind == Kind::Notification).count();
    assert_eq!((ops(&frames), heard), (vec![LIST, READ], 1), "{frames}");
    theirs.costs(&[OpCode::DELETE], 1, lead.resign()).await.unwrap();
}

/// The event of its own write uses up the watch.
#[test_with(on_each_release_timeless)]
async fn watched_leader_reads_what_it_proclaims(setup: Setup) {
    let path = setup.existing("watched").await;
    let meter = Meter::new(&setup).await;
    let lead = within(Election::new(&meter.zk, &path).campaign(b"one")).await.unwrap();
    let read = meter.proxy.on(Match::reply(READ)).watch();
    // Has the node watched at once, and not after a second.
    drop(lead.cancellation_token());
    within(read.fired()).await;
    let mark = meter.proxy.mark();
    within(lead.proclaim(b"two")).await.unwrap();
    within(read.fired_times(2)).await;
    let frames = meter.since(mark).await;
    assert_eq!(ops(&frames), [OpCode::MULTI, READ, OpCode::SYNC], "{frames}");
    within(lead.resign()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn following_a_missing_path_costs(setup: Setup) {
    let path = setup.path("missing");
    let meter = Meter::new(&setup).await;
    let mut holders = Lock::new(&meter.zk, &path).queue().follow();
    let missing = meter.costs(&[LIST, OpCode::EXISTS], 2, holders.next()).await.unwrap();
    assert!(missing.is_empty());
    let guard = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let there = within(holders.next()).await.unwrap();
    assert_eq!(there.iter().map(|holder| holder.token).collect::<Vec<_>>(), [guard.token()]);
    within(guard.release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn latch_costs(setup: Setup) {
    let path = setup.existing("latch").await;
    let meter = Meter::new(&setup).await;
    let watched = meter.proxy.on(Match::reply(READ)).watch();
    let mark = meter.proxy.mark();
    let latch = Election::new(&meter.zk, &path).latch(b"");
    within(watched.fired()).await;
    assert!(latch.is_leader());
    let names = setup.outsider.children(&path).await.unwrap().0;
    assert_eq!(latch.path(), Some(format!("{path}/{}", names[0])));
    let frames = meter.since(mark).await;
    assert_eq!(ops(&frames), [&JOIN[..], &[READ, OpCode::SYNC]].concat(), "{frames}");

    // Its node is taken away: it stands again.
    let mark = meter.proxy.mark();
    let (names, _) = setup.outsider.children(&path).await.unwrap();
    setup.outsider.delete(&format!("{path}/{}", names[0])).await.unwrap();
    within(watched.fired_times(2)).await;
    let frames = meter.since(mark).await;
    let again = ops(&frames);
    // The former owner asks whether the old node is gone.
    let again: Vec<_> = again.into_iter().filter(|op| *op != OpCode::DELETE).collect();
    // Whether the session has gone with it is asked first.
    let expected = [&[OpCode::EXISTS], &JOIN[..], &[READ, OpCode::SYNC]].concat();
    assert_eq!(again, expected, "{frames}");
    within(latch.resign()).await;
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release_timeless)]
async fn barrier_costs(setup: Setup) {
    let path = setup.path("barrier");
    let (meter, theirs) = (Meter::new(&setup).await, Meter::new(&setup).await);
    let barrier = Barrier::new(&meter.zk, &path);
    assert!(meter.costs(&[OpCode::CREATE2], 1, barrier.set()).await.unwrap());
    assert!(meter.costs(&[OpCode::EXISTS], 1, barrier.is_set()).await.unwrap());
    let waiting = Barrier::new(&theirs.zk, &path);
    let waiter = theirs.sleeps(&[READ], 1, async move { waiting.wait().await }).await;
    meter.costs(&[OpCode::EXISTS, OpCode::DELETE], 2, barrier.remove()).await.unwrap();
    waiter.wakes(&theirs, &[], 1).await.unwrap();
    meter.costs(&[READ], 1, barrier.wait()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn double_barrier_leave_costs(setup: Setup) {
    for participants in [1, 3] {
        let path = setup.path(&format!("leave-{participants}"));
        let mut there = Vec::new();
        let mut entering = Vec::new();
        for _ in 0..participants {
            let meter = Meter::new(&setup).await;
            let barrier = DoubleBarrier::new(&meter.zk, &path, participants);
            entering.push(tokio::spawn(async move { barrier.enter().await.unwrap() }));
            there.push(meter);
        }
        let mut leaving = Vec::new();
        for (meter, entered) in there.iter().zip(entering) {
            let entered = within(entered).await.unwrap();
            meter.zk.sync("/").await.unwrap();
            leaving.push((meter.proxy.mark(), entered));
        }
        let leaving: Vec<_> = leaving
            .into_iter()
            .map(|(mark, entered)| (mark, tokio::spawn(entered.leave())))
            .collect();
        for (meter, (mark, left)) in there.iter().zip(leaving) {
            within(left).await.unwrap().unwrap();
            let frames = meter.proxy.frames_since(mark);
            let expected = 5..=5 + 2 * (participants - 1);
            assert!(expected.contains(&ops(&frames).len()), "{expected:?}: {frames}");
        }
        emptied(&setup.outsider, &path).await;
    }
}

#[test_with(on_each_release_timeless)]
async fn simple_lock_wait_costs(setup: Setup) {
    let path = setup.path("simple");
    let held = within(SimpleLock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let meter = Meter::new(&setup).await;
    let lock = SimpleLock::new(&meter.zk, &path);
    let asleep = [OpCode::MULTI, READ];
    let waiter = meter.sleeps(&asleep, 2, async move { lock.acquire().await }).await;
    within(held.release()).await.unwrap();
    let guard = waiter.wakes(&meter, &[OpCode::MULTI], 1).await.unwrap();
    within(guard.release()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn herd_lock_costs(setup: Setup) {
    let path = setup.existing("herd").await;
    let meter = Meter::new(&setup).await;
    let lock = Lock::builder(&meter.zk, &path).herd().build();
    let held = meter.costs(&JOIN, 1, lock.acquire()).await.unwrap();
    meter.costs(&[OpCode::DELETE], 1, held.release()).await.unwrap();

    let outside = Lock::new(&setup.outsider, &path);
    let first = within(outside.acquire()).await.unwrap();
    let listed = meter.proxy.on(Match::reply(LIST).nth(3)).watch();
    let asleep = [OpCode::CREATE2, LIST, LIST];
    let waiter = meter.sleeps(&asleep, 2, async move { lock.acquire().await }).await;
    // A waiter behind it is none of its business, and wakes it all the same.
    let behind = within(outside.enqueue()).await.unwrap();
    within(listed.fired()).await;
    meter.zk.sync("/").await.unwrap();
    within(first.release()).await.unwrap();
    let guard = waiter.wakes(&meter, &[LIST, OpCode::SYNC, LIST], 2).await.unwrap();
    drop(behind);
    within(guard.release()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn group_costs(setup: Setup) {
    let path = setup.existing("group").await;
    let meter = Meter::new(&setup).await;
    let group = Group::new(&meter.zk, &path);
    let one = meter.costs(&[OpCode::CREATE2], 1, group.join(b"1")).await.unwrap();
    let two = meter.costs(&[OpCode::CREATE2], 1, group.join(b"2")).await.unwrap();
    let read = [LIST, READ, READ];
    assert_eq!(meter.costs(&read, 2, group.members()).await.unwrap().len(), 2);
    let mut members = group.follow();
    assert_eq!(meter.costs(&read, 2, members.next()).await.unwrap().len(), 2);
    meter.costs(&[OpCode::DELETE], 1, two.release()).await.unwrap();
    assert_eq!(meter.costs(&[LIST, READ], 2, members.next()).await.unwrap().len(), 1);
    meter.costs(&[OpCode::DELETE], 1, one.release()).await.unwrap();
}

#[test_with(on_each_release_timeless)]
async fn persistent_node_costs(setup: Setup) {
    let path = setup.path("persistent");
    let proxy = setup.proxy().await;
    let watched = proxy.on(Match::reply(READ)).watch();
    let mark = proxy.mark();
    let node = PersistentNode::start(options_for(&proxy), &path, b"here").await.unwrap();
    within(watched.fired()).await;
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::CREATE2, READ], "{frames}");
    let mark = proxy.mark();
    setup.outsider.delete(&path).await.unwrap();
    within(watched.fired_times(2)).await;
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::CREATE2, READ], "{frames}");
    let gone = frames.iter().filter(|frame| frame.event == Some(EventType::NODE_DELETED));
    assert_eq!(gone.count(), 1, "{frames}");
    within(node.close()).await;
}

#[test_with(on_each_release_timeless)]
async fn queue_inspection_costs(setup: Setup) {
    let path = setup.existing("queue").await;
    let lock = Lock::new(&setup.outsider, &path);
    let held = within(lock.acquire()).await.unwrap();
    let waiting = within(lock.enqueue()).await.unwrap();
    let meter = Meter::new(&setup).await;
    let queue = Lock::new(&meter.zk, &path).queue();
    let there = meter.costs(&[LIST, READ, READ], 2, queue.contenders()).await.unwrap();
    assert!(meter.costs(&[OpCode::SET_DATA], 1, queue.revoke(&there[0])).await.unwrap());
    let evict = [OpCode::EXISTS, OpCode::DELETE];
    assert!(meter.costs(&evict, 2, queue.evict(&there[1])).await.unwrap());
    drop(waiting);
    within(held.release()).await.unwrap();
}
