//! How long something is held at most: then it is reported, lost, and to be had.

use std::{
    future::{pending, poll_fn},
    task::Poll,
    time::Duration,
};

use zk_client::CreateMode;
use zk_locks::{Builder, Guard, Lock, Lost, RwLock, Semaphore, Status};

use super::{BY_HAND, Cut, Known, Solo};
use crate::sim::{
    check::ROUNDING,
    pass,
    workload::rw_lock::{Reading, Writing},
};

/// For how long work goes on under what is lost, in milliseconds: less than the second that it is given.
const STOP_MAX: u64 = 500;

/// For how long something is held at most, in milliseconds.
#[derive(Clone, Copy)]
struct Limit {
    millis: u64,
    /// Whether it is reported before, too.
    warns: bool,
}

/// Since when something is held, and how long its process had stood still then.
struct Term {
    limit: Limit,
    since: u64,
    stalled: u64,
}

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    let rng = &mut solo.worker.rng;
    let limit = Limit { millis: rng.scaled(50, 5_000), warns: rng.one_in(2) };
    match solo.worker.rng.below(4) {
        0 => {
            let builder = Lock::builder(&solo.worker.client, &solo.path);
            let lock = limit.put_on(solo, builder);
            let guard = solo.free(&lock).await?;
            if solo.worker.rng.one_in(2) {
                let work = guard.scope(pending::<()>());
                return works_on(solo, limit, &[&guard], work).await;
            }
            limit.begins(solo).runs_out(solo, &guard).await
        }
        1 => {
            let builder = Semaphore::builder(&solo.worker.client, &solo.path);
            let semaphore = limit.put_on(solo, builder).with_permits(1);
            let guard = solo.free(&semaphore).await?;
            limit.begins(solo).runs_out(solo, &guard).await
        }
        2 => {
            let builder = Semaphore::builder(&solo.worker.client, &solo.path);
            let semaphore = limit.put_on(solo, builder).with_permits(2);
            let permits = semaphore.acquire_many(2).await;
            let permits = solo.had("taking two of", permits)?;
            let held: Vec<_> = permits.iter().collect();
            works_on(solo, limit, &held, permits.scope(pending::<()>())).await
        }
        _ => {
            let builder = RwLock::builder(&solo.worker.client, &solo.path);
            let lock = limit.put_on(solo, builder);
            shared(solo, lock, limit).await
        }
    }
}

/// What is lost stays as long as the work under it, whose future is not polled meanwhile.
async fn works_on(
    solo: &mut Solo,
    limit: Limit,
    held: &[&Guard],
    work: impl Future<Output = Result<(), Lost>>,
) -> Known<()> {
    // Where it is gone, the session has ended, and the other nodes went with it.
    let client = solo.worker.client.clone();
    let sign = format!("{}-{BY_HAND}", solo.path);
    client.create(&sign, b"").mode(CreateMode::Ephemeral).await.or(Err(Cut::Failed))?;
    let mut work = Box::pin(work);
    let ended = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_ready())).await;
    let mut lost = Lost::HeldTooLong;
    for guard in held {
        lost = guard.lost().await;
        if lost != Lost::HeldTooLong {
            break;
        }
    }
    let stalled = solo.worker.ctx.stalled();
    pass(solo.worker.rng.within(1, STOP_MAX)).await;
    let ctx = &solo.worker.ctx;
    let stays = ended || lost != Lost::HeldTooLong || ctx.stalled() > stalled || {
        let checker = ctx.check();
        held.iter().all(|guard| checker.is_there(guard.path())) || !checker.is_there(&sign)
    };
    solo.expect("S2", stays, format_args!("{held:?} is given away while work goes on"))?;
    drop(work);
    client.delete(&sign).await.or(Err(Cut::Failed))?;
    if lost != Lost::HeldTooLong {
        return held.iter().try_for_each(|guard| solo.holds(*guard));
    }
    if !ended {
        solo.worker.ctx.count("work that outlasts its lock");
    }
    let (told, reports) = (solo.tally.held_too_long(), held.len() * limit.reports());
    solo.expect("E1", told == reports, format_args!("is told {told} times, not {reports}"))?;
    solo.until_left(0).await
}

/// Written for a while and then read: that is one hold.
async fn shared(solo: &mut Solo, lock: RwLock, limit: Limit) -> Known<()> {
    if solo.worker.rng.one_in(3) {
        let guard = solo.free(&Reading(lock)).await?;
        return limit.begins(solo).runs_out(solo, &guard).await;
    }
    let writer = solo.free(&Writing(lock)).await?;
    let term = limit.begins(solo);
    if solo.worker.rng.one_in(3) {
        return term.runs_out(solo, &writer).await;
    }
    pass(solo.worker.rng.within(0, limit.millis)).await;
    match writer.downgrade().await {
        Ok(reader) => term.runs_out(solo, &reader).await,
        // The limit has struck meanwhile.
        Err(refused) if refused.guard.status() == Status::Lost(Lost::HeldTooLong) => {
            term.runs_out(solo, &refused.guard).await
        }
        Err(refused) => solo.had("downgrading", Err(refused.cause)),
    }
}

impl Limit {
    fn put_on<R>(self, solo: &mut Solo, builder: Builder<R>) -> R {
        let builder = builder.release_after(Duration::from_millis(self.millis));
        let builder = match self.warns {
            true => builder.max_hold(Duration::from_millis(self.millis / 2)),
            false => builder,
        };
        solo.set_up(builder)
    }

    /// How often observers are told of each guard.
    fn reports(self) -> usize {
        1 + usize::from(self.warns)
    }

    fn begins(self, solo: &Solo) -> Term {
        let ctx = &solo.worker.ctx;
        Term { limit: self, since: ctx.now(), stalled: ctx.stalled() }
    }
}

impl Term {
    /// It is lost when it has been held for so long, and its node goes although the guard is there.
    async fn runs_out(self, solo: &Solo, guard: &Guard) -> Known<()> {
        let ctx = &solo.worker.ctx;
        // What was asked for in the meantime may have taken longer.
        let limit = self.limit.millis.max(ctx.now() - self.since);
        let lost = guard.lost().await;
        if lost != Lost::HeldTooLong {
            return solo.holds(guard);
        }
        self.is_over(solo)?;
        let (took, stalled) = (ctx.now() - self.since, ctx.stalled() - self.stalled);
        ctx.check().took("holding", ctx.number, took, stalled, limit);
        let told = solo.tally.held_too_long();
        solo.expect("E1", told == self.limit.reports(), format_args!("is told {told} times"))?;
        solo.until_left(0).await
    }

    fn is_over(&self, solo: &Solo) -> Known<()> {
        let ctx = &solo.worker.ctx;
        let took = ctx.now() - self.since;
        let limit = self.limit.millis;
        let fits = took + ctx.check().drift(ctx.number, limit) + ROUNDING >= limit;
        solo.expect("E1", fits, format_args!("is lost after {took} of {limit} ms"))
    }
}
