//! `zk holders`: who has a lock, and who waits for it.

use std::time::SystemTime;

use serde::Serialize;
use zk_locks::{Contender, Kind, Lock};

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
    sequence: i32,
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
    let contenders = connect
        .with_session(|client| async move {
            Lock::new(&client, path).contenders().await.map_err(Failure::read(path))
        })
        .await?;
    let queue = entries(contenders, SystemTime::now());
    if output.json {
        render::json(&Report { path, queue })?;
    } else {
        render::bytes(text(path, &queue).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn entries(contenders: Vec<Contender>, now: SystemTime) -> Vec<Entry> {
    let held = holding(contenders.iter().map(|contender| contender.kind));
    let entry = |(index, contender): (usize, Contender)| Entry {
        position: index + 1,
        holds: index < held,
        kind: name(contender.kind),
        sequence: contender.sequence,
        session: contender.session.to_string(),
        since_ms: contender.since,
        age_ms: age_millis(contender.since, now),
        token: contender.token,
        description: contender.description,
        node: contender.name,
    };
    contenders.into_iter().enumerate().map(entry).collect()
}

/// How many, from the front, hold the lock: one, or all readers that nobody else is in front of.
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
        _ => "unknown",
    }
}

fn text(path: &str, queue: &[Entry]) -> String {
    if queue.is_empty() {
        return format!("{path}: nobody holds it, nobody waits\n");
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
    fn one_holds_an_exclusive_lock_and_all_leading_readers_hold_a_shared_one() {
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
