//! The cohort lock: several tasks with one node, and a contender beside them.

use std::time::Duration;

use zk_locks::{AcquireError, CohortLock, Lock};

use super::{Cut, FOR_EVER, Known, Solo};
use crate::sim::pass;

/// Tasks with one node, alone or beside a contender.
pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    match solo.worker.rng.below(7) {
        0 => lost_alone(solo).await,
        1 => lost_beside(solo).await,
        2 => behind_another(solo).await,
        3 => in_time(solo).await,
        4 => idle(solo).await,
        _ => in_turn(solo).await,
    }
}

/// A lock of one that is not of the cohort.
fn contender(solo: &mut Solo) -> Lock {
    let builder = Lock::builder(&solo.worker.client, &solo.path);
    solo.set_up(builder)
}

/// So many tasks have it one after the other, and then the contender beside them.
async fn in_turn(solo: &mut Solo) -> Known<()> {
    let builder = CohortLock::builder(&solo.worker.client, &solo.path);
    let sections = solo.worker.rng.within(1, 3) as u32;
    let lingers = solo.worker.rng.one_in(3);
    let builder = builder.max_sections(sections).max_stay(FOR_EVER);
    let builder = if lingers { builder.linger(Duration::from_millis(200)) } else { builder };
    let cohort = solo.set_up(builder);
    let lock = contender(solo);
    let holder = solo.free(&cohort).await?;
    solo.taken(&cohort, &holder).await?;
    solo.taken(&lock, &holder).await?;
    let ticket = lock.enqueue().await;
    let mut ticket = solo.had("queueing at", ticket)?;
    let waiting = cohort.acquire();
    tokio::pin!(waiting);
    solo.still_waits("S2", waiting.as_mut(), &[&holder]).await?;
    solo.expect("E1", cohort.waiting() == 1, format_args!("{} wait", cohort.waiting()))?;
    let before = holder.token();
    solo.released(holder.release().await)?;
    let passes = sections > 1;
    let first = tokio::select! {
        biased;
        guard = &mut waiting => {
            let guard = solo.had("waiting for", guard)?;
            let fits = guard.token() > before && guard.token().get() == before.get();
            // It may not have heard yet of the contender behind it.
            solo.expect("L3", fits, format_args!("{} is passed on", guard.token()))?;
            solo.released(guard.release().await)?;
            true
        }
        guard = ticket.wait() => {
            let guard = solo.had("waiting for", guard)?;
            solo.expect("L3", !passes, format_args!("{} is not passed on", guard.token()))?;
            solo.released(guard.release().await)?;
            false
        }
    };
    match first {
        true => {
            let guard = ticket.wait().await;
            let guard = solo.had("waiting for", guard)?;
            solo.released(guard.release().await)
        }
        false => {
            let guard = waiting.await;
            let guard = solo.had("waiting for", guard)?;
            solo.released(guard.release().await)
        }
    }
}

/// Nobody waits when it is lost, so nobody is told later.
async fn lost_alone(solo: &mut Solo) -> Known<()> {
    let builder = CohortLock::builder(&solo.worker.client, &solo.path).fail_on_loss();
    let cohort = solo.set_up(builder);
    let holder = solo.free(&cohort).await?;
    solo.worker.client.delete(holder.path()).await.or(Err(Cut::Failed))?;
    solo.is_told_of_its_loss(holder.lost()).await?;
    solo.released(holder.release().await)?;
    match cohort.acquire().await {
        Err(AcquireError::NodeDeleted) => {
            solo.wrong("E1", format_args!("is told of a node that an earlier holder had"))
        }
        next => {
            let next = solo.had("taking", next)?;
            solo.released(next.release().await)
        }
    }
}

/// The node is lost while another task waits, and a contender behind it: the holder hears of it, whoever finds out first.
async fn lost_beside(solo: &mut Solo) -> Known<()> {
    let builder = CohortLock::builder(&solo.worker.client, &solo.path);
    let cohort = solo.set_up(builder.max_sections(3));
    let lock = contender(solo);
    let holder = solo.free(&cohort).await?;
    let waiting = cohort.acquire();
    tokio::pin!(waiting);
    solo.still_waits("S2", waiting.as_mut(), &[&holder]).await?;
    let ticket = lock.enqueue().await;
    let mut ticket = solo.had("queueing at", ticket)?;
    solo.worker.client.delete(holder.path()).await.or(Err(Cut::Failed))?;
    solo.is_told_of_its_loss(holder.lost()).await?;
    drop(holder);
    let guard = ticket.wait().await;
    let guard = solo.had("waiting for", guard)?;
    solo.released(guard.release().await)?;
    let next = waiting.await;
    let next = solo.had("waiting for", next)?;
    solo.released(next.release().await)
}

/// All tasks give up while another contender holds it: they leave no node, and whoever comes behind them does not wait for
/// one.
async fn behind_another(solo: &mut Solo) -> Known<()> {
    let builder = CohortLock::builder(&solo.worker.client, &solo.path);
    let cohort = solo.set_up(builder);
    let lock = contender(solo);
    let holder = solo.free(&lock).await?;
    for _ in 0..solo.worker.rng.within(1, 3) {
        solo.taken(&cohort, &holder).await?;
    }
    solo.released(holder.release().await)?;
    let next = solo.free(&lock).await?;
    solo.released(next.release().await)
}

/// Tasks that never stop asking leave the lock to the contender behind them when their time is over.
async fn in_time(solo: &mut Solo) -> Known<()> {
    let stay = solo.worker.rng.scaled(10, 2_000);
    let section = solo.worker.rng.scaled(1, 200);
    let builder = CohortLock::builder(&solo.worker.client, &solo.path);
    let builder = builder.max_sections(u32::MAX).max_stay(Duration::from_millis(stay));
    let cohort = solo.set_up(builder);
    let lock = contender(solo);
    let holder = solo.free(&cohort).await?;
    let ticket = lock.enqueue().await;
    let mut ticket = solo.had("queueing at", ticket)?;
    let since = solo.worker.ctx.now();
    let allowed = stay + 3 * section;
    let solo = &*solo;
    let sections = async |cohort: &CohortLock| loop {
        let guard = match cohort.acquire().await {
            Ok(guard) => guard,
            Err(error) => return error,
        };
        solo.worker.ctx.count("sections in the time of a cohort");
        pass(section).await;
        drop(guard);
    };
    let late = async {
        // By now both tasks wait for it.
        drop(holder);
        solo.until_overdue(since + allowed).await;
    };
    let (one, other) = (sections(&cohort), sections(&cohort));
    let granted = tokio::select! {
        biased;
        granted = ticket.wait() => granted,
        error = one => Err(error),
        error = other => Err(error),
        () = late => return solo.wrong("L3", format_args!("is not passed on after {stay} ms")),
    };
    let guard = solo.had("waiting for", granted)?;
    solo.released(guard.release().await)
}

/// The lock stays in its process when its holder is done, for the next one, and goes when it is asked back.
async fn idle(solo: &mut Solo) -> Known<()> {
    let builder = CohortLock::builder(&solo.worker.client, &solo.path).linger(FOR_EVER);
    let cohort = solo.set_up(builder);
    // What is tried does not stay.
    let holder = cohort.acquire().await;
    let holder = solo.had("taking", holder)?;
    let (path, token) = (holder.path().to_owned(), holder.token());
    let is_over = holder.cancellation_token();
    solo.released(holder.release().await)?;
    let is_told = is_over.is_cancelled() && !solo.tally.knows(&path, token);
    solo.expect("E1", is_told, format_args!("is done with {token}, and it is not released"))?;
    if solo.worker.rng.one_in(2) {
        let next = cohort.acquire().await;
        let next = solo.had("taking", next)?;
        // It may have lost the node with its lease meanwhile.
        let stays = solo.worker.ctx.check().is_there(&path);
        let fits = next.token() > token && (!stays || next.path() == path);
        solo.expect("S1", fits, format_args!("got {} behind {token}", next.token()))?;
        solo.released(next.release().await)?;
    }
    if solo.worker.rng.one_in(2) {
        // No task is left that could take it.
        drop(cohort);
        return solo.until_left(0).await;
    }
    let listed = cohort.queue().first(1).await;
    let (listed, _) = solo.read(listed)?;
    let Some(first) = listed.first() else { return Err(Cut::Failed) };
    match cohort.queue().revoke(first).await {
        Ok(true) => solo.until_left(0).await,
        // It has lost the node with its lease.
        Ok(false) | Err(_) => Err(Cut::Failed),
    }
}
