//! A process with a cohort in it.

use std::{error::Error, net::SocketAddr, time::Duration};

use clap::Args;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::{task::JoinSet, time::timeout};
use zk_locks::{CohortLock, ConnectOptions, FencingToken};

use super::{super::in_millis, MOST, SESSION_TIMEOUT, TIME};
use crate::lines::LineConnection;

/// What a process is to do.
#[derive(Args, Clone, Debug)]
pub struct Member {
    /// The servers.
    #[arg(long)]
    pub servers: String,
    /// The lock.
    #[arg(long)]
    pub path: String,
    /// What the lock protects.
    #[arg(long)]
    pub hall: SocketAddr,
    /// Which process this is.
    #[arg(long)]
    pub number: usize,
    /// How many tasks it has.
    #[arg(long)]
    pub tasks: usize,
    /// How long each stays in the hall, in milliseconds.
    #[arg(long, value_parser = in_millis)]
    pub hold: Duration,
}

/// Has all tasks take the lock again and again, until each learns that it was the last time.
///
/// # Errors
/// Whatever goes wrong.
pub async fn run(member: Member) -> Result<(), Box<dyn Error>> {
    // Else it would go on if its parent process is killed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let options = ConnectOptions::new(&member.servers)?;
    let zk = options.session_timeout(SESSION_TIMEOUT).connect().await?;
    let lock = CohortLock::builder(&zk, &member.path).max_sections(MOST).max_stay(TIME).build();
    let mut tasks = JoinSet::new();
    for _ in 0..member.tasks {
        let visitor = Visitor::connect(member.hall, member.number).await?;
        tasks.spawn(visitor.visits(lock.clone(), member.hold));
    }
    while let Some(ended) = tasks.join_next().await {
        ended?.map_err(|error| error.to_string())?;
    }
    drop(lock);
    Ok(zk.close().await?)
}

/// A task's connection to the hall.
struct Visitor(LineConnection);

impl Visitor {
    async fn connect(hall: SocketAddr, number: usize) -> Result<Self, Box<dyn Error>> {
        let mut hall = LineConnection::connect(hall).await?;
        hall.say(&number.to_string()).await?;
        Ok(Self(hall))
    }

    async fn visits(
        mut self,
        lock: CohortLock,
        hold: Duration,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        loop {
            self.0.say("ask").await?;
            let guard = lock.acquire().await?;
            let is_last = self.visit(guard.token(), hold).await?;
            guard.release().await?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Enters, stays, and leaves. Returns whether that is to be the last time.
    async fn visit(
        &mut self,
        token: FencingToken,
        hold: Duration,
    ) -> Result<bool, Box<dyn Error + Send + Sync>> {
        let answer = self.0.ask(&format!("enter {} {}", token.get(), token.local())).await?;
        // Work, which asks the servers for nothing.
        let _ = timeout(hold, std::future::pending::<()>()).await;
        self.0.ask("leave").await?;
        Ok(answer == "last")
    }
}
