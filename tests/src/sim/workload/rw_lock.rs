//! The read/write lock: reading together, writing alone, and going on from one to the other.

use zk_locks::{AcquireError, ReadGuard, RwLock, WriteGuard};

use super::{
    Over, Worker,
    hold::{Hold, hold, hold_and_release, is_lost, release},
    take::{Waiting, attempt, name, takes},
    unless_ended,
};
use crate::sim::{
    check::{Came, Share},
    pass,
    recipe::Site,
};

pub(super) struct Reading(pub(super) RwLock);

pub(super) struct Writing(pub(super) RwLock);

impl std::ops::Deref for Reading {
    type Target = RwLock;
    fn deref(&self) -> &RwLock {
        &self.0
    }
}

impl std::ops::Deref for Writing {
    type Target = RwLock;
    fn deref(&self) -> &RwLock {
        &self.0
    }
}

takes! {
    Reading, ReadGuard: read read_timeout try_read;
    Writing, WriteGuard: write write_timeout try_write;
}

pub(super) async fn turn(worker: &mut Worker, site: Site) -> Result<(), Over> {
    let lock = worker.described(RwLock::builder(&worker.client, &site.path()));
    unless_ended(match worker.rng.one_in(3) {
        true => write(worker, site, Writing(lock)).await,
        false => read(worker, site, Reading(lock)).await,
    })
    .map(drop)
}

fn terms(worker: &Worker, site: Site, what: &'static str) -> Hold {
    let mut terms = Hold::alone(worker, site, what);
    // Some hold it twice, one way after the other.
    terms.most /= 2;
    terms
}

async fn read(worker: &mut Worker, site: Site, lock: Reading) -> Result<(), AcquireError> {
    let Some(guard) = attempt(worker, site, &lock).await? else { return Ok(()) };
    let reads = Hold { share: Share::Reading, ..terms(worker, site, "granted: locks to read") };
    let guard = if worker.rng.one_in(4) {
        // One who does not notice a loss.
        pass(worker.rng.within(0, reads.most)).await;
        guard
    } else {
        let Some(guard) = hold(worker, reads, guard).await else { return Ok(()) };
        if !worker.rng.one_in(3) {
            release(worker, guard).await;
            return Ok(());
        }
        guard
    };
    let own = guard.path().to_owned();
    let upgraded = {
        let mut waiting = Waiting::new(&worker.ctx, site);
        let (is_there, lost) = (worker.ctx.check().is_there(&own), is_lost(&*guard));
        let upgraded = guard.try_upgrade().await;
        waiting.granted = upgraded.is_ok();
        if upgraded.is_ok() && (lost || !is_there) {
            let ctx = &worker.ctx;
            let text = format!("c{} upgrades {own}, which it has lost", ctx.number);
            ctx.check().shown_wrong(ctx.number, "E1", text);
        }
        upgraded
    };
    match upgraded {
        Ok(guard) => {
            let came = Came::Besides(own);
            let writes = Hold { came, ..terms(worker, site, "granted: upgrades") };
            hold_and_release(worker, writes, guard).await;
        }
        Err(refused) => {
            worker.ctx.count(match &refused.cause {
                AcquireError::WouldDeadlock => "upgrades refused",
                cause => name(cause),
            });
            release(worker, refused.guard).await;
        }
    }
    Ok(())
}

async fn write(worker: &mut Worker, site: Site, lock: Writing) -> Result<(), AcquireError> {
    let Some(guard) = attempt(worker, site, &lock).await? else { return Ok(()) };
    let writes = terms(worker, site, "granted: locks to write");
    let Some(guard) = hold(worker, writes, guard).await else { return Ok(()) };
    if !worker.rng.one_in(3) {
        release(worker, guard).await;
        return Ok(());
    }
    match guard.downgrade().await {
        Ok(guard) => {
            let reads = Hold {
                share: Share::Reading,
                came: Came::GoingOn,
                ..terms(worker, site, "granted: downgrades")
            };
            hold_and_release(worker, reads, guard).await;
        }
        Err(refused) => {
            worker.ctx.count(name(&refused.cause));
            release(worker, refused.guard).await;
        }
    }
    Ok(())
}
