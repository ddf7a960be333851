//! `zk holders`: a lock's holders and waiters.

use std::time::SystemTime;

use serde::Serialize;
use zk_client::{Client, ReadError, Rejection, SessionId, Stat, path::join};
use zk_locks::{Contender, Kind, Queue, SimpleLock};

use crate::{
    args::{CommonArgs, HoldersArgs},
    exit::{Exit, Failure},
    render::{self, Lean, Table, age, age_millis, printable},
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    path: &'a str,
    queue: Vec<Entry>,
}

/// One in the queue.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Entry {
    /// From 1.
    position: usize,
    holds: bool,
    node: String,
    kind: &'static str,
    /// Nodes that stand for themselves alone have none.
    sequence: Option<i32>,
    /// Hexadecimal, as servers print it.
    session: String,
    /// On the leader's clock.
    since_ms: i64,
    /// By this machine's clock: off by the difference of the two.
    age_ms: i64,
    token: i64,
    description: String,
}

pub(crate) async fn run(args: HoldersArgs) -> Result<Exit, Failure> {
    let HoldersArgs { common: CommonArgs { connect, output }, path } = &args;
    let queue = connect
        .with_session(
            |client| async move { queue(&client, path).await.map_err(Failure::read(path)) },
        )
        .await?;
    if output.json {
        render::json(&Report { path, queue })?;
    } else {
        render::bytes(text(path, &queue).as_bytes())?;
    }
    Ok(Exit::Done)
}

/// All holders and waiters at the path, whatever kind of lock that is.
async fn queue(client: &Client, path: &str) -> Result<Vec<Entry>, ReadError> {
    let now = SystemTime::now();
    match SimpleLock::new(client, path).holder().await? {
        None => return Ok(Vec::new()),
        Some(holder) if holder.session != SessionId(0) => {
            return Ok(numbered(vec![entry(holder, true, now)]));
        }
        Some(_) => {}
    }
    let contenders = async |path: &str| Queue::new(client, path).contenders().await;
    let there = contenders(path).await?;
    let held = holding(there.iter().map(|contender| contender.kind));
    let holds = |index: usize| index < held;
    let mut entries: Vec<_> = there
        .into_iter()
        .enumerate()
        .map(|(index, contender)| entry(contender, holds(index), now))
        .collect();
    // Curator's semaphore: permits that are taken, and who waits for one.
    let leases = contenders(&join(path, "leases")).await?;
    entries.extend(leases.into_iter().map(|lease| entry(lease, true, now)));
    let waiting = contenders(&join(path, "locks")).await?;
    entries.extend(waiting.into_iter().map(|waiter| entry(waiter, false, now)));
    // kazoo's: permits have no numbers, and who waits for one does so beside the path.
    let permits = kazoo_permits(client, path, now).await?;
    if !permits.is_empty() {
        entries.extend(permits);
        let waiting = contenders(&format!("{path}-__lock__")).await?;
        entries.extend(waiting.into_iter().map(|waiter| entry(waiter, false, now)));
    }
    Ok(numbered(entries))
}

/// The permits of kazoo's semaphore, each named by an id alone.
async fn kazoo_permits(
    client: &Client,
    path: &str,
    now: SystemTime,
) -> Result<Vec<Entry>, ReadError> {
    let (names, _) = client.children(path).await?;
    let is_id = |name: &String| name.len() == 32 && name.bytes().all(|it| it.is_ascii_hexdigit());
    let mut permits = Vec::new();
    for name in names.into_iter().filter(is_id) {
        match client.get(&join(path, &name)).await {
            Ok((data, stat)) => permits.push(permit(name, &data, &stat, now)),
            Err(ReadError::Rejected(Rejection::NoNode)) => {}
            Err(error) => return Err(error),
        }
    }
    permits.sort_by_key(|permit| permit.token);
    Ok(permits)
}

fn numbered(mut entries: Vec<Entry>) -> Vec<Entry> {
    for (index, entry) in entries.iter_mut().enumerate() {
        entry.position = index + 1;
    }
    entries
}

/// One in a queue, or with a lock that has none.
fn entry(contender: Contender, holds: bool, now: SystemTime) -> Entry {
    Entry {
        position: 0,
        holds,
        kind: contender.sequence.map_or("simple", |_| name(contender.kind)),
        sequence: contender.sequence,
        session: contender.session.to_string(),
        since_ms: contender.since,
        age_ms: age_millis(contender.since, now),
        token: contender.token.get(),
        description: contender.description().into_owned(),
        node: contender.name,
    }
}

/// A permit of kazoo's.
fn permit(node: String, data: &[u8], stat: &Stat, now: SystemTime) -> Entry {
    Entry {
        position: 0,
        holds: true,
        kind: "lease",
        sequence: None,
        session: stat.ephemeral_owner.to_string(),
        since_ms: stat.ctime,
        age_ms: age_millis(stat.ctime, now),
        token: stat.czxid.0,
        description: String::from_utf8_lossy(data).into_owned(),
        node,
    }
}

/// How many, from the front, hold the lock: one, or all readers without another contender in front of them.
fn holding(kinds: impl Iterator<Item = Kind>) -> usize {
    let mut kinds = kinds.peekable();
    match kinds.peek() {
        None => 0,
        Some(Kind::Read) => kinds.take_while(|kind| *kind == Kind::Read).count(),
        Some(_) => 1,
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Exclusive => "exclusive",
        Kind::Write => "write",
        Kind::Read => "read",
        Kind::Lead => "lead",
        Kind::Lease => "lease",
        _ => "unknown",
    }
}

fn text(path: &str, queue: &[Entry]) -> String {
    if queue.is_empty() {
        return format!("{path}: no holder, no waiters\n");
    }
    let mut table = Table::new([
        ("", Lean::Right),
        ("STATE", Lean::Left),
        ("KIND", Lean::Left),
        ("AGE", Lean::Right),
        ("TOKEN", Lean::Right),
        ("SESSION", Lean::Left),
        ("DESCRIPTION", Lean::Left),
        ("NODE", Lean::Left),
    ]);
    for entry in queue {
        table.row([
            entry.position.to_string(),
            if entry.holds { "holds" } else { "waits" }.to_owned(),
            entry.kind.to_owned(),
            age(entry.age_ms),
            entry.token.to_string(),
            entry.session.clone(),
            printable(&entry.description),
            printable(&entry.node),
        ]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_the_first_or_leading_readers() {
        use Kind::{Exclusive, Read, Unknown, Write};
        for (kinds, held) in [
            (&[][..], 0),
            (&[Exclusive, Exclusive], 1),
            (&[Read, Read, Write, Read], 2),
            (&[Write, Read], 1),
            (&[Unknown, Read], 1),
        ] {
            assert_eq!(holding(kinds.iter().copied()), held, "{kinds:?}");
        }
    }
}
