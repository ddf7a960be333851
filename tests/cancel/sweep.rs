//! Drops every future wherever it can be dropped, in every state of its session.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, sleep_until, timeout};
use zk_client::SessionState;
use zk_tests::{network::pass, paused, polls::dropped_when_woken, share::Share};

use crate::cancel::{
    scene::{Scene, scenes},
    stage::{CLIENT, Props, Stage},
};

/// Nothing here takes longer, unless it never ends.
const LIMIT_MILLIS: u64 = 250;

/// Drops of all futures in all states, or more.
const DROPS_MIN: usize = 40_000;

/// How long troubles last that end.
const TROUBLE: Duration = Duration::from_millis(40);

/// What becomes of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connected,
    /// The connection is cut, with what is under way on it.
    Suspended,
    /// Nothing passes for a while, in either direction.
    Silent,
    Expired,
    /// The session is being closed, which takes a while.
    Closing,
}

/// When that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// Before the future begins.
    Before,
    /// So many milliseconds after.
    After(u64),
}

/// Where a future is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// At its n-th suspension, from 1.
    Suspension(usize),
    /// When it has been woken the n-th time, from 1: what it was woken for goes with it.
    Waking(u64),
    /// So many milliseconds after it began: before or after all that happens then.
    Instant { millis: u64, before: bool },
    /// Nowhere.
    Nowhere,
}

/// What has become of a future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disposition {
    Dropped,
    Ended,
    /// It neither ended nor got as far as it should have been dropped.
    StillThere,
}

/// Polls a future until it is to be dropped.
async fn dropped_at<T>(place: Where, future: impl Future<Output = T>) -> Result<T, Disposition> {
    if let Where::Waking(wakes) = place {
        let dropped = dropped_when_woken(wakes, future);
        return match timeout(Duration::from_millis(LIMIT_MILLIS), dropped).await {
            Ok(output) => output.ok_or(Disposition::Dropped),
            Err(_) => Err(Disposition::StillThere),
        };
    }
    let mut future = pin!(future);
    let mut polls = 0;
    let mut polled = pin!(poll_fn(|cx| {
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending if place == Where::Suspension(polls) => {
                Poll::Ready(Err(Disposition::Dropped))
            }
            Poll::Pending => Poll::Pending,
        }
    }));
    let (limit, at_limit) = match place {
        Where::Instant { millis, .. } => (Duration::from_millis(millis), Disposition::Dropped),
        Where::Suspension(_) | Where::Waking(_) | Where::Nowhere => {
            (Duration::from_millis(LIMIT_MILLIS), Disposition::StillThere)
        }
    };
    let until = sleep_until(Instant::now() + limit);
    if matches!(place, Where::Instant { before: true, .. }) {
        tokio::select! {
            biased;
            () = until => Err(at_limit),
            outcome = &mut polled => outcome,
        }
    } else {
        tokio::select! {
            biased;
            outcome = &mut polled => outcome,
            () = until => Err(at_limit),
        }
    }
}

/// Brings the session into a state, and out of it again if it lasts.
async fn trouble(props: &Props, state: State) {
    let (network, client) = (props.network.clone(), props.client.clone());
    match state {
        State::Connected => {}
        State::Suspended => {
            network.cut(CLIENT);
            pass(TROUBLE).await;
            network.heal();
        }
        State::Silent => {
            network.hold(CLIENT);
            pass(TROUBLE).await;
            network.heal();
        }
        State::Expired => network.expire(client.session().id()),
        State::Closing => {
            network.hold(CLIENT);
            let heal = async {
                pass(TROUBLE).await;
                network.heal();
            };
            // Whether a server confirms it is not the question here.
            let _ = tokio::join!(client.close(), heal);
        }
    }
}

/// Waits until a client sees the state.
async fn seen(props: &Props, state: State) {
    let mut session = props.client.session();
    loop {
        let there = match session.state() {
            SessionState::Connected { .. } => matches!(state, State::Connected | State::Silent),
            SessionState::Disconnected => state == State::Suspended,
            SessionState::Closing => state == State::Closing,
            SessionState::Ended(_) => state == State::Expired,
            _ => false,
        };
        if there {
            return;
        }
        session.changed().await;
    }
}

/// One future on one stage, dropped once.
async fn drop_once(scene: &Scene, state: State, when: When, place: Where) -> Disposition {
    let about = format!("{} {:?}, {state:?} {when:?}, {place:?}", scene.future, scene.needs);
    let stage = Stage::new().await;
    let mut props = stage.props(scene.needs, "/lock").await;
    let props_of_trouble = stage.props(crate::cancel::stage::Needs::Nothing, "/unused").await;
    let trouble = async {
        if let When::After(millis) = when {
            pass(Duration::from_millis(millis)).await;
        }
        trouble(&props_of_trouble, state).await;
    };
    let act = async {
        if when == When::Before {
            seen(&props_of_trouble, state).await;
        }
        dropped_at(place, (scene.begin)(&mut props)).await
    };
    let ((), outcome) = tokio::join!(trouble, act);
    let disposition = match outcome {
        Ok(result) => {
            let calm = state == State::Connected;
            assert!(!calm || result.is_ok(), "{}: {result:?}", scene.future);
            Disposition::Ended
        }
        Err(disposition) => disposition,
    };
    stage.nothing_is_left(vec![props, props_of_trouble], &about).await;
    disposition
}

/// Runs on a runtime of its own, whose clock moves on when all tasks sleep.
fn run<T>(future: impl Future<Output = T>) -> T {
    paused::block_on(future)
}

/// Drops a future everywhere in one state. Returns how often it was dropped.
fn sweep(scene: &Scene, state: State, when: When) -> usize {
    let drop_at = |place| run(drop_once(scene, state, when, place));
    let mut dropped = 0;
    let suspensions = (1..).map(Where::Suspension);
    dropped += suspensions.take_while(|place| drop_at(*place) == Disposition::Dropped).count();
    let wakes = (1..).map(Where::Waking);
    dropped += wakes.take_while(|place| drop_at(*place) == Disposition::Dropped).count();
    let instants = (0..8).chain((8..LIMIT_MILLIS).step_by(23));
    'instants: for millis in instants {
        for before in [true, false] {
            match drop_at(Where::Instant { millis, before }) {
                Disposition::Dropped => dropped += 1,
                Disposition::Ended | Disposition::StillThere => break 'instants,
            }
        }
    }
    dropped
}

/// When a state is entered: before the future begins, and at each step of it.
fn moments(state: State) -> Vec<When> {
    match state {
        State::Connected => vec![When::Before],
        _ => [When::Before].into_iter().chain([0, 2, 5].map(When::After)).collect(),
    }
}

#[test]
fn every_future_is_droppable_in_every_state() {
    let states =
        [State::Connected, State::Suspended, State::Silent, State::Expired, State::Closing];
    let shares = states.map(|state| (state, Share::of(&format!("drops, {state:?}"))));
    let least = shares[0].1.at_least(DROPS_MIN);
    let threads = shares.map(|(state, mut share)| {
        std::thread::spawn(move || {
            let mut dropped = 0;
            for scene in scenes() {
                for when in moments(state) {
                    if share.takes_next() {
                        dropped += sweep(scene, state, when);
                    }
                }
            }
            dropped
        })
    });
    let counts = threads.map(|thread| thread.join().expect("nothing is left"));
    for (state, count) in states.iter().zip(counts) {
        println!("{state:?}: {count} drops");
    }
    let all: usize = counts.iter().sum();
    println!(
        "{} futures on {} stages: {all} drops",
        crate::cancel::complete::futures().len(),
        scenes().count()
    );
    assert!(all >= least, "{all} drops of at least {least}");
}

#[test]
fn every_undropped_future_completes() {
    for scene in scenes().filter(|scene| scene.ends()) {
        let disposition = run(drop_once(scene, State::Connected, When::Before, Where::Nowhere));
        assert_eq!(disposition, Disposition::Ended, "{}", scene.future);
    }
}
