//! One lock held several times: re-entrancy by value.

use std::{future::Future, ops::Deref, sync::Arc};

use super::{Guard, Status};
use crate::error::{Lost, ReleaseError};

/// A guard that can be taken again with a reference to it: see [`Guard::share`].
///
/// The lock is released when the last one is dropped, in any order. It dereferences to [`Guard`].
#[derive(Debug)]
#[must_use = "dropping the last one releases the lock"]
pub struct SharedGuard {
    guard: Arc<Guard>,
}

impl Guard {
    /// Makes the lock re-entrant for functions that are given this guard: a function that needs the lock takes a
    /// `&SharedGuard` and [takes it again](SharedGuard::reenter).
    ///
    /// There is no re-entrancy by task or thread: tasks move and multiply, and a lock that goes by the running one is
    /// wrong for some of them.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_locks::Client::connect(&server.connect_string()).await?;
    /// # let lock = zk_locks::Lock::new(&zk, "/locks/report");
    /// use zk_locks::{Lost, SharedGuard};
    ///
    /// fn inner(outer: &SharedGuard) -> Result<(), Lost> {
    ///     let again = outer.reenter()?;
    ///     println!("working under {}", again.token());
    ///     Ok(())
    /// }
    ///
    /// let outer = lock.acquire().await?.share();
    /// inner(&outer)?;
    /// outer.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn share(self) -> SharedGuard {
        SharedGuard { guard: Arc::new(self) }
    }
}

impl SharedGuard {
    /// Takes the lock again. No request: the [local](Guard::status) state decides.
    ///
    /// # Errors
    /// [`Lost`] if the lock is lost.
    pub fn reenter(&self) -> Result<Self, Lost> {
        match self.guard.status() {
            Status::Lost(lost) => Err(lost),
            Status::Held | Status::Suspect { .. } => Ok(Self { guard: self.guard.clone() }),
        }
    }

    /// Returns the number of guards that share the lock.
    #[must_use]
    pub fn count(&self) -> usize {
        Arc::strong_count(&self.guard)
    }

    /// Releases this guard. The last one releases the lock, and waits until the next contender can have it; the others
    /// are done at once.
    ///
    /// As with [`Guard::release`], dropping the future does not stop it.
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        let release = Arc::into_inner(self.guard).map(Guard::release);
        async move {
            match release {
                Some(release) => release.await,
                None => Ok(()),
            }
        }
    }
}

impl Deref for SharedGuard {
    type Target = Guard;
    fn deref(&self) -> &Guard {
        &self.guard
    }
}
