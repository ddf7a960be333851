//! Everything below a node.

use zk_client::{Client, ReadError, Rejection, Stat, path::join};

use crate::{
    exit::{Exit, Failure},
    render::complain,
};

/// How many nodes are asked about in one go: well below what a client lets wait at once.
pub(crate) const BATCH: usize = 1_000;

/// Whether servers keep this node for themselves. Below a chroot a node of the same name is the users'.
pub(crate) fn is_reserved(client: &Client, path: &str) -> bool {
    let path = client.absolute(path);
    *path == *"/zookeeper" || path.starts_with("/zookeeper/")
}

/// The nodes below another one, as far as they may be seen.
#[derive(Debug)]
pub(crate) struct Below {
    /// Their paths, each behind its parent and siblings in order.
    pub(crate) paths: Vec<String>,
    /// Those of them whose children may not be listed.
    pub(crate) hidden: Vec<String>,
}

impl Below {
    /// Without what servers keep for themselves, unless it was asked for by name.
    pub(crate) fn of_users(mut self, client: &Client, top: &str) -> Self {
        if !is_reserved(client, top) {
            self.paths.retain(|path| !is_reserved(client, path));
            self.hidden.retain(|path| !is_reserved(client, path));
        }
        self
    }

    /// All of them, for what is wrong with a part.
    pub(crate) fn whole(self) -> Result<Vec<String>, Failure> {
        match self.hidden.first() {
            Some(hidden) => Err(Failure::rejected(hidden, Rejection::NoAuth)),
            None => Ok(self.paths),
        }
    }
}

/// Adds what is not known for another reason.
pub(crate) fn hide(hidden: &mut Vec<String>, more: Vec<String>) {
    hidden.extend(more);
    hidden.sort();
    hidden.dedup();
}

/// Says what may not be listed, and how a command ends then that prints the rest.
pub(crate) fn report_hidden(hidden: &[String]) -> Exit {
    let Some(first) = hidden.first() else { return Exit::Done };
    let more = match hidden.len() {
        1 => String::new(),
        len => format!(" and {} more", len - 1),
    };
    let failure = Failure::rejected(first, Rejection::NoAuth)
        .retold(|_| format!("{first}{more}: not listed, no permission"));
    complain(&failure);
    failure.exit
}

/// All nodes below one. Nodes that go while they are being looked at are left out, and others that come may be: a tree
/// cannot be seen whole at one moment.
pub(crate) async fn below(client: &Client, top: &str) -> Result<Below, Failure> {
    let (mut found, mut hidden) = (Vec::new(), Vec::new());
    let mut level = vec![top.to_owned()];
    while !level.is_empty() {
        let mut next = Vec::new();
        for batch in level.chunks(BATCH) {
            let cork = client.cork();
            let asked: Vec<_> =
                batch.iter().map(|path| (path, cork.children(path).submit())).collect();
            drop(cork);
            for (path, answer) in asked {
                match answer.await {
                    Ok((names, _)) => next.extend(names.iter().map(|name| join(path, name))),
                    // The one at the top was asked for by name.
                    Err(ReadError::Rejected(Rejection::NoNode)) if path != top => {}
                    Err(ReadError::Rejected(Rejection::NoAuth)) if path != top => {
                        hidden.push(path.clone());
                    }
                    Err(error) => return Err(Failure::read(path)(error)),
                }
            }
        }
        found.extend(next.iter().cloned());
        level = next;
    }
    found.sort_by(|a, b| a.split('/').cmp(b.split('/')));
    Ok(Below { paths: found, hidden })
}

/// What servers know of nodes, given by their names below another one or by their paths, and the paths of those of which
/// they tell nothing. Those that have gone meanwhile are left out.
pub(crate) async fn stats(
    client: &Client,
    above: Option<&str>,
    names: Vec<String>,
) -> Result<(Vec<(String, Stat)>, Vec<String>), Failure> {
    let path = |name: &str| above.map_or_else(|| name.to_owned(), |above| join(above, name));
    let (mut stats, mut hidden) = (Vec::with_capacity(names.len()), Vec::new());
    for batch in names.chunks(BATCH) {
        let cork = client.cork();
        let asked: Vec<_> =
            batch.iter().map(|name| (name, cork.exists(&path(name)).submit())).collect();
        drop(cork);
        for (name, answer) in asked {
            match answer.await {
                Ok(Some(stat)) => stats.push((name.clone(), stat)),
                Ok(None) | Err(ReadError::Rejected(Rejection::NoNode)) => {}
                // Since 3.9.2, of nodes that may not be read.
                Err(ReadError::Rejected(Rejection::NoAuth)) => hidden.push(path(name)),
                Err(error) => return Err(Failure::read(&path(name))(error)),
            }
        }
    }
    Ok((stats, hidden))
}
