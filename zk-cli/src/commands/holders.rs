//! `zk holders`: a lock's holders and waiters.

use std::{collections::BTreeSet, time::SystemTime};

use serde::Serialize;
use zk_client::{
    Client, ReadError, Rejection, SessionId, Stat,
    path::{self, join, parent, parse_sequence},
};
use zk_locks::{Contender, Kind, Queue, SimpleLock};

use crate::{
    args::HoldersArgs,
    changes::Changes,
    exit::{Exit, Failure},
    interrupt::Interrupt,
    render::{self, Lean, Table, age, age_millis, printable},
    tree,
};

/// Of those who wait for kazoo's semaphores, behind the semaphore's path.
const BESIDE: &str = "-__lock__";

#[derive(Debug, Serialize)]
struct Lock {
    path: String,
    /// Whether the node is there. A lock that was never taken, or not lately, may have none.
    exists: bool,
    /// Whether there are nodes in it, of which none is a contender's.
    #[serde(skip)]
    has_others: bool,
    queue: Vec<Entry>,
}

impl Lock {
    /// All but the ages.
    fn told(&self) -> (String, Vec<(String, bool, String)>) {
        let entry = |it: &Entry| (it.node.clone(), it.holds, it.description.clone());
        (self.path.clone(), self.queue.iter().map(entry).collect())
    }
}

/// A holder or a waiter.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    /// From 1.
    position: usize,
    pub(crate) holds: bool,
    /// Whether it has been asked for the lock.
    revoked: bool,
    node: String,
    kind: &'static str,
    /// Nodes that stand for themselves alone have none.
    sequence: Option<i32>,
    /// Hexadecimal, as servers print it.
    pub(crate) session: String,
    /// On the leader's clock.
    since_ms: i64,
    /// By this machine's clock: off by the difference of the two.
    age_ms: i64,
    token: i64,
    pub(crate) description: String,
}

impl Entry {
    /// In a word or two.
    fn state(&self) -> &'static str {
        match (self.holds, self.revoked) {
            (true, true) => "holds, asked",
            (true, false) => "holds",
            (false, _) => "waits",
        }
    }
}

pub(crate) async fn run(args: HoldersArgs) -> Result<Exit, Failure> {
    let args = &args;
    if args.watch {
        let mut interrupt = Interrupt::catch()?;
        let connect = &args.common.connect;
        return connect
            .with_session(|client| async move {
                tokio::select! {
                    biased;
                    exit = interrupt.next() => Ok(exit),
                    failed = follow(args, &client) => failed,
                }
            })
            .await;
    }
    let connect = &args.common.connect;
    let (locks, hidden) =
        connect.with_session(|client| async move { locks(args, &client).await }).await?;
    print(args, &locks)?;
    Ok(tree::report_hidden(&hidden))
}

/// Prints them whenever something changes, until that cannot be found out any more.
async fn follow(args: &HoldersArgs, client: &Client) -> Result<Exit, Failure> {
    let mut changes = Changes::of(client, &args.path)?;
    let mut before = None;
    loop {
        let (now, hidden) = locks(args, client).await?;
        // Their ages change all the time.
        let told = now.iter().map(Lock::told).collect::<Vec<_>>();
        if before.as_ref() != Some(&told) {
            if before.is_some() && !args.common.output.json {
                render::bytes(b"\n")?;
            }
            print(args, &now)?;
            tree::report_hidden(&hidden);
            before = Some(told);
        }
        changes.next().await?;
    }
}

fn print(args: &HoldersArgs, locks: &[Lock]) -> Result<(), Failure> {
    if args.common.output.json {
        return locks.iter().try_for_each(render::json);
    }
    let text = match locks {
        [] => format!("{}: no locks below it\n", args.path),
        locks => locks.iter().map(|lock| text(args, lock)).collect::<Vec<_>>().join("\n"),
    };
    render::bytes(text.as_bytes())
}

/// The locks, and the nodes that may have more below them.
async fn locks(args: &HoldersArgs, client: &Client) -> Result<(Vec<Lock>, Vec<String>), Failure> {
    let (mut paths, mut hidden) = (vec![args.path.to_string()], Vec::new());
    if args.recursive {
        // What is watched may come one day.
        let exists = client.exists(&args.path).await.map_err(Failure::read(&args.path))?;
        if args.watch && exists.is_none() {
            return Ok((Vec::new(), hidden));
        }
        let below = tree::below(client, &args.path).await?;
        paths = candidates(&args.path, &below.paths);
        hidden = below.hidden;
    }
    let mut locks = Vec::new();
    for path in paths {
        let queue = queue(client, &path).await.map_err(Failure::read(&path))?;
        // Nodes with numbers may be other things than contenders: those have sessions.
        let is_lock = queue.iter().any(|entry| entry.session != SessionId(0).to_string());
        if is_lock || !args.recursive {
            let stat = match queue.is_empty() {
                true => client.exists(&path).await.map_err(Failure::read(&path))?,
                false => None,
            };
            let exists = !queue.is_empty() || stat.is_some();
            let has_others = stat.is_some_and(|stat| stat.num_children > 0);
            locks.push(Lock { path, exists, has_others, queue });
        }
    }
    Ok((locks, hidden))
}

/// Where locks may be: above nodes whose names end in a number, or are those of kazoo's permits.
fn candidates(top: &str, below: &[String]) -> Vec<String> {
    let mut paths = BTreeSet::new();
    for path in below.iter().filter(|path| !tree::is_reserved(path)) {
        if !is_numbered(path::name(path)) && !is_permit(path::name(path)) {
            continue;
        }
        let Some(above) = parent(path) else { continue };
        // Curator's semaphores have two queues; kazoo's have one beside them.
        let lock = match path::name(above) {
            "leases" | "locks" if above != top => parent(above).unwrap_or(above),
            _ => above.strip_suffix(BESIDE).unwrap_or(above),
        };
        paths.insert(lock.to_owned());
    }
    paths.into_iter().collect()
}

/// All holders and waiters at the path, whatever kind of lock that is.
pub(crate) async fn queue(client: &Client, path: &str) -> Result<Vec<Entry>, ReadError> {
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
        let waiting = contenders(&format!("{path}{BESIDE}")).await?;
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
    let mut permits = Vec::new();
    for name in names.into_iter().filter(|name| is_permit(name)) {
        match client.get(&join(path, &name)).await {
            Ok((data, stat)) => permits.push(permit(name, &data, &stat, now)),
            Err(ReadError::Rejected(Rejection::NoNode)) => {}
            Err(error) => return Err(error),
        }
    }
    permits.sort_by_key(|permit| permit.token);
    Ok(permits)
}

/// Whether a name ends in a number that servers have given.
fn is_numbered(name: &str) -> bool {
    let suffix = name.len().checked_sub(10).and_then(|at| name.get(at..));
    suffix.is_some_and(|suffix| parse_sequence(suffix).is_some())
}

fn is_permit(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|it| it.is_ascii_hexdigit())
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
        revoked: contender.is_revoked(),
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
        revoked: false,
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
pub(crate) fn holding(kinds: impl Iterator<Item = Kind>) -> usize {
    let mut kinds = kinds.peekable();
    match kinds.peek() {
        None => 0,
        Some(Kind::Read) => kinds.take_while(|kind| *kind == Kind::Read).count(),
        Some(_) => 1,
    }
}

/// What a contender wants, in a word.
pub(crate) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Exclusive => "exclusive",
        Kind::Write => "write",
        Kind::Read => "read",
        Kind::Lead => "lead",
        Kind::Lease => "lease",
        _ => "unknown",
    }
}

fn text(args: &HoldersArgs, Lock { path, exists, has_others, queue }: &Lock) -> String {
    let heading = if args.recursive { format!("{}\n", printable(path)) } else { String::new() };
    if queue.is_empty() {
        let more = match (exists, has_others) {
            (false, _) => ": no such node".to_owned(),
            (true, true) => format!("\n    zk holders -R {path} lists the locks below it"),
            (true, false) => String::new(),
        };
        return format!("{path}: no holder, no waiters{more}\n");
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
            entry.state().to_owned(),
            entry.kind.to_owned(),
            age(entry.age_ms),
            entry.token.to_string(),
            entry.session.clone(),
            printable(&entry.description),
            printable(&entry.node),
        ]);
    }
    heading + &table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_above_nodes_with_numbers() {
        let below = [
            "/l/a-lock-0000000001",
            "/l/b-lock-0000000002",
            "/s/leases/x-lease-0000000001",
            "/s/locks/y-lock-0000000001",
            "/k/0123456789abcdef0123456789abcdef",
            "/k-__lock__/0123__lock__0000000000",
            "/plain/node",
            "/zookeeper/n-0000000001",
        ];
        let below = below.map(str::to_owned);
        assert_eq!(candidates("/", &below), ["/k", "/l", "/s"]);
    }

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
