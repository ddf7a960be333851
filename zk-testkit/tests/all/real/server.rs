//! One real server: starting, killing, pausing.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use zk_proto::ErrorCode;
use zk_testkit::real::{Error, Mode, Release, Server, Wanted};

use crate::support::{LIMIT, RawClient, create2, exists};

/// Prints what was found, so that a log of the tests tells what they ran against.
#[tokio::test]
async fn every_release_starts_and_reports_version() {
    for line in Release::ALL {
        let before = Instant::now();
        let server = Server::start(line).await.expect("a server");
        println!("{} serves after {:?}", server.version(), before.elapsed());
        assert_eq!(server.release(), line);
        let srvr = server.four_letter("srvr").await.expect("an answer");
        let said = format!("version: {}", server.version());
        assert!(srvr.contains(&said), "{srvr}");
        let mut client = RawClient::connect(server.addr()).await;
        let root = client.call(&exists("/")).await.expect("a reply");
        assert_eq!(root, ErrorCode::OK);
    }
}

#[tokio::test]
async fn killed_server_returns_with_port_and_data() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    let (addr, process) = (server.addr(), server.process_id());
    let mut client = RawClient::connect(addr).await;
    client.call(&create2("/kept")).await.expect("a reply");

    server.kill().await.expect("a kill");
    assert!(!server.is_running());
    let refused = RawClient::dial(addr).await.expect_err("nobody listens");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);

    server.restart().await.expect("a restart");
    assert_eq!(server.addr(), addr);
    assert_ne!(server.process_id(), process);
    let mut client = RawClient::connect(addr).await;
    let found = client.call(&exists("/kept")).await.expect("a reply");
    assert_eq!(found, ErrorCode::OK);
}

#[tokio::test]
async fn a_stopped_server_has_ended_in_order() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    server.stop().await.expect("a stop");
    assert!(!server.is_running());
    server.stop().await.expect("stopping again does nothing");
    server.kill().await.expect("killing does nothing either");
    server.restart().await.expect("a restart");
}

#[tokio::test]
async fn paused_server_answers_after_resuming() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    let mut client = RawClient::connect(server.addr()).await;
    server.pause().expect("a pause");
    assert!(server.is_running());
    assert_eq!(server.mode().await, None);
    let xid = client.ask(&exists("/")).await;
    assert!(client.hears_nothing_for(Duration::from_millis(100)).await);
    server.resume().expect("a wake-up");
    let (reply, _) = client.reply().await.expect("a reply");
    assert_eq!(reply.xid, xid);
    assert_eq!(server.mode().await, Some(Mode::Standalone));
}

#[tokio::test]
async fn pausing_a_paused_server_does_nothing() {
    let server = Arc::new(Server::start(Wanted::Any).await.expect("a server"));
    let (paused, twice) = mpsc::channel();
    let other = Arc::clone(&server);
    // A thread of its own: one that waits for ever is waited for by no runtime.
    thread::spawn(move || paused.send([other.pause(), other.pause()]));
    let twice = twice.recv_timeout(LIMIT).expect("both return");
    assert!(twice.iter().all(Result::is_ok), "{twice:?}");
    assert_eq!(server.mode().await, None);
    server.resume().expect("a wake-up");
    server.wait_until_serving().await.expect("a server that serves");
    server.pause().expect("a pause");
    assert_eq!(server.mode().await, None);
}

#[tokio::test]
async fn paused_server_can_stop_or_restart() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    server.pause().expect("a pause");
    server.stop().await.expect("a stop");
    server.restart().await.expect("a restart");
    server.pause().expect("a pause");
    server.restart().await.expect("a restart");
    assert_eq!(server.mode().await, Some(Mode::Standalone));
}

#[tokio::test]
async fn stopped_server_cannot_pause_or_resume() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    server.kill().await.expect("a kill");
    assert!(matches!(server.pause(), Err(Error::NotRunning)));
    assert!(matches!(server.resume(), Err(Error::NotRunning)));
    assert!(matches!(server.wait_until_serving().await, Err(Error::NotRunning)));
}

#[tokio::test]
async fn settings_reach_the_server() {
    let server = Server::builder()
        .tick_time(Duration::from_millis(300))
        .config("maxSessionTimeout=7777")
        .property("user.name", "somebody else")
        .java_option("-Duser.home=/somewhere/else")
        .start()
        .await
        .expect("a server");
    let conf = server.four_letter("conf").await.expect("an answer");
    for line in ["tickTime=300", "minSessionTimeout=600", "maxSessionTimeout=7777"] {
        assert!(conf.contains(line), "{conf}");
    }
    let envi = server.four_letter("envi").await.expect("an answer");
    assert!(envi.contains("user.name=somebody else"), "{envi}");
    assert!(envi.contains("user.home=/somewhere/else"), "{envi}");
}

#[tokio::test]
async fn a_server_that_cannot_start_is_quoted() {
    let outcome = Server::builder()
        .config("tickTime=soon")
        .start()
        .await
        .expect_err("an unreadable configuration");
    assert!(matches!(outcome, Error::Exited { .. }), "{outcome}");
    assert!(outcome.to_string().contains("soon"), "{outcome}");
}

#[tokio::test]
async fn requested_port_in_use_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let outcome = Server::builder().port(port).start().await;
    assert!(matches!(outcome, Err(Error::Io { .. })), "{outcome:?}");
    drop(taken);
    let server = Server::builder().port(port).start().await.expect("a server");
    assert_eq!(server.addr().port(), port);
}

/// Tests move their servers into tasks.
#[tokio::test]
async fn servers_can_be_used_from_spawned_tasks() {
    let server = Arc::new(Server::start(Wanted::Any).await.expect("a server"));
    let nemesis = Arc::clone(&server);
    let restarted = tokio::spawn(async move { nemesis.restart().await });
    restarted.await.expect("no panic").expect("a restart");
    assert_eq!(server.mode().await, Some(Mode::Standalone));
}
