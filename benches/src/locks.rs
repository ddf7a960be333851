//! Locks, over any client: one that nobody else wants, one that is passed on, many at the same time.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use tokio::task::JoinSet;

use crate::{
    client::{Client, Failure},
    in_flight::tasks,
    report::Report,
    setup::{until, warm_up},
    task::Task,
    window::{Tally, Until, Window},
};

/// What is locked.
pub(crate) const LOCK: &str = "/bench-lock";

/// What many locks are below.
const MANY: &str = "/bench-locks";

/// The nodes of many locks, each behind the node that it is below.
pub(crate) fn many(task: &Task) -> impl Iterator<Item = String> + use<> {
    let below = (0..task.locks).map(|number| format!("{MANY}/{number}"));
    [MANY.to_owned()].into_iter().chain(below)
}

/// The locks that one of the tasks takes in turn, and no other one does: what contention costs is measured by itself.
///
/// # Errors
/// There are not enough of them.
pub(crate) fn own(task: &Task, number: usize) -> Result<Vec<String>, Failure> {
    let own: Vec<_> = many(task).skip(1 + number).step_by(task.in_flight.max(1)).collect();
    if own.is_empty() { Err("each task needs a lock of its own: --locks".into()) } else { Ok(own) }
}

pub(crate) async fn lock<C: Client>(task: &Task) -> Result<Report, Failure> {
    let own = C::connect(task).await?;
    let lock = &own.lock(LOCK);
    let run = |until| async move {
        let mut tally = Tally::precise(until);
        while let Some(begun) = tally.next() {
            let held = C::acquire(lock).await?;
            C::release(held, task.unawaited).await?;
            tally.ended(begun);
        }
        Ok::<_, Failure>(tally)
    };
    run(warm_up(task)).await?;
    let window = Window::open(task);
    let tally = run(until(task)).await?;
    let report = window.close(C::NAME, task, tally);
    own.close().await;
    Ok(report)
}

pub(crate) async fn hand_off<C: Client>(task: &Task) -> Result<Report, Failure> {
    let mut clients = Vec::new();
    for _ in 0..task.in_flight {
        clients.push(C::connect(task).await?);
    }
    let locks: Vec<_> = clients.iter().map(|client| client.lock(LOCK)).collect();
    contend::<C>(task, &locks, warm_up(task)).await?;
    let window = Window::open(task);
    let tally = contend::<C>(task, &locks, until(task)).await?;
    let report = window.close(C::NAME, task, tally);
    for client in clients {
        client.close().await;
    }
    Ok(report)
}

/// All contend until they have had enough. What is timed is from the beginning of a release to the next grant.
async fn contend<C: Client>(
    task: &Task,
    locks: &[C::Lock],
    until: Until,
) -> Result<Tally, Failure> {
    let tally = Arc::new(Mutex::new((Tally::precise(until), None::<Instant>)));
    let unawaited = task.unawaited;
    let mut set = JoinSet::new();
    for lock in locks {
        let (lock, tally) = (lock.clone(), tally.clone());
        set.spawn(async move {
            let mut goes_on = true;
            while goes_on {
                let held = C::acquire(&lock).await?;
                {
                    let mut it = tally.lock().unwrap_or_else(PoisonError::into_inner);
                    goes_on = it.0.next().is_some();
                    let released = it.1.take();
                    if goes_on {
                        it.0.ended(released);
                    }
                    it.1 = Some(Instant::now());
                }
                C::release(held, unawaited).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(joined) = set.join_next().await {
        joined??;
    }
    let tally = Arc::into_inner(tally).ok_or("a contender is still there")?;
    Ok(tally.into_inner().unwrap_or_else(PoisonError::into_inner).0)
}

/// Tasks that all take locks at the same time, over as many sessions as asked for: the first task is on the first of
/// them, the second on the second, and around.
///
/// What is timed is from asking for a lock to the end of its release.
pub(crate) async fn many_locks<C: Client>(task: &Task) -> Result<Report, Failure> {
    let mut clients = Vec::new();
    for _ in 0..task.sessions.max(1) {
        clients.push(C::connect(task).await?);
    }
    for node in many(task) {
        // It may be there from the last time.
        let _ = clients[0].create(&node, b"").await;
    }
    let turns = (0..task.in_flight).map(|number| {
        let client = &clients[number % clients.len()];
        let own = own(task, number)?;
        Ok(own.iter().map(|path| client.lock(path)).collect::<Vec<_>>())
    });
    let turns: Arc<[Vec<C::Lock>]> = turns.collect::<Result<_, Failure>>()?;
    let unawaited = task.unawaited;
    let op = move |number: u64| {
        let number = number as usize;
        let (own, round) = (&turns[number % turns.len()], number / turns.len());
        let lock = own[round % own.len()].clone();
        async move { C::release(C::acquire(&lock).await?, unawaited).await }
    };
    tasks(task.in_flight, Tally::precise, warm_up(task), op.clone()).await?;
    let window = Window::open(task);
    let tally = tasks(task.in_flight, Tally::precise, until(task), op).await?;
    let report = window.close(C::NAME, task, tally);
    for client in clients {
        client.close().await;
    }
    Ok(report)
}
