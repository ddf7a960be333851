//! Reads in flight whose answers outlive the waits that asked.

use std::{
    future::Future as _,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use tokio::{task::unconstrained, time::Instant};
use zk_client::{Client, Pending, ReadError};

use super::WaitQueue;
use crate::quorum;

/// A wait longer than this is worth a watch on our own node, and what was read before it another look.
pub(super) const LONG_WAIT: Duration = Duration::from_secs(1);

/// A listing in flight.
#[derive(Debug)]
pub(super) struct Looking<T> {
    /// The epoch of the connection when it was sent.
    pub(super) epoch: u64,
    since: Instant,
    pub(super) names: Pending<T, ReadError>,
}

impl<T> Looking<T> {
    /// Submits a listing. The epoch is taken first: one repeated over a new connection must not pass for one of that
    /// connection.
    pub(super) fn begin(
        client: &Client,
        submit: impl FnOnce(&Client) -> Pending<T, ReadError>,
    ) -> Self {
        let (epoch, since) = (client.session().epoch(), Instant::now());
        Self { epoch, since, names: submit(client) }
    }

    /// Whether it was sent some time ago and has been answered, at an unknown time: the wait that asked was dropped. One
    /// that is still under way is kept: waits that are dropped early, again and again, are to get an answer in the end.
    pub(super) fn is_old(&mut self) -> bool {
        self.since.elapsed() >= LONG_WAIT && is_answered(&mut self.names)
    }
}

impl<T> AsMut<Self> for Looking<T> {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl WaitQueue {
    /// What a read shows that outlives waits which are dropped, and the epoch of the connection when it was sent. It is asked
    /// again as long as a member without a quorum may have answered.
    pub(super) async fn asked<T, L>(
        &self,
        looking: &mut Option<L>,
        submit: impl Fn(&Client) -> Pending<T, ReadError>,
    ) -> (u64, Result<T, ReadError>)
    where
        L: From<Looking<T>> + AsMut<Looking<T>>,
    {
        loop {
            let begin = || Looking::begin(&self.client, &submit).into();
            let Looking { epoch, names, .. } = looking.get_or_insert_with(begin).as_mut();
            let (epoch, answer) = (*epoch, names.await);
            *looking = None;
            match answer {
                Ok(_) | Err(ReadError::Rejected(_))
                    if quorum::may_be_missing(&self.client, epoch) =>
                {
                    quorum::regained(&self.client).await;
                }
                answer => return (epoch, answer),
            }
        }
    }
}

/// Whether there is an answer. It is lost with this.
pub(super) fn is_answered<T>(read: &mut Pending<T, ReadError>) -> bool {
    // Whatever this task has done before: what is there is seen.
    let read = pin!(unconstrained(read));
    let mut cx = Context::from_waker(Waker::noop());
    read.poll(&mut cx).is_ready()
}

/// A read in flight, or its answer: waits that are dropped early, again and again, get it in the end.
#[derive(Debug)]
pub(super) enum Asked<T> {
    UnderWay(Pending<T, ReadError>),
    Answered(Result<T, ReadError>),
}

impl<T: Clone> Asked<T> {
    pub(super) async fn answer(&mut self) -> Result<T, ReadError> {
        let answer = match self {
            Self::UnderWay(read) => read.await,
            Self::Answered(answer) => return answer.clone(),
        };
        *self = Self::Answered(answer.clone());
        answer
    }
}
