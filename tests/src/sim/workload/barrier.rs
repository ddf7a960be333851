//! Barriers: waiting for a sign, and for each other.

use std::time::Duration;

use zk_locks::{AcquireError, Barrier, DoubleBarrier};
use zk_testkit::sim::Doing;

use super::{Over, Worker, take::name, unless_ended};
use crate::sim::{
    check::Entrant,
    pass,
    recipe::{PARTICIPANTS, Site},
};

pub(super) async fn barrier(worker: &mut Worker, site: Site) -> Result<(), Over> {
    let barrier = worker.described(Barrier::builder(&worker.client, &site.path()));
    let outcome = match worker.rng.below(6) {
        0 => barrier.set().await.map(|_| worker.seat.count("barriers set")),
        1 | 2 => barrier.remove().await,
        _ => wait(worker, site, &barrier).await,
    };
    over(worker, outcome)
}

async fn wait(worker: &mut Worker, site: Site, barrier: &Barrier) -> Result<(), AcquireError> {
    let seat = worker.seat.clone();
    let session = worker.client.session().id();
    let patience = worker.rng.scaled(100, 100_000);
    let (began, stalled) = (seat.now(), seat.stalled());
    let then = seat.judge.bench().comes_to_barrier(session);
    let _busy = seat.cluster.doing(seat.number, Doing::Waiting);
    let wait = barrier.wait_timeout(Duration::from_millis(patience));
    let Some(waited) = worker.while_busy(wait).await else { return Ok(()) };
    let mut bench = seat.judge.at(seat.now());
    match &waited {
        Ok(()) => {
            bench.count("granted: barriers passed");
            bench.passed_barrier(seat.number, session, site, then);
        }
        Err(AcquireError::TimedOut) if seat.stalled() == stalled => {
            bench.held_up_at_barrier(seat.number, session, site, seat.now() - began);
        }
        Err(_) => {}
    }
    drop(bench);
    waited
}

pub(super) async fn double_barrier(worker: &mut Worker, site: Site) -> Result<(), Over> {
    let barrier = worker.described(DoubleBarrier::builder(&worker.client, &site.path()));
    let barrier = barrier.of(PARTICIPANTS);
    let outcome = meet(worker, site, &barrier).await;
    over(worker, outcome)
}

async fn meet(
    worker: &mut Worker,
    site: Site,
    barrier: &DoubleBarrier,
) -> Result<(), AcquireError> {
    let seat = worker.seat.clone();
    let session = worker.client.session().id();
    let patience = worker.rng.scaled(100, 100_000);
    let stalled = seat.stalled();
    let entered = {
        let _waiting = seat.cluster.doing(seat.number, Doing::Waiting);
        let came = seat.judge.bench().comes_to_barrier(session);
        let enter = barrier.enter_timeout(Duration::from_millis(patience));
        let Some(entered) = worker.while_busy(enter).await else { return Ok(()) };
        let timed_out = matches!(entered, Err(AcquireError::TimedOut));
        if timed_out && seat.stalled() == stalled {
            seat.judge.at(seat.now()).not_entered(seat.number, session, site, came);
        }
        entered?
    };
    let token = entered.token();
    seat.count("granted: double barriers entered");
    let entrant = Entrant { client: seat.number, session, site, token };
    seat.judge.at(seat.now()).entered(entrant);
    {
        let _holding = seat.cluster.doing(seat.number, Doing::Holding);
        let time = worker.rng.within(0, seat.options.hold_max);
        if entered.scope(pass(time)).await.is_err() {
            seat.count("guards lost while held");
        }
    }
    if worker.rng.one_in(8) {
        drop(entered);
        return Ok(());
    }
    let _releasing = seat.cluster.doing(seat.number, Doing::Releasing);
    // Other participants hold for as long at most; faults come on top.
    let patience = worker.rng.scaled(1_000, 200_000);
    let leave = entered.leave_timeout(Duration::from_millis(patience));
    let Some(left) = worker.while_busy(leave).await else { return Ok(()) };
    left?;
    seat.count("granted: double barriers left");
    seat.judge.at(seat.now()).has_left(entrant);
    Ok(())
}

fn over(worker: &Worker, outcome: Result<(), AcquireError>) -> Result<(), Over> {
    if let Err(error) = &outcome {
        worker.seat.count(name(error));
    }
    unless_ended(outcome).map(drop)
}
