//! Semaphores: one permit or several at once, while their number changes.

use std::sync::Arc;

use zk_locks::{AcquireError, FencingToken, Guards, Rejection, Semaphore};
use zk_proto::path::join;

use super::{
    Over, Worker,
    hold::{Hold, Holding, hold_all, hold_and_release, is_lost, release},
    take::attempt,
    unless_over,
};
use crate::sim::{
    check::{COUNT, Came, Part, Share},
    pass,
    recipe::{PERMITS, Recipe, Site},
    workload::take::takes,
};

/// Several permits at once.
struct Several(Semaphore);

impl Several {
    const SO_MANY: usize = 2;

    fn all(&self) -> impl Future<Output = Result<Guards, AcquireError>> + Send {
        self.0.acquire_many(Self::SO_MANY)
    }

    fn within(
        &self,
        time: std::time::Duration,
    ) -> impl Future<Output = Result<Guards, AcquireError>> + Send {
        self.0.acquire_many_timeout(Self::SO_MANY, time)
    }

    fn now(&self) -> impl Future<Output = Result<Option<Guards>, AcquireError>> + Send {
        self.0.try_acquire_many(Self::SO_MANY)
    }
}

takes! {
    Several, Guards: all within now;
}

pub(super) async fn turn(worker: &mut Worker, site: Site) -> Result<(), Over> {
    let semaphore = worker.described(Semaphore::builder(&worker.client, &site.path()));
    let semaphore = semaphore.with_permits(PERMITS);
    let semaphore = match site.recipe {
        Recipe::CountedSemaphore => semaphore.counted_at(COUNT),
        _ => semaphore,
    };
    if site.recipe == Recipe::CountedSemaphore && worker.rng.one_in(3) {
        return resize(worker, &semaphore).await;
    }
    let what = match site.recipe {
        Recipe::CountedSemaphore => "granted: counted permits",
        _ => "granted: permits",
    };
    let most = worker.ctx.options.hold_max;
    let drawn = worker.drawn;
    let terms = Hold { site, share: Share::Permit, came: Came::InTurn, what, most, drawn };
    let taken = match worker.rng.one_in(3) {
        true => several(worker, terms, Several(semaphore)).await,
        false => match attempt(worker, site, &semaphore).await {
            Ok(Some(guard)) => {
                if worker.rng.one_in(4) {
                    look(worker, site, &semaphore, guard.token()).await;
                    // It may have waited for the answer beyond the end of its session.
                    if is_lost(&guard) {
                        release(worker, guard).await;
                        return Ok(());
                    }
                }
                hold_and_release(worker, terms, guard).await;
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        },
    };
    match taken {
        Err(AcquireError::SessionEnded(_)) => Err(Over),
        // What is missing is made, and the first in the queue stays first. (Servers without a quorum refuse.)
        Err(AcquireError::Rejected(Rejection::NoNode)) => {
            let ctx = &worker.ctx;
            let text = format!("c{} is refused at {}", ctx.number, site.path());
            ctx.check().violated("L2", text);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A holder asks who they are.
async fn look(worker: &Worker, site: Site, semaphore: &Semaphore, token: FencingToken) {
    let Ok(holders) = semaphore.holders().await else { return };
    let ctx = &worker.ctx;
    ctx.count("holders of permits listed");
    ctx.check().is_listed(ctx.number, &join(&site.path(), "leases"), token, &holders);
}

/// Now there are others, several times in a row.
async fn resize(worker: &mut Worker, semaphore: &Semaphore) -> Result<(), Over> {
    for _ in 0..worker.rng.within(1, 8) {
        // There are always enough for clients that ask for several, also without a number.
        let permits = worker.rng.within(2, 5);
        if worker.rng.one_in(8) {
            unless_over(worker.client.delete(COUNT).await)?;
        }
        match semaphore.resize(u32::try_from(permits).unwrap_or_default()).await {
            Ok(()) => worker.ctx.count("semaphores resized"),
            Err(error) if error.session_end().is_some() => return Err(Over),
            Err(_) => {}
        }
        pass(worker.rng.scaled(1, 200)).await;
    }
    Ok(())
}

async fn several(worker: &mut Worker, terms: Hold, semaphore: Several) -> Result<(), AcquireError> {
    let Some(guards) = attempt(worker, terms.site, &semaphore).await? else { return Ok(()) };
    let tokens: Vec<_> = guards.iter().map(|guard| guard.token().get()).collect();
    let together = tokens.windows(2).all(|pair| pair[0] == pair[1]);
    let ctx = &worker.ctx;
    if tokens.len() != Several::SO_MANY || !together {
        let text = format!("c{} got permits {tokens:?} instead of two at once", ctx.number);
        ctx.check().violated("S3", text);
    }
    let all = Arc::new(guards);
    let parts = 0..all.len();
    let terms = Hold { what: "granted: several permits", ..terms };
    let holding: Vec<_> = parts
        .map(|index| Holding::begin(worker, &terms, Arc::new(Part { all: all.clone(), index })))
        .collect();
    if let Some(guards) = hold_all(worker, terms.most, all, holding).await {
        let _ = guards.release().await;
    }
    Ok(())
}
