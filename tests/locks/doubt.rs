//! Creates in doubt: how it is found out, request by request, whether they happened.

use zk_client::CreateMode;
use zk_locks::{Client, Lock};
use zk_proto::OpCode;
use zk_testkit::proxy::{Frames, Match, Proxy};
use zk_tests::test_with;

use crate::locks::support::{
    Setup, Waiter, client_behind, emptied, on_each_release, ops, options_for, within,
};

/// Acquires and releases through a proxy, and returns the operations of the acquire.
async fn acquire(proxy: &Proxy, zk: &Client, path: &str) -> Vec<OpCode> {
    let mark = proxy.mark();
    let guard = within(Lock::new(zk, path).acquire()).await.unwrap();
    let ops = ops(&proxy.frames_since(mark));
    let (names, _) = zk.children(path).await.unwrap();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(guard.path().ends_with(&names[0]));
    let stat = zk.exists(guard.path()).await.unwrap().unwrap();
    assert_eq!(guard.token().get(), stat.czxid.0);
    within(guard.release()).await.unwrap();
    emptied(zk, path).await;
    ops
}

/// What the requests to create were for.
fn created(frames: &Frames) -> Vec<String> {
    let creates = frames.iter().filter(|frame| frame.is_request(OpCode::CREATE2));
    creates.filter_map(|frame| frame.path.clone()).collect()
}

/// The search, by the unique name, behind a barrier.
const SEARCH: [OpCode; 2] = [OpCode::SYNC, OpCode::GET_CHILDREN];

#[test_with(on_each_release)]
async fn node_in_doubt_is_found(setup: Setup) {
    let path = setup.existing("found").await;
    let (proxy, zk) = setup.proxied().await;
    let _lost = proxy.on(Match::reply(OpCode::CREATE2).once()).reset();
    let join = [OpCode::CREATE2, OpCode::GET_CHILDREN2];
    let again = [OpCode::GET_CHILDREN2];
    let expected = [&join[..], &again, &SEARCH, &[OpCode::EXISTS]].concat();
    assert_eq!(acquire(&proxy, &zk, &path).await, expected);
}

/// The second request has the same name, by which the node of the first would have been found.
#[test_with(on_each_release)]
async fn unsent_create_is_retried_under_its_name(setup: Setup) {
    let path = setup.existing("not-found").await;
    let (proxy, zk) = setup.proxied().await;
    let _lost = proxy.on(Match::request(OpCode::CREATE2).once()).reset();
    let ops = acquire(&proxy, &zk, &path).await;
    let join = [OpCode::CREATE2, OpCode::GET_CHILDREN2];
    let again = [OpCode::GET_CHILDREN2];
    // The listing that was sent again came before the node.
    let expected = [&join[..], &again, &SEARCH, &[OpCode::CREATE2], &again].concat();
    assert_eq!(ops, expected);
    let names = created(&proxy.frames());
    assert_eq!(names.len(), 2);
    assert_eq!(names[0], names[1]);
}

#[test_with(on_each_release)]
async fn interrupted_search_restarts(setup: Setup) {
    let path = setup.existing("interrupted").await;
    let (proxy, zk) = setup.proxied().await;
    for step in [OpCode::SYNC, OpCode::GET_CHILDREN, OpCode::EXISTS] {
        let lost = proxy.on(Match::reply(OpCode::CREATE2).once()).reset();
        let again = proxy.on(Match::reply(step).once()).reset();
        let ops = acquire(&proxy, &zk, &path).await;
        assert_eq!((lost.times_fired(), again.times_fired()), (1, 1));
        assert_eq!(ops.iter().filter(|op| **op == OpCode::CREATE2).count(), 1, "{ops:?}");
        // A listing tells nothing without a barrier in front of it on the same connection.
        let barriers = ops.iter().filter(|op| **op == OpCode::SYNC).count();
        assert_eq!(barriers, if step == OpCode::EXISTS { 1 } else { 2 }, "{step:?}: {ops:?}");
    }
}

/// Such a reply breaks the connection, and a request is not sent again whose reply does that: the search has
/// to ask anew.
#[test_with(on_each_release)]
async fn search_with_unreadable_reply_restarts(setup: Setup) {
    let path = setup.existing("unread").await;
    let proxy = setup.proxy().await;
    let zk = choosy(&proxy).await;
    for step in [OpCode::GET_CHILDREN, OpCode::EXISTS] {
        let lost = proxy.on(Match::reply(OpCode::CREATE2).once()).reset();
        let spoilt = proxy.on(Match::reply(step).once()).rewrite(too_long);
        let ops = acquire(&proxy, &zk, &path).await;
        assert_eq!((lost.times_fired(), spoilt.times_fired()), (1, 1));
        assert_eq!(ops.iter().filter(|op| **op == OpCode::CREATE2).count(), 1, "{ops:?}");
    }
}

#[test_with(on_each_release)]
async fn release_with_unreadable_reply_is_retried(setup: Setup) {
    let path = setup.existing("unread-release").await;
    let proxy = setup.proxy().await;
    let zk = choosy(&proxy).await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let never_came = proxy.on(Match::request(OpCode::DELETE).once()).rewrite(|frame| {
        frame.truncate(8);
        frame.extend([0; 8]);
    });
    let spoilt = proxy.on(Match::reply(OpCode::DELETE).once()).rewrite(too_long);
    within(guard.release()).await.unwrap();
    assert_eq!((never_came.times_fired(), spoilt.times_fired()), (1, 1));
    emptied(&setup.outsider, &path).await;
}

const REPLY_LEN_MAX: usize = 1 << 16;

/// A client that does not take long replies.
async fn choosy(proxy: &Proxy) -> Client {
    options_for(proxy).reply_len_max(REPLY_LEN_MAX).connect().await.unwrap()
}

/// Longer than it takes.
fn too_long(frame: &mut Vec<u8>) {
    frame.resize(REPLY_LEN_MAX + 1, 0);
}

/// Has an outsider change the queue while a client cannot know whether its node was created.
async fn meddle(setup: &Setup, path: &str, meddle: impl AsyncFn(&str)) -> Waiter {
    let proxy = setup.proxy().await;
    let zk = client_behind(&proxy).await;
    let created = proxy.on(Match::reply(OpCode::CREATE2).once()).hold();
    let waiter = Waiter::new(proxy, zk, path);
    within(created.fired()).await;
    waiter.proxy.refuse_connections().await;
    waiter.proxy.reset_all();
    let (names, _) = setup.outsider.children(path).await.unwrap();
    meddle(&format!("{path}/{}", names[0])).await;
    waiter.proxy.accept_connections().await;
    waiter
}

/// There should never be one. If there is, a waiter behind it would wait for no client.
#[test_with(on_each_release)]
async fn duplicate_node_of_an_attempt_is_deleted(setup: Setup) {
    let path = setup.existing("twin").await;
    let twin = async |node: &str| {
        let twin = &node[..node.len() - 10];
        let mode = CreateMode::EphemeralSequential;
        setup.outsider.create(twin, b"").mode(mode).await.unwrap();
    };
    let mut waiter = meddle(&setup, &path, twin).await;
    let guard = waiter.outcome().await.unwrap();
    assert!(guard.path().ends_with("-0000000000"));
    within(guard.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release)]
async fn deleted_node_in_doubt_is_recreated(setup: Setup) {
    let path = setup.existing("deleted").await;
    let delete = async |node: &str| setup.outsider.delete(node).await.unwrap();
    let mut waiter = meddle(&setup, &path, delete).await;
    let guard = waiter.outcome().await.unwrap();
    assert!(guard.path().ends_with("-0000000001"), "{}", guard.path());
    within(guard.release()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// The server has made a session by then, unknown to any client; it expires.
#[test_with(on_each_release)]
async fn lost_first_handshake_is_retried(setup: Setup) {
    let path = setup.existing("greeting").await;
    let proxy = setup.proxy().await;
    let reset = proxy.on(Match::connect_response().once()).reset();
    let closed = proxy.on(Match::connect_response().once()).cut();
    let zk = client_behind(&proxy).await;
    assert_eq!((reset.times_fired(), closed.times_fired()), (1, 1));
    acquire(&proxy, &zk, &path).await;
}
