//! The semaphore: as many permits as there are, and no more.

use std::time::Duration;

use zk_client::{CreateMode, Error};
use zk_locks::{AcquireError, Guards, Semaphore};
use zk_proto::path::join;

use super::{BY_HAND, Cut, Known, Solo};
use crate::sim::{check::Claim, pass, workload::Worker};

/// How often a task takes permits while their number changes.
const TAKES: u64 = 6;

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    match solo.worker.rng.one_in(3) {
        true => resized(solo).await,
        false => counted(solo).await,
    }
}

/// There are more and fewer all the time, or there is no number for a moment, while tasks take some.
async fn resized(solo: &mut Solo) -> Known<()> {
    let count = join(&solo.path, "count");
    let builder = Semaphore::builder(&solo.worker.client, &solo.path);
    let semaphore = solo.set_up(builder).counted_at(&count);
    let above = solo.worker.client.create(&solo.path, b"").parents().await;
    above.or(Err(Cut::Failed))?;
    let mut tasks = [1, 2, 3].map(|task| solo.worker.another(task));
    let [one, other, resizer] = &mut tasks;
    let (one, other) = (take(solo, one, &semaphore), take(solo, other, &semaphore));
    // Else they would be in their callers' futures several times.
    let taking = Box::pin(async { tokio::join!(biased; one, other) });
    let resizing = async {
        loop {
            let permits = resizer.rng.within(1, 3) as u32;
            let outcome: Result<(), Error> = match resizer.rng.one_in(6) {
                true => resizer.client.delete(&count).await.map_err(Error::from),
                false => semaphore.resize(permits).await.map_err(Error::from),
            };
            if outcome.is_err_and(|error| error.session_end().is_some()) {
                return Cut::Over;
            }
            pass(resizer.rng.scaled(1, 50)).await;
        }
    };
    tokio::select! {
        biased;
        (one, other) = taking => one.and(other)?,
        cut = resizing => return Err(cut),
    }
    solo.worker.ctx.count("permits taken while their number changed");
    Ok(())
}

/// Takes permits, several times in a row.
async fn take(solo: &Solo, worker: &mut Worker, semaphore: &Semaphore) -> Known<()> {
    for _ in 0..TAKES {
        let count = worker.rng.within(1, 2) as usize;
        let time = Duration::from_millis(worker.rng.scaled(20, 2_000));
        match semaphore.acquire_many_timeout(count, time).await {
            Err(AcquireError::TimedOut) => {}
            // No node of theirs is deleted by others.
            Err(AcquireError::NodeDeleted) => {
                return solo.wrong("E1", format_args!("is told that its node was deleted"));
            }
            taken => {
                let guards = solo.had("taking", taken)?;
                pass(worker.rng.scaled(1, 100)).await;
                solo.released(guards.release().await)?;
            }
        }
    }
    Ok(())
}

/// All are taken, and none is left, until one is given back or there are more.
async fn counted(solo: &mut Solo) -> Known<()> {
    let permits = solo.worker.rng.within(1, 3) as u32;
    let counted = solo.worker.rng.one_in(2);
    let builder = Semaphore::builder(&solo.worker.client, &solo.path);
    let semaphore = solo.set_up(builder);
    let semaphore = match counted {
        true => {
            let semaphore = semaphore.counted_at(&join(&solo.path, "count"));
            let above = solo.worker.client.create(&solo.path, b"").parents().await;
            above.or(Err(Cut::Failed))?;
            semaphore.resize(permits).await.or(Err(Cut::Failed))?;
            semaphore
        }
        false => semaphore.with_permits(permits),
    };
    if counted && solo.worker.rng.one_in(4) {
        no_count(solo, &semaphore).await?;
        semaphore.resize(permits).await.or(Err(Cut::Failed))?;
    }
    let all = usize::try_from(permits).unwrap_or_default();
    let (many, rest) = taken(solo, &semaphore, all).await?;
    let mut claims: Vec<&dyn Claim> = rest.iter().map(|guard| guard as &dyn Claim).collect();
    claims.extend(many.iter().map(|guard| guard as &dyn Claim));
    claims.sort_by_key(|claim| (claim.token(), claim.path().map(str::to_owned)));
    let listed = semaphore.holders().await;
    let mut listed = solo.read(listed)?;
    // Those of one transaction have one token.
    listed.sort_by(|one, other| (one.token, &one.name).cmp(&(other.token, &other.name)));
    solo.lists(&listed, &claims)?;
    let beyond = semaphore.try_acquire_many(all + 1).await;
    solo.stands(many.status())?;
    let beyond = solo.had("looking at", beyond)?;
    solo.expect("S3", beyond.is_none(), format_args!("has {} of {all}", all + 1))?;
    let mut rest = rest.into_iter();
    let Some(first) = rest.next() else {
        solo.released(many.release().await)?;
        return by_hand(solo, &semaphore, all).await;
    };
    solo.taken(&semaphore, &first).await?;
    waited(solo, &semaphore, permits, first).await?;
    for one in rest {
        solo.released(one.release().await)?;
    }
    solo.released(many.release().await)?;
    by_hand(solo, &semaphore, all).await
}

/// Something else stands where the number should.
async fn no_count(solo: &mut Solo, semaphore: &Semaphore) -> Known<()> {
    let path = join(&solo.path, "count");
    let words = *solo.worker.rng.pick(&["", "5", "two", "three"]);
    solo.worker.client.set(&path, words.as_bytes()).await.or(Err(Cut::Failed))?;
    let taken = match solo.worker.rng.one_in(2) {
        true => semaphore.acquire().await.map(drop),
        false => semaphore.try_acquire().await.map(drop),
    };
    match taken {
        Err(AcquireError::NotACount { path: told }) => {
            solo.expect("E1", told == path, format_args!("no count in {told}, not {path}"))
        }
        Ok(()) => solo.wrong("S3", format_args!("takes {words:?} for a number")),
        Err(error) => solo.had("taking", Err(error)),
    }?;
    solo.until_left(0).await
}

/// Takes all permits: several at once, and the others one by one.
async fn taken(
    solo: &mut Solo,
    semaphore: &Semaphore,
    all: usize,
) -> Known<(Guards, Vec<zk_locks::Guard>)> {
    let at_once = solo.worker.rng.index(all + 1);
    let many = semaphore.acquire_many(at_once).await;
    let many = solo.had("taking", many)?;
    let fits = many.len() == at_once;
    solo.expect("S3", fits, format_args!("{} instead of {at_once}", many.len()))?;
    let mut rest = Vec::new();
    for _ in at_once..all {
        let one = solo.free(semaphore).await?;
        rest.push(one);
    }
    Ok((many, rest))
}

/// One waits until another is given back, or there are more.
async fn waited(
    solo: &mut Solo,
    semaphore: &Semaphore,
    permits: u32,
    first: zk_locks::Guard,
) -> Known<()> {
    let wait = semaphore.acquire();
    tokio::pin!(wait);
    solo.still_waits("S3", wait.as_mut(), &[&first]).await?;
    let first = match solo.worker.rng.one_in(2) {
        true => {
            semaphore.resize(permits + 1).await.or(Err(Cut::Failed))?;
            Some(first)
        }
        false => {
            solo.released(first.release().await)?;
            None
        }
    };
    let granted = wait.await;
    let granted = solo.had("waiting for", granted)?;
    if let Some(first) = first {
        solo.taken(semaphore, &granted).await?;
        solo.holds(&first)?;
        solo.released(first.release().await)?;
        semaphore.resize(permits).await.or(Err(Cut::Failed))?;
    }
    solo.released(granted.release().await)
}

/// Whatever stands beside permits is one that is taken.
async fn by_hand(solo: &mut Solo, semaphore: &Semaphore, all: usize) -> Known<()> {
    let path = join(&solo.path, &format!("leases/{BY_HAND}{}", solo.worker.rng.next()));
    let create = solo.worker.client.create(&path, b"").mode(CreateMode::Ephemeral).parents();
    create.await.or(Err(Cut::Failed))?;
    let many = semaphore.try_acquire_many(all).await;
    let many = solo.had("looking at", many)?;
    solo.expect("S3", many.is_none(), format_args!("has {all} beside one by hand"))?;
    let fewer = semaphore.acquire_many(all - 1).await;
    let fewer = solo.had("taking", fewer)?;
    let none = semaphore.try_acquire().await;
    solo.stands(fewer.status())?;
    let none = solo.had("looking at", none)?;
    solo.expect("S3", none.is_none(), format_args!("has one more beside one by hand"))?;
    solo.worker.client.delete(&path).await.or(Err(Cut::Failed))?;
    let one = solo.free(semaphore).await?;
    solo.released(one.release().await)?;
    solo.released(fewer.release().await)
}
