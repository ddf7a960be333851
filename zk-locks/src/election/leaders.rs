//! Following who leads.

use zk_client::{ReadError, SessionId, bytes::Bytes};

use crate::{holders::Front, line::Line, token::FencingToken};

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
    front: Front,
}

impl Leaders {
    pub(super) fn new(line: &Line) -> Self {
        Self { front: Front::new(&line.client, &line.path, line.settings.filter.clone()) }
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
        let there = self.front.next().await?;
        Ok(there.into_iter().next().map(|(entry, data, stat)| Leader {
            name: entry.name,
            data,
            token: FencingToken::new(stat.czxid),
            session: stat.ephemeral_owner,
        }))
    }
}
