//! Other locks that one contender holds: without a queue, and several at once.

use zk_locks::{AcquireError, Guard, Guards, Lock, MultiLock, SimpleLock};
use zk_proto::path::{join, parent};

use super::{Cut, Known, LOOK, Solo};
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
    let path = next.path().to_owned();
    let writes = solo.worker.rng.below(8);
    let released = tokio::join!(biased; next.release(), written(solo, &path, writes));
    solo.released(released.0)
}

/// Writes the node while it is given back. A simple lock deletes it by its version.
async fn written(solo: &Solo, path: &str, writes: u64) {
    for _ in 0..writes {
        if solo.worker.client.set(path, b"written").await.is_err() {
            break;
        }
    }
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
