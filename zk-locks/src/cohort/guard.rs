//! The lock held by one task, and passing it on.

use std::{fmt, ops::Deref};

use super::CohortGuard;
use crate::{error::ReleaseError, guard::Guard};

impl Deref for CohortGuard {
    type Target = Guard;
    fn deref(&self) -> &Guard {
        self.guard.as_ref().expect("it goes with this")
    }
}

impl CohortGuard {
    /// Passes the lock on to the next task of the cohort, or releases it and waits until other contenders can have it.
    /// A lock that [lingers](crate::Builder::linger) stays in the process: then this is done at once, and releases nothing.
    ///
    /// The release is under way when this returns the future; dropping the future does not stop it.
    ///
    /// # Errors
    /// [`ReleaseError`] as for [`Guard::release`]. Passing on does not fail.
    pub fn release(mut self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
        let released = self.guard.take().and_then(|guard| {
            let released = self.shared.hand_over(self.turn, guard).map(Guard::release);
            self.shared.changed();
            released
        });
        async move {
            match released {
                Some(released) => released.await,
                None => Ok(()),
            }
        }
    }
}

impl Drop for CohortGuard {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            drop(self.shared.hand_over(self.turn, guard));
            self.shared.changed();
        }
    }
}

impl fmt::Debug for CohortGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CohortGuard").field(&**self).finish()
    }
}
