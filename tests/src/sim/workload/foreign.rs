//! V19: somebody meddles with a lock's nodes. Nothing is promised about who holds such a lock; but
//! everybody gets an answer, and what is not ours stays.

use std::time::Duration;

use zk_client::{Rejection, WriteError, join};
use zk_locks::Lock;

use super::Worker;
use crate::sim::pass;

const PATH: &str = "/meddled/lock";

pub(super) async fn work(mut worker: Worker) {
    loop {
        let pause = worker.rng.scaled(50, 20_000);
        if !worker.think(pause).await {
            return;
        }
        let over = match worker.rng.below(4) {
            0 => meddle(&mut worker).await,
            1 => foreign(&mut worker).await,
            _ => acquire(&mut worker).await,
        };
        if over {
            return;
        }
    }
}

/// Takes the lock, if it is to be had. Returns whether the session is over.
async fn acquire(worker: &mut Worker) -> bool {
    let lock = Lock::builder(&worker.client, PATH).description("simulated").build();
    let time = Duration::from_millis(worker.rng.scaled(10, 10_000));
    match lock.acquire_timeout(time).await {
        Ok(guard) => {
            worker.seat.count("meddled locks held");
            let long = worker.rng.one_in(6);
            let hold = worker.rng.scaled(1, if long { 100_000 } else { 2_000 });
            let stalled = worker.seat.stalled();
            if guard.scope(worker.think(hold)).await.is_err() {
                worker.seat.count("meddled locks lost");
            } else if worker.seat.stalled() == stalled {
                let seat = &worker.seat;
                seat.judge.at(seat.now()).held_to_the_end(seat.number, guard.path());
            }
            drop(guard.release().await);
            false
        }
        Err(zk_locks::AcquireError::SessionEnded(_)) => true,
        Err(_) => false,
    }
}

/// Deletes somebody's node, or all and the path too.
async fn meddle(worker: &mut Worker) -> bool {
    let client = worker.client.clone();
    let Ok((mut names, _)) = client.children(PATH).await else {
        return false;
    };
    // Not from the server in any order that means something.
    names.sort();
    names.retain(|name| !name.starts_with("foreign"));
    if names.is_empty() {
        return false;
    }
    worker.seat.count("meddlings");
    worker.seat.cluster.state().hit("V19", worker.seat.number);
    let all = worker.rng.one_in(3);
    let one = worker.rng.index(names.len());
    for (number, name) in names.iter().enumerate() {
        if all || number == one {
            let path = join(PATH, name);
            let deleted = client.delete(&path).await;
            if deleted.is_ok() {
                let seat = &worker.seat;
                seat.judge.at(seat.now()).meddled(path);
            }
            if deleted.err().and_then(|error| error.session_end()).is_some() {
                return true;
            }
        }
    }
    if all {
        drop(client.delete(PATH).await);
    }
    false
}

/// Puts something into the queue that does not belong there, looks whether it stays, and removes it.
async fn foreign(worker: &mut Worker) -> bool {
    let client = worker.client.clone();
    let path = format!("{PATH}/foreign-{}", worker.seat.number);
    match client.create(&path, b"not a contender").await {
        Ok(_) | Err(WriteError::Rejected(Rejection::NodeExists)) => {}
        Err(error) => return error.session_end().is_some(),
    }
    pass(worker.rng.scaled(10, 5_000)).await;
    let there = client.exists(&path).await;
    if matches!(there, Ok(None)) {
        let seat = &worker.seat;
        seat.judge.at(seat.now()).violated("V19", format!("{path} was deleted by somebody"));
    }
    client.delete(&path).await.err().and_then(|error| error.session_end()).is_some()
}
