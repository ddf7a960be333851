//! Holders and waiters of a lock, whatever kind of lock that is, and where their nodes are.

use zk_client::{
    Client, ReadError, Rejection, SessionId,
    path::{join, parent, parse_sequence},
};
use zk_locks::{Contender, DurableLock, Kind, Queue, SimpleLock};

/// Of those who wait for kazoo's semaphores, behind the semaphore's path.
pub(crate) const BESIDE: &str = "-__lock__";

/// What a durable lock's holder is called.
pub(crate) const DURABLE: &str = "durable";

/// A holder or a waiter.
#[derive(Debug)]
pub(crate) struct Found {
    /// The path that its node is below.
    pub(crate) queue: String,
    pub(crate) contender: Contender,
    pub(crate) holds: bool,
    /// What it is called.
    pub(crate) kind: &'static str,
    /// What it says of itself.
    pub(crate) description: String,
    /// Whether it hears of what others write to its node.
    pub(crate) hears: bool,
}

impl Found {
    fn new(queue: &str, contender: Contender, holds: bool) -> Self {
        Self {
            queue: queue.to_owned(),
            holds,
            kind: name(contender.kind),
            description: contender.description().into_owned(),
            hears: true,
            contender,
        }
    }

    /// One whose node has no number.
    fn alone(queue: &str, contender: Contender, kind: &'static str) -> Self {
        Self { kind, hears: false, ..Self::new(queue, contender, true) }
    }
}

/// All holders and waiters at the path, those who hold it first.
pub(crate) async fn at(client: &Client, path: &str) -> Result<Vec<Found>, ReadError> {
    match SimpleLock::new(client, path).holder().await? {
        None => return Ok(Vec::new()),
        Some(holder) if holder.session != SessionId(0) => {
            return Ok(vec![Found::alone(parent(path).unwrap_or("/"), holder, "simple")]);
        }
        Some(_) => {}
    }
    let mut found = queued(client, path, holding).await?;
    // The name of one in so many ends as those with numbers do.
    found.retain(|found| !is_permit(&found.contender.name));
    found.extend(durable(client, path, usize::MAX).await?);
    // Curator's semaphore: permits that are taken, and who waits for one.
    found.extend(queued(client, &join(path, "leases"), Iterator::count).await?);
    // Also who waits for a durable lock.
    found.extend(queued(client, &join(path, "locks"), |_| 0).await?);
    // kazoo's: permits have no numbers, and who waits for one does so beside the path.
    let (permits, _) = permits(client, path, usize::MAX).await?;
    if !permits.is_empty() {
        found.extend(permits);
        found.extend(queued(client, &format!("{path}{BESIDE}"), |_| 0).await?);
    }
    Ok(found)
}

/// Contenders with numbers, of which so many hold the lock.
async fn queued(
    client: &Client,
    queue: &str,
    held: impl Fn(std::vec::IntoIter<Kind>) -> usize,
) -> Result<Vec<Found>, ReadError> {
    let there = Queue::new(client, queue).contenders().await?;
    let kinds: Vec<_> = there.iter().map(|contender| contender.kind).collect();
    let held = held(kinds.into_iter());
    let there = there.into_iter().enumerate();
    Ok(there.map(|(index, contender)| Found::new(queue, contender, index < held)).collect())
}

/// Who has permits of kazoo's semaphore: at most so many, and how many there are.
pub(crate) async fn permits(
    client: &Client,
    path: &str,
    most: usize,
) -> Result<(Vec<Found>, usize), ReadError> {
    alone(client, path, most, is_permit, "lease").await
}

/// Holders whose nodes have names of this kind, and no numbers: at most so many, and how many there are.
async fn alone(
    client: &Client,
    path: &str,
    most: usize,
    is_one: impl Fn(&str) -> bool,
    kind: &'static str,
) -> Result<(Vec<Found>, usize), ReadError> {
    let names = match client.children(path).await {
        Ok((names, _)) => names,
        // It has gone meanwhile, or there is none.
        Err(ReadError::Rejected(Rejection::NoNode)) => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    let names: Vec<_> = names.iter().filter(|name| is_one(name)).collect();
    for name in names.iter().take(most) {
        let holder = SimpleLock::new(client, &join(path, name)).holder().await?;
        found.extend(holder.map(|holder| Found::alone(path, holder, kind)));
    }
    found.sort_by_key(|found| found.contender.token);
    Ok((found, names.len()))
}

/// The holder of a durable lock, if it is among the first so many nodes where one is expected.
pub(crate) async fn durable(
    client: &Client,
    path: &str,
    most: usize,
) -> Result<Vec<Found>, ReadError> {
    let holder = DurableLock::builder(client, path).build().holder().await?;
    // Other nodes that are called so have no owner.
    let Some(holder) = holder.filter(|holder| !holder.owner.is_empty()) else {
        return Ok(Vec::new());
    };
    let (mut grants, _) = alone(client, &join(path, "grants"), most, |_| true, DURABLE).await?;
    grants.retain(|grant| grant.contender.token == holder.token);
    for grant in &mut grants {
        grant.description.clone_from(&holder.description);
    }
    Ok(grants)
}

pub(crate) fn is_permit(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Whether a name is an id, as that of a durable lock's grant.
pub(crate) fn is_grant(name: &str) -> bool {
    name.len() == 36 && name.bytes().all(|it| it == b'-' || it.is_ascii_hexdigit())
}

/// Whether a name ends in a number that servers have given, and not only as an id may.
pub(crate) fn is_numbered(name: &str) -> bool {
    if is_grant(name) || is_permit(name) {
        return false;
    }
    let end = name.len().checked_sub(10).and_then(|at| name.get(at..));
    end.is_some_and(|end| parse_sequence(end).is_some())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_names_are_recognised() {
        assert!(is_numbered("lock-0000000007") && is_numbered("0000000007"));
        assert!(!is_numbered("lock-7") && !is_numbered("") && !is_numbered("ééééééx"));
        // Ids that end as numbers do.
        assert!(!is_numbered("3b5f6a0e-0000-4000-8000-000123456789"));
        assert!(!is_numbered("0123456789abcdef0123450123456789"));
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
