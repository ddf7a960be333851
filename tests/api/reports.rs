//! What is told of a session: when observers hear of it, what was granted to it, and how much a log gets to hear.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::time::Instant;
use zk_client::{
    ConnectError, ConnectOptions, Connected, LinkError, Session, SessionEnd, SessionObserver,
    SessionState,
};
use zk_testkit::server::Config;
use zk_tests::{
    log::Log,
    patience::{closed, within},
};

use super::promises::{ME, play};

const CONNECTED: SessionState = SessionState::Connected { read_only: false };

/// Looks at the state of its session whenever something is reported of it.
#[derive(Default)]
struct Onlooker {
    session: OnceLock<Session>,
    seen: Mutex<Vec<(&'static str, SessionState)>>,
    failed: AtomicUsize,
}

impl Onlooker {
    fn look(&self, heard: &'static str) {
        // The first connection comes before there is a client to get a view from.
        if let Some(session) = self.session.get() {
            self.seen.lock().unwrap().push((heard, session.state()));
        }
    }
}

impl SessionObserver for Onlooker {
    fn connected(&self, _: &Connected<'_>) {
        self.look("connected");
    }
    fn disconnected(&self, _: &LinkError) {
        self.look("disconnected");
    }
    fn attempt_failed(&self, _: &str, _: &LinkError) {
        self.failed.fetch_add(1, SeqCst);
    }
    fn ended(&self, _: SessionEnd) {
        self.look("ended");
    }
}

#[test]
fn observer_hears_of_changes_before_they_show() {
    play(Config::default(), async |network| {
        for expires in [false, true] {
            let onlooker = Arc::new(Onlooker::default());
            let options = network.options(ME, "", 7).observer(onlooker.clone());
            let zk = options.connect().await.unwrap();
            onlooker.session.set(zk.session()).unwrap();
            let mut session = zk.session();
            network.cut(ME);
            assert_eq!(within(session.changed()).await, SessionState::Disconnected);
            network.heal();
            assert_eq!(within(session.changed()).await, CONNECTED);
            let mut expected =
                vec![("disconnected", CONNECTED), ("connected", SessionState::Disconnected)];
            if expires {
                network.expire(session.id());
                assert_eq!(within(session.ended()).await, SessionEnd::Expired);
                expected.push(("disconnected", CONNECTED));
                expected.push(("ended", SessionState::Disconnected));
            } else {
                closed(&zk).await;
                expected.push(("ended", SessionState::Closing));
            }
            assert_eq!(*onlooker.seen.lock().unwrap(), expected, "{expires}");
        }
    });
}

/// More requests end with a session than are answered in one turn.
#[test]
fn observer_hears_of_the_end_before_any_request_does() {
    play(Config::default(), async |network| {
        let onlooker = Arc::new(Onlooker::default());
        let options = network.options(ME, "", 7).observer(onlooker.clone());
        let zk = options.connect().await.unwrap();
        onlooker.session.set(zk.session()).unwrap();
        network.cut(ME);
        let waits: Vec<_> = (0..100)
            .map(|_| {
                let (get, onlooker) = (zk.get("/").submit(), onlooker.clone());
                tokio::spawn(async move {
                    get.await.unwrap_err();
                    onlooker.seen.lock().unwrap().last().map(|(heard, _)| *heard)
                })
            })
            .collect();
        network.expire(zk.session().id());
        network.heal();
        for wait in waits {
            assert_eq!(within(wait).await.unwrap(), Some("ended"));
        }
    });
}

#[test]
fn session_timeout_is_what_servers_have_granted() {
    let mut config = Config::default();
    let [least, most] = [3, 5].map(Duration::from_secs);
    (config.session_timeout_min, config.session_timeout_max) = (Some(least), Some(most));
    play(config, async |network| {
        for (wished, granted) in [(12, 5), (4, 4), (1, 3)] {
            let [wished, granted] = [wished, granted].map(Duration::from_secs);
            let options = network.options(ME, "", 7).session_timeout(wished);
            let zk = options.connect().await.unwrap();
            assert_eq!(zk.session().timeout(), granted, "{wished:?}");
            closed(&zk).await;
        }
    });
}

/// Those that are not worth a warning are there for whoever looks closer.
#[test]
fn failed_attempts_are_logged_once_a_second() {
    play(Config::default(), async |network| {
        network.cut(ME);
        let onlooker = Arc::new(Onlooker::default());
        let start = Instant::now();
        let options = ConnectOptions::new("a,b,c,d,e").unwrap().connector(network.connector(ME));
        let options = options.clock(move || start.elapsed()).seed(7).observer(onlooker.clone());
        let log = Log::of_this_thread();
        let connects = options.connect_deadline(Some(Duration::from_secs(10))).connect();
        let connected = within(connects).await;
        let text = log.text();
        assert!(matches!(connected, Err(ConnectError::TimedOut { .. })), "{connected:?}");
        let told: Vec<_> =
            text.lines().filter(|line| line.contains("connection attempt failed")).collect();
        assert!(told.len() > 20, "{text}");
        assert_eq!(told.len(), onlooker.failed.load(SeqCst));
        let warnings = told.iter().filter(|line| line.contains(" WARN ")).count();
        assert!((5..=10).contains(&warnings), "{warnings} of {}", told.len());
    });
}
