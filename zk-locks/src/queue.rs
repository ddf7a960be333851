//! Looking at a queue from outside.

use zk_client::{ReadError, Rejection, SessionId, join};

use crate::{
    entry::{Entry, Kind},
    line::Line,
};

/// Somebody in the queue of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contender {
    /// The name of its node.
    pub name: String,
    /// What it wants.
    pub kind: Kind,
    /// Its number in the queue. Numbers have gaps.
    pub sequence: i32,
    /// The session that it lives with.
    pub session: SessionId,
    /// When it joined: milliseconds since 1970 on the clock of the leader.
    pub since: i64,
    /// What its fencing token is, or will be.
    pub token: i64,
    /// What it says about itself.
    pub description: String,
}

/// Reads the queue in two round trips; whoever leaves in between is left out.
pub(crate) async fn contenders(line: &Line) -> Result<Vec<Contender>, ReadError> {
    let Line { client, path, settings, .. } = line;
    let names = match client.children(path).await {
        Ok((names, _)) => names,
        Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut entries: Vec<Entry> =
        names.into_iter().filter_map(|name| settings.filter.read(name).ok()).collect();
    entries.sort_by(Entry::order);
    let cork = client.cork();
    let reads: Vec<_> = entries
        .into_iter()
        .map(|entry| {
            let read = cork.get(&join(path, &entry.name)).submit();
            (entry, read)
        })
        .collect();
    drop(cork);

    let mut contenders = Vec::with_capacity(reads.len());
    for (Entry { name, sequence, kind }, read) in reads {
        let (data, stat) = match read.await {
            Ok(read) => read,
            Err(ReadError::Rejected(Rejection::NoNode)) => continue,
            Err(error) => return Err(error),
        };
        contenders.push(Contender {
            name,
            kind,
            sequence,
            session: stat.ephemeral_owner,
            since: stat.ctime,
            token: stat.czxid.0,
            description: String::from_utf8_lossy(&data).into_owned(),
        });
    }
    Ok(contenders)
}
