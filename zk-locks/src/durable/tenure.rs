//! A held grant: whether it still is held, and its renewal.

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::{
    sync::{oneshot, watch},
    time::sleep,
};
use zk_client::{
    Cause, Client, ReadError, Rejection, SessionEnd,
    path::{name, parent},
};

use super::doubt::until_answered;
use crate::{error::Lost, token::FencingToken};

/// How often a grant is renewed in each lease.
const RENEWALS: u32 = 3;

/// How often waiters and holders look at a lock without a lease, besides the watch: defence in depth.
pub(super) const RECHECK: Duration = Duration::from_secs(45);

/// The longest sleep of a timer; longer waits are repeated.
const LONG: Duration = Duration::from_secs(3600);

/// How often the clock is looked at: a machine that has slept comes back with timers that are late by that.
const LOOK: Duration = Duration::from_secs(1);

/// How long before the end of a lease a renewal is given up: while it can still be withdrawn.
const MOMENT: Duration = Duration::from_millis(10);

/// The end of a grant without a lease.
const NEVER: u64 = u64::MAX;

/// The terms that a grant was made with.
#[derive(Debug)]
pub(super) struct Terms {
    /// The path of its node.
    pub(super) path: String,
    pub(super) data: Vec<u8>,
    pub(super) lease: Option<Duration>,
    /// The earliest time at which the transaction that made it was sent.
    pub(super) sent: Duration,
}

impl Terms {
    /// How long the holder relies on a lease.
    ///
    /// A tenth covers clocks that do not run equally fast, and the time the holder needs to stop.
    fn relied_on(&self) -> Duration {
        self.lease.map_or(Duration::MAX, |lease| lease - lease / 10)
    }

    /// When a lease is over that was confirmed by a request sent at this time.
    fn until(&self, sent: Duration) -> u64 {
        u64::try_from(sent.saturating_add(self.relied_on()).as_nanos()).unwrap_or(NEVER)
    }
}

/// When a task begins to renew a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// With the grant.
    Early,
    /// Behind another client's, at some time of the lease.
    Late,
}

/// The state of a grant, shared by its guard and the task that renews it.
pub(super) struct Tenure {
    pub(super) terms: Terms,
    pub(super) token: FencingToken,
    clock: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// When it counts as lost unless it is renewed: nanoseconds on the clock.
    until: AtomicU64,
    /// Written once.
    lost: watch::Sender<Option<Lost>>,
}

impl Tenure {
    pub(super) fn new(client: &Client, token: FencingToken, terms: Terms) -> Self {
        Self {
            token,
            clock: client.clock(),
            until: AtomicU64::new(terms.until(terms.sent)),
            lost: watch::Sender::new(None),
            terms,
        }
    }

    /// Extends the lease: the grant was there when a request sent at this time arrived.
    fn renewed(&self, sent: Duration) {
        // A late confirmation must not bring back a grant that counted as lost meanwhile.
        if self.loss().is_none() {
            // The task of a client that was left may hear of its last renewal behind the next one's first.
            self.until.fetch_max(self.terms.until(sent), Ordering::AcqRel);
        }
    }

    /// How long it is sure to be held.
    pub(super) fn left(&self) -> Duration {
        match self.until.load(Ordering::Acquire) {
            NEVER => Duration::MAX,
            until => Duration::from_nanos(until).saturating_sub((self.clock)()),
        }
    }

    /// Why it is lost, if it is.
    pub(super) fn loss(&self) -> Option<Lost> {
        let known = *self.lost.borrow();
        match known {
            None if self.left().is_zero() => Some(self.lose(Lost::LeaseRanOut)),
            known => known,
        }
    }

    /// Records a loss; the first one stays.
    pub(super) fn lose(&self, lost: Lost) -> Lost {
        self.lost.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                tracing::warn!(path = self.terms.path, token = self.token.get(), %lost);
                *known = Some(lost);
            }
            is_first
        });
        (*self.lost.borrow()).unwrap_or(lost)
    }

    pub(super) async fn lost(&self) -> Lost {
        let mut told = self.lost.subscribe();
        loop {
            let mut looks = pin!(async {
                let left = self.left();
                tokio::select! {
                    biased;
                    _ = told.changed() => {}
                    () = sleep(left.min(LOOK)), if left < Duration::MAX => {}
                }
            });
            let lost = poll_fn(|cx| match self.loss() {
                // When a stopped process resumes, its timers may fire after everything else that is ready has been polled,
                // and work must not continue meanwhile.
                Some(lost) => Poll::Ready(Some(lost)),
                None => looks.as_mut().poll(cx).map(|()| None),
            });
            if let Some(lost) = lost.await {
                return lost;
            }
        }
    }

    /// How long until the next renewal, so that there are several in the time of a lease. That begins when the last
    /// confirmed renewal was sent: one that is answered late leaves less time for the next.
    fn due(&self, pause: Duration) -> Duration {
        let rest = self.terms.relied_on().saturating_sub(pause);
        self.left().saturating_sub(rest).min(pause)
    }

    /// Renews the grant with this client, and watches for its end, until it is lost or `stopped`.
    pub(super) async fn keep(
        self: Arc<Self>,
        client: Client,
        begins: Begins,
        stopped: oneshot::Receiver<()>,
    ) {
        tokio::select! {
            biased;
            _ = stopped => {}
            _ = self.lost() => {}
            () = self.keep_on(client, begins) => {}
        }
    }

    /// Keeps the grant as long as the session lasts. Behind that only another client can, with a task of its own.
    async fn keep_on(&self, client: Client, begins: Begins) {
        let end = self.keep_with(&client, begins).await;
        drop(client);
        tracing::info!(path = self.terms.path, ?end, "a durable lock without a session");
        std::future::pending().await
    }

    /// Keeps the grant until the client's session has ended; once the grant is known to be gone, never returns.
    async fn keep_with(&self, client: &Client, begins: Begins) -> SessionEnd {
        let pause = self.terms.lease.map_or(RECHECK, |lease| (lease / RENEWALS).min(LONG));
        let kept = async {
            if begins == Begins::Late {
                // Its server may not know of the grant yet, and the lease has been running down.
                until_answered(|| client.resolve_in_doubt()).await?;
                self.renew(client, pause).await?;
            }
            loop {
                let mut gone = pin!(self.gone(client));
                loop {
                    tokio::select! {
                        biased;
                        heard = &mut gone => break heard?,
                        () = sleep(self.due(pause)) => {}
                    }
                    self.renew(client, pause).await?;
                    if self.terms.lease.is_none() {
                        break;
                    }
                }
            }
        };
        let Err(error): Result<std::convert::Infallible, zk_client::Error> = kept.await;
        match error.session_end() {
            Some(end) => end,
            None => std::future::pending().await,
        }
    }

    /// Writes the same data again, until that is answered.
    ///
    /// # Errors
    /// If the session has ended, or the grant is gone.
    async fn renew(&self, client: &Client, pause: Duration) -> Result<(), zk_client::Error> {
        let Terms { path, data, lease, .. } = &self.terms;
        while lease.is_some() {
            let sent = (self.clock)();
            // One that is still to be sent when the lease ends would only keep others waiting.
            let left = self.left();
            let left = left - MOMENT.min(left / 16);
            match client.set(path, data).timeout(left).await {
                Ok(_) => {
                    self.renewed(sent);
                    return Ok(());
                }
                Err(error) if error.rejection() == Some(Rejection::NoNode) => {
                    self.lose(Lost::NodeDeleted);
                    return Err(error.into());
                }
                Err(error) if error.session_end().is_some() => return Err(error.into()),
                // A write in doubt is repeated, which changes nothing.
                Err(error) => {
                    tracing::warn!(path, %error, "durable lock not renewed");
                    sleep((pause / 4).min(Duration::from_secs(1))).await;
                }
            }
        }
        Ok(())
    }

    /// Waits for a change among the grants. If they cannot be watched, or servers keep the event to themselves for want of a
    /// permission, renewals find out, or another look where there is no lease.
    ///
    /// # Errors
    /// If the session has ended, or the grant is gone.
    async fn gone(&self, client: &Client) -> Result<(), zk_client::Error> {
        let path = &*self.terms.path;
        match client.children(parent(path).unwrap_or("/")).watch().await {
            Ok(((names, _), watch)) if names.iter().any(|it| it == name(path)) => {
                let over = |end| ReadError::Unavailable(Cause::SessionEnded(end));
                watch.await.map(drop).map_err(|end| over(end).into())
            }
            Ok(_) | Err(ReadError::Rejected(Rejection::NoNode)) => {
                self.lose(Lost::NodeDeleted);
                Err(ReadError::Rejected(Rejection::NoNode).into())
            }
            Err(error) if error.session_end().is_some() => Err(error.into()),
            Err(_) => std::future::pending().await,
        }
    }
}
