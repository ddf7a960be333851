//! The read/write lock: who reads with whom, who waits for whom, and going on from one to the other.

use zk_locks::{AcquireError, Kind, Layout, ReadGuard, RwLock, Status, WriteGuard};

use super::{
    Cut, Known, Solo,
    queue::{asked_back, places, still_asked, unasked},
};
use crate::sim::workload::rw_lock::{Reading, Writing};

/// Those with names for readers and writers.
const LAYOUTS: [Layout; 5] =
    [Layout::Curator, Layout::Kazoo, Layout::Go, Layout::Bare, Layout::HostType];

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    let layout = *solo.worker.rng.pick(&LAYOUTS);
    let builder = RwLock::builder(&solo.worker.client, &solo.path).layout(layout);
    let builder = if solo.worker.rng.one_in(4) { builder.herd() } else { builder };
    let lock = solo.set_up(builder);
    let (reading, writing) = (Reading(lock.clone()), Writing(lock.clone()));
    let one = solo.free(&reading).await?;
    let other = solo.free(&reading).await?;
    queue_up(solo, &lock).await?;
    solo.taken(&writing, &one).await?;
    let listed = writing.queue().contenders().await;
    let listed = solo.read(listed)?;
    solo.lists(&listed, &[&one, &other])?;
    let fits = listed.iter().all(|it| it.kind == Kind::Read);
    solo.expect("E1", fits, format_args!("{listed:?} read"))?;
    let writer = match solo.worker.rng.one_in(2) {
        true => behind_readers(solo, &reading, &writing, one, other).await?,
        false => upgraded(solo, &reading, one, other).await?,
    };
    solo.is_held(&writer, writer.check()).await?;
    solo.taken(&reading, &writer).await?;
    solo.taken(&writing, &writer).await?;
    match solo.worker.rng.one_in(2) {
        true => downgraded(solo, layout, &reading, &writing, writer).await?,
        false => solo.released(writer.release().await)?,
    }
    let last = solo.free(&writing).await?;
    solo.released(last.release().await)
}

/// Those who read have nobody ahead of them who reads, and those who write have.
async fn queue_up(solo: &Solo, lock: &RwLock) -> Known<()> {
    let (reads, writes) = (lock.enqueue_read().await, lock.enqueue_write().await);
    let reads = solo.had("queueing at", reads)?;
    let writes = solo.had("queueing at", writes)?;
    places(solo, &reads, 0).await?;
    places(solo, &writes, 3).await?;
    drop((reads, writes));
    solo.until_left(2).await
}

/// A writer waits for both readers; readers behind it wait for the writer, and nobody gets ahead of it.
async fn behind_readers(
    solo: &mut Solo,
    reading: &Reading,
    writing: &Writing,
    one: ReadGuard,
    other: ReadGuard,
) -> Known<WriteGuard> {
    let wait = writing.write();
    tokio::pin!(wait);
    solo.still_waits("S2", wait.as_mut(), &[&one, &other]).await?;
    // It may not have come yet.
    if solo.left() < 3 {
        return Err(Cut::Failed);
    }
    solo.taken(reading, &one).await?;
    let one = match one.try_upgrade().await {
        Ok(_) => return solo.wrong("S2", format_args!("upgraded ahead of a writer")),
        Err(refused) => {
            solo.holds(&refused.guard)?;
            match refused.cause {
                AcquireError::WouldDeadlock => {}
                cause => return solo.had("upgrading", Err(cause)),
            }
            refused.guard
        }
    };
    solo.until_left(3).await?;
    let tokens = (one.token(), other.token());
    solo.released(one.release().await)?;
    solo.still_waits("S2", wait.as_mut(), &[&other]).await?;
    solo.released(other.release().await)?;
    let writer = wait.await;
    let writer = solo.had("waiting for", writer)?;
    let fits = writer.token() > tokens.0 && writer.token() > tokens.1;
    solo.expect("S1", fits, format_args!("{} behind {tokens:?}", writer.token()))?;
    Ok(writer)
}

/// A reader writes as soon as the other does not read any more.
async fn upgraded(
    solo: &mut Solo,
    reading: &Reading,
    one: ReadGuard,
    other: ReadGuard,
) -> Known<WriteGuard> {
    let before = one.token();
    let upgrade = async { one.try_upgrade().await.map_err(AcquireError::from) };
    tokio::pin!(upgrade);
    solo.still_waits("S2", upgrade.as_mut(), &[&other]).await?;
    if solo.left() < 3 {
        return Err(Cut::Failed);
    }
    solo.taken(reading, &other).await?;
    solo.released(other.release().await)?;
    let writer = upgrade.await;
    let writer = solo.had("upgrading", writer)?;
    solo.expect("S1", writer.token() > before, format_args!("{before} is not followed"))?;
    // The node of the reader goes in the background.
    solo.until_left(1).await?;
    Ok(writer)
}

/// A writer reads from then on, and others with it.
async fn downgraded(
    solo: &mut Solo,
    layout: Layout,
    reading: &Reading,
    writing: &Writing,
    writer: WriteGuard,
) -> Known<()> {
    let token = writer.token();
    if layout != Layout::Bare && solo.worker.rng.one_in(5) {
        return gone(solo, writer).await;
    }
    let is_asked = solo.worker.rng.one_in(3);
    if is_asked {
        // Its node has another version then.
        asked_back(solo, &writing.queue(), &writer).await?;
    }
    let reader = match writer.downgrade().await {
        Ok(reader) => reader,
        Err(refused) => {
            solo.holds(&refused.guard)?;
            // Nodes without an id could not be found again.
            return match refused.cause {
                AcquireError::NoDowngrade if layout == Layout::Bare => {
                    solo.released(refused.guard.release().await)
                }
                cause => solo.had("downgrading", Err(cause)),
            };
        }
    };
    // One transaction has replaced the node.
    let left = solo.left();
    if left > 1 {
        solo.nothing_comes_late()?;
        return solo.wrong("S3", format_args!("has been downgraded, and {left} nodes are there"));
    }
    let fits = reader.token() == token && layout != Layout::Bare;
    solo.expect("S1", fits, format_args!("{} instead of {token}", reader.token()))?;
    match is_asked {
        true => still_asked(solo, &reader).await?,
        false => unasked(solo, &reader).await?,
    }
    let with = solo.free(reading).await?;
    solo.is_held(&reader, reader.check()).await?;
    solo.taken(writing, &reader).await?;
    solo.released(reader.release().await)?;
    solo.taken(writing, &with).await?;
    solo.released(with.release().await)
}

/// Its node is deleted; the downgrade has to fail, and tell it so.
async fn gone(solo: &Solo, writer: WriteGuard) -> Known<()> {
    solo.worker.client.delete(writer.path()).await.or(Err(Cut::Failed))?;
    let Err(refused) = writer.downgrade().await else {
        return solo.wrong("S2", format_args!("is downgraded, and its node was deleted"));
    };
    match (refused.guard.status(), refused.cause) {
        (Status::Lost(lost), _) => solo.lost_its_node(lost),
        (status, AcquireError::NodeDeleted) => {
            solo.wrong("S4", format_args!("is told that its node was deleted, and is {status:?}"))
        }
        (_, cause) => solo.had("downgrading", Err(cause)),
    }
}
