//! Which nodes there are.
//!
//! Each writer has a directory to itself, with a register, which is there from the start, and nodes that come and go.
//! Counters belong to all: below each stand entries of the clients that have counted.

use std::error::Error;

use zk_client::{Client, ConnectOptions, ReadError, Stat, Zxid, path::join};

/// Above everything that is compared at the end.
pub(super) const ROOT: &str = "/soak";

/// Above the nodes by which it is seen that a session has gone.
pub(super) const SESSIONS: &str = "/sessions";

/// How many counters there are.
pub(super) const COUNTERS: usize = 4;

/// What was there before the first write.
#[derive(Debug)]
pub(super) struct First {
    /// By which transaction each writer's register was created.
    pub(super) registers: Vec<Zxid>,
}

pub(super) fn directory(writer: usize) -> String {
    format!("{ROOT}/w{writer:02}")
}

pub(super) fn register(writer: usize) -> String {
    format!("{ROOT}/w{writer:02}/r")
}

/// The writer whose register that is.
pub(super) fn writer_of(register: &str) -> Option<usize> {
    register.strip_prefix(ROOT)?.strip_prefix("/w")?.strip_suffix("/r")?.parse().ok()
}

pub(super) fn counter(number: usize) -> String {
    format!("{ROOT}/c{number}")
}

/// The node by which it is seen that a session has gone.
pub(super) fn marker(session: usize, life: usize) -> String {
    format!("{SESSIONS}/{session}-{life}")
}

/// Creates what is there from the start.
pub(super) async fn prepare(servers: &str, writers: usize) -> Result<First, Box<dyn Error>> {
    let zk = super::connect(ConnectOptions::new(servers)?).await?;
    for path in [ROOT, SESSIONS] {
        zk.create(path, b"").await?;
    }
    for number in 0..COUNTERS {
        zk.create(&counter(number), b"").await?;
    }
    let mut registers = Vec::new();
    for writer in 0..writers {
        zk.create(&directory(writer), b"").await?;
        registers.push(zk.create(&register(writer), b"").await?.stat.czxid);
    }
    zk.close().await?;
    Ok(First { registers })
}

/// The paths of everything that there is: the root, what stands below it from the start, and what comes and goes there.
pub(super) async fn listing(zk: &Client) -> Result<Vec<String>, ReadError> {
    let below = |parent: &str, (names, _): (Vec<String>, Stat)| -> Vec<String> {
        names.iter().map(|name| join(parent, name)).collect()
    };
    let mut found = below(ROOT, zk.children(ROOT).await?);
    let pending: Vec<_> =
        found.iter().map(|path| (path.clone(), zk.children(path).submit())).collect();
    found.push(ROOT.to_owned());
    for (path, listed) in pending {
        found.extend(below(&path, listed.await?));
    }
    Ok(found)
}
