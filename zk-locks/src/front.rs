//! The front of a queue, seen from outside: one contender, or several that share the lock.

use zk_client::{Client, ReadError, Rejection, Watch, path::join};

use crate::{
    contender::{Contender, read_all},
    entry::{Entry, Kind},
    follow::{Look, Source},
    layout::Filter,
};

/// The front of the queue under a path.
#[derive(Debug)]
pub(crate) struct Front {
    client: Client,
    path: String,
    filter: Filter,
    /// Whether several contenders of this kind are at the front together.
    shares: fn(Kind) -> bool,
}

impl Source<Vec<Contender>> for Front {
    fn look(&self) -> Look<'_, Vec<Contender>> {
        Box::pin(async {
            let (there, watch) = self.read().await?;
            Ok((there, Some(watch)))
        })
    }
}

impl Source<Option<Contender>> for Front {
    fn look(&self) -> Look<'_, Option<Contender>> {
        Box::pin(async {
            let (there, watch) = self.read().await?;
            Ok((there.into_iter().next(), Some(watch)))
        })
    }
}

impl Front {
    pub(crate) fn new(client: &Client, path: &str, filter: Filter) -> Self {
        Self { client: client.patient(), path: path.to_owned(), filter, shares }
    }

    /// Of permits: each node stands for one, whatever its name.
    pub(crate) fn of_permits(client: &Client, path: &str, filter: Filter) -> Self {
        Self { shares: |_| true, ..Self::new(client, path, filter) }
    }

    /// Reads the present front, with a watch for the next change. A single exclusive contender is watched itself;
    /// several, or none, by the path.
    async fn read(&self) -> Result<(Vec<Contender>, Watch), ReadError> {
        loop {
            let read = match self.client.children(&self.path).await {
                Err(ReadError::Rejected(Rejection::NoNode)) => self.read_none().await?,
                children => match self.first(children?.0).as_slice() {
                    [first] if !(self.shares)(first.kind) => self.read_one(first).await?,
                    _ => self.read_many().await?,
                },
            };
            if let Some(read) = read {
                return Ok(read);
            }
        }
    }

    /// `None` if it is gone.
    async fn read_one(&self, first: &Entry) -> Result<Option<(Vec<Contender>, Watch)>, ReadError> {
        match self.client.get(&join(&self.path, &first.name)).watch().await {
            Ok(((data, stat), watch)) => {
                let contender = Contender::new(&self.filter, first.clone(), data, &stat);
                Ok(Some((vec![contender], watch)))
            }
            Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Of a path that is missing; `None` if it was created meanwhile.
    async fn read_none(&self) -> Result<Option<(Vec<Contender>, Watch)>, ReadError> {
        let (path, watch) = self.client.exists(&self.path).watch().await?;
        Ok(path.is_none().then_some((Vec::new(), watch)))
    }

    /// `None` if there is an exclusive contender by now, or the path was deleted and created again.
    async fn read_many(&self) -> Result<Option<(Vec<Contender>, Watch)>, ReadError> {
        let ((names, _), watch) = match self.client.children(&self.path).watch().await {
            Ok(children) => children,
            Err(ReadError::Rejected(Rejection::NoNode)) => return self.read_none().await,
            Err(error) => return Err(error),
        };
        let first = self.first(names);
        if first.iter().any(|entry| !(self.shares)(entry.kind)) {
            return Ok(None);
        }
        // The watch reports those that leave meanwhile.
        let there = read_all(&self.client, &self.path, first, |entry| &entry.name).await?;
        let contender = |(entry, data, stat)| Contender::new(&self.filter, entry, data, &stat);
        Ok(Some((there.into_iter().map(contender).collect(), watch)))
    }

    /// The first contender, or all at the front that share the lock.
    fn first(&self, names: Vec<String>) -> Vec<Entry> {
        let mut entries = self.filter.queue(names);
        let together = entries.iter().take_while(|entry| (self.shares)(entry.kind)).count();
        entries.truncate(together.max(1));
        entries
    }
}

/// Whether several contenders of this kind share the lock.
fn shares(kind: Kind) -> bool {
    matches!(kind, Kind::Read | Kind::Lease)
}
