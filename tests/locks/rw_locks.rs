//! Many readers, or one writer.

use zk_client::{CreateMode, EventType, Id};
use zk_locks::{
    AclList, AcquireError, Client, ConvertError, Kind, Layout, Lock, Lost, Names, Perms, ReadGuard,
    Rejection, RwLock, Status, WriteGuard,
};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::test_with;

use crate::locks::support::{
    Setup, Waiter, dropped_after, emptied, joined, on_each_release, ops, within,
};

/// The layouts that have names for both.
const LAYOUTS: [Layout; 6] = [
    Layout::Curator,
    Layout::Kazoo,
    Layout::Go,
    Layout::HostType,
    Layout::Custom(Names::new("lock-").read_write("read-", "write-").marker_first()),
    Layout::Custom(Names::new("-mutex-").prefix("job-").read_write("-shared-", "-alone-")),
];

/// Runs a test in each layout on each release. `path` exists.
fn in_each_layout(test: impl AsyncFn(&Setup, &str, Layout) + Sync) {
    on_each_release(async |setup: Setup| {
        for layout in LAYOUTS {
            let path = setup.existing(&format!("{layout:?}")).await;
            test(&setup, &path, layout).await;
            emptied(&setup.outsider, &path).await;
        }
    });
}

/// Has a contender join as the `place`-th in the queue. It has fallen asleep when this returns.
async fn waiter<G, F>(
    setup: &Setup,
    path: &str,
    layout: Layout,
    place: usize,
    ask: impl FnOnce(RwLock) -> F,
) -> Waiter<G>
where
    F: Future<Output = Result<G, AcquireError>> + Send + 'static,
    G: Send + 'static,
{
    let (proxy, zk) = setup.proxied().await;
    let asked = ask(lock(&zk, path, layout));
    let waiter = Waiter::asking(proxy, zk, asked);
    joined(&setup.outsider, path, place).await;
    assert!(waiter.still_waits().await);
    waiter
}

async fn reader(setup: &Setup, path: &str, layout: Layout, place: usize) -> Waiter<ReadGuard> {
    waiter(setup, path, layout, place, |lock| async move { lock.read().await }).await
}

async fn writer(setup: &Setup, path: &str, layout: Layout, place: usize) -> Waiter<WriteGuard> {
    waiter(setup, path, layout, place, |lock| async move { lock.write().await }).await
}

/// How often a waiter has heard of the end of a node.
fn heard_of<G: Send + 'static>(waiter: &Waiter<G>, node: &str) -> usize {
    let frames = waiter.frames();
    let ends = frames.iter().filter(|frame| frame.event == Some(EventType::NODE_DELETED));
    ends.filter(|frame| frame.path.as_deref() == Some(node)).count()
}

fn lock(zk: &Client, path: &str, layout: Layout) -> RwLock {
    RwLock::builder(zk, path).layout(layout).build()
}

/// The number at the end of a path.
fn digits(path: &str) -> &str {
    &path[path.len() - 10..]
}

/// Scenario 35, and which watches fire: a release of the write wakes the readers directly behind it and no waiter
/// else.
#[test_with(in_each_layout)]
async fn readers_share_and_never_pass_a_writer(setup: &Setup, path: &str, layout: Layout) {
    let first = within(lock(&setup.outsider, path, layout).write()).await.unwrap();
    let mut second = reader(setup, path, layout, 2).await;
    let mut third = reader(setup, path, layout, 3).await;
    let mut fourth = writer(setup, path, layout, 4).await;
    let mut fifth = reader(setup, path, layout, 5).await;
    let (node, token) = (first.path().to_owned(), first.token());
    within(first.release()).await.unwrap();
    let (two, three) = (second.outcome().await.unwrap(), third.outcome().await.unwrap());
    assert!(two.token() > token && three.token() > two.token());
    assert!(fourth.still_waits().await && fifth.still_waits().await);
    let heard = [heard_of(&second, &node), heard_of(&third, &node)];
    assert_eq!((heard, heard_of(&fourth, &node), heard_of(&fifth, &node)), ([1, 1], 0, 0));
    within(two.release()).await.unwrap();
    assert!(fourth.still_waits().await);
    within(three.release()).await.unwrap();
    let four = fourth.outcome().await.unwrap();
    assert!(fifth.still_waits().await);
    within(four.release()).await.unwrap();
    let five = fifth.outcome().await.unwrap();
    within(five.release()).await.unwrap();
}

/// Scenario 36.
#[test_with(in_each_layout)]
async fn reader_skips_a_writer_that_gave_up(setup: &Setup, path: &str, layout: Layout) {
    let holder = within(lock(&setup.outsider, path, layout).write()).await.unwrap();
    let mut nearest = writer(setup, path, layout, 2).await;
    let mut last = reader(setup, path, layout, 3).await;
    nearest.give_up().await;
    joined(&setup.outsider, path, 2).await;
    assert!(last.still_waits().await);
    within(holder.release()).await.unwrap();
    let guard = last.outcome().await.unwrap();
    within(guard.release()).await.unwrap();
}

/// Scenario 37: a reader that looked at writers behind it would wait for one that waits for it.
#[test_with(in_each_layout)]
async fn reader_between_writers_keeps_its_turn(setup: &Setup, path: &str, layout: Layout) {
    let first = within(lock(&setup.outsider, path, layout).write()).await.unwrap();
    let mut middle = reader(setup, path, layout, 2).await;
    let mut last = writer(setup, path, layout, 3).await;
    within(first.release()).await.unwrap();
    let reading = middle.outcome().await.unwrap();
    assert!(last.still_waits().await);
    within(reading.release()).await.unwrap();
    let writing = last.outcome().await.unwrap();
    within(writing.release()).await.unwrap();
}

/// Scenario 38.
#[test_with(in_each_layout)]
async fn downgraded_writer_admits_readers_only(setup: &Setup, path: &str, layout: Layout) {
    let (proxy, zk) = setup.proxied().await;
    let writing = within(lock(&zk, path, layout).write()).await.unwrap();
    let mut reads = reader(setup, path, layout, 2).await;
    let mut writes = writer(setup, path, layout, 3).await;
    let mut behind = reader(setup, path, layout, 4).await;
    let (number, token) = (digits(writing.path()).to_owned(), writing.token());
    let mark = proxy.mark();
    let reading = within(writing.downgrade()).await.unwrap();
    zk.sync("/").await.unwrap();
    let frames = proxy.frames_since(mark);
    // It may just have been held for so long that its node is watched.
    let asked: Vec<_> = ops(&frames).into_iter().filter(|op| *op != OpCode::GET_DATA).collect();
    assert_eq!(asked, [OpCode::MULTI, OpCode::SYNC], "{frames}");
    assert_eq!(digits(reading.path()), number);
    let queue = lock(&setup.outsider, path, layout).queue().contenders().await.unwrap();
    assert_eq!((queue[0].kind, queue.len()), (Kind::Read, 4), "{queue:?}");
    // Its node is younger than that of the writer that waits, its token is not.
    assert_eq!(reading.token(), token);
    assert!(queue[0].token > queue[2].token);

    let two = reads.outcome().await.unwrap();
    assert!(writes.still_waits().await && behind.still_waits().await);
    within(two.release()).await.unwrap();
    assert!(writes.still_waits().await);
    assert_eq!(within(reading.check()).await, Ok(()));
    within(reading.release()).await.unwrap();
    let three = writes.outcome().await.unwrap();
    assert!(three.token() > token);
    assert!(behind.still_waits().await);
    within(three.release()).await.unwrap();
    let last = behind.outcome().await.unwrap();
    within(last.release()).await.unwrap();
}

/// Not in the background: after a downgrade, the caller may let others read.
#[test_with(in_each_layout)]
async fn others_may_read_when_a_downgrade_returns(setup: &Setup, path: &str, layout: Layout) {
    let (proxy, zk) = setup.proxied().await;
    let writing = within(lock(&zk, path, layout).write()).await.unwrap();
    let deletes = proxy.on(Match::request(OpCode::DELETE)).hold();
    let reading = within(writing.downgrade()).await.unwrap();
    let other = within(lock(&setup.outsider, path, layout).try_read()).await.unwrap();
    within(other.expect("nobody writes").release()).await.unwrap();
    deletes.release();
    within(reading.release()).await.unwrap();
}

/// The transaction is refused as a whole, and the lock is what it was.
#[test_with(in_each_layout)]
async fn refused_downgrade_keeps_the_write_lock(setup: &Setup, path: &str, layout: Layout) {
    let zk = setup.client().await;
    let writing = within(lock(&zk, path, layout).write()).await.unwrap();
    let cancelled = writing.cancellation_token();
    // Creating is not permitted here for a while.
    let no_create = Perms::READ | Perms::WRITE | Perms::DELETE | Perms::ADMIN;
    let refused: AclList = [Id::anyone().may(no_create)].into_iter().collect();
    setup.outsider.set_acl(path, &refused).await.unwrap();
    let error = within(writing.downgrade()).await.unwrap_err();
    assert_eq!(error.cause, AcquireError::Rejected(Rejection::NoAuth));
    let writing = error.guard;
    assert!(cancelled.is_cancelled() && !writing.cancellation_token().is_cancelled());
    assert_eq!(within(writing.check()).await, Ok(()));
    setup.outsider.set_acl(path, setup.outsider.default_acl()).await.unwrap();
    let reading = within(writing.downgrade()).await.unwrap();
    within(reading.release()).await.unwrap();
}

/// It was not there any more to take a place for reading from.
/// Another client has written since, and this one has read before.
#[test_with(in_each_layout)]
async fn lost_read_lock_is_not_upgraded(setup: &Setup, path: &str, layout: Layout) {
    let zk = setup.client().await;
    let mut read = within(lock(&zk, path, layout).read()).await.unwrap();
    setup.outsider.delete(read.path()).await.unwrap();
    let theirs = within(lock(&setup.outsider, path, layout).write()).await.unwrap();
    within(theirs.release()).await.unwrap();
    // Nothing has told it so far.
    for _ in 0..2 {
        let ConvertError { guard, cause } = within(read.try_upgrade()).await.unwrap_err();
        assert_eq!(cause, AcquireError::NodeDeleted);
        assert_eq!(guard.status(), Status::Lost(Lost::NodeDeleted));
        read = guard;
    }
    within(read.release()).await.unwrap();
}

/// The client that has asked for it back still waits.
#[test_with(in_each_layout)]
async fn revocation_outlives_conversions(setup: &Setup, path: &str, layout: Layout) {
    let zk = setup.client().await;
    let written = within(lock(&zk, path, layout).write()).await.unwrap();
    let queue = lock(&setup.outsider, path, layout).queue();
    let holder = within(queue.contenders()).await.unwrap().remove(0);
    assert!(within(queue.revoke(&holder)).await.unwrap());
    within(written.revoked()).await.unwrap();
    let read = within(written.downgrade()).await.unwrap();
    assert!(dropped_after(1, read.revoked()).await.is_some());
    let written = within(read.try_upgrade()).await.unwrap();
    assert!(dropped_after(1, written.revoked()).await.is_some());
    within(written.release()).await.unwrap();
}

#[test_with(in_each_layout)]
async fn writer_without_node_cannot_downgrade(setup: &Setup, path: &str, layout: Layout) {
    let writing = within(lock(&setup.outsider, path, layout).write()).await.unwrap();
    let mut next = writer(setup, path, layout, 2).await;
    setup.outsider.delete(writing.path()).await.unwrap();
    let writes = next.outcome().await.unwrap();
    let error = within(writing.downgrade()).await.unwrap_err();
    assert_eq!(error.cause, AcquireError::NodeDeleted);
    assert_eq!(error.guard.status(), Status::Lost(Lost::NodeDeleted), "it has just been told");
    assert_eq!(within(error.guard.lost()).await, Lost::NodeDeleted);
    joined(&setup.outsider, path, 1).await;
    within(writes.release()).await.unwrap();
}

/// Scenario 39: a new node in front of one that waits already.
#[test_with(on_each_release)]
async fn writer_waits_for_a_downgrading_curator(setup: Setup) {
    let path = setup.existing("curator").await;
    let name = |kind| format!("{path}/_c_3b5f6a0e-0000-4000-8000-0123456789ab-{kind}");
    let write = name("__WRIT__");
    let write = setup.outsider.create(&write, b"");
    let write = write.mode(CreateMode::EphemeralSequential).await.unwrap().path;
    let mut writes = writer(&setup, &path, Layout::Curator, 2).await;
    let read = name("__READ__") + digits(&write);
    setup.outsider.create(&read, b"").mode(CreateMode::Ephemeral).await.unwrap();
    setup.outsider.delete(&write).await.unwrap();
    assert!(writes.still_waits().await);
    assert_eq!(heard_of(&writes, &write), 1);
    setup.outsider.delete(&read).await.unwrap();
    let guard = writes.outcome().await.unwrap();
    within(guard.release()).await.unwrap();
}

/// To those with other names it is a lock, which no reader follows: they would be granted behind it.
#[test_with(on_each_release)]
async fn write_node_that_others_take_for_a_lock_is_not_downgraded(setup: Setup) {
    for marker in ["write-lock-", "write_lock_", "write-latch-", "write-"] {
        let path = setup.existing(marker.trim_matches(['-', '_'])).await;
        let names = Names::new("other-").read_write("read-", marker);
        let lock = lock(&setup.outsider, &path, Layout::Custom(names));
        let writing = within(lock.write()).await.unwrap();
        let other = Lock::new(&setup.outsider, &path);
        let mut waits = within(other.enqueue()).await.unwrap();
        match within(writing.downgrade()).await {
            Ok(reading) => {
                assert_eq!(marker, "write-");
                assert!(within(waits.try_wait()).await.unwrap().is_none());
                within(reading.release()).await.unwrap();
            }
            Err(refused) => {
                assert_eq!(
                    (refused.cause, refused.guard.status()),
                    (AcquireError::NoDowngrade, Status::Held)
                );
                within(refused.guard.release()).await.unwrap();
            }
        }
        within(waits.wait()).await.unwrap().release().await.unwrap();
    }
}

/// Scenario 40.
#[test_with(in_each_layout)]
async fn second_of_two_upgrades_is_refused(setup: &Setup, path: &str, layout: Layout) {
    let first = within(lock(&setup.outsider, path, layout).read()).await.unwrap();
    let zk = setup.client().await;
    let second = within(lock(&zk, path, layout).read()).await.unwrap();
    let token = second.token();
    let first = tokio::spawn(async move { first.try_upgrade().await });
    joined(&setup.outsider, path, 3).await;
    // No new reader is admitted meanwhile.
    assert!(within(lock(&zk, path, layout).try_read()).await.unwrap().is_none());
    let ConvertError { guard: second, cause, .. } = within(second.try_upgrade()).await.unwrap_err();
    assert_eq!(cause, AcquireError::WouldDeadlock);
    joined(&setup.outsider, path, 3).await;
    assert_eq!(within(second.check()).await, Ok(()));
    assert!(!first.is_finished());
    within(second.release()).await.unwrap();
    let writing = within(first).await.unwrap().unwrap();
    assert!(writing.token() > token);
    joined(&setup.outsider, path, 1).await;
    assert!(within(lock(&zk, path, layout).try_read()).await.unwrap().is_none());
    within(writing.release()).await.unwrap();
}

/// The writer waits for the reader, so the reader cannot wait behind the writer; the error says so in words that hold
/// for any waiter.
#[test_with(in_each_layout)]
async fn upgrade_is_refused_if_a_writer_waits(setup: &Setup, path: &str, layout: Layout) {
    let zk = setup.client().await;
    let reading = within(lock(&zk, path, layout).read()).await.unwrap();
    let mut writes = writer(setup, path, layout, 2).await;
    let refused = within(reading.try_upgrade()).await.unwrap_err();
    assert_eq!(
        (refused.to_string().as_str(), &refused.cause),
        (
            "another contender waits to write until this read lock is released",
            &AcquireError::WouldDeadlock
        )
    );
    assert_eq!(within(refused.guard.check()).await, Ok(()));
    assert!(writes.still_waits().await);
    within(refused.guard.release()).await.unwrap();
    within(writes.outcome().await.unwrap().release()).await.unwrap();
}

/// A writer looks again, since another one may have gone on to read; unless all have promised that they do not.
#[test_with(in_each_layout)]
async fn writer_relists_unless_downgrade_is_off(setup: &Setup, path: &str, layout: Layout) {
    for promised in [false, true] {
        let (proxy, zk) = setup.proxied().await;
        let builder = RwLock::builder(&zk, path).layout(layout);
        let lock = if promised { builder.no_downgrade().build() } else { builder.build() };
        let holder = within(lock.write()).await.unwrap();
        let (waiting, other) = setup.proxied().await;
        let builder = RwLock::builder(&other, path).layout(layout);
        let theirs = if promised { builder.no_downgrade().build() } else { builder.build() };
        let reads = waiting.on(Match::reply(OpCode::GET_DATA).nth(2)).watch();
        let waiter = tokio::spawn(async move { theirs.write().await.unwrap() });
        within(reads.fired()).await;
        within(holder.release()).await.unwrap();
        let writing = within(waiter).await.unwrap();
        let counts = waiting.counts();
        let listings = counts.requests(OpCode::GET_CHILDREN2);
        assert_eq!((counts.requests(OpCode::CREATE2), listings), (1, 2 - u64::from(promised)));
        if promised {
            let refused = within(writing.downgrade()).await.unwrap_err();
            assert_eq!(refused.cause, AcquireError::NoDowngrade);
            within(refused.guard.release()).await.unwrap();
        } else {
            within(writing.release()).await.unwrap();
        }
        drop(proxy);
    }
}
