//! A limit on the rate of calls that processes make together.

use std::{error::Error, time::Duration};

use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{error::Elapsed, sleep, timeout},
};
use zk_locks::{Client, Semaphore};

/// How long a call may take.
const CALL_MAX: Duration = Duration::from_secs(1);

/// Lets all processes that share a path make so many calls in any period of a given length.
///
/// A call takes a permit of a semaphore. The permit is returned a period after the call's answer has come, so that the
/// next call with it is at least a period behind. The permits of a process that dies go with its session; therefore a call
/// is made only while the session is certain to last for longer than that.
///
/// A process that is stopped just in front of its call, for longer than its session lasts, calls too late and in excess.
pub(crate) struct Limiter {
    zk: Client,
    semaphore: Semaphore,
    period: Duration,
    /// The permits of calls that were made.
    returning: JoinSet<()>,
}

impl Limiter {
    /// How long sessions have to be, for [`ConnectOptions`](zk_locks::ConnectOptions): a third of it may be no lease,
    /// another third may be over when there is a permit.
    pub(crate) fn session_timeout(period: Duration) -> Duration {
        3 * (period + CALL_MAX)
    }

    pub(crate) fn new(
        zk: &Client,
        path: &str,
        calls: u32,
        period: Duration,
    ) -> Result<Self, Box<dyn Error>> {
        let (wanted, given) = (Self::session_timeout(period), zk.session().timeout());
        if given < wanted {
            return Err(
                format!("sessions of {wanted:?} are needed; servers allow {given:?}").into()
            );
        }
        let semaphore = Semaphore::new(zk, path, calls);
        Ok(Self { zk: zk.clone(), semaphore, period, returning: JoinSet::new() })
    }

    /// Makes a call when the limit admits it. Dropping the future gives its place in the queue up, but not the permit of
    /// a call that has begun.
    pub(crate) async fn call<F: Future>(
        &mut self,
        call: F,
    ) -> Result<Result<F::Output, Elapsed>, Box<dyn Error>> {
        let permit = self.semaphore.acquire().await?;
        let needed = self.period + CALL_MAX;
        if self.zk.session().lease_left() < needed {
            self.zk.sync("/").await?;
        }
        if self.zk.session().lease_left() < needed {
            return Err("the session may end too early".into());
        }
        let (calling, called) = oneshot::channel::<()>();
        let period = self.period;
        self.returning.spawn(async move {
            _ = called.await;
            sleep(period).await;
            // Fails only if it went with the session.
            _ = permit.release().await;
        });
        while self.returning.try_join_next().is_some() {}
        let answer = timeout(CALL_MAX, call).await;
        drop(calling);
        Ok(answer)
    }

    /// Waits until all permits are returned. A session that is closed earlier takes them along too early.
    pub(crate) async fn finish(self) {
        self.returning.join_all().await;
    }
}
