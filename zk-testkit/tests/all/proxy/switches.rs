//! What acts on all connections at once.

use std::io::ErrorKind;
use std::time::Duration;

use zk_proto::OpCode;
use zk_testkit::proxy::{Direction, Proxy};

use super::trio;
use crate::peer::{EchoPeer, Seen};
use crate::support::{LIMIT, RawClient, connect_request, exists, within_limit};

const QUIET: Duration = Duration::from_millis(100);

#[tokio::test]
async fn silent_proxy_accepts_and_delivers_later() {
    let (peer, proxy, mut old) = trio().await;
    proxy.silence();
    old.ask(&exists("/a")).await;
    let mut new = RawClient::dial(proxy.addr()).await.expect("accepted");
    new.send(&connect_request()).await;
    assert!(old.hears_nothing_for(QUIET).await);
    assert!(new.hears_nothing_for(QUIET).await);
    assert_eq!(peer.seen(), [Seen::Handshake]);
    proxy.resume();
    old.reply().await.expect("a reply");
    new.frame().await.expect("a connect response");
}

#[tokio::test]
async fn silence_to_client_still_passes_requests() {
    let (peer, proxy, mut client) = trio().await;
    proxy.silence_way(Direction::ToClient);
    client.ask(&exists("/a")).await;
    peer.wait_for(Seen::Request(OpCode::EXISTS)).await;
    assert!(client.hears_nothing_for(QUIET).await);
}

#[tokio::test]
async fn cut_or_reset_ends_only_open_connections() {
    let (_peer, proxy, mut first) = trio().await;
    let mut second = RawClient::connect(proxy.addr()).await;
    proxy.cut_all();
    assert_eq!(first.end().await, ErrorKind::UnexpectedEof);
    assert_eq!(second.end().await, ErrorKind::UnexpectedEof);
    let mut third = RawClient::connect(proxy.addr()).await;
    third.call(&exists("/a")).await.expect("a reply");
    proxy.reset_all();
    assert_eq!(third.end().await, ErrorKind::ConnectionReset);
    assert_eq!(proxy.accepted(), 3);
}

/// A connection that holds frames back ends no later for that.
#[tokio::test]
async fn a_silent_connection_can_be_reset() {
    let (_peer, proxy, mut client) = trio().await;
    proxy.silence();
    client.ask(&exists("/a")).await;
    proxy.reset_all();
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);
}

/// What a slow link has taken in already has not passed it.
#[tokio::test]
async fn silence_holds_what_a_limited_rate_holds() {
    let (_peer, proxy, mut client) = trio().await;
    proxy.limit_rate(Direction::ToClient, Some(0));
    client.ask(&exists("/a")).await;
    within_limit(proxy.wait_for(|frame| frame.is_reply(OpCode::EXISTS))).await;
    proxy.silence();
    proxy.limit_rate(Direction::ToClient, None);
    assert!(client.hears_nothing_for(QUIET).await);
    proxy.resume();
    client.reply().await.expect("a reply");

    proxy.limit_rate(Direction::ToClient, Some(0));
    client.ask(&exists("/b")).await;
    within_limit(proxy.wait_for(|frame| frame.path.as_deref() == Some("/b"))).await;
    proxy.silence();
    proxy.cut_all();
    assert_eq!(client.end().await, ErrorKind::UnexpectedEof);
    assert_eq!(client.rest(), b"");
}

#[tokio::test]
async fn refusing_keeps_open_connections() {
    let (_peer, proxy, mut old) = trio().await;
    proxy.refuse_connections().await;
    let refused = RawClient::dial(proxy.addr()).await.expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    old.call(&exists("/a")).await.expect("a reply");
    proxy.accept_connections().await;
    RawClient::connect(proxy.addr()).await;
}

#[tokio::test]
async fn a_new_target_is_for_new_connections() {
    let (first, proxy, mut old) = trio().await;
    let second = EchoPeer::start().await;
    proxy.set_target(second.addr());
    let mut new = RawClient::connect(proxy.addr()).await;
    new.call(&exists("/a")).await.expect("a reply");
    old.call(&exists("/a")).await.expect("a reply");
    let expected = [Seen::Handshake, Seen::Request(OpCode::EXISTS)];
    assert_eq!(first.seen(), expected);
    assert_eq!(second.seen(), expected);
}

#[tokio::test]
async fn client_of_unreachable_server_is_reset() {
    let peer = EchoPeer::start().await;
    let proxy = Proxy::start(peer.addr()).await.expect("a proxy");
    proxy.set_target(([127, 0, 0, 1], 1).into());
    let mut client = RawClient::dial(proxy.addr()).await.expect("accepted");
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn the_end_of_either_side_is_passed_on() {
    let (peer, _proxy, client) = trio().await;
    drop(client);
    peer.wait_for(Seen::End).await;
}

#[tokio::test]
async fn server_reset_is_passed_on() {
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let proxy = Proxy::start(server.local_addr().expect("an address")).await.expect("a proxy");
    let mut client = RawClient::dial(proxy.addr()).await.expect("a connection");
    client.send(&connect_request()).await;
    let (stream, _) = within_limit(server.accept()).await.expect("the proxy");
    within_limit(stream.peek(&mut [0])).await.expect("the handshake");
    let socket = socket2::SockRef::from(&stream);
    socket.set_linger(Some(Duration::ZERO)).expect("an open socket");
    drop(stream);
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);
    within_limit(proxy.all_closed()).await;
}

#[tokio::test]
async fn a_client_that_resets_ends_the_connection() {
    let (peer, proxy, client) = trio().await;
    client.reset();
    peer.wait_for(Seen::End).await;
    within_limit(proxy.all_closed()).await;
}

/// Connections of a dropped proxy end; they do not linger until the runtime does.
#[tokio::test]
async fn drop_ends_connections_and_frees_the_port() {
    let (peer, proxy, mut client) = trio().await;
    let addr = proxy.addr();
    drop(proxy);
    client.end().await;
    peer.wait_for(Seen::End).await;
    let freed = tokio::time::timeout(LIMIT, async {
        while RawClient::dial(addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    freed.await.expect("nobody listens any more");
}

#[tokio::test]
async fn at_no_bytes_a_second_nothing_passes() {
    let (peer, proxy, mut client) = trio().await;
    proxy.limit_rate(Direction::ToClient, Some(0));
    client.ask(&exists("/a")).await;
    peer.wait_for(Seen::Request(OpCode::EXISTS)).await;
    assert!(client.hears_nothing_for(QUIET).await);
    proxy.limit_rate(Direction::ToClient, Some(1_000_000));
    within_limit(client.reply()).await.expect("a reply");
    proxy.limit_rate(Direction::ToClient, Some(0));
    client.ask(&exists("/b")).await;
    proxy.reset_all();
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);
    within_limit(proxy.all_closed()).await;
}

/// What waits on a slow link is not waited for.
#[tokio::test]
async fn a_slow_connection_ends_with_its_reset() {
    let (peer, proxy, mut client) = trio().await;
    proxy.limit_rate(Direction::ToClient, Some(1));
    client.ask(&exists("/a")).await;
    peer.wait_for(Seen::Request(OpCode::EXISTS)).await;
    within_limit(proxy.wait_for(|frame| frame.is_reply(OpCode::EXISTS))).await;
    proxy.reset_all();
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);
}

/// In a process of its own, which may have few files.
#[cfg(unix)]
#[test]
fn clients_are_accepted_once_there_are_files_again() {
    const NAME: &str = "proxy::switches::clients_are_accepted_once_there_are_files_again";
    if std::env::var_os("FEW_FILES").is_none() {
        let tests = std::env::current_exe().expect("the tests");
        let mut few = std::process::Command::new("sh");
        few.args(["-c", "ulimit -n 64 && exec \"$0\" --exact \"$1\""]).arg(tests).arg(NAME);
        let ended = few.env("FEW_FILES", "yes").output().expect("a shell");
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let peer = EchoPeer::start().await;
        let proxy = Proxy::start(peer.addr()).await.expect("a proxy");
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        let files: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        let _client = socket.connect(proxy.addr()).await.expect("the kernel takes it");
        // Long enough for the proxy to find that it has no file for this client.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(proxy.accepted(), 0);
        drop(files);
        peer_is_dialed(&proxy).await;
    });
}

#[cfg(unix)]
async fn peer_is_dialed(proxy: &Proxy) {
    within_limit(async {
        while proxy.accepted() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}
