//! Queues whose listing is long. `zk-bench ours waiters` has real ones of many thousands.

use zk_client::{Cause, CreateMode};
use zk_locks::{AcquireError, Client, Lock, MultiLock, Semaphore};
use zk_tests::test_with;

use crate::locks::support::{Setup, closed, joined, on_each_release, within};

/// How many wait already.
const WAITERS: usize = 200;

/// Fewer bytes than their names have.
const REPLY_LEN_MAX: usize = 8 << 10;

/// What Java clients take, and by far most servers accept as a request: `jute.maxbuffer`.
const JAVA_LEN_MAX: usize = 1 << 20;

/// Has a session wait many times, under names that begin like this.
async fn crowd(zk: &Client, path: &str, waiters: usize, name: &str) {
    let cork = zk.cork();
    let node = format!("{path}/{name}-lock-");
    let create = |_| cork.create(&node, b"").mode(CreateMode::EphemeralSequential).submit();
    let created: Vec<_> = (0..waiters).map(create).collect();
    drop(cork);
    for node in created {
        within(node).await.unwrap();
    }
}

#[track_caller]
fn assert_too_large(error: &AcquireError) {
    let AcquireError::Unavailable(Cause::ReplyTooLarge { len, len_max }) = error else {
        panic!("{error:?}");
    };
    assert!(*len > REPLY_LEN_MAX && *len_max == REPLY_LEN_MAX, "{error:?}");
    let remedy = "see ConnectOptions::reply_len_max";
    assert!(error.to_string().contains(remedy), "{error}");
}

/// Rather than tried again on each connection, for ever.
#[test_with(on_each_release)]
async fn oversized_listing_fails_the_acquire(setup: Setup) {
    let path = setup.existing("too-long").await;
    crowd(&setup.outsider, &path, WAITERS, "_c_00000000-0000-0000-0000-000000000000").await;
    let zk = setup.options().reply_len_max(REPLY_LEN_MAX).connect().await.unwrap();
    let session = zk.session().id();
    let (lock, herd) = (Lock::new(&zk, &path), Lock::builder(&zk, &path).herd().build());
    assert_too_large(&within(lock.acquire()).await.unwrap_err());
    assert_too_large(&within(lock.try_acquire()).await.unwrap_err());
    assert_too_large(&within(herd.acquire()).await.unwrap_err());
    // Each such listing costs a connection, and there is only one.
    within(async { zk.sync("/").await }).await.unwrap();
    let connects = zk.stats().connects;
    let several = MultiLock::new(&zk, [path.clone(), setup.existing("several").await]);

    assert_too_large(&within(several.acquire()).await.unwrap_err());

    within(async { zk.sync("/").await }).await.unwrap();
    assert_eq!(zk.stats().connects, connects + 1);
    joined(&setup.outsider, &path, WAITERS).await;

    // Other locks of the session are as they were.
    let other = within(Semaphore::new(&zk, &setup.path("other"), 1).acquire()).await.unwrap();
    within(other.check()).await.unwrap();
    within(other.release()).await.unwrap();
    assert_eq!(zk.session().id(), session);
}

/// Servers send what they have, whatever they would accept.
#[test_with(on_each_release)]
async fn listing_beyond_javas_limit_works(setup: Setup) {
    let path = setup.existing("a-megabyte").await;
    let others = setup.client().await;
    let name = "a-long-name-so-that-few-will-do-".repeat(32);
    let waiters = JAVA_LEN_MAX / name.len();
    crowd(&others, &path, waiters, &name).await;
    let zk = setup.client().await;
    let mut ticket = within(Lock::new(&zk, &path).enqueue()).await.unwrap();
    assert_eq!(ticket.ahead(), Some(waiters));
    closed(&others).await;
    let guard = within(ticket.wait()).await.unwrap();
    within(guard.release()).await.unwrap();
}
