//! Exclusive locks: waiting, giving up, holding, giving back.

use std::{sync::Arc, time::Duration};

use zk_locks::{AcquireError, Guard, Lock, Status};
use zk_testkit::sim::{Actor, Busy, Doing};

use super::{Seat, Worker};
use crate::sim::{
    check::{Held, Judge},
    pass,
};

/// The path of a lock.
pub(crate) fn lock_path(number: usize) -> String {
    format!("/locks/l{number}")
}

/// Somebody in a queue, until dropped.
struct Waiting<'a> {
    seat: &'a Seat,
    number: u64,
    granted: bool,
    _busy: Busy,
}

impl<'a> Waiting<'a> {
    fn new(seat: &'a Seat, lock: usize) -> Self {
        let _busy = seat.cluster.doing(seat.number, Doing::Waiting);
        let number = seat.judge.at(seat.now()).begins_waiting(lock, seat.number);
        Self { seat, number, granted: false, _busy }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.seat.judge.at(self.seat.now()).ends_waiting(self.number, self.granted);
    }
}

/// A lock that counts as held, until dropped.
struct Holding {
    judge: Judge,
    number: u64,
    guard: Option<Arc<Guard>>,
    _busy: Busy,
}

impl Holding {
    /// Takes the guard out: from here on nobody claims to hold the lock.
    fn give_back(mut self) -> Option<Guard> {
        let guard = self.guard.take()?;
        let held = self.judge.bench().given_back(self.number);
        drop(held);
        Arc::try_unwrap(guard).ok()
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let held = self.judge.bench().given_back(self.number);
        // Outside of the lock.
        drop(held);
    }
}

pub(super) async fn work(mut worker: Worker) {
    let think_max = worker.seat.options.think_max;
    loop {
        let pause = worker.rng.within(0, think_max);
        if !worker.think(pause).await {
            return;
        }
        let lock = worker.rng.index(worker.seat.options.locks);
        if worker.seat.number == 0 && worker.rng.one_in(10) {
            // It does not stand in the queue, and so in nobody's way.
            drop(worker.client.create(&format!("{}/notes", lock_path(lock)), b"").await);
        }
        match attempt(&mut worker, lock).await {
            Ok(Some(guard)) => hold(&mut worker, lock, guard).await,
            Ok(None) => {}
            Err(AcquireError::SessionEnded(_)) => return,
            Err(_) => {}
        }
    }
}

async fn attempt(worker: &mut Worker, number: usize) -> Result<Option<Guard>, AcquireError> {
    let Worker { seat, client, rng, .. } = worker;
    let who = format!("client {}", seat.number);
    let lock = Lock::builder(client, &lock_path(number)).description(&who).build();
    seat.count("attempts");
    let mut waiting = Waiting::new(seat, number);
    let (began, stalled) = (seat.now(), seat.stalled());
    let outcome = match rng.below(10) {
        0 | 1 => {
            let allowed = rng.scaled(5, 20_000);
            let outcome = lock.acquire_timeout(Duration::from_millis(allowed)).await;
            let (took, stalled) = (seat.now() - began, seat.stalled() - stalled);
            seat.judge.at(seat.now()).took("acquiring", seat.number, took, stalled, allowed);
            outcome.map(Some)
        }
        2 => lock.try_acquire().await,
        3 => {
            let patience = rng.scaled(1, 5_000);
            tokio::select! {
                biased;
                outcome = lock.acquire() => outcome.map(Some),
                () = pass(patience) => {
                    seat.count("acquires dropped");
                    Ok(None)
                }
            }
        }
        _ => lock.acquire().await.map(Some),
    };
    waiting.granted = matches!(outcome, Ok(Some(_)));
    match &outcome {
        Ok(Some(guard)) => {
            seat.cluster.note(Actor::Client(seat.number), "granted", guard.token().get() as u64);
        }
        Ok(None) => {}
        Err(error) => seat.count(name(error)),
    }
    outcome
}

fn name(error: &AcquireError) -> &'static str {
    match error {
        AcquireError::TimedOut => "acquires timed out",
        AcquireError::SessionEnded(_) => "acquires ended with their session",
        AcquireError::LeaseRanOut => "acquires whose lease ran out",
        AcquireError::NodeDeleted => "acquires whose node was deleted",
        AcquireError::Rejected(_) => "acquires rejected",
        _ => "acquires failed otherwise",
    }
}

async fn hold(worker: &mut Worker, lock: usize, guard: Guard) {
    let Worker { seat, client, rng, .. } = worker;
    let guard = Arc::new(guard);
    let token = guard.token().get();
    let held = Held { lock, client: seat.number, session: client.session(), guard: guard.clone() };
    let number = seat.judge.at(seat.now()).granted(held);
    let holding = Holding {
        judge: seat.judge.clone(),
        number,
        guard: Some(guard.clone()),
        _busy: seat.cluster.doing(seat.number, Doing::Holding),
    };
    let time = rng.within(0, seat.options.hold_max);
    seat.judge.bench().write_fenced(lock, token);
    let lost = match rng.below(4) {
        // Somebody who never asks.
        0 => {
            pass(time).await;
            matches!(guard.status(), Status::Lost(_))
        }
        1 => {
            let checked = guard.check().await.is_err();
            pass(time).await;
            checked && matches!(guard.status(), Status::Lost(_))
        }
        _ => {
            let stalled = seat.stalled();
            let lost = guard.scope(pass(time)).await.is_err();
            if seat.stalled() == stalled {
                seat.judge.at(seat.now()).work_ended(number, seat.number);
            }
            lost
        }
    };
    if lost {
        seat.count("guards lost while held");
        seat.cluster.note(Actor::Client(seat.number), "lost", token as u64);
        if !matches!(guard.status(), Status::Lost(_)) {
            let text = format!("c{} had lost {token}, and holds it again", seat.number);
            seat.judge.at(seat.now()).violated("S4", text);
        }
    }
    seat.judge.bench().write_fenced(lock, token);
    drop(guard);
    let _releasing = seat.cluster.doing(seat.number, Doing::Releasing);
    seat.cluster.note(Actor::Client(seat.number), "releases", token as u64);
    let how = rng.below(10);
    let Some(guard) = holding.give_back() else { return };
    match how {
        0 => drop(guard),
        1 => drop(guard.release()),
        _ => {
            let released = guard.release().await;
            seat.count(if released.is_ok() { "releases" } else { "releases not confirmed" });
        }
    }
}
