//! The contenders for the lock: each with a session of its own.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use zk_client::{Client, ConnectError, ConnectOptions, path::parse_sequence};
use zk_locks::Lock;

use super::{
    progress::Progress,
    resource::{Resource, Visitor},
    stage::CONNECT_DEADLINE,
};

/// How long servers keep a contender's session without hearing from it: longer than a busy machine may
/// keep its contenders from running.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// How many connect at a time; more would only wait in the queue of the listening socket.
const CONNECTING_MAX: usize = 64;

/// What all contenders share.
#[derive(Debug)]
pub(crate) struct Contest {
    pub(crate) path: String,
    pub(crate) rounds: usize,
    pub(crate) hold: Duration,
    /// When a contender gives up. That is a failure of the lock, or of the server.
    pub(crate) patience: Duration,
    pub(crate) resource: Resource,
    pub(crate) progress: Progress,
}

/// Makes so many sessions.
///
/// # Errors
/// The first that fails; the others are given up.
pub(crate) async fn connect(servers: &str, contenders: usize) -> Result<Vec<Client>, ConnectError> {
    let mut clients = Vec::with_capacity(contenders);
    let mut connecting = JoinSet::new();
    let mut to_come = contenders;
    while clients.len() < contenders {
        while to_come > 0 && connecting.len() < CONNECTING_MAX {
            let options = ConnectOptions::new(servers)?.session_timeout(SESSION_TIMEOUT);
            connecting.spawn(options.connect_deadline(Some(CONNECT_DEADLINE)).connect());
            to_come -= 1;
        }
        if let Some(connected) = connecting.join_next().await {
            clients.push(connected.expect("connecting neither panics nor is cancelled")?);
        }
    }
    Ok(clients)
}

/// Lets all ask for the lock at the same moment, and waits until all have had it so many times.
///
/// Returns what went wrong, in words.
pub(crate) async fn compete(contest: &Arc<Contest>, clients: &[Client]) -> Vec<String> {
    // All tasks exist, and wait, before the first one asks.
    let (start, started) = tokio::sync::watch::channel(None);
    let mut tasks = JoinSet::new();
    for (index, client) in clients.iter().enumerate() {
        let contender = Contender {
            number: index + 1,
            lock: Lock::new(client, &contest.path),
            contest: Arc::clone(contest),
        };
        let mut started = started.clone();
        tasks.spawn(async move {
            match started.wait_for(Option::is_some).await.map(|start| *start) {
                Ok(Some(start)) => contender.take_turns(start).await,
                _ => Ok(()),
            }
        });
    }
    start.send_replace(Some(Instant::now()));
    let mut failures = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        failures.extend(ended.unwrap_or_else(|panic| Err(panic.to_string())).err());
    }
    contest.progress.finish();
    failures
}

#[derive(Debug)]
struct Contender {
    number: usize,
    lock: Lock,
    contest: Arc<Contest>,
}

impl Contender {
    async fn take_turns(&self, start: Instant) -> Result<(), String> {
        for round in 1..=self.contest.rounds {
            let turn = self.take_turn(start).await;
            turn.map_err(|error| format!("contender {}, round {round}: {error}", self.number))?;
        }
        Ok(())
    }

    async fn take_turn(&self, start: Instant) -> Result<(), String> {
        let Contest { hold, patience, resource, progress, .. } = &*self.contest;
        let asked = start.elapsed();
        let guard =
            self.lock.acquire_timeout(*patience).await.map_err(|error| error.to_string())?;
        let visitor = Visitor {
            contender: self.number,
            token: guard.token().get(),
            sequence: sequence(guard.path()),
            asked,
        };
        let now = start.elapsed();
        resource.enter(visitor, now).map_err(|stale| stale.to_string())?;
        progress.granted(&visitor, now);
        let held = guard.scope(tokio::time::sleep(*hold)).await;
        resource.leave(visitor, start.elapsed());
        held.map_err(|lost| lost.to_string())?;
        guard.release().await.map_err(|error| error.to_string())
    }
}

/// The number that ends a node's name; -1 if it does not end in one, which no queue gives out.
fn sequence(path: &str) -> i32 {
    let digits = path.len().checked_sub(10).and_then(|start| path.get(start..));
    digits.and_then(parse_sequence).unwrap_or(-1)
}
