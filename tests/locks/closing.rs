//! The end of a program: what `close` takes along and waits for.

use std::time::{Duration, Instant};

use tokio::{sync::oneshot, task::yield_now, time::sleep};
use zk_locks::{Lock, SimpleLock};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::{patience::LIMIT, test_with};

use crate::locks::support::{Setup, closed, emptied, on_each_release, options_for, within};

#[test_with(on_each_release)]
async fn dropped_guards_are_released_before_close(setup: Setup) {
    let path = setup.existing("dropped").await;
    let simple = setup.path("simple");
    let zk = setup.client().await;
    drop(within(Lock::new(&zk, &path).acquire()).await.unwrap());
    drop(within(SimpleLock::new(&zk, &simple).acquire()).await.unwrap());
    closed(&zk).await;
    setup.outsider.sync("/").await.unwrap();
    assert_eq!(setup.outsider.children(&path).await.unwrap().0, [""; 0]);
    assert_eq!(setup.outsider.exists(&simple).await.unwrap(), None);
}

#[test_with(on_each_release)]
async fn close_waits_for_cleanup_clients(setup: Setup) {
    let path = setup.path("given-back");
    let zk = setup.client().await;
    let cleanup = zk.for_cleanup();
    let (begin, begun) = oneshot::channel();
    zk.spawn({
        let path = path.clone();
        async move {
            begun.await.unwrap();
            cleanup.create(&path, b"").await.unwrap();
        }
    });
    let closing = async {
        // The close is polled first, and has every chance to go ahead.
        for _ in 0..100 {
            yield_now().await;
        }
        begin.send(()).unwrap();
    };
    let (closed, ()) = within(async { tokio::join!(zk.close_within(LIMIT), closing) }).await;
    closed.unwrap();
    setup.outsider.sync("/").await.unwrap();
    assert!(setup.outsider.exists(&path).await.unwrap().is_some());
}

/// Whether the server has closed it or not.
#[test_with(on_each_release)]
async fn interrupted_close_is_retried(setup: Setup) {
    let path = setup.existing("lost").await;
    let (request, reply) =
        (Match::request(OpCode::CLOSE_SESSION), Match::reply(OpCode::CLOSE_SESSION));
    for lost in [request, reply] {
        let (proxy, zk) = setup.proxied().await;
        let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
        let reset = proxy.on(lost.once()).reset();
        closed(&zk).await;
        assert_eq!(reset.times_fired(), 1);
        emptied(&setup.outsider, &path).await;
        drop(guard);
    }
}

/// Longer than the default timeout of a close.
#[test_with(on_each_release)]
async fn close_waits_for_servers_as_configured(setup: Setup) {
    let path = setup.existing("away").await;
    let proxy = setup.proxy().await;
    let zk = options_for(&proxy).connect().await.unwrap();
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    proxy.refuse_connections().await;
    drop(guard);
    let back = async {
        let refused = Instant::now();
        while refused.elapsed() < Duration::from_secs(3) {
            sleep(Duration::from_millis(50)).await;
        }
        proxy.accept_connections().await;
    };
    let timeout = zk.session().timeout();
    let (closed, ()) = within(async { tokio::join!(zk.close_within(3 * timeout), back) }).await;
    assert_eq!(closed, Ok(()));
    emptied(&setup.outsider, &path).await;
}
