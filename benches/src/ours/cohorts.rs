//! Tasks that pass a lock on within their process.

use zk_client::Client;
use zk_locks::CohortLock;

use super::NAME;
use crate::{
    client::Failure,
    in_flight::tasks,
    locks::LOCK,
    report::Report,
    setup::{until, warm_up},
    task::Task,
    window::{Tally, Window},
};

/// Every task takes the lock and releases it, again and again; with several cohorts they take turns.
///
/// What is timed is from asking for the lock to the end of the release.
pub(super) async fn cohorts(task: Task) -> Result<Report, Failure> {
    let (mut clients, mut locks) = (Vec::new(), Vec::new());
    for _ in 0..task.sessions.max(1) {
        let client = Client::connect(&task.server).await?;
        locks.push(CohortLock::new(&client, LOCK));
        clients.push(client);
    }
    let unawaited = task.unawaited;
    let count = locks.len() as u64;
    // A task stays with its cohort: its numbers are apart by the number of tasks.
    let per_cohort = (task.in_flight as u64).div_ceil(count).max(1);
    let step = task.in_flight.max(1) as u64;
    let op = move |number: u64| {
        let lock = locks[(number % step / per_cohort) as usize].clone();
        async move {
            let guard = lock.acquire().await?;
            if !unawaited {
                guard.release().await?;
            }
            Ok(())
        }
    };
    tasks(task.in_flight, Tally::new, warm_up(&task), op.clone()).await?;
    let window = Window::open(&task);
    let tally = tasks(task.in_flight, Tally::new, until(&task), op).await?;
    let report = window.close(NAME, &task, tally);
    for client in clients {
        client.close().await?;
    }
    Ok(report)
}
