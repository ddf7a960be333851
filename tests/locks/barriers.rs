//! Barriers: no participant goes on too early, and none waits for ever.

use std::time::Duration;

use tokio::task::JoinHandle;
use zk_client::CreateMode;
use zk_locks::{
    AcquireError, Barrier, Client, DoubleBarrier, Layout, Participation, Rejection, SessionEnd,
};
use zk_proto::{ErrorCode, OpCode};
use zk_testkit::proxy::{Match, RuleHandle};
use zk_tests::{busy::too_busy_for, test_with};

use crate::locks::{
    refusals::answered_with,
    support::{Setup, closed, emptied, joined, on_each_release, ops, within},
};

#[test_with(on_each_release)]
async fn removal_lets_all_barrier_waiters_pass(setup: Setup) {
    let path = setup.path("missing/barrier");
    let (proxy, zk) = setup.proxied().await;
    let (ours, theirs) = (Barrier::new(&zk, &path), Barrier::new(&setup.outsider, &path));
    assert!(!ours.is_set().await.unwrap());
    within(ours.wait()).await.unwrap();
    assert!(within(theirs.set()).await.unwrap());
    assert!(!within(theirs.set()).await.unwrap());
    let late = ours.wait_timeout(Duration::from_millis(20)).await;
    assert_eq!(late, Err(AcquireError::TimedOut));
    // What it has asked for is answered by then.
    zk.sync("/").await.unwrap();

    let mark = proxy.mark();
    let read = proxy.on(Match::reply(OpCode::GET_DATA)).watch();
    let remove = async {
        within(read.fired()).await;
        within(theirs.remove()).await.unwrap();
    };
    let (waited, ()) = within(async { tokio::join!(ours.wait(), remove) }).await;
    waited.unwrap();
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), [OpCode::GET_DATA], "{frames}");
    within(theirs.remove()).await.unwrap();
    closed(&zk).await;
    let ended = AcquireError::SessionEnded(SessionEnd::Closed);
    assert_eq!(ours.wait().await.unwrap_err(), ended);
}

/// A disconnected client does not see what was between, but that something was.
#[test_with(on_each_release)]
async fn waiter_passes_barrier_set_again_offline(setup: Setup) {
    let path = setup.path("again");
    let (proxy, zk) = setup.proxied().await;
    let theirs = Barrier::new(&setup.outsider, &path);
    theirs.set().await.unwrap();
    let read = proxy.on(Match::reply(OpCode::GET_DATA)).watch();
    let waiting = tokio::spawn(async move { Barrier::new(&zk, &path).wait().await });
    within(read.fired()).await;
    let away = proxy.on(Match::connect_request()).hold();
    proxy.cut_all();
    within(away.fired()).await;
    theirs.remove().await.unwrap();
    theirs.set().await.unwrap();
    away.release();
    within(waiting).await.unwrap().unwrap();
    assert!(theirs.is_set().await.unwrap());
}

#[test_with(on_each_release)]
async fn removal_in_doubt_spares_a_later_barrier(setup: Setup) {
    let path = setup.path("lost-reply");
    let (proxy, zk) = setup.proxied().await;
    let (ours, theirs) = (Barrier::new(&zk, &path), Barrier::new(&setup.outsider, &path));
    theirs.set().await.unwrap();
    let _cut = proxy.on(Match::reply(OpCode::DELETE).once()).cut();
    let away = proxy.on(Match::connect_request()).hold();
    let set_again = async {
        within(away.fired()).await;
        assert!(within(theirs.set()).await.unwrap());
        away.release();
    };
    let (removed, ()) = within(async { tokio::join!(ours.remove(), set_again) }).await;
    removed.unwrap();
    assert!(theirs.is_set().await.unwrap());
    assert_eq!(proxy.counts().requests(OpCode::DELETE), 1);
}

/// Enters a barrier on a task of its own, and is there when this returns.
async fn entering(
    setup: &Setup,
    barrier: &DoubleBarrier,
    path: &str,
    count: usize,
) -> JoinHandle<Result<Participation, AcquireError>> {
    let barrier = barrier.clone();
    let entering = tokio::spawn(async move { barrier.enter().await });
    joined(&setup.outsider, path, count).await;
    entering
}

/// Whether all of these still wait, once they have heard everything that there is to hear by now.
async fn still_wait<T>(clients: &[Client], waiting: &[JoinHandle<T>]) -> bool {
    for zk in clients {
        for _ in 0..3 {
            within(async { zk.sync("/").await }).await.unwrap();
            tokio::task::yield_now().await;
        }
    }
    waiting.iter().all(|waiting| !waiting.is_finished())
}

#[test_with(on_each_release)]
async fn entering_request_counts(setup: Setup) {
    let path = setup.existing("counts").await;
    let (proxy, zk) = setup.proxied().await;
    let first = DoubleBarrier::new(&zk, &path, 2);
    let armed = proxy.on(Match::reply(OpCode::GET_DATA)).watch();
    let mark = proxy.mark();
    let first = entering(&setup, &first, &path, 1).await;
    within(armed.fired()).await;
    let (their_proxy, theirs) = setup.proxied().await;
    let their_mark = their_proxy.mark();
    let second = within(DoubleBarrier::new(&theirs, &path, 2).enter()).await.unwrap();
    let first = within(first).await.unwrap().unwrap();
    let expected = [OpCode::CREATE2, OpCode::EXISTS, OpCode::GET_CHILDREN2, OpCode::GET_DATA];
    let frames = proxy.frames_since(mark);
    assert_eq!(ops(&frames), expected, "{frames}");
    assert_eq!(frames.round_trips(), 2, "{frames}");
    let frames = their_proxy.frames_since(their_mark);
    let expected = [OpCode::CREATE2, OpCode::EXISTS, OpCode::GET_CHILDREN2, OpCode::MULTI];
    assert_eq!(ops(&frames), expected, "{frames}");
    let (first, second) = within(async { tokio::join!(first.leave(), second.leave()) }).await;
    assert_eq!((first, second), (Ok(()), Ok(())));
    emptied(&setup.outsider, &path).await;
}

/// Scenario 67: lost connections, changes that mean nothing, and the sign of a round whose participants have
/// died.
#[test_with(on_each_release)]
async fn enter_waits_for_all_participants(setup: Setup) {
    let path = setup.existing("early").await;
    let ready = format!("{path}/ready");
    setup.outsider.create(&ready, b"").await.unwrap();
    let mut proxies = Vec::new();
    let mut clients = Vec::new();
    let mut waiting = Vec::new();
    for number in 0..2 {
        let (proxy, zk) = setup.proxied().await;
        let barrier = DoubleBarrier::new(&zk, &path, 3);
        let read = proxy.on(Match::reply(OpCode::GET_DATA)).watch();
        waiting.push(entering(&setup, &barrier, &path, 2 + number).await);
        within(read.fired()).await;
        proxies.push(proxy);
        clients.push(zk);
    }
    assert!(still_wait(&clients, &waiting).await, "by an old sign");
    setup.outsider.delete(&ready).await.unwrap();
    assert!(still_wait(&clients, &waiting).await, "when the old sign has gone");
    for proxy in &proxies {
        proxy.cut_all();
    }
    assert!(still_wait(&clients, &waiting).await, "by a reconnect");
    let passer_by = format!("{path}/passer-by");
    setup.outsider.create(&passer_by, b"").mode(CreateMode::Ephemeral).await.unwrap();
    setup.outsider.delete(&passer_by).await.unwrap();
    assert!(still_wait(&clients, &waiting).await, "by somebody who has gone");

    let third = DoubleBarrier::new(&setup.outsider, &path, 3);
    let third = within(third.enter()).await.unwrap();
    for waiting in waiting {
        drop(within(waiting).await.unwrap().unwrap());
    }
    within(third.leave()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// The sign of a dead round stands while the next one comes together.
#[test_with(on_each_release)]
async fn stale_ready_node_is_renewed_for_all(setup: Setup) {
    let path = setup.existing("anew").await;
    setup.outsider.create(&format!("{path}/ready"), b"").await.unwrap();
    let zk = setup.client().await;
    let barrier = DoubleBarrier::new(&zk, &path, 2);
    let first = entering(&setup, &barrier, &path, 2).await;
    let second = within(DoubleBarrier::new(&setup.outsider, &path, 2).enter()).await.unwrap();
    let first = within(first).await.unwrap().unwrap();
    let (first, second) = within(async { tokio::join!(first.leave(), second.leave()) }).await;
    assert_eq!((first, second), (Ok(()), Ok(())));
    emptied(&setup.outsider, &path).await;
}

/// The last to come finds a sign, takes it for its round's, and writes none: as Curator and kazoo do.
#[test_with(on_each_release)]
async fn foreigner_behind_a_stale_ready_node_is_seen(setup: Setup) {
    let path = setup.existing("foreigner").await;
    setup.outsider.create(&format!("{path}/ready"), b"").await.unwrap();
    let (proxy, zk) = setup.proxied().await;
    let barrier = DoubleBarrier::builder(&zk, &path).recheck(None).build().of(2);
    let listed = proxy.on(Match::reply(OpCode::GET_CHILDREN2)).watch();
    let ours = entering(&setup, &barrier, &path, 2).await;
    within(listed.fired_times(2)).await;
    let foreigner = format!("{path}/foreigner");
    setup.outsider.create(&foreigner, b"").mode(CreateMode::Ephemeral).await.unwrap();
    let ours = within(ours).await.unwrap().unwrap();
    setup.outsider.delete(&foreigner).await.unwrap();
    within(ours.leave()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// Requests that mark a round as complete.
fn completing() -> Match {
    Match::requests().when(|frame| {
        let names_ready = frame.payload().windows(6).any(|part| part == b"/ready");
        names_ready && !frame.is_request(OpCode::EXISTS)
    })
}

/// Both have seen each other, and both say so.
#[test_with(on_each_release)]
async fn two_may_complete_a_round_at_once(setup: Setup) {
    let path = setup.existing("both").await;
    let [one, other] = [setup.proxied().await, setup.proxied().await];
    let listing = || Match::request(OpCode::GET_CHILDREN2).once();
    let listings = [&one, &other].map(|(proxy, _)| proxy.on(listing()).hold());
    let signs = [&one, &other].map(|(proxy, _)| proxy.on(completing().once()).hold());
    let enter = |zk| {
        let barrier = DoubleBarrier::new(zk, &path, 2);
        async move { within(barrier.enter()).await.unwrap() }
    };
    let both_say_so = async {
        joined(&setup.outsider, &path, 2).await;
        for held in [listings, signs] {
            for held in &held {
                within(held.fired()).await;
            }
            held.iter().for_each(RuleHandle::release);
        }
    };
    let (one, other, ()) = tokio::join!(enter(&one.1), enter(&other.1), both_say_so);
    let (one, other) = tokio::join!(one.leave(), other.leave());
    one.and(other).unwrap();
    emptied(&setup.outsider, &path).await;
}

/// All have been seen together; until the sign is written, two of the three have left, and another one has come.
#[test_with(on_each_release)]
async fn late_sign_lets_no_later_participant_in(setup: Setup) {
    for trouble in ["slow", "busy", "lost"] {
        let path = setup.existing(trouble).await;
        let others = DoubleBarrier::new(&setup.outsider, &path, 3);
        let early =
            [entering(&setup, &others, &path, 1).await, entering(&setup, &others, &path, 2).await];
        let (proxy, zk) = setup.proxied().await;
        let busy = (trouble == "busy").then(|| too_busy_for(&proxy, completing()));
        let held = busy.is_none().then(|| proxy.on(completing().once()).hold());
        let ours = entering(&setup, &DoubleBarrier::new(&zk, &path, 3), &path, 3).await;
        match (&busy, &held) {
            (Some(busy), _) => within(busy.has_turned_away(1)).await,
            (_, held) => drop(within(held.as_ref().unwrap().fired()).await),
        }
        let away = (trouble == "lost").then(|| proxy.on(Match::connect_request()).hold());
        if let Some(away) = &away {
            proxy.cut_all();
            within(away.fired()).await;
        }
        for early in early {
            early.abort();
        }
        joined(&setup.outsider, &path, 1).await;
        let later = entering(&setup, &others, &path, 2).await;

        let looks_again = proxy.on(Match::reply(OpCode::GET_DATA)).watch();
        drop((busy, held, away));
        within(looks_again.fired()).await;
        let waiting = [ours, later];
        let clients = [zk, setup.outsider.clone()];
        assert!(still_wait(&clients, &waiting).await, "{trouble}: two of three are there");
        let third = within(others.enter()).await.unwrap();
        for waiting in waiting {
            drop(within(waiting).await.unwrap().unwrap());
        }
        within(third.leave()).await.unwrap();
        emptied(&setup.outsider, &path).await;
    }
}

/// Scenario 67.
#[test_with(on_each_release)]
async fn abandoned_entry_leaves_no_node(setup: Setup) {
    let path = setup.existing("timeout").await;
    let zk = setup.client().await;
    let barrier = DoubleBarrier::builder(&zk, &path).layout(Layout::Kazoo).build().of(2);
    let late = barrier.enter_timeout(Duration::from_millis(30)).await;
    assert_eq!(late.unwrap_err(), AcquireError::TimedOut);
    emptied(&zk, &path).await;

    let removed = entering(&setup, &barrier, &path, 1).await;
    let (names, _) = setup.outsider.children(&path).await.unwrap();
    assert!(names[0].len() == 32 && !names[0].contains('-'), "{names:?}");
    setup.outsider.delete(&format!("{path}/{}", names[0])).await.unwrap();
    assert_eq!(within(removed).await.unwrap().unwrap_err(), AcquireError::NodeDeleted);

    let ended = entering(&setup, &barrier, &path, 1).await;
    closed(&zk).await;
    let expected = AcquireError::SessionEnded(SessionEnd::Closed);
    assert_eq!(within(ended).await.unwrap().unwrap_err(), expected);
    emptied(&setup.outsider, &path).await;
}

/// In every order of leaving; one dies instead, and the first one of all enters the next round at once.
#[test_with(on_each_release)]
async fn leave_waits_for_all_participants(setup: Setup) {
    let path = setup.existing("leaving").await;
    let mut clients = Vec::new();
    let mut waiting = Vec::new();
    for count in 1..=4 {
        clients.push(setup.client().await);
        let barrier = DoubleBarrier::new(&clients[count - 1], &path, 4);
        // With the last one comes the sign.
        waiting.push(entering(&setup, &barrier, &path, count + count / 4).await);
    }
    let mut inside = Vec::new();
    for waiting in waiting {
        inside.push(within(waiting).await.unwrap().unwrap());
    }
    inside.sort_by(|a, b| a.path().cmp(b.path()));
    let last = inside.remove(1);
    let dies = inside.remove(1);
    let leaving: Vec<_> = inside.into_iter().map(|inside| tokio::spawn(inside.leave())).collect();
    assert!(still_wait(&clients, &leaving).await, "before all have left");
    drop(dies);
    assert!(still_wait(&clients, &leaving).await, "before the last one has left");

    // It need not wait for itself in the next round, nor do the others.
    let next = DoubleBarrier::new(&setup.outsider, &path, 4);
    let next = tokio::spawn(async move { next.enter().await });
    within(last.leave()).await.unwrap();
    for left in leaving {
        within(left).await.unwrap().unwrap();
    }
    joined(&setup.outsider, &path, 1).await;
    next.abort();
    assert!(within(next).await.is_err_and(|error| error.is_cancelled()));
    emptied(&setup.outsider, &path).await;
}

#[test_with(on_each_release)]
async fn impatient_participant_has_left(setup: Setup) {
    let path = setup.existing("impatient").await;
    let first = DoubleBarrier::new(&setup.outsider, &path, 2);
    let first = entering(&setup, &first, &path, 1).await;
    let zk = setup.client().await;
    let second = within(DoubleBarrier::new(&zk, &path, 2).enter()).await.unwrap();
    let first = within(first).await.unwrap().unwrap();
    let late = first.leave_timeout(Duration::from_millis(30)).await;
    assert_eq!(late, Err(AcquireError::TimedOut));
    within(second.leave()).await.unwrap();
    emptied(&setup.outsider, &path).await;
}

/// Between the look at the sign and its deletion it has become the next round's.
#[test_with(on_each_release)]
async fn sign_of_the_next_round_is_left(setup: Setup) {
    let path = setup.existing("renewed").await;
    let ready = format!("{path}/ready");
    let (proxy, zk) = setup.proxied().await;
    let inside = within(DoubleBarrier::new(&zk, &path, 1).enter()).await.unwrap();
    let deletion = proxy.on(Match::request(OpCode::DELETE).path(&ready)).hold();
    let leaving = tokio::spawn(inside.leave());
    within(deletion.fired()).await;
    setup.outsider.set(&ready, b"").await.unwrap();
    deletion.release();
    within(leaving).await.unwrap().unwrap();
    assert!(setup.outsider.exists(&ready).await.unwrap().is_some());
}

/// Only what a lost connection has taken away is asked for again.
#[test_with(on_each_release)]
async fn refused_leave_asks_once(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let barrier = DoubleBarrier::new(&zk, &setup.existing("refused").await, 1);
    let entered = within(barrier.enter()).await.unwrap();
    let mark = proxy.mark();
    let _refused = answered_with(&proxy, Match::reply(OpCode::EXISTS), ErrorCode::NO_AUTH);
    let left = within(entered.leave()).await;
    assert_eq!(left, Err(AcquireError::Rejected(Rejection::NoAuth)));
    let frames = proxy.frames_since(mark);
    let asked = ops(&frames).iter().filter(|op| **op == OpCode::EXISTS).count();
    assert_eq!(asked, 1, "{frames}");
}
