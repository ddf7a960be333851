//! Following the leader.

use zk_client::{ReadError, SessionId, bytes::Bytes};

use crate::{holders::Front, line::Line, token::FencingToken};

/// The leader, as an [observer](crate::Election::observe) sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The name of its node.
    pub name: String,
    /// The data that it publishes.
    pub data: Bytes,
    /// Its fencing token: larger than those of all leaders before.
    pub token: FencingToken,
    /// The session that owns it.
    pub session: SessionId,
}

/// Follows the leader of an election. Costs nothing while nothing changes.
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

    /// Waits for news: another leader, other data of the same one, or `None` if there is no leader. The first call
    /// returns the present state at once.
    ///
    /// Returns the newest state; changes between two looks are skipped. An observer may learn of a leader before that
    /// leader does: act on its [token](Leader::token), not on its name.
    ///
    /// Two reads for each change, one after the other, and one notification. The future can be dropped and recreated at
    /// will.
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
