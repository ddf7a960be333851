//! Each condition and each reaction.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use zk_proto::frame::ReplyHeader;
use zk_proto::jute::{Encode, decode_prefix};
use zk_proto::{ErrorCode, OpCode, Xid, Zxid};
use zk_testkit::TestServer;
use zk_testkit::proxy::{Direction, Disposition, Kind, Match, Proxy};

use super::trio;
use crate::peer::{EVENT_PATH, EchoPeer, Seen};
use crate::support::{RawClient, connect_request, create2, exists, within_limit};

/// Long enough to notice a frame that should not have come, short enough to be worth it.
const QUIET: Duration = Duration::from_millis(100);

#[tokio::test]
async fn delayed_frame_holds_back_later_frames() {
    let (_peer, proxy, mut client) = trio().await;
    let delay = Duration::from_millis(120);
    let rule = proxy.on(Match::reply(OpCode::CREATE2)).delay(delay);
    let before = Instant::now();
    let first = client.ask(&create2("/a")).await;
    let second = client.ask(&exists("/b")).await;
    let (reply, _) = client.reply().await.expect("a reply");
    assert!(before.elapsed() >= delay, "{:?}", before.elapsed());
    assert_eq!(reply.xid, first);
    let (reply, _) = client.reply().await.expect("a reply");
    assert_eq!(reply.xid, second);
    assert_eq!(rule.times_fired(), 1);
}

/// A delay for all frames is a longer line: ten requests at once take one delay, not ten.
#[tokio::test]
async fn delays_of_consecutive_frames_overlap() {
    let (_peer, proxy, mut client) = trio().await;
    let delay = Duration::from_secs(1);
    let _rule = proxy.on(Match::going(Direction::ToServer)).delay(delay);
    let before = Instant::now();
    for _ in 0..10 {
        client.ask(&exists("/a")).await;
    }
    for _ in 0..10 {
        client.reply().await.expect("a reply");
    }
    assert!(before.elapsed() < 5 * delay, "{:?}", before.elapsed());
}

#[tokio::test]
async fn a_dropped_request_never_arrives() {
    let (peer, proxy, mut client) = trio().await;
    let _rule = proxy.on(Match::request(OpCode::CREATE2)).drop_frame();
    client.ask(&create2("/a")).await;
    let second = client.ask(&exists("/b")).await;
    let (reply, _) = client.reply().await.expect("a reply");
    assert_eq!(reply.xid, second);
    assert_eq!(peer.seen(), [Seen::Handshake, Seen::Request(OpCode::EXISTS)]);
}

#[tokio::test]
async fn cut_closes_both_sides_and_drops_frame() {
    let (peer, proxy, mut client) = trio().await;
    let rule = proxy.on(Match::request(OpCode::CREATE2)).cut();
    client.ask(&create2("/a")).await;
    assert_eq!(client.end().await, ErrorKind::UnexpectedEof);
    peer.wait_for(Seen::End).await;
    assert_eq!(peer.seen(), [Seen::Handshake, Seen::End]);
    assert_eq!(rule.fired().await.disposition, Disposition::EndedConnection);
}

#[tokio::test]
async fn request_reset_reaches_only_the_client() {
    let (peer, proxy, mut client) = trio().await;
    let _rule = proxy.on(Match::request(OpCode::CREATE2)).reset();
    client.ask(&create2("/a")).await;
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);
    peer.wait_for(Seen::End).await;
    assert_eq!(peer.seen(), [Seen::Handshake, Seen::End]);
}

#[tokio::test]
async fn reset_after_forwarding_drops_the_reply() {
    let (peer, proxy, mut client) = trio().await;
    let condition = Match::request(OpCode::CREATE2);
    let _rule = proxy.on(condition).after_forwarding().reset();
    client.ask(&create2("/a")).await;
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);
    peer.wait_for(Seen::Request(OpCode::CREATE2)).await;
    let answer = within_limit(proxy.wait_for(|frame| frame.is_reply(OpCode::CREATE2))).await;
    assert_eq!(answer.disposition, Disposition::Discarded);
}

#[tokio::test]
async fn reply_can_be_cut_in_its_length_prefix() {
    let (_peer, proxy, mut client) = trio().await;
    let condition = Match::reply(OpCode::EXISTS);
    let _rule = proxy.on(condition).after_forwarding_bytes(3).cut();
    client.ask(&exists("/a")).await;
    assert_eq!(client.end().await, ErrorKind::UnexpectedEof);
    assert_eq!(client.rest(), [0, 0, 0]);
}

#[tokio::test]
async fn silence_rule_lasts_until_resume() {
    let (peer, proxy, mut client) = trio().await;
    let rule = proxy.on(Match::request(OpCode::CREATE2)).silence();
    client.ask(&create2("/a")).await;
    client.ask(&exists("/b")).await;
    within_limit(rule.fired()).await;
    assert!(client.hears_nothing_for(QUIET).await);
    assert_eq!(peer.seen(), [Seen::Handshake]);
    let kept = proxy.frames().requests();
    assert!(kept.iter().all(|f| f.disposition == Disposition::Silenced), "{kept}");

    proxy.resume();
    assert_eq!(client.reply().await.expect("a reply").0.xid, Xid(1));
    assert_eq!(client.reply().await.expect("a reply").0.xid, Xid(2));
}

#[tokio::test]
async fn one_way_silence_passes_the_other_way() {
    let (peer, proxy, mut client) = trio().await;
    let condition = Match::reply(OpCode::CREATE2);
    let _rule = proxy.on(condition).after_forwarding().silence_this_way();
    client.call(&create2("/a")).await.expect("this reply is forwarded");
    client.ask(&exists("/b")).await;
    peer.wait_for(Seen::Request(OpCode::EXISTS)).await;
    assert!(client.hears_nothing_for(QUIET).await);
}

#[tokio::test]
async fn held_frame_waits_for_release_of_the_rule() {
    let (_peer, proxy, mut client) = trio().await;
    let rule = proxy.on(Match::reply(OpCode::CREATE2)).hold();
    client.ask(&create2("/a")).await;
    client.ask(&exists("/b")).await;
    let held = within_limit(rule.fired()).await;
    assert_eq!(held.path.as_deref(), Some("/a"));
    assert!(client.hears_nothing_for(QUIET).await);
    rule.release();
    client.reply().await.expect("the held reply");
    client.reply().await.expect("the one behind it");
    client.call(&create2("/c")).await.expect("no longer held");
    assert_eq!(rule.times_fired(), 1);
}

#[tokio::test]
async fn dropping_a_rule_releases_what_it_holds() {
    let (_peer, proxy, mut client) = trio().await;
    let rule = proxy.on(Match::request(OpCode::EXISTS)).hold();
    client.ask(&exists("/a")).await;
    within_limit(rule.fired()).await;
    drop(rule);
    client.reply().await.expect("the held request's reply");
}

#[tokio::test]
async fn a_reply_can_be_rewritten() {
    let (_peer, proxy, mut client) = trio().await;
    let rewrite = |payload: &mut Vec<u8>| {
        let reply = Bytes::copy_from_slice(payload);
        let header: ReplyHeader = decode_prefix(&reply).expect("a reply header");
        let refusal = ReplyHeader { err: ErrorCode::NODE_EXISTS, ..header };
        let mut refused = BytesMut::new();
        refusal.encode(&mut refused);
        *payload = refused.to_vec();
    };
    let _rule = proxy.on(Match::reply(OpCode::CREATE2)).rewrite(rewrite);
    let err = client.call(&create2("/a")).await.expect("a reply");
    assert_eq!(err, ErrorCode::NODE_EXISTS);
}

#[tokio::test]
async fn forged_bytes_can_replace_a_reply() {
    let (_peer, proxy, mut client) = trio().await;
    let forged = [0, 0, 0, 16, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0];
    let rule = proxy.on(Match::reply(OpCode::CREATE2)).forge(forged.to_vec());
    client.ask(&create2("/a")).await;
    let (reply, _) = client.reply().await.expect("a reply");
    assert_eq!((reply.xid, reply.zxid), (Xid(9), Zxid(5)));
    assert_eq!(rule.times_fired(), 1);
}

#[tokio::test]
async fn the_nth_match_alone_fires() {
    let (_peer, proxy, mut client) = trio().await;
    let rule = proxy.on(Match::reply(OpCode::CREATE2).nth(3)).reset();
    for path in ["/a", "/b"] {
        client.call(&exists(path)).await.expect("another operation");
        client.call(&create2(path)).await.expect("an earlier match");
    }
    assert_eq!(rule.times_fired(), 0);
    let lost = client.call(&create2("/c")).await;
    assert_eq!(lost.expect_err("the third is lost").kind(), ErrorKind::ConnectionReset);
    let mut other = RawClient::connect(proxy.addr()).await;
    other.call(&create2("/d")).await.expect("once only");
    assert_eq!(rule.fired().await.path.as_deref(), Some("/c"));
}

#[tokio::test]
async fn all_conditions_of_a_match_must_hold() {
    let (_peer, proxy, mut first) = trio().await;
    let mut second = RawClient::connect(proxy.addr()).await;
    let condition = Match::request(OpCode::CREATE2)
        .path("/locks/")
        .connection(2)
        .when(|frame| frame.len < 1_000);
    let rule = proxy.on(condition).watch();
    first.call(&create2("/locks/a")).await.expect("a reply");
    second.call(&create2("/other")).await.expect("a reply");
    second.call(&exists("/locks/a")).await.expect("a reply");
    assert_eq!(rule.times_fired(), 0);
    second.call(&create2("/locks/b")).await.expect("a reply");
    assert_eq!(rule.times_fired(), 1);
    assert_eq!(rule.fired().await.connection, 2);
}

#[tokio::test]
async fn older_of_two_matching_rules_applies() {
    let (_peer, proxy, mut client) = trio().await;
    let older = proxy.on(Match::request(OpCode::EXISTS).once()).watch();
    let newer = proxy.on(Match::request(OpCode::EXISTS)).watch();
    client.call(&exists("/a")).await.expect("a reply");
    assert_eq!((older.times_fired(), newer.times_fired()), (1, 0));
    client.call(&exists("/a")).await.expect("a reply");
    assert_eq!((older.times_fired(), newer.times_fired()), (1, 1));
}

#[tokio::test]
async fn notifications_differ_from_replies() {
    let (_peer, proxy, mut client) = trio().await;
    let rule = proxy.on(Match::notification()).drop_frame();
    client.ask(&exists(EVENT_PATH)).await;
    let frame = client.frame().await.expect("the reply, without the event");
    assert_eq!(frame[..4], [0, 0, 0, 1]);
    let event = rule.fired().await;
    assert_eq!(event.path.as_deref(), Some(EVENT_PATH));
    assert_eq!(event.kind, Kind::Notification);
}

#[tokio::test]
async fn both_halves_of_the_handshake_can_be_hit() {
    let peer = EchoPeer::start().await;
    let proxy = Proxy::start(peer.addr()).await.expect("a proxy");
    {
        let _rule = proxy.on(Match::connect_request()).cut();
        let mut client = RawClient::dial(proxy.addr()).await.expect("a connection");
        client.send(&connect_request()).await;
        assert_eq!(client.end().await, ErrorKind::UnexpectedEof);
        peer.wait_for(Seen::End).await;
        assert_eq!(peer.seen(), [Seen::End]);
    }
    {
        let _rule = proxy.on(Match::connect_response()).reset();
        let mut client = RawClient::dial(proxy.addr()).await.expect("a connection");
        client.send(&connect_request()).await;
        assert_eq!(client.end().await, ErrorKind::ConnectionReset);
        peer.wait_for(Seen::Handshake).await;
    }
    RawClient::connect(proxy.addr()).await;
}

#[tokio::test]
async fn a_frame_that_is_only_watched_is_not_delayed() {
    let (_peer, proxy, mut client) = trio().await;
    let watched = proxy.on(Match::request(OpCode::EXISTS)).watch();
    client.call(&exists("/a")).await.expect("a reply");
    assert_eq!(within_limit(watched.fired()).await.disposition, Disposition::Forwarded);
    proxy.silence();
    client.ask(&exists("/b")).await;
    assert_eq!(within_limit(watched.fired_times(2)).await.disposition, Disposition::Silenced);
}

/// What a test has wrong is to fail it, and not to have it wait for ever.
#[tokio::test]
async fn a_predicate_that_panics_closes_its_connection() {
    let (_peer, proxy, mut client) = trio().await;
    let _rule = proxy.on(Match::request(OpCode::EXISTS).when(|_| panic!("as planned"))).watch();
    client.ask(&exists("/a")).await;
    within_limit(proxy.all_closed()).await;
}

/// It has no length that could be put right.
#[tokio::test]
async fn rewritten_word_is_answered() {
    let server = TestServer::start().await.expect("a server");
    let _rule =
        server.on(Match::kind(Kind::FourLetterWord)).rewrite(|word| *word = b"srvr".to_vec());
    let mut client = RawClient::dial(server.proxy().addr()).await.expect("accepted");
    client.send(b"ruok").await;
    let answer = String::from_utf8(client.read_to_end().await).expect("text");
    assert!(answer.starts_with("Zookeeper version"), "{answer}");
}

#[tokio::test]
async fn rewritten_frame_that_nobody_can_read_has_its_length_put_right() {
    let (peer, proxy, mut client) = trio().await;
    let (_, request) = client.encode(&exists("/a"));
    let readable = request[4..].to_vec();
    let _rule =
        proxy.on(Match::kind(Kind::Opaque)).rewrite(move |contents| contents.clone_from(&readable));
    client.send(&[0, 0, 0, 2, 0xab, 0xcd]).await;
    peer.wait_for(Seen::Request(OpCode::EXISTS)).await;
}
