//! The holder of a durable lock, seen from outside, and its eviction.

use std::time::Duration;

use zk_client::{ReadError, Rejection, path::join};

use super::{DurableLock, record::Record};
use crate::token::FencingToken;

/// The holder of a [`DurableLock`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurableHolder {
    /// The owner's name; empty if that is not known.
    pub owner: String,
    /// How long others wait for a renewal; `None` for ever.
    pub lease: Option<Duration>,
    /// Its fencing token.
    pub token: FencingToken,
    /// When it got the lock: milliseconds since 1970 on the clock of the leader.
    pub since: i64,
    /// When it last renewed the lock, on the same clock.
    pub renewed: i64,
    /// Its description of itself.
    pub description: String,
    path: String,
}

impl DurableLock {
    /// Returns the holder, as far as the server asked knows. Two reads.
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

    /// Takes the lock away from a holder, whatever its lease: for people who know that it does not work any more. The
    /// holder is informed if it is reachable; otherwise the resource refuses it by its
    /// [token](crate::DurableGuard::token). Returns `false` if the grant was gone: the holder had released or lost the lock, or
    /// this call has taken it and the reply was lost. One write, repeated until it is answered.
    ///
    /// # Errors
    /// [`zk_client::WriteError`].
    pub async fn evict(&self, holder: &DurableHolder) -> Result<bool, zk_client::WriteError> {
        let was_there = self.client().delete(&holder.path).if_exists().await?;
        if was_there {
            tracing::warn!(
                path = holder.path,
                owner = holder.owner,
                "holder of a durable lock evicted"
            );
        }
        Ok(was_there)
    }
}
