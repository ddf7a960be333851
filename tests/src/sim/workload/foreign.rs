//! A client changes a lock's nodes. Nothing is promised about who holds such a lock; but
//! all clients get an answer, and what is not ours stays.

use std::time::Duration;

use zk_client::{Error, Rejection, WriteError, path::join};
use zk_locks::{Lock, Queue};
use zk_testkit::sim::Fault;

use super::{MEDDLED, Over, Worker, hold::look_often, unless_ended, unless_over};
use crate::sim::{check::Checker, pass};

const PATH: &str = "/meddled/lock";

pub(super) async fn work(mut worker: Worker) {
    let mixed = worker.ctx.options.is_mixed();
    worker.ctx.check().meddlers.push(worker.client.session());
    loop {
        let pause = worker.rng.scaled(50, 20_000);
        if !worker.think(pause).await {
            return;
        }
        let done = match worker.rng.below(if mixed { 8 } else { 4 }) {
            0 => meddle(&mut worker).await,
            1 => foreign(&mut worker).await,
            4 => evict(&mut worker).await,
            5 => ask_back(&worker).await,
            6 | 7 => take_away(&worker).await,
            _ => acquire(&mut worker).await,
        };
        if done.is_err() {
            return;
        }
    }
}

/// Takes the lock, if it is to be had.
async fn acquire(worker: &mut Worker) -> Result<(), Over> {
    let lock = Lock::builder(&worker.client, PATH).description("simulated").build();
    let time = Duration::from_millis(worker.rng.scaled(10, 10_000));
    let acquired = lock.acquire_timeout(time).await;
    let Some(guard) = unless_ended(acquired)? else { return Ok(()) };
    worker.ctx.count("meddled locks held");
    let long = worker.rng.one_in(6);
    let hold = worker.rng.scaled(1, if long { 100_000 } else { 2_000 });
    let stalled = worker.ctx.stalled();
    // A holder that only asks waits for nothing: its client looks after the node by itself once it is held for long.
    if worker.rng.one_in(3) {
        let (ctx, session) = (worker.ctx.clone(), worker.client.session());
        worker.while_busy(look_often(&ctx, &session, &guard, hold)).await;
        drop(guard.release().await);
        return Ok(());
    }
    let heard = tokio::select! {
        biased;
        heard = guard.revoked() => Some(heard),
        _ = worker.think(hold) => None,
    };
    let ctx = &worker.ctx;
    match heard {
        Some(Ok(())) => ctx.count("meddled locks asked back"),
        Some(Err(_)) => ctx.count("meddled locks lost"),
        None if ctx.stalled() == stalled => {
            ctx.check().held_to_the_end(ctx.number, guard.path());
        }
        None => {}
    }
    drop(guard.release().await);
    Ok(())
}

/// Deletes a contender's node, or all and the path too.
async fn meddle(worker: &mut Worker) -> Result<(), Over> {
    let client = worker.client.clone();
    let Ok((mut names, _)) = client.children(PATH).await else { return Ok(()) };
    // Not from the server in any order that means something.
    names.sort();
    names.retain(|name| !name.starts_with("foreign"));
    if names.is_empty() {
        return Ok(());
    }
    worker.ctx.count("meddlings");
    worker.ctx.cluster.state().hit(Fault::Meddle);
    let all = worker.rng.one_in(3);
    let one = worker.rng.index(names.len());
    for (number, name) in names.iter().enumerate() {
        if all || number == one {
            let path = join(PATH, name);
            if unless_over(client.delete(&path).await)?.is_some() {
                let ctx = &worker.ctx;
                ctx.check().meddled(path);
            }
        }
    }
    if all {
        drop(client.delete(PATH).await);
    }
    Ok(())
}

/// Takes a contender out of the queue.
async fn evict(worker: &mut Worker) -> Result<(), Over> {
    let queue = Queue::new(&worker.client, PATH);
    let Ok(contenders) = queue.contenders().await else { return Ok(()) };
    worker.ctx.check().listed(worker.ctx.number, PATH, &contenders);
    let Some(contender) = contenders.get(worker.rng.index(contenders.len())) else { return Ok(()) };
    worker.ctx.cluster.state().hit(Fault::Meddle);
    let evicted = queue.evict(contender).await;
    done(worker, evicted, |checker| {
        checker.count("contenders evicted");
        checker.meddled(join(PATH, &contender.name));
    })
}

/// Asks the holder for the lock.
async fn ask_back(worker: &Worker) -> Result<(), Over> {
    let queue = Queue::new(&worker.client, PATH);
    let Ok(contenders) = queue.contenders().await else { return Ok(()) };
    let Some(holder) = contenders.first() else { return Ok(()) };
    let revoked = queue.revoke(holder).await;
    done(worker, revoked, |checker| {
        checker.count("locks asked back");
        checker.asked_back(join(PATH, &holder.name));
    })
}

/// Notes what was done to a contender, if it was.
fn done(
    worker: &Worker,
    done: Result<bool, impl Into<Error>>,
    note: impl FnOnce(&mut Checker),
) -> Result<(), Over> {
    if unless_over(done)? == Some(true) {
        let ctx = &worker.ctx;
        note(&mut ctx.check());
    }
    Ok(())
}

/// Deletes the node of a lock without a queue.
async fn take_away(worker: &Worker) -> Result<(), Over> {
    if unless_over(worker.client.delete(MEDDLED).await)?.is_some() {
        worker.ctx.count("simple locks taken away");
    }
    Ok(())
}

/// Puts something into the queue that does not belong there, looks whether it stays, and removes it.
async fn foreign(worker: &mut Worker) -> Result<(), Over> {
    let client = worker.client.clone();
    let path = format!("{PATH}/foreign-{}", worker.ctx.number);
    match client.create(&path, b"not a contender").await {
        Ok(_) | Err(WriteError::Rejected(Rejection::NodeExists)) => {}
        Err(error) => return unless_over(Err::<(), _>(error)).map(drop),
    }
    pass(worker.rng.scaled(10, 5_000)).await;
    let there = client.exists(&path).await;
    if matches!(there, Ok(None)) {
        let ctx = &worker.ctx;
        ctx.check().violated("X4", format!("{path} was deleted by somebody"));
    }
    unless_over(client.delete(&path).await).map(drop)
}
