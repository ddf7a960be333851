//! Ensembles whose members lag, lose their leader, or have no quorum.

use std::time::Duration;

use zk_client::{CreateMode, SessionState, WriteError};
use zk_locks::{
    AcquireError, Barrier, CheckError, Client, ConnectOptions, DoubleBarrier, Election, LatchState,
    Lock, Lost, Semaphore, Status,
};
use zk_proto::OpCode;
use zk_testkit::{
    TestServer,
    proxy::{Kind, Match},
    real::Release,
    server::{Config, Member},
};
use zk_tests::site::SESSION_TIMEOUT_MAX;

use crate::locks::support::{emptied, within};

const TICK: Duration = Duration::from_millis(200);

/// Of sessions that are to end soon.
const SHORT: Duration = Duration::from_secs(10);

/// Long enough for a client to come back from one member to another meanwhile.
const LAG: Duration = Duration::from_secs(3);

/// Three members; the leader, and one of the others.
async fn ensemble(set_up: impl FnOnce(&mut Config)) -> (TestServer, Member, Member) {
    let mut config = Config::default();
    (config.members, config.tick) = (3, TICK);
    // What is not to end outlives a busy machine.
    config.session_timeout_max = Some(SESSION_TIMEOUT_MAX);
    set_up(&mut config);
    let server = TestServer::start_with(config).await.unwrap();
    let leader = server.with(|ensemble, _| ensemble.leader()).unwrap();
    let follower = (0..3).map(Member).find(|member| *member != leader).unwrap();
    (server, leader, follower)
}

fn options(server: &TestServer, members: &[Member]) -> ConnectOptions {
    let servers: Vec<_> =
        members.iter().map(|member| server.proxy_of(*member).connect_string()).collect();
    ConnectOptions::new(&servers.join(",")).unwrap()
}

/// A client of two members that is connected to the first.
async fn connected_to(server: &TestServer, first: Member, second: Member) -> Client {
    server.proxy_of(second).refuse_connections().await;
    let zk = options(server, &[first, second]).connect().await.unwrap();
    server.proxy_of(second).accept_connections().await;
    zk
}

/// Scenarios 8 and 9: the member that the client comes to does not show the node for a while. A search
/// without a barrier would find nothing, create another, and wait for its own first one.
#[tokio::test]
async fn unseen_node_is_not_duplicated() {
    for barrier_lost in [false, true] {
        let (server, leader, follower) = ensemble(|_| {}).await;
        let outsider = options(&server, &[leader]).connect().await.unwrap();
        outsider.create("/l", b"").await.unwrap();
        let zk = connected_to(&server, leader, follower).await;
        server.with(|ensemble, now| ensemble.set_lag(now, follower, LAG));

        let unheard = server.proxy_of(leader).on(Match::reply(OpCode::CREATE2).once()).hold();
        let behind = server.proxy_of(follower);
        let lost = barrier_lost.then(|| behind.on(Match::request(OpCode::SYNC).once()).reset());
        let lock = Lock::new(&zk, "/l");
        let acquire = tokio::spawn(async move { lock.acquire().await });
        within(unheard.fired()).await;
        server.proxy_of(leader).refuse_connections().await;
        server.proxy_of(leader).reset_all();

        within(behind.wait_for(|frame| frame.kind == Kind::ConnectResponse)).await;
        server.with(|ensemble, _| {
            let shown = |member| {
                let tree = ensemble.tree(member).unwrap();
                tree.get("/l").map(|node| node.children().count())
            };
            assert_eq!((shown(leader), shown(follower)), (Some(1), Some(0)));
        });
        let guard = within(acquire).await.unwrap().unwrap();
        assert!(guard.path().ends_with("-0000000000"), "{}", guard.path());
        assert_eq!(behind.counts().requests(OpCode::CREATE2), 0, "{}", behind.frames());
        assert_eq!(lost.map(|lost| lost.times_fired()), barrier_lost.then_some(1));
        within(guard.release()).await.unwrap();
        emptied(&zk, "/l").await;
    }
}

/// Before 3.9 events do not carry their zxid. So a client that has heard that its last predecessor is gone
/// may come to a member that does not show yet what those have left behind.
#[tokio::test]
async fn unseen_permit_is_not_granted_again() {
    let (server, leader, follower) = ensemble(|config| config.release = Release::V3_8).await;
    let (leads, behind) = (server.proxy_of(leader), server.proxy_of(follower));
    let outsider = options(&server, &[leader]).connect().await.unwrap();
    let first = within(Semaphore::new(&outsider, "/s", 1).acquire()).await.unwrap();
    within(first.release()).await.unwrap();
    let by_hand = CreateMode::PersistentSequential;
    let front = outsider.create("/s/locks/lock-", b"").mode(by_hand).await.unwrap().path;

    let zk = connected_to(&server, leader, follower).await;
    let asleep = leads.on(Match::reply(OpCode::GET_DATA).nth(2)).watch();
    let acquire = tokio::spawn({
        let mutex = Semaphore::new(&zk, "/s", 1);
        async move { mutex.acquire().await }
    });
    within(asleep.fired()).await;
    server.with(|ensemble, now| ensemble.set_lag(now, follower, LAG));
    let unheard = leads.on(Match::reply(OpCode::GET_CHILDREN2).path("/s/leases").once()).hold();
    let leases = "/s/leases/lease-";
    let taken = outsider.multi().delete(&front).create(leases, b"", by_hand).await;
    taken.unwrap().unwrap();
    within(unheard.fired()).await;
    leads.refuse_connections().await;
    leads.reset_all();

    within(behind.wait_for(|frame| frame.kind == Kind::ConnectResponse)).await;
    // Answered when the member shows all, behind whatever comes of that.
    for _ in 0..4 {
        within(zk.sync("/").into_future()).await.unwrap();
    }
    let (names, _) = zk.children("/s/leases").await.unwrap();
    assert_eq!(names.len(), 1, "{}", behind.frames());
    assert!(!acquire.is_finished());
    zk.delete(&format!("/s/leases/{}", names[0])).await.unwrap();
    let guard = within(acquire).await.unwrap().unwrap();
    within(guard.release()).await.unwrap();
}

/// One that has heard that all are there, and goes on over a member that does not show all of them yet.
#[tokio::test]
async fn unseen_participant_is_not_left_behind() {
    let (server, leader, follower) = ensemble(|config| config.release = Release::V3_8).await;
    let outsider = options(&server, &[leader]).connect().await.unwrap();
    let zk = connected_to(&server, leader, follower).await;
    let asleep = server.proxy_of(leader).on(Match::reply(OpCode::GET_DATA).once()).watch();
    let entering = tokio::spawn({
        let barrier = DoubleBarrier::new(&zk, "/b", 2);
        async move { barrier.enter().await }
    });
    within(asleep.fired()).await;
    let behind = server.proxy_of(follower);
    server.with(|ensemble, now| ensemble.set_lag(now, follower, LAG));
    let theirs = within(DoubleBarrier::new(&outsider, "/b", 2).enter()).await.unwrap();
    let ours = within(entering).await.unwrap().unwrap();
    server.proxy_of(leader).refuse_connections().await;
    server.proxy_of(leader).reset_all();
    within(behind.wait_for(|frame| frame.kind == Kind::ConnectResponse)).await;
    server.proxy_of(leader).accept_connections().await;

    let looks = behind.on(Match::request(OpCode::EXISTS).once()).watch();
    let leaving = tokio::spawn(ours.leave());
    within(looks.fired()).await;
    // Answered when the member shows all, behind whatever comes of that.
    for _ in 0..6 {
        within(zk.sync("/").into_future()).await.unwrap();
    }
    assert!(!leaving.is_finished(), "{}", behind.frames());
    let (left, ours) = within(async { tokio::join!(theirs.leave(), leaving) }).await;
    left.unwrap();
    ours.unwrap().unwrap();
}

/// Scenarios 10 and 11: what an old session has left, and a member still shows, belongs to no new session.
#[tokio::test]
async fn former_sessions_node_is_waited_for() {
    let (server, leader, follower) = ensemble(|_| {}).await;
    let zk = options(&server, &[leader]).session_timeout(SHORT).connect().await.unwrap();
    let before = within(Lock::new(&zk, "/l").acquire()).await.unwrap();
    let unheard = server.proxy_of(leader).on(Match::reply(OpCode::CREATE2).once()).hold();
    let waiting = tokio::spawn({
        let lock = Lock::new(&zk, "/l");
        async move { lock.acquire().await }
    });
    within(unheard.fired()).await;
    server.proxy_of(leader).refuse_connections().await;
    server.proxy_of(leader).reset_all();
    server.with(|ensemble, now| ensemble.set_lag(now, follower, LAG));
    server.expire(zk.session().id());

    // It comes back with another session, to where both nodes are still to be seen.
    let again = options(&server, &[follower]).connect().await.unwrap();
    let guard = within(Lock::new(&again, "/l").acquire()).await.unwrap();
    assert!(guard.token() > before.token());
    assert!(guard.path().ends_with("-0000000002"), "{}", guard.path());
    server.proxy_of(leader).accept_connections().await;
    let over = within(waiting).await.unwrap().map(drop);
    assert!(matches!(over, Err(AcquireError::SessionEnded(_))), "{over:?}");
    assert!(matches!(before.status(), Status::Lost(_)));
    within(guard.release()).await.unwrap();
    emptied(&again, "/l").await;
}

/// Scenario 29. A leader that has lost its followers answers heartbeats, and reads, until it notices; but a check
/// takes a quorum.
#[tokio::test]
async fn isolated_leader_confirms_no_lock() {
    let (server, leader, follower) = ensemble(|config| config.sync_limit = SHORT).await;
    let holder = options(&server, &[leader]).session_timeout(SHORT).connect().await.unwrap();
    let guard = within(Lock::new(&holder, "/l").acquire()).await.unwrap();
    let other = options(&server, &[follower]).connect().await.unwrap();
    server.with(|ensemble, now| ensemble.cut_off(now, leader));
    assert_eq!(holder.children("/l").await.unwrap().0.len(), 1);
    let write = async { guard.transaction().set("/l", b"stale").await };
    let lock = Lock::new(&other, "/l");
    let (checked, written, next) =
        within(async { tokio::join!(guard.check(), write, lock.acquire()) }).await;
    let next = next.unwrap();
    assert!(next.token() > guard.token());
    assert!(checked.is_err(), "confirmed although {next:?} has it");
    assert!(!matches!(written, Ok(Ok(_))), "written although {next:?} has it");
    assert!(matches!(guard.status(), Status::Lost(_)));
}

/// Scenario 62. A member without a quorum may be read from, but keeps no session alive.
#[tokio::test]
async fn read_only_member_leaves_holder_in_doubt() {
    let (server, leader, follower) = ensemble(|config| {
        (config.read_only_mode, config.sync_limit) = (true, 2 * TICK);
    })
    .await;
    let zk = options(&server, &[follower]).session_timeout(SHORT).read_only(true);
    let zk = zk.connect().await.unwrap();
    let guard = within(Lock::new(&zk, "/l").acquire()).await.unwrap();
    let third = (0..3).map(Member).find(|it| *it != leader && *it != follower).unwrap();
    server.with(|ensemble, now| {
        ensemble.stop(now, leader);
        ensemble.stop(now, third);
    });
    let mut session = zk.session();
    let left = async {
        while session.state() == (SessionState::Connected { read_only: false }) {
            session.changed().await;
        }
    };
    within(left).await;
    assert!(matches!(guard.status(), Status::Suspect { .. }), "{:?}", guard.status());
    let checked = within(guard.check()).await;
    let refused = |error: &CheckError| match error {
        CheckError::Unavailable(WriteError::Rejected(_)) => false,
        CheckError::Unavailable(_) | CheckError::Lost(_) => true,
        _ => false,
    };
    assert!(checked.as_ref().is_err_and(refused), "{checked:?}");
    let lost = within(guard.lost()).await;
    assert!(matches!(lost, Lost::LeaseRanOut | Lost::SessionEnded(_)), "{lost:?}");
}

/// One that sets it tells another one to remove it, whose member does not show it yet.
#[tokio::test]
async fn unseen_barrier_is_removed_all_the_same() {
    let (server, leader, follower) = ensemble(|_| {}).await;
    let setter = options(&server, &[leader]).connect().await.unwrap();
    let remover = options(&server, &[follower]).connect().await.unwrap();
    server.with(|ensemble, now| ensemble.set_lag(now, follower, LAG));
    let barrier = Barrier::new(&setter, "/b");
    assert!(within(barrier.set()).await.unwrap());
    within(Barrier::new(&remover, "/b").remove()).await.unwrap();
    assert!(!within(barrier.is_set()).await.unwrap());
}

/// A member without a quorum takes no candidates. The next one does.
#[tokio::test]
async fn latch_outlasts_a_read_only_member() {
    let (server, leader, follower) = ensemble(|config| {
        (config.read_only_mode, config.sync_limit) = (true, 2 * TICK);
    })
    .await;
    let third = (0..3).map(Member).find(|it| *it != leader && *it != follower).unwrap();
    server.with(|ensemble, now| {
        ensemble.stop(now, leader);
        ensemble.stop(now, third);
    });
    // It takes new sessions alone, when it has seen that it has no leader.
    let zk = within(options(&server, &[follower]).read_only(true).connect()).await.unwrap();
    assert_eq!(zk.session().state(), SessionState::Connected { read_only: true });
    let latch = Election::new(&zk, "/e").latch(b"");
    within(server.proxy_of(follower).wait_for(|frame| frame.is_reply(OpCode::CREATE2))).await;
    server.with(|ensemble, now| {
        ensemble.start(now, leader);
        ensemble.start(now, third);
    });
    let mut states = latch.subscribe();
    within(states.wait_for(|state| matches!(state, LatchState::Leading { .. }))).await.unwrap();
}
