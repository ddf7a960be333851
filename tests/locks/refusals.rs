//! Servers that are too busy, and say so instead of doing what they are asked.

use zk_locks::Lock;
use zk_proto::{ErrorCode, OpCode};
use zk_testkit::proxy::{Match, Proxy, RuleHandle};

use crate::support::{Stage, Waiter, emptied, joined, on_each_release, ops, within};

/// Has the server asked something else, so that it does not do what the next request of this kind is for.
fn not_carried_out(proxy: &Proxy, op: OpCode) -> RuleHandle {
    proxy.on(Match::request(op).once()).rewrite(|request| {
        // The number of the request, and behind it: exists "/", unwatched.
        request.truncate(4);
        request.extend([0, 0, 0, 3, 0, 0, 0, 1, b'/', 0]);
    })
}

/// Has the next answer to such a request say that it failed.
fn answered_with(proxy: &Proxy, op: OpCode, code: ErrorCode) -> RuleHandle {
    proxy.on(Match::reply(op).once()).rewrite(move |reply| {
        reply.truncate(12);
        let code = code.0 as u32;
        reply.extend([24, 16, 8, 0].map(|shift| (code >> shift & 0xFF) as u8));
    })
}

/// Scenario 65. It was not carried out, and the server wants to be left alone for a moment.
#[tokio::test]
async fn a_request_that_a_busy_server_turns_away_is_made_again_later() {
    on_each_release(async |stage: Stage| {
        for op in [OpCode::CREATE2, OpCode::GET_CHILDREN2, OpCode::DELETE] {
            let path = stage.path("throttled");
            stage.outsider.create(&path, b"").await.unwrap();
            let (proxy, zk) = stage.proxied().await;
            let lock = Lock::new(&zk, &path);
            let (dropped, refused) =
                (not_carried_out(&proxy, op), answered_with(&proxy, op, ErrorCode::THROTTLED_OP));
            let guard = within(lock.acquire()).await.unwrap();
            joined(&stage.outsider, &path, 1).await;
            within(guard.release()).await.unwrap();
            assert_eq!((dropped.times_fired(), refused.times_fired()), (1, 1), "{op:?}");
            emptied(&stage.outsider, &path).await;
            stage.outsider.delete(&path).await.unwrap();
        }
    })
    .await;
}

/// The same for who waits: what it reads in order to watch.
#[tokio::test]
async fn a_waiter_that_a_busy_server_turns_away_looks_again() {
    on_each_release(async |stage: Stage| {
        let path = stage.existing("busy").await;
        let holder = within(Lock::new(&stage.outsider, &path).acquire()).await.unwrap();
        let proxy = stage.proxy().await;
        let dropped = not_carried_out(&proxy, OpCode::GET_DATA);
        let refused = answered_with(&proxy, OpCode::GET_DATA, ErrorCode::THROTTLED_OP);
        let mut waiter = Waiter::joining(proxy, &path).await;
        // Its own node, and the one in front again.
        waiter.has_read(2).await;
        assert_eq!((dropped.times_fired(), refused.times_fired()), (1, 1));
        assert!(waiter.still_waits().await);
        within(holder.release()).await.unwrap();
        within(waiter.outcome().await.unwrap().release()).await.unwrap();
    })
    .await;
}

/// The server has given the request up, or says so: it may have been carried out, as here.
#[tokio::test]
async fn a_create_that_a_server_has_given_up_is_looked_for_and_not_made_again() {
    on_each_release(async |stage: Stage| {
        for code in [ErrorCode::REQUEST_TIMEOUT, ErrorCode::OPERATION_TIMEOUT] {
            let path = stage.path("given-up");
            stage.outsider.create(&path, b"").await.unwrap();
            let (proxy, zk) = stage.proxied().await;
            let refused = answered_with(&proxy, OpCode::CREATE2, code);
            let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
            assert_eq!(refused.times_fired(), 1);
            let requests = ops(&proxy.frames());
            let creates = requests.iter().filter(|op| **op == OpCode::CREATE2);
            assert_eq!(creates.count(), 1, "{requests:?}");
            assert!(requests.contains(&OpCode::SYNC), "{requests:?}");
            joined(&stage.outsider, &path, 1).await;
            within(guard.release()).await.unwrap();
            emptied(&stage.outsider, &path).await;
            stage.outsider.delete(&path).await.unwrap();
        }
    })
    .await;
}
