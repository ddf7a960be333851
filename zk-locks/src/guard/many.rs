//! Several locks that are held together.

use std::{cmp::Reverse, future::Future, mem, pin::pin, slice, time::Duration};

use zk_client::{MultiError, OpResult, Request, WriteError};

use super::{Guard, Status};
use crate::{
    error::{CheckError, Lost, ReleaseError},
    together,
};

/// Locks or permits that were granted together, and are released together: see
/// [`MultiLock`](crate::MultiLock) and [`Semaphore::acquire_many`](crate::Semaphore::acquire_many).
///
/// They are lost as soon as one of them is. Dropping this releases them in the background, as with a [`Guard`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
/// use zk_locks::MultiLock;
///
/// let accounts = MultiLock::new(&zk, ["/accounts/7", "/accounts/9"]).acquire().await?;
/// // Each account is shown the token of its own lock.
/// let token = accounts.get("/accounts/7").ok_or("it is one of them")?.token();
/// println!("taking money from account 7 under {token}");
/// accounts.check().await?;
/// accounts.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it releases what is held"]
pub struct Guards {
    guards: Vec<Guard>,
}

impl Guards {
    pub(crate) const fn new(guards: Vec<Guard>) -> Self {
        Self { guards }
    }

    /// Iterates over the guards, in the order of asking.
    pub fn iter(&self) -> slice::Iter<'_, Guard> {
        self.guards.iter()
    }

    /// Returns the number of guards.
    #[must_use]
    pub fn len(&self) -> usize {
        self.guards.len()
    }

    /// Returns whether there are none, as when no permits were asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.guards.is_empty()
    }

    /// Returns the guard of the lock on this path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Guard> {
        self.iter().find(|guard| zk_client::path::parent(guard.path()) == Some(path))
    }

    /// Splits this into single guards, to be released one by one.
    #[must_use = "dropping them releases what is held"]
    pub fn into_guards(mut self) -> Vec<Guard> {
        mem::take(&mut self.guards)
    }

    /// The state as known locally, without a request: lost if any is, and with the shortest lease of those that are suspect.
    /// See [`Guard::status`].
    #[must_use]
    pub fn status(&self) -> Status {
        let rank = |status: &Status| match status {
            Status::Held => (0, Reverse(Duration::ZERO)),
            // They are lost with the first of them.
            Status::Suspect { lease_left } => (1, Reverse(*lease_left)),
            Status::Lost(_) => (2, Reverse(Duration::ZERO)),
        };
        self.iter().map(Guard::status).max_by_key(rank).unwrap_or(Status::Held)
    }

    /// Waits until any of them is lost: see [`Guard::lost`]. One request for each.
    pub async fn lost(&self) -> Lost {
        together::first(self.iter().map(Guard::lost)).await
    }

    /// Runs `work` until it is done or any of them is lost, whichever comes first.
    ///
    /// # Errors
    /// [`Lost`]; `work` has been dropped then, wherever it was.
    pub async fn scope<F: IntoFuture>(&self, work: F) -> Result<F::Output, Lost> {
        let working: Vec<_> = self.iter().map(|guard| guard.held().working()).collect();
        let gone = together::first(self.iter().map(|guard| guard.held().gone()));
        let done = together::unless_gone(gone, pin!(Some(work.into_future()))).await;
        drop(working);
        if let Some(output) = done {
            return Ok(output);
        }
        let lost = self.iter().find(|guard| matches!(guard.status(), Status::Lost(_)));
        match lost {
            Some(guard) => Err(guard.held().reason().await),
            None => Err(self.lost().await),
        }
    }

    /// Asks the servers whether all are held: see [`Guard::check`]. One request for each, in one round trip; one more
    /// each, and a second round trip, where names have no ids.
    ///
    /// # Errors
    /// [`CheckError`] of the first of which it is known that it is not.
    pub async fn check(&self) -> Result<(), CheckError> {
        together::all(self.iter().map(Guard::check)).await.map(drop)
    }

    /// A transaction that happens only if all are still held: see [`Guard::transaction`]. The index of added operations
    /// starts at the number of guards. `None` if there are none. As with a single guard it is refused, without being sent,
    /// if the name of any node has no id.
    #[must_use]
    pub fn transaction(
        &self,
    ) -> Option<Request<'_, Result<Vec<OpResult>, MultiError>, WriteError>> {
        let (first, others) = self.guards.split_first()?;
        Some(
            others
                .iter()
                .fold(first.transaction(), |multi, guard| multi.check(guard.checked_path())),
        )
    }

    /// Releases all, and waits until the next contenders can have them: see [`Guard::release`]. One request for each,
    /// all sent at once.
    ///
    /// # Errors
    /// [`ReleaseError`] of the first that was not confirmed.
    pub fn release(mut self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        self.put_down();
        // All are in flight before any is awaited.
        let releases: Vec<_> = self.into_guards().into_iter().map(Guard::release).collect();
        async move {
            let mut released = Ok(());
            for release in releases {
                released = released.and(release.await);
            }
            released
        }
    }
}

impl Guards {
    /// Stops the work under all of them, before any is given away.
    fn put_down(&mut self) {
        self.guards.iter_mut().for_each(Guard::put_down);
    }
}

impl Drop for Guards {
    fn drop(&mut self) {
        self.put_down();
    }
}

impl<'a> IntoIterator for &'a Guards {
    type Item = &'a Guard;
    type IntoIter = slice::Iter<'a, Guard>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
