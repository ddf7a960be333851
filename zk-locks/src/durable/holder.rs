//! Who has a durable lock, seen from outside; taking it away by hand.

use std::time::Duration;

use zk_client::{ReadError, Rejection, join};

use super::{DurableLock, record::Record};
use crate::token::FencingToken;

/// Who has a [`DurableLock`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurableHolder {
    /// In whose name; empty if that is not known.
    pub owner: String,
    /// How long it may be silent; `None` for ever.
    pub lease: Option<Duration>,
    /// Its fencing token.
    pub token: FencingToken,
    /// When it got the lock: milliseconds since 1970 on the clock of the leader.
    pub since: i64,
    /// When it was last heard of, on the same clock.
    pub renewed: i64,
    /// What it says about itself.
    pub description: String,
    path: String,
}

impl DurableLock {
    /// Who has the lock, as far as the server knows that is asked: two reads.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn holder(&self) -> Result<Option<DurableHolder>, ReadError> {
        let client = self.client();
        let names = match client.children(&self.grants).await {
            Ok((names, _)) => names,
            Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(None),
            Err(error) => return Err(error),
        };
        for name in names {
            let path = join(&self.grants, &name);
            let (data, stat) = match client.get(&path).await {
                Ok(read) => read,
                Err(ReadError::Rejected(Rejection::NoNode)) => continue,
                Err(error) => return Err(error),
            };
            let unknown = || Record {
                owner: String::new(),
                lease: None,
                description: String::from_utf8_lossy(&data).into_owned(),
            };
            let Record { owner, lease, description } =
                Record::decode(&data).unwrap_or_else(unknown);
            let token = FencingToken::new(stat.czxid);
            let (since, renewed) = (stat.ctime, stat.mtime);
            return Ok(Some(DurableHolder {
                owner,
                lease,
                token,
                since,
                renewed,
                description,
                path,
            }));
        }
        Ok(None)
    }

    /// Takes the lock away from a holder, whatever its lease: for people who know that it does not work any more. It
    /// hears of it if it can, and is refused by its [token](crate::DurableGuard::token) otherwise. `false` if it had
    /// given it back, or lost it. One write, repeated until it is answered.
    ///
    /// # Errors
    /// [`zk_client::WriteError`].
    pub async fn break_hold(&self, holder: &DurableHolder) -> Result<bool, zk_client::WriteError> {
        let was_there = self.client().delete(&holder.path).if_exists().await?;
        if was_there {
            tracing::warn!(path = holder.path, owner = holder.owner, "durable lock broken by hand");
        }
        Ok(was_there)
    }
}
