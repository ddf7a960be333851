//! Asking for something: waiting, with and without patience, and giving up.

use std::time::Duration;

use zk_locks::{
    AcquireError, CohortGuard, CohortLock, Guard, Guards, Lock, MultiLock, Semaphore, SimpleGuard,
    SimpleLock,
};

use super::{ClientContext, Worker};
use crate::sim::{patience::Patience, recipe::Site};

/// A contender in a queue, until dropped.
pub(super) struct Waiting<'a> {
    ctx: &'a ClientContext,
    number: u64,
    pub(super) granted: bool,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(ctx: &'a ClientContext, site: Site) -> Self {
        let number = ctx.check().begins_waiting(site, ctx.number);
        Self { ctx, number, granted: false }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.ctx.check().ends_waiting(self.number, self.granted);
    }
}

/// What can be asked for, as locks can.
pub(super) trait Takes: Sync {
    type Taken: Send;
    fn take(&self) -> impl Future<Output = Result<Self::Taken, AcquireError>> + Send;
    fn take_within(
        &self,
        time: Duration,
    ) -> impl Future<Output = Result<Self::Taken, AcquireError>> + Send;
    fn take_now(&self) -> impl Future<Output = Result<Option<Self::Taken>, AcquireError>> + Send;
}

/// Types and methods that do it.
macro_rules! takes {
    ($($lock:ty, $taken:ty: $take:ident $within:ident $now:ident;)*) => {
        $(
            impl $crate::sim::workload::take::Takes for $lock {
                type Taken = $taken;

                fn take(
                    &self,
                ) -> impl Future<Output = Result<$taken, zk_locks::AcquireError>> + Send {
                    self.$take()
                }

                fn take_within(
                    &self,
                    time: std::time::Duration,
                ) -> impl Future<Output = Result<$taken, zk_locks::AcquireError>> + Send {
                    self.$within(time)
                }

                fn take_now(
                    &self,
                ) -> impl Future<Output = Result<Option<$taken>, zk_locks::AcquireError>> + Send
                {
                    self.$now()
                }
            }
        )*
    };
}
pub(super) use takes;

takes! {
    Lock, Guard: acquire acquire_timeout try_acquire;
    SimpleLock, SimpleGuard: acquire acquire_timeout try_acquire;
    Semaphore, Guard: acquire acquire_timeout try_acquire;
    CohortLock, CohortGuard: acquire acquire_timeout try_acquire;
    MultiLock, Guards: acquire acquire_timeout try_acquire;
}

/// Asks in one of the ways there are. `None` if it was not to be had, or not waited for long enough.
pub(super) async fn attempt<T: Takes>(
    worker: &mut Worker,
    site: Site,
    lock: &T,
) -> Result<Option<T::Taken>, AcquireError> {
    let Worker { ctx, client, rng, drawn, taken, .. } = worker;
    ctx.count("attempts");
    let mut asker = ctx.check().wants(ctx.number, client.session(), site, *drawn);
    let mut waiting = Waiting::new(ctx, site);
    let (began, stalled) = (ctx.now(), ctx.stalled());
    let outcome = match rng.below(10) {
        0 | 1 => {
            let allowed = rng.scaled(5, 20_000);
            asker.within = Some(allowed);
            let outcome = lock.take_within(Duration::from_millis(allowed)).await;
            let (took, stalled) = (ctx.now() - began, ctx.stalled() - stalled);
            ctx.check().took("acquiring", ctx.number, took, stalled, allowed);
            outcome.map(Some)
        }
        2 => {
            asker.within = Some(0);
            let outcome = lock.take_now().await;
            if let Ok(None) = &outcome {
                ctx.check().not_free(&asker);
            }
            outcome
        }
        3 => {
            let patience = Patience::drawn(rng, 5_000);
            let outcome = patience.wait(lock.take()).await;
            if outcome.is_none() {
                ctx.count("acquires dropped");
            }
            outcome.transpose()
        }
        _ => lock.take().await.map(Some),
    };
    waiting.granted = matches!(outcome, Ok(Some(_)));
    *taken = (ctx.stalled() == stalled).then(|| ctx.now());
    if let Err(error) = &outcome {
        ctx.count(name(error));
        ctx.check().refused(&asker, error);
    }
    outcome
}

/// Under what an error is counted.
pub(super) fn name(error: &AcquireError) -> &'static str {
    match error {
        AcquireError::TimedOut => "acquires timed out",
        AcquireError::SessionEnded(_) => "acquires ended with their session",
        AcquireError::LeaseRanOut => "acquires whose lease ran out",
        AcquireError::NodeDeleted => "acquires whose node was deleted",
        AcquireError::HeldTooLong => "acquires of a lock held for too long",
        AcquireError::Rejected(_) => "acquires rejected",
        _ => "acquires failed otherwise",
    }
}
