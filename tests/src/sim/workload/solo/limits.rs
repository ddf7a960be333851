//! How long something is held at most: then it is reported, lost, and to be had.

use std::time::Duration;

use zk_locks::{Builder, Guard, Lock, Lost, RwLock, Semaphore, Status};

use super::{Known, Solo};
use crate::sim::{
    check::ROUNDING,
    pass,
    workload::rw_lock::{Reading, Writing},
};

/// Since when something is held, and for how long.
struct Term {
    since: u64,
    stalled: u64,
    limit: u64,
    /// How often it is reported.
    reports: usize,
}

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    let limit = solo.worker.rng.scaled(50, 5_000);
    // Told before, and kept.
    let warned = solo.worker.rng.one_in(2);
    let term = Term { since: 0, stalled: 0, limit, reports: 1 + usize::from(warned) };
    match solo.worker.rng.below(3) {
        0 => {
            let builder = Lock::builder(&solo.worker.client, &solo.path);
            let lock = limited(solo, builder, &term);
            let guard = solo.free(&lock).await?;
            let term = term.begins(solo);
            term.runs_out(solo, &guard).await
        }
        1 => {
            let builder = Semaphore::builder(&solo.worker.client, &solo.path);
            let semaphore = limited(solo, builder, &term).with_permits(1);
            let guard = solo.free(&semaphore).await?;
            let term = term.begins(solo);
            term.runs_out(solo, &guard).await
        }
        _ => {
            let builder = RwLock::builder(&solo.worker.client, &solo.path);
            let lock = limited(solo, builder, &term);
            shared(solo, lock, term).await
        }
    }
}

fn limited<R>(solo: &mut Solo, builder: Builder<R>, term: &Term) -> R {
    let builder = builder.release_after(Duration::from_millis(term.limit));
    let builder = match term.reports {
        1 => builder,
        _ => builder.max_hold(Duration::from_millis(term.limit / 2)),
    };
    solo.set_up(builder)
}

/// Written for a while and then read: that is one hold.
async fn shared(solo: &mut Solo, lock: RwLock, term: Term) -> Known<()> {
    if solo.worker.rng.one_in(3) {
        let guard = solo.free(&Reading(lock)).await?;
        let term = term.begins(solo);
        return term.runs_out(solo, &guard).await;
    }
    let writer = solo.free(&Writing(lock)).await?;
    let term = term.begins(solo);
    if solo.worker.rng.one_in(3) {
        return term.runs_out(solo, &writer).await;
    }
    pass(solo.worker.rng.within(0, term.limit)).await;
    match writer.downgrade().await {
        Ok(reader) => term.runs_out(solo, &reader).await,
        // Its node is deleted then, which is what the servers say.
        Err(refused) if refused.guard.status() == Status::Lost(Lost::HeldTooLong) => {
            term.runs_out(solo, &refused.guard).await
        }
        Err(refused) => solo.had("downgrading", Err(refused.cause)),
    }
}

impl Term {
    fn begins(self, solo: &Solo) -> Self {
        let ctx = &solo.worker.ctx;
        Self { since: ctx.now(), stalled: ctx.stalled(), ..self }
    }

    /// It is lost when it has been held for so long, and its node goes although the guard is there.
    async fn runs_out(self, solo: &Solo, guard: &Guard) -> Known<()> {
        let ctx = &solo.worker.ctx;
        // What was asked for in the meantime may have taken longer.
        let limit = self.limit.max(ctx.now() - self.since);
        let lost = guard.lost().await;
        if lost != Lost::HeldTooLong {
            return solo.holds(guard);
        }
        self.is_over(solo)?;
        let (took, stalled) = (ctx.now() - self.since, ctx.stalled() - self.stalled);
        ctx.check().took("holding", ctx.number, took, stalled, limit);
        let told = solo.tally.held_too_long();
        solo.expect("E1", told == self.reports, format_args!("is told {told} times"))?;
        solo.until_left(0).await
    }

    fn is_over(&self, solo: &Solo) -> Known<()> {
        let ctx = &solo.worker.ctx;
        let took = ctx.now() - self.since;
        let fits = took + ctx.check().drift(ctx.number, self.limit) + ROUNDING >= self.limit;
        solo.expect("E1", fits, format_args!("is lost after {took} of {} ms", self.limit))
    }
}
