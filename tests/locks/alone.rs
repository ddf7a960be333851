//! Members that only serve readers, and up to 3.6 end sessions by themselves that live on elsewhere.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use zk_client::SessionState;
use zk_locks::{
    AcquireError, Client, ConnectOptions, DoubleBarrier, Guard, Lock, Semaphore, SessionEnd,
};
use zk_testkit::{
    TestServer,
    real::{self, Release},
    server::{Config, Member},
};
use zk_tests::site::SESSION_TIMEOUT_MAX;

use crate::locks::support::within;

const TICK: Duration = Duration::from_millis(200);

/// Of the sessions that a member alone ends.
const SHORT: Duration = Duration::from_secs(2);

/// Of those that outlive that there.
const LONG: Duration = Duration::from_secs(60);

async fn connect(servers: &str, session_timeout: Duration, read_only: bool) -> Client {
    let options = ConnectOptions::new(servers).unwrap().session_timeout(session_timeout);
    within(options.read_only(read_only).connect()).await.unwrap()
}

/// How something is waited for, one behind another.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    Queue,
    Herd,
    Semaphore,
}

impl Waiting {
    const ALL: [Self; 3] = [Self::Queue, Self::Herd, Self::Semaphore];

    const fn path(self) -> &'static str {
        match self {
            Self::Queue => "/queue",
            Self::Herd => "/herd",
            Self::Semaphore => "/semaphore",
        }
    }

    async fn acquire(self, zk: &Client) -> Guard {
        match self {
            Self::Queue => Lock::new(zk, self.path()).acquire().await,
            Self::Herd => Lock::builder(zk, self.path()).herd().build().acquire().await,
            Self::Semaphore => Semaphore::new(zk, self.path(), 1).acquire().await,
        }
        .unwrap()
    }
}

/// Waits until a member without a quorum has resumed a session, and shows a node no more that the others know.
async fn is_lost_sight_of(waiter: &Client, node: &str) {
    let mut session = waiter.session();
    let id = session.id();
    let reads = SessionState::Connected { read_only: true };
    while session.state() != reads {
        session.changed().await;
    }
    while let (Some(_), watch) = waiter.exists(node).watch().await.unwrap() {
        watch.await.unwrap();
    }
    // What the waits have asked in answer to that has been answered, too.
    for _ in 0..2 {
        waiter.exists("/").await.unwrap();
    }
    assert_eq!((session.id(), session.state()), (id, reads));
}

/// Has waiters at a member lose sight of the holders that the others know, and nothing else.
///
/// `sever`: cuts that member off, or lets it come back.
async fn nothing_is_granted(others: &str, alone: &str, sever: impl AsyncFn(bool)) {
    let holder = connect(others, SHORT, false).await;
    let waiter = connect(alone, LONG, true).await;
    let mut guards = Vec::new();
    for waiting in Waiting::ALL {
        guards.push(waiting.acquire(&holder).await);
    }
    let released = AtomicBool::new(false);
    let wait = async |waiting: Waiting| {
        let guard = waiting.acquire(&waiter).await;
        assert!(released.load(Ordering::Relaxed), "{waiting:?}: granted beside {guards:?}");
        drop(guard);
    };
    let waits = async {
        tokio::join!(wait(Waiting::Queue), wait(Waiting::Herd), wait(Waiting::Semaphore));
    };
    let trouble = async {
        let queue = async || holder.children(Waiting::Queue.path()).await.unwrap().0.len();
        while queue().await < 2 {}
        sever(true).await;
        is_lost_sight_of(&waiter, guards[0].path()).await;
        for guard in &guards {
            guard.check().await.unwrap();
        }
        sever(false).await;
        let mut session = waiter.session();
        while session.state() != (SessionState::Connected { read_only: false }) {
            session.changed().await;
        }
        released.store(true, Ordering::Relaxed);
        for guard in &guards {
            holder.delete(guard.path()).await.unwrap();
        }
    };
    within(Box::pin(async { tokio::join!(waits, trouble) })).await;
}

/// Three servers in this process, one of which can be cut off.
struct Servers {
    server: TestServer,
    follower: Member,
    /// Of the leader.
    others: String,
    /// Of the one that can be cut off.
    alone: String,
}

impl Servers {
    async fn start(release: Release) -> Self {
        let mut config = Config::default();
        (config.release, config.members, config.tick) = (release, 3, TICK);
        (config.read_only_mode, config.sync_limit) = (true, 2 * TICK);
        config.session_timeout_max = Some(SESSION_TIMEOUT_MAX);
        let server = TestServer::start_with(config).await.unwrap();
        let leader = server.with(|ensemble, _| ensemble.leader()).unwrap();
        let follower = (0..3).map(Member).find(|member| *member != leader).unwrap();
        let [others, alone] =
            [leader, follower].map(|member| server.proxy_of(member).connect_string());
        Self { server, follower, others, alone }
    }

    fn sever(&self, severed: bool) {
        self.server.with(|ensemble, now| match severed {
            true => ensemble.cut_off(now, self.follower),
            false => ensemble.rejoin(now, self.follower),
        });
    }
}

#[tokio::test]
async fn members_alone_grant_nothing() {
    for release in [Release::V3_4, Release::V3_5, Release::V3_6] {
        let servers = Servers::start(release).await;
        let sever = async |severed| servers.sever(severed);
        Box::pin(nothing_is_granted(&servers.others, &servers.alone, sever)).await;
    }
}

/// One that leaves waits for the others also if it cannot see them, and no longer than its session lasts.
#[tokio::test]
async fn members_alone_let_no_participant_leave() {
    for expires in [false, true] {
        let servers = Servers::start(Release::V3_6).await;
        let other = connect(&servers.others, SHORT, false).await;
        let leaver = connect(&servers.alone, LONG, true).await;
        let [theirs, ours] = [&other, &leaver].map(|zk| DoubleBarrier::new(zk, "/b", 2));
        let (theirs, ours) = within(async { tokio::join!(theirs.enter(), ours.enter()) }).await;
        let (theirs, ours) = (theirs.unwrap(), ours.unwrap());
        let leaving = tokio::spawn(ours.leave());
        servers.sever(true);
        within(is_lost_sight_of(&leaver, theirs.path())).await;
        assert!(!leaving.is_finished());
        if expires {
            servers.server.expire(leaver.session().id());
        }
        servers.sever(false);
        let left = match expires {
            true => Err(AcquireError::SessionEnded(SessionEnd::Expired)),
            false => within(theirs.leave()).await,
        };
        assert_eq!(within(leaving).await.unwrap(), left);
    }
}

/// The others are killed: that member has no quorum either, and shows less than they do when they are back.
#[tokio::test]
async fn real_members_alone_grant_nothing() {
    let ensemble = real::Ensemble::builder().release(Release::V3_6).read_only_mode(true);
    let ensemble = ensemble.start().await.unwrap();
    let leader = ensemble.leader().await.unwrap();
    let alone = (leader + 1) % ensemble.len();
    let servers = |member| ensemble.connect_string_of(&[member]);
    let holder = connect(&servers(leader), SHORT, false).await;
    let waiter = connect(&servers(alone), LONG, true).await;
    let guard = Lock::new(&holder, "/queue").acquire().await.unwrap();
    let wait = async {
        let granted = Lock::new(&waiter, "/queue").acquire().await.unwrap();
        assert_eq!(waiter.session().state(), SessionState::Connected { read_only: false });
        drop(granted);
    };
    let trouble = async {
        while holder.children("/queue").await.unwrap().0.len() < 2 {}
        for other in (0..ensemble.len()).filter(|other| *other != alone) {
            ensemble.kill(other).await.unwrap();
        }
        is_lost_sight_of(&waiter, guard.path()).await;
        for other in (0..ensemble.len()).filter(|other| *other != alone) {
            ensemble.restart(other).await.unwrap();
        }
        ensemble.wait_for_all().await.unwrap();
        drop(guard);
    };
    within(Box::pin(async { tokio::join!(wait, trouble) })).await;
}
