//! Servers that are too busy, and say so instead of doing what they are asked.

use zk_locks::{Lock, MultiLock};
use zk_proto::{ErrorCode, OpCode};
use zk_testkit::proxy::{Match, Proxy, RuleHandle};
use zk_tests::{busy::ask_for_nothing, test_with};

use crate::locks::support::{Setup, emptied, joined, on_each_release, ops, within};

/// Has these answers say that the request failed.
pub(super) fn answered_with(proxy: &Proxy, replies: Match, code: ErrorCode) -> RuleHandle {
    proxy.on(replies).rewrite(move |reply| {
        reply.truncate(12);
        let code = code.0 as u32;
        reply.extend([24, 16, 8, 0].map(|shift| (code >> shift & 0xFF) as u8));
    })
}

/// The server has given the request up, or says so: it may have been carried out, as here.
#[test_with(on_each_release)]
async fn create_timed_out_on_server_is_found(setup: Setup) {
    for code in [ErrorCode::REQUEST_TIMEOUT, ErrorCode::OPERATION_TIMEOUT] {
        let path = setup.path("given-up");
        setup.outsider.create(&path, b"").await.unwrap();
        let (proxy, zk) = setup.proxied().await;
        let refused = answered_with(&proxy, Match::reply(OpCode::CREATE2).once(), code);
        let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
        assert_eq!(refused.times_fired(), 1);
        let requests = ops(&proxy.frames());
        let creates = requests.iter().filter(|op| **op == OpCode::CREATE2);
        assert_eq!(creates.count(), 1, "{requests:?}");
        assert!(requests.contains(&OpCode::SYNC), "{requests:?}");
        joined(&setup.outsider, &path, 1).await;
        within(guard.release()).await.unwrap();
        emptied(&setup.outsider, &path).await;
        setup.outsider.delete(&path).await.unwrap();
    }
}

/// What `MultiLock` falls back on: all locks or none, in the order that all contenders keep to.
#[test_with(on_each_release)]
async fn without_multi_locks_are_taken_one_by_one(setup: Setup) {
    let paths = [setup.existing("b").await, setup.existing("a").await];
    let (proxy, zk) = setup.proxied().await;
    let _unseen = proxy.on(Match::request(OpCode::MULTI)).rewrite(ask_for_nothing);
    let unknown = ErrorCode::UNIMPLEMENTED;
    let refused = answered_with(&proxy, Match::reply(OpCode::MULTI), unknown);
    let both = MultiLock::new(&zk, &paths);
    let guards = within(both.acquire()).await.unwrap();
    assert_eq!(refused.times_fired(), 1);
    let frames = proxy.frames();
    let creates = frames.iter().filter(|frame| frame.is_request(OpCode::CREATE2));
    let creates: Vec<_> = creates.filter_map(|frame| frame.path.clone()).collect();
    assert_eq!(creates.len(), 2, "{frames}");
    assert!(creates[0].starts_with(&paths[1]) && creates[1].starts_with(&paths[0]));
    // In the order of asking all the same.
    assert!(guards.iter().next().unwrap().path().starts_with(&paths[0]));
    within(guards.release()).await.unwrap();

    // While one is taken the other is not kept.
    let held = within(Lock::new(&setup.outsider, &paths[0]).acquire()).await.unwrap();
    assert!(within(both.try_acquire()).await.unwrap().is_none());
    let short = std::time::Duration::from_millis(50);
    assert!(both.acquire_timeout(short).await.is_err());
    // What was given up in that time may still be on its way, and would be in front of the next try. Asked by the client
    // that has sent it: behind it.
    emptied(&zk, &paths[1]).await;
    joined(&zk, &paths[0], 1).await;
    within(held.release()).await.unwrap();
    let guards = within(both.try_acquire()).await.unwrap().expect("both are free");
    within(guards.release()).await.unwrap();
}
