//! Finding servers, changing them, and what is reported of it.

use std::{
    collections::BTreeSet,
    future::ready,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::time::{Instant, timeout};
use zk_client::{
    Answered, BoxFuture, Connect, ConnectError, ConnectOptions, Connected, Ending, LinkError,
    OpCode, SessionEnd, SessionObserver, Transport,
};
use zk_testkit::proxy::{Match, Proxy};

use zk_tests::{feature::Feature, patience::LIMIT, paused, test_with};

use crate::api::{Place, on_each_release, on_each_release_to_restart};

#[test_with(on_each_release)]
async fn session_moves_servers_without_doubt(server: &Place) {
    let here = Proxy::start(server.addr()).await.unwrap();
    let there = Proxy::start(server.addr()).await.unwrap();
    let zk = server.options_by(&here.connect_string()).connect().await.unwrap();
    let id = zk.session().id();
    zk.create("/n", b"").await.unwrap();
    let epoch = zk.session().epoch();
    let (_, changed) = zk.exists("/later").watch().await.unwrap();
    let writes: Vec<_> = (0..200)
        .map(|n| {
            if n == 100 {
                zk.update_servers(&there.connect_string()).unwrap();
            }
            zk.set("/n", b"x").submit()
        })
        .collect();
    for (version, write) in (1..).zip(writes) {
        assert_eq!(write.await.unwrap().version, version);
    }
    assert_eq!((zk.session().id(), zk.session().epoch()), (id, epoch + 1));
    timeout(LIMIT, here.all_closed()).await.unwrap();
    assert_eq!(there.open_connections(), 1);
    zk.create("/later", b"").await.unwrap();
    changed.await.unwrap();

    assert_eq!(zk.update_servers("a:1/app"), Err(ConnectError::UnexpectedChroot));
    assert_eq!(zk.update_servers(""), Err(ConnectError::NoServer));
}

/// Notes where it is to connect, and does not.
struct Noted(Arc<Mutex<Vec<String>>>);

impl Connect for Noted {
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        self.0.lock().unwrap().push(server.to_owned());
        Box::pin(ready(Err(io::ErrorKind::ConnectionRefused.into())))
    }
}

/// A fleet does not flock to one server.
#[test]
fn sessions_without_a_seed_begin_with_different_servers() {
    let first = || {
        let dialed = Arc::new(Mutex::new(Vec::new()));
        let refused = paused::block_on(async {
            let start = Instant::now();
            let options = ConnectOptions::new("a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1").unwrap();
            let options = options.connector(Noted(dialed.clone())).clock(move || start.elapsed());
            options.connect_deadline(Some(LIMIT)).connect().await
        });
        assert!(refused.is_err());
        let dialed = dialed.lock().unwrap();
        dialed[0].clone()
    };
    // That all of them are the same by chance is less likely than that memory fails.
    let firsts: BTreeSet<_> = (0..24).map(|_| first()).collect();
    assert!(firsts.len() > 1, "{firsts:?}");
}

/// Names known to this test only, with addresses that change.
#[derive(Clone)]
struct Names {
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    asked: Arc<AtomicUsize>,
}

impl Names {
    fn resolve(&self, server: &str) -> io::Result<Vec<SocketAddr>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let found = (server == "zk.example:2181").then(|| self.addresses.lock().unwrap().clone());
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name"))
    }
}

#[test_with(on_each_release_to_restart)]
async fn every_address_is_tried_and_resolved_anew(server: &Place) {
    // Nothing listens at the first two: a port that was free a moment ago may be that of another test's server.
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 1));
    let names = Names {
        addresses: Arc::new(Mutex::new(vec![nobody, v6, server.addr()])),
        asked: Arc::default(),
    };
    let options = server.options_by("nowhere.example,zk.example");
    let resolver = {
        let names = names.clone();
        move |server: &str| ready(names.resolve(server))
    };
    let zk = options.resolver(resolver).connect().await.unwrap();
    zk.get("/").await.unwrap();

    // The server has moved.
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let asked = names.asked.load(Ordering::Relaxed);
    *names.addresses.lock().unwrap() = vec![nobody, proxy.addr()];
    server.restart_under(&zk).await;
    zk.get("/").await.unwrap();
    assert!(names.asked.load(Ordering::Relaxed) > asked);
    assert!(proxy.accepted() > 0);
}

/// What an observer receives, in words.
#[derive(Default)]
struct EventLog(Mutex<Vec<String>>);

impl EventLog {
    fn tell(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl SessionObserver for EventLog {
    fn connected(&self, connected: &Connected<'_>) {
        self.tell(format!("connected {}", connected.epoch));
    }
    fn disconnected(&self, _why: &LinkError) {
        self.tell("disconnected".into());
    }
    fn attempt_failed(&self, server: &str, why: &LinkError) {
        self.tell(format!("{server} {why}"));
    }
    fn ended(&self, end: SessionEnd) {
        self.tell(end.to_string());
    }
    fn answered(&self, answered: &Answered) {
        self.tell(format!("{} {:?}", answered.op, answered.ending));
    }
}

#[test_with(on_each_release)]
async fn changes_are_counted_and_reported(server: &Place) {
    let story = Arc::new(EventLog::default());
    let zk = server.options().observer(story.clone()).connect().await.unwrap();
    zk.create("/a", b"").await.unwrap();
    let (_, changed) = zk.exists("/a").watch().await.unwrap();
    zk.delete("/a").await.unwrap();
    changed.await.unwrap();
    zk.get("/a").await.unwrap_err();
    let stats = zk.stats();
    // A server of before 3.5 refuses the first create and drops the connection.
    let is_old = !server.has(Feature::StatAtBirth);
    let twice = u64::from(is_old);
    assert_eq!((stats.answered, stats.rejected), (4 + twice, 1 + twice));
    assert_eq!((stats.not_sent, stats.unknown), (0, 0));
    assert_eq!((stats.connects, stats.disconnects), (1 + twice, twice));
    assert_eq!((stats.watch_events, stats.lagged), (1, 0));
    assert_eq!(stats.latency().count(), stats.answered);
    while zk.stats().in_flight > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(zk.stats().in_flight_bytes, 0, "nothing is under way");
    assert!(stats.latency().quantile(1.0).is_some());
    let other = server.options().connect().await.unwrap();
    assert_eq!(other.stats().answered, 0, "of each session its own");
    zk.close().await.unwrap();
    assert_eq!(zk.stats().in_flight, 0);
    // A busy machine may need more than one attempt.
    let (attempts, told): (Vec<String>, Vec<String>) =
        story.0.lock().unwrap().clone().into_iter().partition(|what| what.contains("127."));
    assert_eq!(attempts.len() as u64, stats.failed_attempts);
    let no_node = Ending::Rejected(zk_client::ErrorCode::NO_NODE);
    let mut expected: Vec<String> =
        [server.create_op(), OpCode::EXISTS, OpCode::DELETE].map(|op| format!("{op} Ok")).into();
    expected.insert(0, "connected 1".into());
    if is_old {
        let refused = Ending::Rejected(zk_client::ErrorCode::UNIMPLEMENTED);
        let refused = format!("{} {refused:?}", OpCode::CREATE2);
        let again = [refused, "disconnected".into(), "connected 2".into()];
        expected.splice(1..1, again);
    }
    expected.push(format!("{} {no_node:?}", OpCode::GET_DATA));
    expected.push("session closed".into());
    assert_eq!(told, expected);
}

/// The second list has the server again that the first one made the session leave.
#[test_with(on_each_release)]
async fn server_that_is_listed_again_is_not_left(server: &Place) {
    let here = Proxy::start(server.addr()).await.unwrap();
    let there = Proxy::start(server.addr()).await.unwrap();
    let zk = server.options_by(&here.connect_string()).connect().await.unwrap();
    let epoch = zk.session().epoch();
    let held = here.on(Match::reply(OpCode::GET_DATA).once()).hold();
    let read = zk.get("/").submit();
    timeout(LIMIT, held.fired()).await.unwrap();
    for servers in [&there, &here] {
        zk.update_servers(&servers.connect_string()).unwrap();
    }
    // It waits no longer than the one in front of it.
    let next = zk.exists("/").submit();
    held.release();
    timeout(LIMIT, read).await.unwrap().unwrap();
    timeout(LIMIT, next).await.unwrap().unwrap();
    assert_eq!(zk.session().epoch(), epoch);
    assert_eq!(there.open_connections(), 0);
}
