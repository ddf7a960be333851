//! Reads whose answers stay.

use std::{
    future::Future as _,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use tokio::{task::unconstrained, time::Instant};
use zk_client::{Pending, ReadError};

/// A wait longer than this is worth a watch on our own node, and what was read before it another look.
pub(super) const LONG_WAIT: Duration = Duration::from_secs(1);

/// Whether a read was sent some time ago and has been answered, at an unknown time: the wait that asked was dropped. One
/// that is still under way is kept: waits that are dropped early, again and again, are to get an answer in the end.
pub(super) fn is_old<T>(since: Instant, read: &mut Pending<T, ReadError>) -> bool {
    since.elapsed() >= LONG_WAIT && is_answered(read)
}

/// The answer, if there is one, is lost with this.
fn is_answered<T>(read: &mut Pending<T, ReadError>) -> bool {
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
    /// Whether there is no answer so far. Otherwise it is lost with this.
    pub(super) fn is_under_way(&mut self) -> bool {
        match self {
            Self::UnderWay(read) => !is_answered(read),
            Self::Answered(_) => false,
        }
    }

    pub(super) async fn answer(&mut self) -> Result<T, ReadError> {
        let answer = match self {
            Self::UnderWay(read) => read.await,
            Self::Answered(answer) => return answer.clone(),
        };
        *self = Self::Answered(answer.clone());
        answer
    }
}
