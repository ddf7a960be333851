//! Barriers: waiting for a sign, and for each other.

use std::time::Duration;

use zk_locks::{AcquireError, Barrier, DoubleBarrier};

use super::{Over, Worker, take::name, unless_ended};
use crate::sim::{
    check::Entrant,
    pass,
    recipe::{PARTICIPANTS, Site},
};

pub(super) async fn barrier(worker: &mut Worker, site: Site) -> Result<(), Over> {
    let barrier = worker.described(Barrier::builder(&worker.client, &site.path()));
    let outcome = match worker.rng.below(6) {
        0 => barrier.set().await.map(|_| worker.ctx.count("barriers set")),
        1 | 2 => barrier.remove().await,
        _ => {
            let waited = wait(worker, site, &barrier).await;
            return over(worker, site, in_time(waited));
        }
    };
    over(worker, site, outcome)
}

async fn wait(worker: &mut Worker, site: Site, barrier: &Barrier) -> Result<(), AcquireError> {
    let ctx = worker.ctx.clone();
    let session = worker.client.session().id();
    let patience = worker.rng.scaled(100, 100_000);
    let (began, stalled) = (ctx.now(), ctx.stalled());
    let then = ctx.check().answered_from(session);
    let wait = barrier.wait_timeout(Duration::from_millis(patience));
    let Some(waited) = worker.while_busy(wait).await else { return Ok(()) };
    let mut checker = ctx.check();
    match &waited {
        Ok(()) => {
            checker.count("granted: barriers passed");
            checker.passed_barrier(ctx.number, session, site, then);
        }
        Err(AcquireError::TimedOut) if ctx.stalled() == stalled => {
            checker.held_up_at_barrier(ctx.number, session, site, ctx.now() - began);
        }
        Err(_) => {}
    }
    drop(checker);
    waited
}

pub(super) async fn double_barrier(worker: &mut Worker, site: Site) -> Result<(), Over> {
    let barrier = worker.described(DoubleBarrier::builder(&worker.client, &site.path()));
    let barrier = barrier.of(PARTICIPANTS);
    let outcome = meet(worker, site, &barrier).await;
    over(worker, site, in_time(outcome))
}

async fn meet(
    worker: &mut Worker,
    site: Site,
    barrier: &DoubleBarrier,
) -> Result<(), AcquireError> {
    let ctx = worker.ctx.clone();
    let session = worker.client.session().id();
    let patience = worker.rng.scaled(100, 100_000);
    let stalled = ctx.stalled();
    let entered = {
        let came = ctx.check().answered_from(session);
        let enter = barrier.enter_timeout(Duration::from_millis(patience));
        let Some(entered) = worker.while_busy(enter).await else { return Ok(()) };
        let timed_out = matches!(entered, Err(AcquireError::TimedOut));
        if timed_out && ctx.stalled() == stalled {
            ctx.check().not_entered(ctx.number, session, site, came);
        }
        entered?
    };
    let token = entered.token();
    ctx.count("granted: double barriers entered");
    let entrant = Entrant { client: ctx.number, session, site, token };
    ctx.check().entered(entrant);
    let time = worker.rng.within(0, ctx.options.hold_max);
    if entered.scope(pass(time)).await.is_err() {
        ctx.count("guards lost while held");
    }
    if worker.rng.one_in(8) {
        drop(entered);
        return Ok(());
    }
    // Other participants hold for as long at most; faults come on top.
    let patience = worker.rng.scaled(1_000, 200_000);
    let leave = entered.leave_timeout(Duration::from_millis(patience));
    let Some(left) = worker.while_busy(leave).await else { return Ok(()) };
    left?;
    ctx.count("granted: double barriers left");
    ctx.check().has_left(entrant);
    Ok(())
}

/// What was not waited for long enough is no failure.
fn in_time(outcome: Result<(), AcquireError>) -> Result<(), AcquireError> {
    match outcome {
        Err(AcquireError::TimedOut) => Ok(()),
        outcome => outcome,
    }
}

fn over(worker: &Worker, site: Site, outcome: Result<(), AcquireError>) -> Result<(), Over> {
    if let Err(error) = &outcome {
        worker.ctx.count(name(error));
    }
    worker.judge(&site.path(), &outcome);
    unless_ended(outcome).map(drop)
}
