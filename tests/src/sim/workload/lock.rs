//! Locks that one holds alone: exclusive ones, whose waiters watch one or all, those without a queue, and those
//! that are semaphores of one permit.

use zk_locks::{AcquireError, Guard, Lock, Semaphore, SimpleLock};

use super::{
    ClientContext, Drawn, MEDDLED, Over, Worker,
    hold::{Hold, hold_and_release},
    take::{Takes, Waiting, attempt},
    unless_ended,
};
use crate::sim::{
    check::{Asker, Grip},
    pass,
    patience::Patience,
    recipe::Site,
};

pub(super) async fn lock(worker: &mut Worker, site: Site) -> Result<(), Over> {
    let lock = worker.exclusive(Lock::builder(&worker.client, &site.path()));
    let tickets = worker.ctx.options.is_mixed() && worker.rng.one_in(6);
    if tickets {
        return ticket(worker, site, &lock).await;
    }
    let hold = Hold::alone(worker, site, "granted: locks");
    alone(worker, hold, &lock).await
}

/// Some of the waiters watch all others.
pub(super) async fn herd_lock(worker: &mut Worker, site: Site) -> Result<(), Over> {
    if worker.ctx.number % 3 == 2 {
        let lock = worker.exclusive(Lock::builder(&worker.client, &site.path()));
        let hold = Hold::alone(worker, site, "granted: locks beside a herd");
        return alone(worker, hold, &lock).await;
    }
    let lock = worker.exclusive(Lock::builder(&worker.client, &site.path()).herd());
    let hold = Hold::alone(worker, site, "granted: herd locks");
    alone(worker, hold, &lock).await
}

/// There are two, one of which others meddle with.
pub(super) async fn simple_lock(worker: &mut Worker, site: Site) -> Result<(), Over> {
    if worker.rng.one_in(3) {
        return meddled(worker).await;
    }
    let lock = worker.described(SimpleLock::builder(&worker.client, &site.path()));
    // It has no such limit.
    worker.drawn = worker.drawn.map(|drawn| Drawn { release_after: None, ..drawn });
    let hold = Hold::alone(worker, site, "granted: simple locks");
    alone(worker, hold, &lock).await
}

pub(super) async fn semaphore_mutex(worker: &mut Worker, site: Site) -> Result<(), Over> {
    let lock = worker.described(Semaphore::builder(&worker.client, &site.path()));
    let hold = Hold::alone(worker, site, "granted: semaphore mutexes");
    alone(worker, hold, &lock).await
}

pub(super) async fn alone<T: Takes>(worker: &mut Worker, terms: Hold, lock: &T) -> Result<(), Over>
where
    T::Taken: Grip,
{
    let taken = attempt(worker, terms.site, lock).await;
    keep(worker, terms, taken).await
}

/// Holds what was taken, if it was, and gives it back.
pub(super) async fn keep<G: Grip>(
    worker: &mut Worker,
    terms: Hold,
    taken: Result<Option<G>, AcquireError>,
) -> Result<(), Over> {
    if let Some(grip) = unless_ended(taken)?.flatten() {
        hold_and_release(worker, terms, grip).await;
    }
    Ok(())
}

/// Keeps a place in the queue while it looks after other things.
async fn ticket(worker: &mut Worker, site: Site, lock: &Lock) -> Result<(), Over> {
    worker.ctx.count("attempts");
    let taken = {
        let Worker { ctx, rng, client, drawn, taken: since, .. } = &mut *worker;
        let mut waiting = Waiting::new(ctx, site);
        let asker = ctx.check().wants(ctx.number, client.session(), site, *drawn);
        // Longer than what was seen when it joined is believed in.
        let idle = if rng.one_in(4) { rng.within(1_500, 8_000) } else { 0 };
        let taken = waited(ctx, &asker, lock, idle, Patience::drawn(rng, 2_000)).await;
        waiting.granted = taken.is_ok();
        *since = None;
        if let Err(error) = &taken {
            ctx.check().refused(&asker, error);
        }
        taken.map(Some)
    };
    let hold = Hold::alone(worker, site, "granted: locks by tickets");
    keep(worker, hold, taken).await
}

async fn waited(
    ctx: &ClientContext,
    asker: &Asker,
    lock: &Lock,
    idle: u64,
    patience: Patience,
) -> Result<Guard, AcquireError> {
    let mut ticket = lock.enqueue().await?;
    pass(idle).await;
    let taken = loop {
        if let Some(taken) = patience.wait(ticket.wait()).await {
            break taken;
        }
        ctx.check().is_behind(asker, ticket.ahead());
        if let Some(taken) = ticket.try_wait().await.transpose() {
            break taken;
        }
    };
    // It is used up then, in one way or the other.
    match ticket.try_wait().await {
        Err(AcquireError::Used) => taken,
        other => Err(other.err().unwrap_or(AcquireError::NoDowngrade)),
    }
}

/// Takes a lock whose node others delete. Nothing is promised about who holds it; but its holders delete
/// no other client's node.
async fn meddled(worker: &mut Worker) -> Result<(), Over> {
    let lock = worker.described(SimpleLock::builder(&worker.client, MEDDLED));
    let Worker { ctx, rng, .. } = worker;
    let allowed = std::time::Duration::from_millis(rng.scaled(10, 20_000));
    if let Some(guard) = unless_ended(lock.acquire_timeout(allowed).await)? {
        ctx.count("granted: simple locks that are meddled with");
        if guard.work(rng.scaled(1, 2_000)).await.is_err() {
            ctx.count("meddled locks lost");
        }
        let _ = guard.release().await;
    }
    Ok(())
}
