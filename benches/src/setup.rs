//! What every workload begins with: a runtime, sessions, and until when.

use std::time::Instant;

use tokio::{runtime, task::JoinSet};

use crate::{
    client::{Client, Failure},
    report::Report,
    task::Task,
    window::Until,
};

/// Sessions that are begun, and children that are created, at the same time.
pub(crate) const GREETING: usize = 64;

/// Runs on a runtime, in a task: what a runtime of one thread blocks on costs a look at its sockets each time it is
/// woken, which services, whose work is done in tasks, do not pay.
pub(crate) fn on_runtime<F>(task: &Task, measured: F) -> Result<Report, Failure>
where
    F: Future<Output = Result<Report, Failure>> + Send + 'static,
{
    runtime(task)?.block_on(async { tokio::spawn(measured).await? })
}

/// The runtime that a task asks for.
pub(crate) fn runtime(task: &Task) -> Result<runtime::Runtime, Failure> {
    Ok(match task.threads {
        0 | 1 => runtime::Builder::new_current_thread().enable_all().build()?,
        threads => {
            runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?
        }
    })
}

/// Until when to warm up.
pub(crate) fn warm_up(task: &Task) -> Until {
    match task.operations {
        Some(_) => Until::Count(0),
        None => Until::Time(Instant::now() + task.warm_up),
    }
}

/// Until when to measure.
pub(crate) fn until(task: &Task) -> Until {
    match task.operations {
        Some(count) => Until::Count(count),
        None => Until::Time(Instant::now() + task.seconds),
    }
}

/// As many sessions as there are to be, some of which are begun at the same time.
pub(crate) async fn connect_all<C: Client>(task: &Task) -> Result<Vec<C>, Failure> {
    let count = task.in_flight;
    let mut sessions = Vec::with_capacity(count);
    while sessions.len() < count {
        let mut set = JoinSet::new();
        for _ in 0..GREETING.min(count - sessions.len()) {
            let task = task.clone();
            set.spawn(async move { C::connect(&task).await });
        }
        while let Some(joined) = set.join_next().await {
            sessions.push(joined??);
        }
    }
    Ok(sessions)
}
