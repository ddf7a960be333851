//! Holders that stall, are out of reach, or are closed, and what is left of them.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use tokio::sync::oneshot;
use zk_locks::{
    AcquireError, Client, FencingToken, Grant, Lock, LockObserver, Lost, SessionEnd, Status,
};
use zk_testkit::{TestServer, proxy::Kind};
use zk_tests::{
    fenced::{Access, FencedResource},
    test_with,
};

use crate::locks::support::{
    Setup, Waiter, emptied, in_thread, joined, on_each_release, options_for, within,
};

/// Of sessions that are to expire.
const SHORT: Duration = Duration::from_secs(10);

/// Scenario 32: a process that is stopped and continued finds out with its first look. Whether it looks is up to
/// it; what it writes without looking is refused.
#[test_with(on_each_release)]
async fn stalled_holder_sees_loss_and_is_fenced(setup: Setup) {
    let path = setup.existing("stopped").await;
    let resource = Arc::new(FencedResource::default());
    let (held, token) = oneshot::channel::<FencingToken>();
    let (go_on, stopped) = mpsc::channel::<()>();
    let options = setup.options().session_timeout(SHORT);
    // A runtime whose only thread stands still is as good as a process that does.
    let holder = thread::spawn({
        let (path, resource) = (path.clone(), resource.clone());
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let zk = options.connect().await.unwrap();
                let guard = Lock::new(&zk, &path).acquire().await.unwrap();
                drop(resource.visit(guard.token(), Access::Alone));
                held.send(guard.token()).unwrap();
                stopped.recv().unwrap();
                drop(resource.visit(guard.token(), Access::Alone));
                (guard.status(), guard.scope(std::future::ready(())).await)
            })
        }
    });
    let before = within(token).await.unwrap();
    let next = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    assert!(next.token() > before);
    drop(resource.visit(next.token(), Access::Alone));
    resource.assert_clean();
    go_on.send(()).unwrap();
    let holder = in_thread(move || holder.join().unwrap());
    let (status, scope) = within(holder).await.unwrap();
    assert_eq!(status, Status::Lost(Lost::LeaseRanOut));
    assert_eq!(scope, Err(Lost::LeaseRanOut));
    let (violations, shown) = resource.violations();
    assert_eq!(violations, 1, "{before} after {}: {shown:?}", next.token());
    within(next.release()).await.unwrap();
}

/// Scenario 16.
#[test_with(on_each_release)]
async fn nothing_is_sent_for_an_ended_session(setup: Setup) {
    let path = setup.existing("dropped").await;
    let proxy = setup.proxy().await;
    let zk = options_for(&proxy).session_timeout(SHORT).connect().await.unwrap();
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    proxy.refuse_connections().await;
    proxy.reset_all();
    drop(guard);
    assert_eq!(within(zk.session().ended()).await, SessionEnd::Expired);
    proxy.accept_connections().await;
    let accepted = proxy.accepted();
    // The server takes the node, and the next one comes by the same way.
    let mut waiter = Waiter::joining(proxy, &path).await;
    within(waiter.outcome().await.unwrap().release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
    assert_eq!(waiter.proxy.accepted(), accepted + 1, "{}", waiter.frames());
}

/// Scenario 59, for waiters.
#[test_with(on_each_release)]
async fn closing_fails_waiters_and_deletes_nodes(setup: Setup) {
    let path = setup.existing("closed").await;
    let holder = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let mut waiter = Waiter::asleep(&setup, &path).await;
    within(waiter.zk.close()).await.unwrap();
    joined(&setup.outsider, &path, 1).await;
    let closed = AcquireError::SessionEnded(SessionEnd::Closed);
    assert_eq!(waiter.outcome().await.map(drop), Err(closed));
    within(holder.release()).await.unwrap();
}

/// Scenario 60. After a fork the child has a copy of the guard and no thread that serves the session. If it
/// drops the guard, nothing goes into the connection that it shares with its parent: that is written to
/// by the session's task alone.
#[test]
fn drop_without_a_driver_sends_nothing() {
    let there = tokio::runtime::Runtime::new().unwrap();
    let server = there.block_on(TestServer::start()).unwrap();
    let here = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let zk = here.block_on(Client::connect(&server.connect_string())).unwrap();
    let guard = here.block_on(Lock::new(&zk, "/l").acquire()).unwrap();
    let mark = server.proxy().mark();
    drop(guard);
    // Anything that was sent by now would come before what comes of this.
    there.block_on(async {
        let other = Client::connect(&server.connect_string()).await.unwrap();
        assert_eq!(other.children("/l").await.unwrap().0.len(), 1);
    });
    let own = server.proxy().frames_since(mark).of_connection(1);
    assert!(own.iter().all(|frame| frame.kind == Kind::Ping), "{own}");
    here.block_on(async { emptied(&zk, "/l").await });
}

/// Blocks in the first grant that it observes.
struct Dawdler(Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>>);

impl LockObserver for Dawdler {
    fn granted(&self, _grant: &Grant<'_>) {
        let first = self.0.lock().unwrap().take();
        if let Some((begun, go_on)) = first {
            begun.send(()).unwrap();
            go_on.recv().unwrap();
        }
    }
}

/// Scenario 68: callbacks of users delay the caller, and not the session.
#[test_with(on_each_release)]
async fn slow_observer_delays_only_its_own_lock(setup: Setup) {
    let (slow, quick) = (setup.existing("slow").await, setup.existing("quick").await);
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let dawdler = Arc::new(Dawdler(Mutex::new(Some((begun, may_go_on)))));
    let slow = Lock::builder(&setup.outsider, &slow).observer(dawdler).build();
    // On a thread of its own: this is about the session's task, not about the threads of a runtime.
    let runtime = tokio::runtime::Handle::current();
    let held_up = tokio::task::spawn_blocking(move || runtime.block_on(slow.acquire()));
    in_thread(move || has_begun.recv().unwrap()).await.unwrap();
    let quick = Lock::new(&setup.outsider, &quick);
    for _ in 0..10 {
        within(within(quick.acquire()).await.unwrap().release()).await.unwrap();
    }
    assert!(!held_up.is_finished());
    go_on.send(()).unwrap();
    within(within(held_up).await.unwrap().unwrap().release()).await.unwrap();
}
