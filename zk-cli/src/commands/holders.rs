//! `zk holders`: a lock's holders and waiters.

use std::{collections::BTreeSet, time::SystemTime};

use serde::Serialize;
use zk_client::{
    Client, ReadError, Rejection, SessionId,
    path::{self, join, parent},
};

use crate::{
    args::HoldersArgs,
    changes::Changes,
    exit::{Exit, Failure},
    found::{self, BESIDE, Found, is_numbered, is_permit},
    render::{self, Lean, Table, age, age_millis, printable},
    tree,
};

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

/// What there is to tell of a lock, without the ages.
type Told = (String, Vec<(String, bool, String)>);

impl Lock {
    fn told(&self) -> Told {
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
        let connect = &args.common.connect;
        let followed = connect.until_told(|client| async move { follow(args, &client).await });
        return followed.await.map(|ended| ended.unwrap_or_else(|told| told));
    }
    let connect = &args.common.connect;
    let (locks, hidden) =
        connect.with_session(|client| async move { locks(args, &client).await }).await?;
    print(args, &locks)?;
    Ok(tree::report_hidden(&hidden))
}

/// Prints them whenever something changes, until that cannot be found out any more, or has no reader.
async fn follow(args: &HoldersArgs, client: &Client) -> Result<Exit, Failure> {
    let beside = format!("{}{BESIDE}", args.path);
    let beside = (&*args.path != "/").then_some(&*beside);
    let mut changes = Changes::of(client, &args.path)?.and_of(client, beside)?;
    let mut before = None;
    loop {
        let (now, hidden) = locks(args, client).await?;
        // Their ages change all the time.
        let told = now.iter().map(Lock::told).collect::<Vec<_>>();
        if before.as_ref() != Some(&told) {
            if before.is_some() && !args.common.output.json {
                render::bytes(b"\n")?;
            }
            let mut locks = now;
            if args.common.output.json {
                locks.extend(freed(client, before.iter().flatten(), &told, &hidden).await?);
            }
            if !print(args, &locks)? {
                return Ok(Exit::Done);
            }
            tree::report_hidden(&hidden);
            before = Some(told);
        }
        changes.next().await?;
    }
}

/// Those that were told of and are locks no more, as far as that can be seen: for readers that take each line by itself.
async fn freed(
    client: &Client,
    before: impl Iterator<Item = &Told>,
    now: &[Told],
    hidden: &[String],
) -> Result<Vec<Lock>, Failure> {
    let mut freed = Vec::new();
    let is_hidden =
        |path: &str| path::ancestors(path).any(|above| hidden.iter().any(|it| it == above));
    for (path, _) in before.filter(|(path, _)| !is_hidden(path)) {
        if now.iter().all(|(lock, _)| lock != path) {
            let exists = is_there(client, path).await?;
            freed.push(Lock { path: path.clone(), exists, has_others: false, queue: Vec::new() });
        }
    }
    Ok(freed)
}

/// Prints them; returns whether they have a reader.
fn print(args: &HoldersArgs, locks: &[Lock]) -> Result<bool, Failure> {
    if args.common.output.json {
        let lines: Result<Vec<_>, _> = locks.iter().map(render::json_line).collect();
        return render::is_read(&lines?.concat());
    }
    let text = match locks {
        [] => format!("{}: no locks below it\n", args.path),
        locks => locks.iter().map(|lock| text(args, lock)).collect::<Vec<_>>().join("\n"),
    };
    render::is_read(text.as_bytes())
}

/// The locks, and the nodes that may have more below them.
async fn locks(args: &HoldersArgs, client: &Client) -> Result<(Vec<Lock>, Vec<String>), Failure> {
    let (mut paths, mut hidden) = (vec![args.path.to_string()], Vec::new());
    if args.recursive {
        // What is watched may come one day.
        if args.watch && !is_there(client, &args.path).await? {
            return Ok((Vec::new(), hidden));
        }
        let below = match tree::below(client, &args.path).await {
            // It has gone meanwhile.
            Err(_) if args.watch && !is_there(client, &args.path).await? => {
                return Ok((Vec::new(), hidden));
            }
            below => below?.of_users(client, &args.path),
        };
        paths = candidates(&args.path, &below.paths);
        hidden = below.hidden;
    }
    let mut locks = Vec::new();
    for path in paths {
        let queue = match queue(client, &path).await {
            // One of its contenders is. The other locks are not.
            Err(ReadError::Rejected(Rejection::NoAuth)) if args.recursive => {
                hidden.push(path);
                continue;
            }
            queue => queue.map_err(Failure::read(&path))?,
        };
        // Nodes with numbers may be other things than contenders: those have sessions.
        let has_session = |entry: &Entry| entry.session != SessionId(0).to_string();
        let is_lock = queue.iter().any(|entry| has_session(entry) || entry.kind == found::DURABLE);
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

async fn is_there(client: &Client, path: &str) -> Result<bool, Failure> {
    Ok(client.exists(path).await.map_err(Failure::read(path))?.is_some())
}

/// Where locks may be: above nodes whose names end in a number, or are those of kazoo's permits or of durable grants.
fn candidates(top: &str, below: &[impl AsRef<str>]) -> Vec<String> {
    let below: Vec<&str> = below.iter().map(AsRef::as_ref).collect();
    let there: BTreeSet<&str> =
        below.iter().flat_map(|path| [Some(*path), parent(path)]).flatten().collect();
    let mut paths = BTreeSet::new();
    for path in below {
        let (name, Some(above)) = (path::name(path), parent(path)) else { continue };
        let is_grant = found::is_grant(name) && path::name(above) == "grants";
        if !is_numbered(name) && !is_permit(name) && !is_grant {
            continue;
        }
        let whole = parent(above).unwrap_or(above);
        let has = |part| there.contains(&*join(whole, part));
        // Curator's semaphores and durable locks have two nodes; other locks may have the names of those.
        let is_part = match path::name(above) {
            "leases" => name.contains("lease-"),
            "locks" => has("leases") || has("grants"),
            "grants" => is_grant,
            _ => false,
        };
        let lock = match is_part && above != top {
            true => whole,
            // Kazoo's semaphores have one beside them.
            false => above.strip_suffix(BESIDE).unwrap_or(above),
        };
        paths.insert(lock.to_owned());
    }
    paths.into_iter().collect()
}

/// All holders and waiters at the path, whatever kind of lock that is.
pub(crate) async fn queue(client: &Client, path: &str) -> Result<Vec<Entry>, ReadError> {
    let now = SystemTime::now();
    let found = found::at(client, path).await?;
    Ok(found.into_iter().zip(1..).map(|(found, position)| entry(found, position, now)).collect())
}

fn entry(found: Found, position: usize, now: SystemTime) -> Entry {
    let Found { contender, holds, kind, description, .. } = found;
    Entry {
        position,
        holds,
        revoked: contender.is_revoked(),
        kind,
        sequence: contender.sequence,
        session: contender.session.to_string(),
        since_ms: contender.since,
        age_ms: age_millis(contender.since, now),
        token: contender.token.get(),
        description,
        node: contender.name,
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
            "/d/grants/3b5f6a0e-0000-4000-8000-0123456789ab",
            "/plain/3b5f6a0e-0000-4000-8000-0123456789ab",
            "/plain/3b5f6a0e-0000-4000-8000-000123456789",
            "/plain/node",
            "/p/locks/a-lock-0000000001",
            "/q/leases/a-lock-0000000001",
        ];
        let found = ["/d", "/k", "/l", "/p/locks", "/q/leases", "/s"];
        assert_eq!(candidates("/", &below), found);
        assert_eq!(candidates("/s/locks", &["/s/locks/y-lock-0000000001"]), ["/s/locks"]);
    }
}
