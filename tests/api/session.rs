//! Sessions: made, left, resumed, closed, refused.

use std::{
    net::{Ipv6Addr, SocketAddr},
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    spawn,
    time::timeout,
};
use zk_client::{
    Acl, AclList, BoxFuture, Cause, Client, Connect, ConnectError, ConnectOptions, CreateMode,
    LinkError, ReadError, Rejection, SessionEnd, SessionState, Transport, WriteError,
};
use zk_testkit::{
    proxy::Proxy,
    server::{Config, Listening},
};
use zk_tests::{
    network::{Network, pass},
    patience::closed,
    paused,
    polls::dropped_after,
    test_with,
};

use super::promises::MOMENT;
use crate::api::{Place, behind_proxy, client, on_each_release};

#[test_with(on_each_release)]
async fn close_deletes_ephemeral_nodes(server: &Place) {
    let (zk, other) = (client(server).await, client(server).await);
    assert_eq!(zk.session().state(), SessionState::Connected { read_only: false });
    zk.create("/e", b"").mode(CreateMode::Ephemeral).await.unwrap();
    let submitted = zk.set("/e", b"last words").submit();
    closed(&zk).await;
    submitted.await.unwrap();
    assert_eq!(zk.session().state(), SessionState::Ended(SessionEnd::Closed));
    assert_eq!(zk.session().ended().await, SessionEnd::Closed);
    other.sync("/").await.unwrap();
    assert_eq!(other.exists("/e").await.unwrap(), None);

    let ended = Cause::SessionEnded(SessionEnd::Closed);
    assert_eq!(zk.get("/").await.unwrap_err(), ReadError::Unavailable(ended.clone()));
    assert_eq!(zk.set("/", b"").await, Err(WriteError::NotApplied(ended)));
    assert_eq!(zk.close().await, Ok(()), "closing twice is fine");
}

#[test_with(on_each_release)]
async fn session_view_reports_later_changes(server: &Place) {
    let zk = client(server).await;
    let mut view = zk.session();
    let mut changed = pin!(view.changed());
    let early = changed.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(early, Poll::Pending);
    closed(&zk).await;
    assert_ne!(changed.await, SessionState::Connected { read_only: false });
}

#[test_with(on_each_release)]
async fn each_session_state_is_reported_once(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let mut view = zk.session();
    let connected = SessionState::Connected { read_only: false };
    for _ in 0..2 {
        let epoch = zk.session().epoch();
        proxy.cut_all();
        // Over before it is read.
        while zk.session().epoch() == epoch {
            tokio::task::yield_now().await;
        }
        assert_eq!(view.changed().await, SessionState::Disconnected);
        assert_eq!(view.changed().await, connected);
        let mut again = pin!(view.changed());
        let nothing = again.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(nothing, Poll::Pending);
    }
    closed(&zk).await;
    let mut told = vec![connected];
    while !matches!(told.last(), Some(SessionState::Ended(_))) {
        told.push(view.changed().await);
    }
    assert!(told.windows(2).all(|pair| pair[0] != pair[1]), "{told:?}");
    assert_eq!(view.changed().await, SessionState::Ended(SessionEnd::Closed));
}

#[test_with(on_each_release)]
async fn the_last_client_to_go_closes_the_session(server: &Place) {
    let (zk, other) = (client(server).await, client(server).await);
    zk.create("/e", b"").mode(CreateMode::Ephemeral).await.unwrap();
    let (stat, gone) = other.exists("/e").watch().await.unwrap();
    assert!(stat.is_some());
    let session = zk.session();
    drop(zk.clone());
    assert_eq!(other.exists("/e").await.unwrap(), stat, "a clone is left");
    drop(zk);
    assert_eq!(session.ended().await, SessionEnd::Closed);
    gone.await.unwrap();
}

#[test_with(on_each_release)]
async fn closing_twice_waits_for_cleanup_too(server: &Place) {
    let zk = client(server).await;
    let cleaner = zk.for_cleanup();
    let mut cx = Context::from_waker(Waker::noop());
    let mut first = pin!(zk.close_within(Duration::from_secs(60)));
    assert!(first.as_mut().poll(&mut cx).is_pending());
    let mut second = pin!(zk.close_within(Duration::from_secs(50)));
    assert!(second.as_mut().poll(&mut cx).is_pending());
    cleaner.create("/given-back", b"").await.unwrap();
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert!(second.as_mut().poll(&mut cx).is_pending());
    drop(cleaner);
    first.await.unwrap();
    second.await.unwrap();
    assert!(client(server).await.exists("/given-back").await.unwrap().is_some());
}

#[test_with(on_each_release)]
async fn detach_waits_for_cleanup_only(server: &Place) {
    let zk = client(server).await;
    zk.create("/e", b"").mode(CreateMode::Ephemeral).await.unwrap();
    let (cleaner, user) = (zk.for_cleanup(), zk.clone());
    let mut cx = Context::from_waker(Waker::noop());
    // A client that is for cleaning up itself may be the one that leaves.
    let mut left = pin!(zk.for_cleanup().detach());
    assert!(left.as_mut().poll(&mut cx).is_pending());
    let refused = WriteError::NotApplied(Cause::SessionEnded(SessionEnd::Closed));
    assert_eq!(user.create("/f", b"").await.unwrap_err(), refused);
    let another = cleaner.clone();
    drop(cleaner);
    another.delete("/e").await.unwrap();
    assert!(left.as_mut().poll(&mut cx).is_pending());
    drop(another);
    let credentials = left.await.unwrap();
    let heir = server.options().resume(credentials).connect().await.unwrap();
    assert_eq!(heir.exists("/e").await.unwrap(), None);
    assert_eq!(heir.exists("/f").await.unwrap(), None);
}

/// It waits for room, is given up, and has the node that it was to replace.
#[test_with(on_each_release)]
async fn detach_leaves_no_node_of_what_waits_for_room(server: &Place) {
    let zk = server.options().requests_max(1).connect().await.unwrap();
    let create = |path| zk.create(path, b"").mode(CreateMode::Ephemeral);
    let mut nodes = zk.create_all_protected([create("/n")]).await.unwrap().unwrap();
    let path = nodes[0].path().to_owned();
    let busy = zk.exists("/n").submit();
    let trade = zk.create_all_protected([create("/m")]).replacing(nodes.remove(0)).submit();
    assert!(dropped_after(1, trade).await.is_none());
    let credentials = zk.clone().detach().await.unwrap();
    drop(busy);
    let heir = server.options().resume(credentials).connect().await.unwrap();
    assert_eq!(heir.exists(&path).await.unwrap(), None);
    let (left, _) = heir.children("/").await.unwrap();
    assert!(!left.iter().any(|name| name.ends_with("-m")), "{left:?}");
}

/// Whichever was said first.
#[test_with(on_each_release)]
async fn resumed_session_has_its_identities(server: &Place) {
    let known = |options: ConnectOptions| options.auth("digest", "ann:secret");
    let zk = known(server.options()).connect().await.unwrap();
    let acl = AclList::from_iter([Acl::creator_all()]);
    zk.create("/own", b"").acl(&acl).await.unwrap();
    let left = zk.detach().await.unwrap();
    let heir = known(server.options()).resume(left).connect().await.unwrap();
    heir.get("/own").await.unwrap();
    let left = heir.detach().await.unwrap();
    let heir = known(server.options().resume(left)).connect().await.unwrap();
    heir.get("/own").await.unwrap();
}

#[test_with(on_each_release)]
async fn unknown_session_cannot_be_resumed(server: &Place) {
    let zk = client(server).await;
    let mut credentials = zk.clone().detach().await.unwrap();
    credentials.id.0 += 1;
    let error = server.options().resume(credentials).connect().await.unwrap_err();
    assert_eq!(error, ConnectError::SessionEnded(SessionEnd::Expired));
}

#[test_with(on_each_release)]
async fn refused_credentials_end_the_session(server: &Place) {
    let zk = server.options().auth("nonsense", "x").connect().await;
    // The servers judge credentials behind the handshake, so the client may be there already.
    let end = match zk {
        Ok(zk) => zk.session().ended().await,
        Err(ConnectError::SessionEnded(end)) => end,
        Err(error) => panic!("{error:?}"),
    };
    assert_eq!(end, SessionEnd::AuthFailed);
}

#[tokio::test]
async fn connect_without_server_fails_in_time() {
    let address = "127.0.0.1:1";
    let options = ConnectOptions::new(address).unwrap();
    let options = options.connect_deadline(Some(Duration::from_secs(3)));
    let Err(ConnectError::TimedOut { last: Some((server, error)) }) = options.connect().await
    else {
        panic!("a session without a server")
    };
    assert_eq!((&*server, error), (address, LinkError::Refused));
}

/// With a name that no server of names is asked for: its first label is too long.
#[tokio::test]
async fn name_that_is_not_found_is_called_unresolved() {
    let address = format!("{}.invalid:2181", "a".repeat(64));
    let options = ConnectOptions::new(&address).unwrap();
    let connected = options.connect_deadline(Some(Duration::from_secs(3))).connect().await;
    let Err(ConnectError::TimedOut { last: Some((server, error)) }) = connected else {
        panic!("a session without a server")
    };
    assert_eq!(*server, *address);
    assert!(matches!(error, LinkError::Unresolved(_)), "{error:?}");
}

#[test_with(on_each_release)]
async fn unreachable_server_is_passed_over(server: &Place) {
    let servers = format!("127.0.0.1:1,unresolvable.invalid,{}", server.connect_string());
    let options = server.options_for(&servers);
    let zk = options.connect().await.unwrap();
    zk.get("/").await.unwrap();
}

#[test_with(on_each_release)]
async fn expired_session_stays_expired(server: &Place) {
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let options = server.options_by(&proxy.connect_string());
    let zk = options.session_timeout(Duration::from_secs(6)).connect().await.unwrap();
    let session = zk.session();
    assert!(!session.lease_left().is_zero() && session.lease_left() <= session.timeout());
    let pending = zk.get("/").await.map(|_| zk.get("/").submit()).unwrap();
    pending.await.unwrap();
    proxy.silence();
    let write = zk.set("/", b"?").submit();
    assert_eq!(session.ended().await, SessionEnd::Expired);
    assert!(session.lease_left().is_zero());
    let error = write.await.unwrap_err();
    assert!(matches!(error, WriteError::InDoubt { .. }), "it was sent: {error:?}");
    proxy.resume();
    let ended = Cause::SessionEnded(SessionEnd::Expired);
    assert_eq!(zk.get("/").await.unwrap_err(), ReadError::Unavailable(ended));
}

/// A driver that has nothing to do must sleep, also while it waits for a close that is not answered.
#[test_with(on_each_release)]
async fn abandoned_session_stops_closing_in_time(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let mut session = zk.session();
    proxy.refuse_connections().await;
    proxy.cut_all();
    while session.changed().await != SessionState::Disconnected {}
    drop(zk);
    let before = cpu_time();
    assert_eq!(session.ended().await, SessionEnd::Closed);
    let worked = cpu_time() - before;
    assert!(worked < Duration::from_millis(500), "worked {worked:?} to wait for two seconds");
}

/// What this thread has worked so far; it also runs the driver.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

#[tokio::test]
async fn a_server_can_be_named_by_an_ipv6_address() {
    let any = (Ipv6Addr::LOCALHOST, 0).into();
    let server = Listening::start(Config::default(), &[any]).await.unwrap();
    let address = server.addrs()[0];
    assert!(address.is_ipv6());
    for servers in [format!("[::1]:{}", address.port()), format!("127.0.0.1:1,{address}/app")] {
        let zk = Client::connect(&servers).await.unwrap();
        zk.create("/", b"")
            .await
            .map(drop)
            .or_else(|error| match error {
                WriteError::Rejected(Rejection::NodeExists) => Ok(()),
                error => Err(error),
            })
            .unwrap();
    }
}

/// The second is not waited for: the first close closes for all.
#[test_with(on_each_release)]
async fn session_can_be_closed_concurrently(server: &Place) {
    let zk = client(server).await;
    let (one, other) = (zk.clone(), zk.clone());
    let session = zk.session();
    let (first, second) = tokio::join!(one.close(), other.close());
    first.or(second).unwrap();
    assert_eq!(session.ended().await, SessionEnd::Closed);
    drop(zk);
}

/// The session closes behind the last one to go, wherever that is.
#[test_with(on_each_release)]
async fn last_client_may_drop_outside_a_runtime(server: &Place) {
    let zk = client(server).await;
    let ephemeral = zk.create("/e", b"").mode(CreateMode::Ephemeral).await.unwrap();
    let session = zk.session();
    std::thread::spawn(move || drop(zk)).join().unwrap();
    assert_eq!(session.ended().await, SessionEnd::Closed);
    assert_eq!(client(server).await.exists(&ephemeral.path).await.unwrap(), None);
}

/// A client that reads only after all is written would wait for ever for a server that does the same.
#[test]
fn driver_reads_while_writes_are_blocked() {
    /// Connections that hold a few bytes in each direction.
    struct Narrow(SocketAddr);
    impl Connect for Narrow {
        fn connect(&self, _: &str) -> BoxFuture<'static, std::io::Result<Box<dyn Transport>>> {
            let address = self.0;
            Box::pin(async move {
                let (near, far) = tokio::io::duplex(512);
                let (mut from_server, mut to_server) =
                    TcpStream::connect(address).await?.into_split();
                let (mut from_client, mut to_client) = tokio::io::split(far);
                spawn(async move {
                    // One after the other: what comes from the server has precedence over what goes to it.
                    let mut up = [0; 256];
                    let mut down = [0; 4096];
                    loop {
                        let moved = tokio::select! {
                            biased;
                            read = from_server.read(&mut down) => match read {
                                Ok(len @ 1..) => to_client.write_all(&down[..len]).await,
                                _ => return,
                            },
                            read = from_client.read(&mut up) => match read {
                                Ok(len @ 1..) => to_server.write_all(&up[..len]).await,
                                _ => return,
                            },
                        };
                        if moved.is_err() {
                            return;
                        }
                    }
                });
                Ok(Box::new(near) as Box<dyn Transport>)
            })
        }
    }
    on_each_release(async |server| {
        let options = server.options_by("narrow").connector(Narrow(server.addr()));
        let zk = options.connect().await.unwrap();
        zk.create("/long", &[7; 20_000]).await.unwrap();
        let pending: Vec<_> = (0..50)
            .map(|_| (zk.set("/long", &[7; 20_000]).submit(), zk.get("/long").submit()))
            .collect();
        let answered = async {
            for (set, get) in pending {
                set.await.unwrap();
                assert_eq!(get.await.unwrap().0.len(), 20_000);
            }
        };
        timeout(Duration::from_secs(60), answered).await.expect("each waits for the other");
    });
}

#[tokio::test]
async fn margin_that_leaves_no_lease_is_refused() {
    let timeout = Duration::from_secs(2);
    for margin in [timeout * 3 / 4 + Duration::from_millis(1), timeout, 2 * timeout] {
        let options = ConnectOptions::new("127.0.0.1:1").unwrap().session_timeout(timeout);
        let refused = options.lease_margin(margin).connect().await;
        assert_eq!(refused.map(drop), Err(ConnectError::LeaseMargin { margin, timeout }));
    }
}

/// A loop that waits for a state that cannot come any more leaves the thread to others, and so to its own timeout.
#[test_with(on_each_release)]
async fn waiting_on_after_the_end_starves_nothing(server: &Place) {
    let mut session = client(server).await.session();
    session.ended().await;
    let waits = async {
        for _ in 0..10_000_000 {
            if session.changed().await == (SessionState::Connected { read_only: true }) {
                return;
            }
        }
        panic!("it has kept the thread");
    };
    let late = timeout(Duration::from_millis(1), waits).await;
    assert!(late.is_err(), "the end is no connection");
}

/// As soon as something relies on it, not with the next ping.
#[test]
fn kept_lease_is_confirmed_at_once() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let options = network.options("me", "", 7).session_timeout(Duration::from_secs(30));
        let zk = options.connect().await.unwrap();
        for seconds in 20..40 {
            // Pings go on, which the leader does not hear of.
            pass(Duration::from_secs(seconds)).await;
            let kept = zk.keep_lease();
            pass(Duration::from_millis(100)).await;
            assert!(!zk.session().lease_left().is_zero());
            drop(kept);
        }
    });
}

/// A session that comes and goes between two looks, and one that is made again only to be closed.
#[test]
fn session_states_are_told_as_they_are() {
    let disconnected = SessionState::Disconnected;
    paused::block_on(async {
        let network = Network::new(Config::default());
        let zk = network.options("me", "", 7).connect().await.unwrap();
        let mut view = zk.session();
        network.cut("me");
        assert_eq!(view.changed().await, disconnected);
        network.heal();
        let epoch = view.epoch();
        while view.epoch() == epoch {
            pass(MOMENT).await;
        }
        network.cut("me");
        while view.state() != disconnected {
            pass(MOMENT).await;
        }
        let again = timeout(MOMENT, view.changed()).await;
        assert!(again.is_err(), "told once more: {again:?}");

        let closing = spawn(async move { zk.close_within(Duration::from_secs(8)).await });
        assert_eq!(view.changed().await, SessionState::Closing);
        network.heal();
        assert_eq!(view.changed().await, SessionState::Ended(SessionEnd::Closed));
        closing.await.unwrap().unwrap();
    });
}
