//! The blocking methods of each recipe, and of the values it returns.

use std::{future::Future, time::Duration};

use tokio::time::timeout;
use zk_client::{ReadError, Stat, WriteError};

use super::Blocking;
use crate::{
    contender::Contender,
    error::{AcquireError, CheckError, Lost, ReleaseError},
    follow::Follow,
    guard::Status,
};

/// A recipe with `acquire` and `try_acquire`.
#[expect(unnameable_types, reason = "only for what this crate has")]
pub trait Acquire {
    type Guard;
    fn wait(&self) -> impl Future<Output = Result<Self::Guard, AcquireError>>;
    fn attempt(&self) -> impl Future<Output = Result<Option<Self::Guard>, AcquireError>>;
}

/// A guard that can be checked and lost.
#[expect(unnameable_types, reason = "only for what this crate has")]
pub trait Hold {
    fn until_lost(&self) -> impl Future<Output = Lost>;
    fn confirm(&self) -> impl Future<Output = Result<(), CheckError>>;
    fn known(&self) -> Status;
}

/// A guard that can be released.
#[expect(unnameable_types, reason = "only for what this crate has")]
pub trait GiveBack {
    fn give_back(self) -> impl Future<Output = Result<(), ReleaseError>>;
}

macro_rules! acquired {
    ($($recipe:ident => $guard:ident),* $(,)?) => {$(
        impl Acquire for crate::$recipe {
            type Guard = crate::$guard;
            async fn wait(&self) -> Result<Self::Guard, AcquireError> {
                self.acquire().await
            }
            async fn attempt(&self) -> Result<Option<Self::Guard>, AcquireError> {
                self.try_acquire().await
            }
        }
    )*};
}

acquired! {
    Lock => Guard,
    Semaphore => Guard,
    SimpleLock => SimpleGuard,
    CohortLock => CohortGuard,
    MultiLock => Guards,
    DurableLock => DurableGuard,
}

/// Implements [`Hold`] by the methods of the type behind the arrow: the guard itself, or what it dereferences to.
macro_rules! held {
    ($($guard:ident => $as:ident),* $(,)?) => {$(
        impl Hold for crate::$guard {
            fn until_lost(&self) -> impl Future<Output = Lost> {
                crate::$as::lost(self)
            }
            fn confirm(&self) -> impl Future<Output = Result<(), CheckError>> {
                crate::$as::check(self)
            }
            fn known(&self) -> Status {
                crate::$as::status(self)
            }
        }
    )*};
}

held! {
    Guard => Guard,
    ReadGuard => Guard,
    WriteGuard => Guard,
    Leadership => Guard,
    Participation => Guard,
    SharedGuard => Guard,
    CohortGuard => Guard,
    Guards => Guards,
    SimpleGuard => SimpleGuard,
    DurableGuard => DurableGuard,
}

macro_rules! given_back {
    ($($guard:ident by $release:ident),* $(,)?) => {$(
        impl GiveBack for crate::$guard {
            fn give_back(self) -> impl Future<Output = Result<(), ReleaseError>> {
                self.$release()
            }
        }
    )*};
}

given_back! {
    Guard by release,
    ReadGuard by release,
    WriteGuard by release,
    SharedGuard by release,
    CohortGuard by release,
    Guards by release,
    SimpleGuard by release,
    DurableGuard by release,
    Leadership by resign,
}

impl<R: Acquire> Blocking<R> {
    /// Acquires, in the recipe's order.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn acquire(&self) -> Result<Blocking<R::Guard>, AcquireError> {
        self.adopted(self.inner.wait())
    }

    /// As [`acquire`](Blocking::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn acquire_timeout(&self, time: Duration) -> Result<Blocking<R::Guard>, AcquireError> {
        self.adopted(in_time(time, self.inner.wait()))
    }

    /// Acquires if the lock is free and has no waiters.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn try_acquire(&self) -> Result<Option<Blocking<R::Guard>>, AcquireError> {
        let taken = self.session.run(self.inner.attempt())?;
        Ok(taken.map(|guard| self.session.adopt(guard)))
    }
}

impl<G: Hold> Blocking<G> {
    /// Asks the servers whether the lock is held: see [`Guard::check`](crate::Guard::check).
    ///
    /// # Errors
    /// [`CheckError`].
    pub fn check(&self) -> Result<(), CheckError> {
        self.session.run(self.inner.confirm())
    }

    /// Waits at most this long for a loss; `None` if the lock is still held then.
    #[must_use]
    pub fn lost_within(&self, time: Duration) -> Option<Lost> {
        let lost = self.session.run(async { timeout(time, self.inner.until_lost()).await.ok() });
        // That it is lost may be known before the reason is, which servers are asked for.
        lost.or_else(|| match self.inner.known() {
            Status::Lost(lost) => Some(lost),
            Status::Held | Status::Suspect { .. } => None,
        })
    }
}

impl<G: GiveBack> Blocking<G> {
    /// Releases it, and waits until the next contender can have it.
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(self) -> Result<(), ReleaseError> {
        let Self { inner, session } = self;
        session.run(inner.give_back())
    }
}

async fn in_time<T>(
    time: Duration,
    work: impl Future<Output = Result<T, AcquireError>>,
) -> Result<T, AcquireError> {
    timeout(time, work).await.unwrap_or(Err(AcquireError::TimedOut))
}

/// Blocking methods: those above the dashes return adopted values, those below return plain ones.
macro_rules! waited_for {
    ($of:ident {
        $($adopted:ident($($arg:ident: $ty:ty),*) -> $guard:ident;)*
        ---
        $($plain:ident($($plain_arg:ident: $plain_ty:ty),*) -> $output:ty;)*
    }) => {
        impl Blocking<crate::$of> {
            $(
                #[doc = concat!("As [the method of the same name](crate::", stringify!($of), "::", stringify!($adopted), ").")]
                ///
                /// # Errors
                /// [`AcquireError`].
                pub fn $adopted(
                    &self,
                    $($arg: $ty),*
                ) -> Result<Blocking<crate::$guard>, AcquireError> {
                    self.adopted(self.inner.$adopted($($arg),*))
                }
            )*
            $(
                #[doc = concat!("As [the method of the same name](crate::", stringify!($of), "::", stringify!($plain), ").")]
                ///
                /// # Errors
                /// Those of that method.
                pub fn $plain(&self, $($plain_arg: $plain_ty),*) -> $output {
                    self.session.run(self.inner.$plain($($plain_arg),*))
                }
            )*
        }
    };
}

waited_for!(RwLock {
    read() -> ReadGuard;
    write() -> WriteGuard;
    read_timeout(time: Duration) -> ReadGuard;
    write_timeout(time: Duration) -> WriteGuard;
    ---
});

waited_for!(Semaphore {
    acquire_many(permits: usize) -> Guards;
    acquire_many_timeout(permits: usize, time: Duration) -> Guards;
    ---
    holders() -> Result<Vec<Contender>, ReadError>;
    waiters() -> Result<Vec<Contender>, ReadError>;
});

waited_for!(Barrier {
    ---
    set() -> Result<bool, AcquireError>;
    remove() -> Result<(), AcquireError>;
    is_set() -> Result<bool, ReadError>;
    wait() -> Result<(), AcquireError>;
    wait_timeout(time: Duration) -> Result<(), AcquireError>;
});

waited_for!(DoubleBarrier {
    enter() -> Participation;
    enter_timeout(time: Duration) -> Participation;
    ---
});

waited_for!(Election {
    campaign(data: &[u8]) -> Leadership;
    campaign_timeout(data: &[u8], time: Duration) -> Leadership;
    ---
});

waited_for!(Leadership {
    ---
    proclaim(data: &[u8]) -> Result<Stat, CheckError>;
});

waited_for!(Group {
    join(data: &[u8]) -> Guard;
    ---
    members() -> Result<Vec<crate::GroupMember>, ReadError>;
});

waited_for!(Queue {
    ---
    contenders() -> Result<Vec<Contender>, ReadError>;
    revoke(contender: &Contender) -> Result<bool, WriteError>;
    evict(contender: &Contender) -> Result<bool, WriteError>;
});

waited_for!(SimpleLock {
    ---
    holder() -> Result<Option<Contender>, ReadError>;
});

waited_for!(DurableLock {
    ---
    holder() -> Result<Option<crate::DurableHolder>, ReadError>;
    evict(holder: &crate::DurableHolder) -> Result<bool, WriteError>;
});

impl Blocking<crate::RwLock> {
    /// As [the method of the same name](crate::RwLock::try_read).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn try_read(&self) -> Result<Option<Blocking<crate::ReadGuard>>, AcquireError> {
        let taken = self.session.run(self.inner.try_read())?;
        Ok(taken.map(|guard| self.session.adopt(guard)))
    }

    /// As [the method of the same name](crate::RwLock::try_write).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn try_write(&self) -> Result<Option<Blocking<crate::WriteGuard>>, AcquireError> {
        let taken = self.session.run(self.inner.try_write())?;
        Ok(taken.map(|guard| self.session.adopt(guard)))
    }
}

impl Blocking<crate::WriteGuard> {
    /// As [the method of the same name](crate::WriteGuard::downgrade). The guard in the error can be
    /// [adopted](super::BlockingSession::adopt) again.
    ///
    /// # Errors
    /// [`ConvertError`](crate::ConvertError), with the write lock.
    #[expect(clippy::result_large_err, reason = "it is the lock, which is not lost")]
    pub fn downgrade(
        self,
    ) -> Result<Blocking<crate::ReadGuard>, crate::ConvertError<crate::WriteGuard>> {
        let Self { inner, session } = self;
        session.run(inner.downgrade()).map(|guard| session.adopt(guard))
    }
}

impl Blocking<crate::ReadGuard> {
    /// As [the method of the same name](crate::ReadGuard::try_upgrade). The guard in the error can be
    /// [adopted](super::BlockingSession::adopt) again.
    ///
    /// # Errors
    /// [`ConvertError`](crate::ConvertError), with the read lock.
    #[expect(clippy::result_large_err, reason = "it is the lock, which is not lost")]
    pub fn try_upgrade(
        self,
    ) -> Result<Blocking<crate::WriteGuard>, crate::ConvertError<crate::ReadGuard>> {
        let Self { inner, session } = self;
        session.run(inner.try_upgrade()).map(|guard| session.adopt(guard))
    }
}

impl Blocking<crate::Semaphore> {
    /// As [the method of the same name](crate::Semaphore::try_acquire_many).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn try_acquire_many(
        &self,
        permits: usize,
    ) -> Result<Option<Blocking<crate::Guards>>, AcquireError> {
        let taken = self.session.run(self.inner.try_acquire_many(permits))?;
        Ok(taken.map(|guards| self.session.adopt(guards)))
    }
}

impl Blocking<crate::Participation> {
    /// As [the method of the same name](crate::Participation::leave).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn leave(self) -> Result<(), AcquireError> {
        let Self { inner, session } = self;
        session.run(inner.leave())
    }

    /// As [the method of the same name](crate::Participation::leave_timeout).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn leave_timeout(self, time: Duration) -> Result<(), AcquireError> {
        let Self { inner, session } = self;
        session.run(inner.leave_timeout(time))
    }
}

impl Blocking<crate::Election> {
    /// As [the method of the same name](crate::Election::latch).
    #[must_use = "dropping it is standing down"]
    pub fn latch(&self, data: &[u8]) -> Blocking<crate::LeaderLatch> {
        self.session.adopt(self.inner.latch(data))
    }
}

impl Blocking<crate::LeaderLatch> {
    /// Waits at most this long until the latch leads. Returns whether it does; `false` at once if it never will.
    #[must_use]
    pub fn leads_within(&self, time: Duration) -> bool {
        use crate::LatchState;
        let mut states = self.inner.subscribe();
        // A lead may be lost before the state says so: then another one is waited for.
        let is_decided = |state: &LatchState| match state {
            LatchState::Waiting => false,
            LatchState::Leading { .. } => self.inner.is_leader(),
            LatchState::Ended(_) => true,
        };
        let decided = async {
            let decided = timeout(time, states.wait_for(is_decided)).await;
            matches!(decided, Ok(Ok(state)) if matches!(*state, LatchState::Leading { .. }))
        };
        self.session.run(decided)
    }

    /// As [the method of the same name](crate::LeaderLatch::resign): whether servers refused shows a receiver of its
    /// [states](crate::LeaderLatch::subscribe).
    pub fn resign(self) {
        let Self { inner, session } = self;
        session.run(inner.resign());
    }
}

impl<T: Clone + PartialEq> Blocking<Follow<T>> {
    /// As [the method of the same name](Follow::next).
    ///
    /// # Errors
    /// [`ReadError`] if the state cannot be read, or the session has ended. Ask again unless it has.
    #[expect(clippy::should_implement_trait, reason = "it may be asked again after an error")]
    pub fn next(&mut self) -> Result<T, ReadError> {
        self.session.run(self.inner.next())
    }
}
