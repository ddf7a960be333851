//! Following who leads.

use std::sync::Arc;

use zk_client::{Cause, ReadError, Rejection, SessionId, Watch, Zxid, bytes::Bytes, join};

use crate::{FencingToken, entry::Entry, line::Line};

/// Who leads, as an [observer](crate::Election::observe) sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The name of its node.
    pub name: String,
    /// What it says of itself.
    pub data: Bytes,
    /// Its fencing token: larger than those of all leaders before.
    pub token: FencingToken,
    /// The session that it lives with.
    pub session: SessionId,
}

/// Follows who leads in an election. Costs nothing while nothing changes.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// # let election = zk_locks::Election::new(&zk, "/leaders/indexer");
/// let mut leaders = election.observe();
/// loop {
///     match leaders.next().await? {
///         Some(leader) => println!("{} leads: {:?}", leader.name, leader.data),
///         None => println!("nobody leads"),
///     }
///     # break;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Leaders {
    line: Arc<Line>,
    /// On what was last seen: the leader's node, or where there was none.
    watch: Option<Watch>,
    /// What was last told: the transactions that made the leader's node and wrote it last.
    told: Option<Option<(Zxid, Zxid)>>,
}

impl Leaders {
    pub(super) const fn new(line: Arc<Line>) -> Self {
        Self { line, watch: None, told: None }
    }

    /// Waits until there is something new: another leader, other data of the same one, or `None` if nobody
    /// leads. The first call tells at once what is.
    ///
    /// Tells the newest; what was between two looks is not told. Whoever is told of a leader has not
    /// necessarily been told before that one itself: act on its [token](Leader::token), not on its name.
    ///
    /// Two reads for each change, one after the other, and one notification. The future can be dropped and made
    /// anew at will.
    ///
    /// # Errors
    /// [`ReadError`] if the path cannot be read, or the session has ended. Ask again unless it has.
    pub async fn next(&mut self) -> Result<Option<Leader>, ReadError> {
        loop {
            if let Some(watch) = &mut self.watch {
                let heard = watch.await;
                self.watch = None;
                heard.map_err(|end| ReadError::Unavailable(Cause::SessionEnded(end)))?;
            }
            let (leader, watch) = self.look().await?;
            self.watch = Some(watch);
            let seen = leader.as_ref().map(|(leader, written)| (leader.token, *written));
            let seen = seen.map(|(token, written)| (Zxid(token.get()), written));
            if self.told != Some(seen) {
                self.told = Some(seen);
                return Ok(leader.map(|(leader, _)| leader));
            }
        }
    }

    /// Who leads now, with the transaction that wrote its data; and what will tell of the next change.
    async fn look(&self) -> Result<(Option<(Leader, Zxid)>, Watch), ReadError> {
        let Line { client, path, .. } = &*self.line;
        loop {
            let names = match client.children(path).await {
                Err(ReadError::Rejected(Rejection::NoNode)) => Vec::new(),
                children => children?.0,
            };
            let Some(first) = self.first(names) else {
                match self.nobody().await? {
                    Some(watch) => return Ok((None, watch)),
                    None => continue,
                }
            };
            match client.get(&join(path, &first.name)).watch().await {
                Ok(((data, stat), watch)) => {
                    let token = FencingToken::new(stat.czxid);
                    let session = stat.ephemeral_owner;
                    let leader = Leader { name: first.name, data, token, session };
                    return Ok((Some((leader, stat.mzxid)), watch));
                }
                Err(ReadError::Rejected(Rejection::NoNode)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn first(&self, names: Vec<String>) -> Option<Entry> {
        let filter = &self.line.settings.filter;
        names.into_iter().filter_map(|name| filter.read(name).ok()).min_by(Entry::order)
    }

    /// A watch for the first candidate; `None` if there is one by now.
    async fn nobody(&self) -> Result<Option<Watch>, ReadError> {
        let Line { client, path, .. } = &*self.line;
        match client.children(path).watch().await {
            Ok(((names, _), watch)) => Ok(self.first(names).is_none().then_some(watch)),
            Err(ReadError::Rejected(Rejection::NoNode)) => {
                let (path, watch) = client.exists(path).watch().await?;
                Ok(path.is_none().then_some(watch))
            }
            Err(error) => Err(error),
        }
    }
}
