//! Elections: which candidate leads, which clients know of it, and that there are never two.

use std::{ops::Deref, time::Duration};

use zk_client::{Cause, CreateMode, SessionState};
use zk_locks::{
    AcquireError, CheckError, Client, Election, Kind, LatchState, Layout, LeaderLatch, Lost, Status,
};
use zk_proto::OpCode;
use zk_testkit::proxy::{Match, Proxy};
use zk_tests::{
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{
    Setup, client_on, dropped_after, emptied, in_virtual_time, joined, on_each_release,
    on_each_release_threaded, options_for, within,
};

/// Of sessions that are to expire.
const SHORT: Duration = Duration::from_secs(10);

#[test_with(on_each_release)]
async fn candidates_lead_in_order_behind_foreign(setup: Setup) {
    let path = setup.existing("order").await;
    let other = format!("{path}/_c_3b5f6a0e-0000-4000-8000-0123456789ab-latch-");
    let mode = CreateMode::EphemeralSequential;
    let other = setup.outsider.create(&other, b"other").mode(mode).await.unwrap();
    let (first, second) = (setup.client().await, setup.client().await);
    let campaign = |zk: &Client, data: &'static [u8]| {
        let election = Election::new(zk, &path);
        tokio::spawn(async move { election.campaign(data).await.unwrap() })
    };
    let a = campaign(&first, b"a");
    joined(&setup.outsider, &path, 2).await;
    let b = campaign(&second, b"b");
    joined(&setup.outsider, &path, 3).await;
    let candidates = Election::new(&first, &path).queue().contenders().await.unwrap();
    let told: Vec<_> =
        candidates.iter().map(|one| (one.description().into_owned(), one.kind)).collect();
    assert_eq!(told, ["other", "a", "b"].map(|data| (data.to_owned(), Kind::Lead)));
    assert!(!a.is_finished());

    setup.outsider.delete(&other.path).await.unwrap();
    let a = within(a).await.unwrap();
    assert!(!b.is_finished());
    within(a.resign()).await.unwrap();
    assert_eq!(within(b).await.unwrap().token().get(), candidates[2].token.get());
}

#[test_with(on_each_release)]
async fn kazoo_names_stand_in_the_same_election(setup: Setup) {
    let path = setup.existing("kazoo").await;
    let zk = setup.client().await;
    let kazoo = Election::builder(&zk, &path).layout(Layout::Kazoo).build();
    let first = within(kazoo.campaign(b"")).await.unwrap();
    assert!(first.path().contains("__lock__0"), "{first:?}");
    let ours = Election::new(&zk, &path);
    let refused = ours.campaign_timeout(b"", Duration::from_millis(50)).await;
    assert_eq!(refused.unwrap_err(), AcquireError::TimedOut);
    drop(first);
    let second = within(ours.campaign(b"")).await.unwrap();
    let none = Election::builder(&zk, &path).layout(Layout::Recipe).build();
    let nameless = AcquireError::NoSuchName { layout: Layout::Recipe };
    assert_eq!(none.campaign(b"").await.unwrap_err(), nameless);
    within(second.resign()).await.unwrap();
}

/// Without the check in the same transaction the write would go to whatever has the path.
#[test_with(on_each_release)]
async fn leader_without_node_cannot_proclaim(setup: Setup) {
    let path = setup.existing("proclaim").await;
    let leadership = within(Election::new(&setup.outsider, &path).campaign(b"a")).await.unwrap();
    let outsider = setup.client().await;
    outsider.delete(leadership.path()).await.unwrap();
    let refused = leadership.proclaim(b"b").await.unwrap_err();
    assert_eq!(refused, CheckError::Lost(Lost::NodeDeleted));
    // It is known from then on, whether the node was watched by then or not.
    assert_eq!(leadership.status(), Status::Lost(Lost::NodeDeleted));
    assert_eq!(leadership.proclaim(b"b").await, Err(CheckError::Lost(Lost::NodeDeleted)));
    emptied(&outsider, &path).await;
}

/// Before there was room for it among the requests under way.
#[test_with(in_virtual_time)]
async fn dropped_proclamation_is_made(network: Network) {
    let other = client_on(&network, "theirs").await;
    let zk = network.options("ours", "", 7).requests_max(1).connect().await.unwrap();
    let leadership = within(Election::new(&zk, "/leaders").campaign(b"old")).await.unwrap();
    network.direct(|name, op| match (name, op) {
        ("ours", OpCode::GET_DATA) => Disposition::Late(Duration::from_secs(1)),
        _ => Disposition::Answered,
    });
    let owed = zk.get("/").submit();
    assert!(dropped_after(1, leadership.proclaim(b"new")).await.is_none());
    within(owed).await.unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(other.get(leadership.path()).await.unwrap().0, "new");
}

/// A latch behind a proxy of its own.
struct Candidate {
    proxy: Proxy,
    zk: Client,
    latch: LeaderLatch,
}

impl Deref for Candidate {
    type Target = LeaderLatch;
    fn deref(&self) -> &LeaderLatch {
        &self.latch
    }
}

impl Candidate {
    async fn new(setup: &Setup, path: &str, timeout: Duration) -> Self {
        let proxy = setup.proxy().await;
        let zk = options_for(&proxy).session_timeout(timeout).connect().await.unwrap();
        let latch = Election::new(&zk, path).latch(b"latch");
        Self { proxy, zk, latch }
    }

    async fn leads(&self) {
        let mut states = self.subscribe();
        let leading = states.wait_for(|state| matches!(state, LatchState::Leading { .. }));
        within(leading).await.unwrap();
    }
}

/// How many say that they lead once all have seen everything that has happened so far.
async fn leaders(candidates: &[Candidate]) -> usize {
    for candidate in candidates {
        within(async { candidate.zk.sync("/").await }).await.unwrap();
    }
    tokio::task::yield_now().await;
    candidates.iter().filter(|candidate| candidate.is_leader()).count()
}

/// Scenario 66: a leader whose connection is lost, whose node is deleted, both at once, and who stands
/// again behind the others; the next one's node goes while it waits.
#[test_with(on_each_release)]
async fn two_latches_never_lead_at_once(setup: Setup) {
    let path = setup.existing("latches").await;
    let mut candidates = Vec::new();
    for count in 1..=3 {
        candidates.push(Candidate::new(&setup, &path, Duration::from_secs(30)).await);
        joined(&setup.outsider, &path, count).await;
    }
    candidates[0].leads().await;
    assert_eq!(leaders(&candidates).await, 1);
    let mut tokens = vec![candidates[0].token().unwrap()];

    // A lost connection changes nothing: the same node, the same token.
    candidates[0].proxy.cut_all();
    assert_eq!(leaders(&candidates).await, 1);
    assert_eq!(candidates[0].token(), Some(tokens[0]));
    joined(&setup.outsider, &path, 3).await;

    // Its node goes while it is away; it hears of that before anything else when it is back.
    let contenders = Election::new(&setup.outsider, &path).queue().contenders().await.unwrap();
    let held = candidates[0].proxy.on(Match::connect_request()).hold();
    candidates[0].proxy.cut_all();
    within(held.fired()).await;
    setup.outsider.delete(&format!("{path}/{}", contenders[0].name)).await.unwrap();
    candidates[1].leads().await;
    tokens.push(candidates[1].token().unwrap());
    held.release();
    assert_eq!(leaders(&candidates).await, 1);
    assert_eq!(candidates[0].token(), None);
    joined(&setup.outsider, &path, 3).await;

    // The one that waits loses its place, and then the leader its node, time after time.
    for _ in 0..4 {
        for victim in [1, 0] {
            let contenders =
                Election::new(&setup.outsider, &path).queue().contenders().await.unwrap();
            let gone = &contenders[victim].name;
            setup.outsider.delete(&format!("{path}/{gone}")).await.unwrap();
            assert!(leaders(&candidates).await <= 1);
            joined(&setup.outsider, &path, 3).await;
            assert!(leaders(&candidates).await <= 1);
        }
        let contenders = Election::new(&setup.outsider, &path).queue().contenders().await.unwrap();
        let leader = contenders[0].session;
        let leader = candidates.iter().find(|one| one.zk.session().id() == leader).unwrap();
        leader.leads().await;
        tokens.push(leader.token().unwrap());
        assert_eq!(leaders(&candidates).await, 1);
    }
    assert!(tokens.is_sorted() && tokens[1] > tokens[0], "{tokens:?}");
    for candidate in candidates {
        within(candidate.latch.resign()).await;
    }
    emptied(&setup.outsider, &path).await;
}

/// Also while servers are asked why the lead was lost.
#[test_with(on_each_release)]
async fn latch_without_lead_names_no_node(setup: Setup) {
    let path = setup.existing("named").await;
    let latch = Candidate::new(&setup, &path, Duration::from_secs(30)).await;
    latch.leads().await;
    let mut states = latch.subscribe();
    let asks = latch.proxy.on(Match::request(OpCode::EXISTS)).hold();
    setup.outsider.delete(&latch.path().unwrap()).await.unwrap();
    within(states.wait_for(|state| *state == LatchState::Waiting)).await.unwrap();
    assert_eq!(latch.path(), None);
    asks.release();
    latch.leads().await;
}

/// Scenario 66, with the clock: a leader that hears nothing says no when the next one says yes.
#[test_with(on_each_release_threaded)]
async fn partitioned_latch_stops_leading_in_time(setup: Setup) {
    let path = setup.existing("partitioned").await;
    let first = Candidate::new(&setup, &path, SHORT).await;
    first.leads().await;
    let second = Candidate::new(&setup, &path, Duration::from_secs(30)).await;
    joined(&setup.outsider, &path, 2).await;
    let mut states = first.subscribe();
    first.proxy.silence();
    second.leads().await;
    assert!(!first.is_leader() && second.is_leader());
    first.proxy.resume();
    let ended = within(states.wait_for(|state| matches!(state, LatchState::Ended(_)))).await;
    assert!(matches!(&*ended.unwrap(), LatchState::Ended(AcquireError::SessionEnded(_))));
    drop(second.latch);
    emptied(&setup.outsider, &path).await;
}

/// It would be the same the next time, and long answers cost all that uses the session a connection each.
#[test_with(on_each_release)]
async fn latch_ends_with_what_is_too_long(setup: Setup) {
    let path = setup.existing("too-long").await;
    let long = vec![0; 2 << 20];
    let latch = Election::new(&setup.outsider, &path).latch(&long);
    let end = end_of(&latch).await;
    assert!(matches!(end, AcquireError::Unavailable(Cause::TooLarge { .. })), "{end:?}");

    for number in 0..40 {
        let name = format!("{path}/{number}-{}", "x".repeat(100));
        setup.outsider.create(&name, b"").await.unwrap();
    }
    let zk = setup.options().reply_len_max(2_000).connect().await.unwrap();
    let latch = Election::new(&zk, &path).latch(b"");
    let end = end_of(&latch).await;
    assert!(matches!(end, AcquireError::Unavailable(Cause::ReplyTooLarge { .. })), "{end:?}");
    joined(&setup.outsider, &path, 40).await;
}

/// Why a latch has ended.
async fn end_of(latch: &LeaderLatch) -> AcquireError {
    let mut states = latch.subscribe();
    let ended = within(states.wait_for(|state| matches!(state, LatchState::Ended(_)))).await;
    match &*ended.unwrap() {
        LatchState::Ended(why) => why.clone(),
        state => panic!("{state:?} is no end"),
    }
}

/// Also the node of a term that was lost with the lease, while its session lives on.
#[test_with(in_virtual_time)]
async fn resigning_waits_for_the_node_of_a_lost_term(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let latch = Election::new(&zk, "/leaders").latch(b"");
    let mut states = latch.subscribe();
    within(states.wait_for(|state| matches!(state, LatchState::Leading { .. }))).await.unwrap();
    let node = latch.path().unwrap();
    network.cut("ours");
    within(states.wait_for(|state| *state == LatchState::Waiting)).await.unwrap();
    network.heal();
    within(latch.resign()).await;
    let state = zk.session().state();
    assert!(!matches!(state, SessionState::Ended(_)), "it has outlived its lease: {state:?}");
    assert!(other.exists(&node).await.unwrap().is_none());
}
