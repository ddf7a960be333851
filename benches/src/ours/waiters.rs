//! Thousands in one line.

use std::{
    future::poll_fn,
    mem,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::{Duration, Instant},
};

use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use zk_client::{Client, ConnectOptions};
use zk_locks::Lock;

use super::NAME;
use crate::{
    client::Failure,
    in_flight::Done,
    locks::LOCK,
    report::Report,
    seen,
    task::Task,
    window::{Tally, Until, Window, live_heap, status},
};

/// Longer than a server may be busy with listings.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60);

/// How many join at the same time: as many listings are on their way.
const JOINING: usize = 64;

/// All wait behind a holder, who then releases; each waiter that is granted the lock releases it at once.
///
/// What is timed is from the beginning of a release to the next grant.
pub(super) async fn waiters(task: Task) -> Result<Report, Failure> {
    let mut clients = Vec::new();
    for _ in 0..task.sessions.max(1) {
        let options = ConnectOptions::new(&task.server)?.session_timeout(SESSION_TIMEOUT);
        clients.push(options.connect().await?);
    }
    let locks: Vec<_> = clients.iter().map(|client| Lock::new(client, LOCK)).collect();
    let holder = locks[0].acquire().await?;

    let (heap, resident) = (live_heap(), status("VmRSS:").unwrap_or_default());
    let seen = seen::requests(&task.server);
    let begun = Instant::now();
    let mut line = Line::form(&clients, &locks, &task).await?;
    let formed = begun.elapsed();
    // Asking for the second time is a request too.
    let asked =
        seen.zip(seen::requests(&task.server)).map(|(from, to)| to.saturating_sub(from + 1));
    let heap = live_heap().saturating_sub(heap) / task.in_flight.max(1);
    let resident = status("VmRSS:").unwrap_or_default().saturating_sub(resident);

    let window = Window::open(&task);
    line.grants.release();
    holder.release().await?;
    while let Some(served) = line.waiting.join_next().await {
        served??;
    }
    Ok(window
        .close(NAME, &task, line.grants.tally())
        .with("seconds_to_form", formed.as_secs_f64())
        .with("requests_to_form", asked)
        .with("heap_per_waiter", cfg!(feature = "count-allocations").then_some(heap))
        .with("resident_kib_grown", resident))
}

/// Grants so far, and when the last release began.
#[derive(Clone)]
struct Grants(Arc<Mutex<(Tally, Option<Instant>)>>);

impl Grants {
    fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new((Tally::precise(Until::Count(count as u64)), None))))
    }

    /// A waiter has been granted the lock, and releases it now.
    fn granted(&self) {
        let mut it = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let released = it.1.take();
        it.0.ended(released);
        it.1 = Some(Instant::now());
    }

    /// The first release begins.
    fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(Instant::now());
    }

    fn tally(&self) -> Tally {
        let mut it = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mem::replace(&mut it.0, Tally::of(0))
    }
}

/// The waiters, each in a task of its own.
struct Line {
    waiting: JoinSet<Done>,
    grants: Grants,
}

impl Line {
    /// All have fallen asleep when this returns.
    async fn form(clients: &[Client], locks: &[Lock], task: &Task) -> Result<Self, Failure> {
        let grants = Grants::new(task.in_flight);
        let joining = Arc::new(Semaphore::new(JOINING));
        let (asleep, mut fallen_asleep) = mpsc::channel(JOINING);
        let mut waiting = JoinSet::new();
        for lock in locks.iter().cycle().take(task.in_flight) {
            let (lock, asleep, grants) = (lock.clone(), asleep.clone(), grants.clone());
            waiting.spawn(wait(lock, joining.clone(), asleep, grants, task.unawaited));
        }
        drop(asleep);
        for _ in 0..task.in_flight {
            if fallen_asleep.recv().await.is_none() {
                // Some have failed instead: the first of them tells.
                while let Some(failed) = waiting.join_next().await {
                    failed??;
                }
            }
        }
        for client in clients {
            // Answered behind every watch that was requested.
            client.sync("/").await?;
        }
        Ok(Self { waiting, grants })
    }
}

async fn wait(
    lock: Lock,
    joining: Arc<Semaphore>,
    asleep: mpsc::Sender<()>,
    grants: Grants,
    unawaited: bool,
) -> Done {
    let turn = joining.acquire().await?;
    let mut ticket = lock.enqueue().await?;
    drop(turn);
    let guard = {
        let mut wait = pin!(ticket.wait());
        // It now requests what it will be notified of.
        let early = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await;
        asleep.send(()).await?;
        drop(asleep);
        match early {
            Poll::Ready(guard) => guard?,
            Poll::Pending => wait.await?,
        }
    };
    grants.granted();
    if !unawaited {
        guard.release().await?;
    }
    Ok(())
}
