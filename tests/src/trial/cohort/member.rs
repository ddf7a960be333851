//! A process with a cohort in it.

use std::{error::Error, net::SocketAddr, time::Duration};

use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
    time::timeout,
};
use zk_locks::{CohortLock, ConnectOptions, FencingToken, Passing};

use super::{MOST, SESSION_TIMEOUT, TIME};

/// What a process is to do.
#[derive(Clone, Debug)]
pub struct Member {
    /// The servers.
    pub servers: String,
    /// The lock.
    pub path: String,
    /// What the lock protects.
    pub hall: SocketAddr,
    /// Which process this is.
    pub number: usize,
    /// How many tasks it has.
    pub tasks: usize,
    /// How long each stays in the hall.
    pub hold: Duration,
}

/// Has all tasks take the lock again and again, until each is told that it was the last time.
///
/// # Errors
/// Whatever goes wrong.
pub async fn run(member: Member) -> Result<(), Box<dyn Error>> {
    // Else it would go on if whoever started it is killed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let options = ConnectOptions::new(&member.servers)?;
    let zk = options.session_timeout(SESSION_TIMEOUT).connect().await?;
    let passing = Passing::default().most(MOST).time(TIME);
    let lock = CohortLock::new(&zk, &member.path).passing(passing);
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
struct Visitor {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Visitor {
    async fn connect(hall: SocketAddr, number: usize) -> Result<Self, Box<dyn Error>> {
        let stream = TcpStream::connect(hall).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        let mut visitor = Self { lines: BufReader::new(reader).lines(), writer };
        visitor.writer.write_all(format!("{number}\n").as_bytes()).await?;
        Ok(visitor)
    }

    async fn visits(
        mut self,
        lock: CohortLock,
        hold: Duration,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        loop {
            self.writer.write_all(b"ask\n").await?;
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
        let answer = self.ask(&format!("enter {} {}\n", token.get(), token.local())).await?;
        // Work, which asks the servers for nothing.
        let _ = timeout(hold, std::future::pending::<()>()).await;
        self.ask("leave\n").await?;
        Ok(answer == "last")
    }

    async fn ask(&mut self, request: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
        self.writer.write_all(request.as_bytes()).await?;
        Ok(self.lines.next_line().await?.ok_or("the hall is closed")?)
    }
}
