//! What the proxy remembers, and how it passes on what it does not touch.

use std::collections::BTreeSet;

use bytes::BytesMut;
use zk_proto::{ErrorCode, OpCode, SessionId};
use zk_testkit::proxy::{Direction, Kind, Match, Proxy};

use super::trio;
use crate::peer::{EVENT_PATH, EchoPeer, Seen};
use crate::support::{RawClient, connect_request, create2, exists, within_limit};

#[tokio::test]
async fn log_has_every_frame_and_pairs_replies() {
    let (_peer, proxy, mut client) = trio().await;
    client.call(&create2("/a")).await.expect("a reply");
    client.ask(&exists(EVENT_PATH)).await;
    client.reply().await.expect("a reply");

    let frames = proxy.frames();
    let brief: Vec<_> =
        frames.iter().map(|frame| (frame.kind, frame.op, frame.path.as_deref())).collect();
    let event = Some(EVENT_PATH);
    assert_eq!(
        brief,
        [
            (Kind::ConnectRequest, None, None),
            (Kind::ConnectResponse, None, None),
            (Kind::Request, Some(OpCode::CREATE2), Some("/a")),
            (Kind::Reply, Some(OpCode::CREATE2), Some("/a")),
            (Kind::Request, Some(OpCode::EXISTS), event),
            (Kind::Notification, Some(OpCode::NOTIFICATION), event),
            (Kind::Reply, Some(OpCode::EXISTS), event),
        ],
        "{frames}"
    );
    assert_eq!(frames[1].session, Some(SessionId(7)));
    assert_eq!(frames[3].error, Some(ErrorCode::OK));
    let counts = proxy.counts();
    assert_eq!(counts.requests(OpCode::CREATE2), 1);
    assert_eq!(counts.replies(OpCode::EXISTS), 1);
    assert_eq!(counts.of(Kind::Notification), 1);
    assert_eq!(counts.pings(Direction::ToServer), 0);
}

#[tokio::test]
async fn one_write_is_one_batch_and_round_trip() {
    let (_peer, proxy, mut client) = trio().await;
    let mark = proxy.mark();
    let (_, first) = client.encode(&create2("/a"));
    let (_, second) = client.encode(&exists("/a"));
    client.send(&[first, second].concat()).await;
    client.reply().await.expect("a reply");
    client.reply().await.expect("a reply");
    let together = proxy.frames_since(mark);
    assert_eq!(together[0].batch, together[1].batch, "{together}");
    assert_eq!(together.round_trips(), 1, "{together}");

    let mark = proxy.mark();
    client.call(&create2("/b")).await.expect("a reply");
    client.call(&exists("/b")).await.expect("a reply");
    let apart = proxy.frames_since(mark);
    assert_ne!(apart[0].batch, apart[2].batch, "{apart}");
    assert_eq!(apart.round_trips(), 2, "{apart}");
}

/// Two writes, and the first reply may well be there before the second: only holding it shows
/// that the client did not wait.
#[tokio::test]
async fn held_replies_make_round_trips_exact() {
    let (_peer, proxy, mut client) = trio().await;
    let mark = proxy.mark();
    let replies = proxy.on(Match::replies()).hold();
    client.ask(&create2("/a")).await;
    within_limit(replies.fired()).await;
    client.ask(&exists("/a")).await;
    within_limit(replies.fired_times(2)).await;
    replies.release();
    client.reply().await.expect("a reply");
    client.reply().await.expect("a reply");
    let frames = proxy.frames_since(mark);
    assert_eq!(frames.round_trips(), 1, "{frames}");
}

#[tokio::test]
async fn frames_read_together_are_sent_together() {
    let (peer, _proxy, mut client) = trio().await;
    let mut all = BytesMut::new();
    for _ in 0..50 {
        all.extend_from_slice(&client.encode(&exists("/a")).1);
    }
    client.send(&all).await;
    for _ in 0..50 {
        client.reply().await.expect("a reply");
    }
    assert_eq!(peer.reads(), [connect_request().len(), all.len()]);
}

#[tokio::test]
async fn frames_in_pieces_are_put_together_again() {
    let (peer, proxy, mut client) = trio().await;
    let (_, bytes) = client.encode(&create2("/in/pieces"));
    let (last, first) = bytes.split_last().expect("bytes");
    for byte in first {
        client.send(&[*byte]).await;
    }
    client.send(&[*last]).await;
    client.reply().await.expect("a reply");
    assert_eq!(peer.reads(), [connect_request().len(), bytes.len()]);
    let frame = proxy.wait_for(|frame| frame.is_request(OpCode::CREATE2));
    assert_eq!(frame.await.path.as_deref(), Some("/in/pieces"));
}

#[tokio::test]
async fn a_frame_larger_than_any_buffer_passes() {
    let (peer, proxy, mut client) = trio().await;
    let path = format!("/{}", "x".repeat(3 << 20));
    client.call(&exists(&path)).await.expect("a reply");
    peer.wait_for(Seen::Request(OpCode::EXISTS)).await;
    let frame = within_limit(proxy.wait_for(|frame| frame.is_request(OpCode::EXISTS))).await;
    assert_eq!(frame.path.as_deref(), Some(path.as_str()));
    assert!(frame.payload().len() < path.len());
}

#[tokio::test]
async fn what_is_no_frame_passes_as_it_is() {
    let peer = EchoPeer::start().await;
    let proxy = Proxy::start(peer.addr()).await.expect("a proxy");
    let mut word = RawClient::dial(proxy.addr()).await.expect("a connection");
    word.send(b"ruok").await;
    assert_eq!(word.read_to_end().await, b"imok");
    let kinds: Vec<_> = proxy.frames().iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [Kind::FourLetterWord, Kind::Opaque]);

    // The start of a TLS handshake, which would be a frame of 369 MB.
    let mut tls = RawClient::dial(proxy.addr()).await.expect("a connection");
    tls.send(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).await;
    let hello = within_limit(proxy.wait_for(|frame| frame.len == 6)).await;
    assert_eq!(hello.kind, Kind::Opaque);
}

#[tokio::test]
async fn cleared_log_keeps_old_marks_valid() {
    let (_peer, proxy, mut client) = trio().await;
    let mark = proxy.mark();
    client.call(&exists("/a")).await.expect("a reply");
    proxy.clear_log();
    assert_eq!(proxy.counts().of(Kind::Request), 0);
    client.call(&exists("/b")).await.expect("a reply");
    let frames = proxy.frames_since(mark);
    assert_eq!(frames.len(), 2, "{frames}");
    assert_eq!(frames.requests().len(), 1);
}

#[tokio::test]
async fn future_frame_can_be_awaited() {
    let (_peer, proxy, mut client) = trio().await;
    let waiting = proxy.wait_for(|frame| frame.is_reply(OpCode::EXISTS));
    let request = exists("/late");
    let calling = client.call(&request);
    let (frame, outcome) = within_limit(async { tokio::join!(waiting, calling) }).await;
    outcome.expect("a reply");
    assert_eq!(frame.path.as_deref(), Some("/late"));
}

/// The frames of all connections pass through one log, in whatever order; each connection's own
/// must stay whole and in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_keep_their_replies_apart() {
    const CLIENTS: u64 = 20;
    const REQUESTS: usize = 50;
    let peer = EchoPeer::start().await;
    let proxy = Proxy::start(peer.addr()).await.expect("a proxy");
    let addr = proxy.addr();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            tokio::spawn(async move {
                let mut client = RawClient::connect(addr).await;
                let path = format!("/of/{number}");
                for _ in 0..REQUESTS {
                    client.call(&exists(&path)).await.expect("a reply");
                }
            })
        })
        .collect();
    for client in clients {
        client.await.expect("no panic");
    }
    let frames = proxy.frames();
    assert!(frames.windows(2).all(|two| two[0].sequence < two[1].sequence));
    for connection in 1..=CLIENTS {
        let own = frames.of_connection(connection);
        assert_eq!(own.len(), 2 + 2 * REQUESTS);
        assert_eq!(own.round_trips(), REQUESTS, "{own}");
        let paths: BTreeSet<_> = own[2..].iter().map(|frame| frame.path.as_deref()).collect();
        assert_eq!(paths.len(), 1, "{own}");
    }
}

/// A frame that departs late is not taken for one that came later.
#[tokio::test]
async fn forgotten_frame_departs_without_a_trace() {
    let (_peer, proxy, mut late) = trio().await;
    let mut client = RawClient::connect(proxy.addr()).await;
    let forgotten = proxy.on(Match::reply(OpCode::CREATE2)).hold();
    late.ask(&create2("/a")).await;
    within_limit(forgotten.fired()).await;
    // The log begins with a reply.
    let first = proxy.on(Match::request(OpCode::EXISTS).once()).hold();
    client.ask(&exists("/b")).await;
    within_limit(first.fired()).await;
    proxy.clear_log();
    first.release();
    client.reply().await.expect("a reply");
    client.call(&exists("/c")).await.expect("a reply");
    let follows = || {
        let frames = proxy.frames();
        assert!(frames[0].is_reply(OpCode::EXISTS), "{frames}");
        frames[1].may_have_seen(&frames[0])
    };
    assert!(follows());
    forgotten.release();
    late.reply().await.expect("the reply that was held");
    assert!(follows());
}

/// What nobody can read is a frame nevertheless.
#[tokio::test]
async fn unreadable_frame_is_kept_without_its_length() {
    let (_peer, proxy, mut client) = trio().await;
    let mark = proxy.mark();
    client.send(&[0, 0, 0, 2, 0xab, 0xcd]).await;
    let frame = within_limit(proxy.wait_for_since(mark, |frame| frame.kind == Kind::Opaque)).await;
    assert_eq!((frame.len, &frame.payload()[..]), (2, &[0xab, 0xcd][..]));
}
