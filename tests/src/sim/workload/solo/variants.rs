//! Other locks that one contender holds: without a queue, several at once, and for several tasks.

use std::time::Duration;

use zk_locks::{AcquireError, CohortLock, Guard, Guards, Lock, MultiLock, SimpleLock};
use zk_proto::path::{join, parent};

use super::{Cut, FOR_EVER, Known, LOOK, Solo};
use crate::sim::{pass, workload::Worker};

/// The lock that is one node.
pub(super) async fn simple(solo: &mut Solo) -> Known<()> {
    let [lock, other] = [0; 2].map(|_| {
        let builder = SimpleLock::builder(&solo.worker.client, &solo.path);
        solo.set_up(builder)
    });
    let nobody = lock.holder().await;
    let nobody = solo.read(nobody)?;
    solo.expect("E1", nobody.is_none(), format_args!("{nobody:?} is told to hold it"))?;
    let holder = solo.free(&lock).await?;
    let listed = other.holder().await;
    let listed: Vec<_> = solo.read(listed)?.into_iter().collect();
    solo.lists(&listed, &[&holder])?;
    let says = listed[0].description().ends_with(&solo.description);
    solo.expect("E1", says, format_args!("{listed:?} holds it"))?;
    solo.taken(&other, &holder).await?;
    solo.is_held(&holder, holder.check()).await?;
    let before = holder.token();
    solo.released(holder.release().await)?;
    let next = solo.free(&other).await?;
    solo.expect("S1", next.token() > before, format_args!("the same token again"))?;
    solo.released(next.release().await)
}

/// Two at once, one of which may be taken.
pub(super) async fn multi(solo: &mut Solo) -> Known<()> {
    // One name may begin as the other does.
    let names = *solo.worker.rng.pick(&[["a", "b"], ["a", "aa"], ["aa", "a"]]);
    let paths = names.map(|name| join(&solo.path, name));
    let locks = paths.each_ref().map(|path| {
        let builder = Lock::builder(&solo.worker.client, path);
        solo.set_up(builder)
    });
    let both = MultiLock::of(locks.clone());
    let one = solo.worker.rng.index(2);
    let holder = solo.free(&locks[one]).await?;
    solo.taken(&both, &holder).await?;
    let free = solo.free(&locks[1 - one]).await?;
    solo.released(free.release().await)?;
    solo.released(holder.release().await)?;
    let all = solo.free(&both).await?;
    let found: Vec<&str> = all.iter().map(Guard::path).collect();
    let fits = found.iter().map(|found| parent(found)).eq(paths.iter().map(|path| Some(&**path)));
    let by_path = paths.iter().map(|path| all.get(path).map(Guard::path));
    let fits = fits && by_path.eq(found.iter().map(|found| Some(*found)));
    solo.expect("S3", fits, format_args!("has {found:?} of {paths:?}"))?;
    for lock in &locks {
        let taken = lock.try_acquire().await;
        solo.stands(all.status())?;
        let taken = solo.had("looking at", taken)?;
        solo.expect("S2", taken.is_none(), format_args!("is granted one of both"))?;
    }
    if solo.worker.rng.one_in(3) {
        one_is_gone(solo, &both, &locks[one], &all).await?;
    }
    solo.released(all.release().await)?;
    for lock in &locks {
        let guard = solo.free(lock).await?;
        solo.released(guard.release().await)?;
    }
    Ok(())
}

/// One of the nodes of a contender goes. It does not wait for the other one's turn then, which does not come.
async fn one_is_gone(solo: &Solo, both: &MultiLock, one: &Lock, by: &Guards) -> Known<()> {
    let evicted = async {
        let second = loop {
            let listed = one.queue().first(2).await;
            let (listed, _) = solo.read(listed)?;
            match listed.into_iter().nth(1) {
                Some(second) => break second,
                None => pass(LOOK).await,
            }
        };
        if !one.queue().evict(&second).await.or(Err(Cut::Failed))? {
            return Err(Cut::Failed);
        }
        let Worker { ctx, .. } = &solo.worker;
        let since = ctx.now();
        while !ctx.check().is_overdue(ctx.number, since) {
            pass(LOOK).await;
            solo.stands(by.status())?;
        }
        solo.wrong("L1", format_args!("waits without one of its nodes"))
    };
    let ended = tokio::select! {
        biased;
        ended = both.acquire() => ended,
        cut = evicted => return cut,
    };
    solo.stands(by.status())?;
    match ended {
        Err(AcquireError::NodeDeleted) => Ok(()),
        Err(error) => solo.had("waiting for", Err(error)),
        Ok(_) => solo.wrong("S2", format_args!("is granted both, which are taken")),
    }
}

/// Nobody waits when it is lost, so nobody is told later.
async fn lost_alone(solo: &mut Solo) -> Known<()> {
    let builder = CohortLock::builder(&solo.worker.client, &solo.path).fail_on_loss();
    let cohort = solo.set_up(builder);
    let holder = solo.free(&cohort).await?;
    solo.worker.client.delete(holder.path()).await.or(Err(Cut::Failed))?;
    solo.lost_its_node(holder.lost().await)?;
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

/// Two tasks with one node, and a contender beside them.
pub(super) async fn cohort(solo: &mut Solo) -> Known<()> {
    if solo.worker.rng.one_in(4) {
        return lost_alone(solo).await;
    }
    let builder = CohortLock::builder(&solo.worker.client, &solo.path);
    let sections = solo.worker.rng.within(1, 3) as u32;
    let lingers = solo.worker.rng.one_in(3);
    let builder = builder.max_sections(sections).max_stay(FOR_EVER);
    let builder = if lingers { builder.linger(Duration::from_millis(200)) } else { builder };
    let cohort = solo.set_up(builder);
    let builder = Lock::builder(&solo.worker.client, &solo.path);
    let lock = solo.set_up(builder);
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
