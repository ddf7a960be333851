//! The process that updates the counter.

use std::{error::Error, fmt, net::SocketAddr, str::FromStr};

use clap::Args;
use rustix::process::{Signal, set_parent_process_death_signal};
use zk_locks::{AcquireError, Client, ConnectError, ConnectOptions, Lock};

use super::SESSION_TIMEOUT;
use crate::lines::LineConnection;

/// What a holder does to find out whether it still holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Nothing.
    None,
    /// It works in the scope of its guard.
    Scope,
}

impl fmt::Display for Care {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Scope => "scope",
        })
    }
}

impl FromStr for Care {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::None, Self::Scope]
            .into_iter()
            .find(|care| care.to_string() == text)
            .ok_or_else(|| "none or scope".to_owned())
    }
}

/// What a process is to do.
#[derive(Args, Clone, Debug)]
pub struct Holder {
    /// The servers.
    #[arg(long)]
    pub servers: String,
    /// The lock.
    #[arg(long)]
    pub path: String,
    /// The counter.
    #[arg(long)]
    pub store: SocketAddr,
    /// What it does to find out whether it still holds the lock.
    #[arg(long)]
    pub care: Care,
}

/// Updates the counter again and again, until it learns that it is over.
///
/// # Errors
/// Whatever is not a matter of sessions that end.
pub async fn run(holder: Holder) -> Result<(), Box<dyn Error>> {
    let Holder { servers, path, store, care } = holder;
    // Else it would stand still for ever if the process that stopped it is killed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut store = Store::connect(store).await?;
    loop {
        let zk = connect(&servers).await?;
        match updates(&Lock::new(&zk, &path), &mut store, care).await {
            Ok(()) => return Ok(zk.close().await?),
            Err(error) if error.is::<AcquireError>() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Goes on until it is over, or the session is.
async fn updates(lock: &Lock, store: &mut Store, care: Care) -> Result<(), Box<dyn Error>> {
    loop {
        let guard = lock.acquire().await?;
        let token = guard.token().get();
        let update = store.update(token);
        let more = match care {
            Care::None => update.await?,
            // Lost before it was done.
            Care::Scope => match guard.scope(update).await {
                Ok(updated) => updated?,
                Err(lost) => return Err(AcquireError::from(lost).into()),
            },
        };
        if !more {
            return Ok(());
        }
        // If the session is over, the next acquire tells.
        let _ = guard.release().await;
    }
}

async fn connect(servers: &str) -> Result<Client, ConnectError> {
    ConnectOptions::new(servers)?.session_timeout(SESSION_TIMEOUT).connect().await
}

/// A connection to the counter.
struct Store(LineConnection);

impl Store {
    async fn connect(addr: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let mut counter = LineConnection::connect(addr).await?;
        counter.say(&std::process::id().to_string()).await?;
        Ok(Self(counter))
    }

    /// Reads, and writes one more. False if it is over.
    async fn update(&mut self, token: i64) -> Result<bool, Box<dyn Error>> {
        let answer = self.0.ask(&format!("read {token}")).await?;
        if answer == "over" {
            return Ok(false);
        }
        if let Ok(value) = answer.parse::<u64>() {
            self.0.ask(&format!("write {token} {}", value + 1)).await?;
        }
        Ok(true)
    }
}
