//! Retrying what is safe to retry.

use std::{future::IntoFuture, time::Duration};

use super::error::Error;
use crate::error::{Cause, ReadError, Rejection, WriteError};

/// A policy for retrying requests that were certainly not carried out.
///
/// The client itself repeats what is harmless as long as the session lives: reads over lost connections, and writes
/// that have not been sent. This is for the errors it reports: a throttling server, a full queue, a server that is cut
/// off from the quorum, a deadline, or a lost connection for a request that was not to wait. It never retries a write
/// in doubt, nor a request that a server has rejected for its content.
///
/// ```no_run
/// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::WriteError> {
/// use std::time::Duration;
/// use zk_client::Retry;
///
/// let retry = Retry::new().attempts(5).pause(Duration::from_millis(50));
/// retry.run(|| zk.set("/status", b"up")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "nothing is tried until it is run"]
pub struct Retry {
    attempts: u32,
    pause: Duration,
    pause_max: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self::new()
    }
}

impl Retry {
    /// Three attempts, 100 ms apart and then twice that.
    pub const fn new() -> Self {
        let (pause, pause_max) = (Duration::from_millis(100), Duration::from_secs(5));
        Self { attempts: 3, pause, pause_max }
    }

    /// Sets the maximum number of attempts; at least one is made.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the pause after the first attempt; it doubles after each further one, up to [`pause_max`](Self::pause_max).
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sets the longest pause between two attempts. Default 5 s.
    pub const fn pause_max(mut self, pause: Duration) -> Self {
        self.pause_max = pause;
        self
    }

    /// Runs the request until it succeeds, fails in a way that is not safe to retry, or the attempts are used up;
    /// returns the last result. Dropping the future stops it, between attempts or during one.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub async fn run<T, E: SafeToRetry, R: IntoFuture<Output = Result<T, E>>>(
        self,
        mut request: impl FnMut() -> R,
    ) -> Result<T, E> {
        let mut pause = self.pause.min(self.pause_max);
        for _ in 1..self.attempts {
            match request().await {
                Err(error) if error.is_safe_to_retry() => {}
                result => return result,
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(self.pause_max);
        }
        request().await
    }
}

/// Errors that know whether a retry may help and cannot hurt.
///
/// ```
/// use zk_client::{Cause, ReadError, Retry, SafeToRetry};
///
/// /// The error of our own operations.
/// enum AppError {
///     Zk(ReadError),
///     NotANumber,
/// }
///
/// impl SafeToRetry for AppError {
///     fn is_safe_to_retry(&self) -> bool {
///         matches!(self, Self::Zk(error) if error.is_safe_to_retry())
///     }
/// }
///
/// assert!(AppError::Zk(ReadError::Unavailable(Cause::Throttled)).is_safe_to_retry());
/// assert!(!AppError::NotANumber.is_safe_to_retry());
/// ```
pub trait SafeToRetry {
    /// Whether the request was not carried out, for a reason that may pass.
    fn is_safe_to_retry(&self) -> bool;
}

impl SafeToRetry for ReadError {
    fn is_safe_to_retry(&self) -> bool {
        match self {
            Self::Rejected(rejection) => may_pass(*rejection),
            Self::Unavailable(cause) => cause.may_pass(),
        }
    }
}

impl SafeToRetry for WriteError {
    fn is_safe_to_retry(&self) -> bool {
        match self {
            Self::Rejected(rejection) => may_pass(*rejection),
            Self::NotApplied(cause) => cause.may_pass(),
            Self::InDoubt { .. } => false,
        }
    }
}

impl SafeToRetry for Error {
    fn is_safe_to_retry(&self) -> bool {
        match self {
            Self::Read(error) => error.is_safe_to_retry(),
            Self::Write(error) => error.is_safe_to_retry(),
            Self::Multi(error) => may_pass(error.rejection),
            Self::DeleteRecursive { deleted, error, .. } => {
                *deleted == 0 && error.is_safe_to_retry()
            }
            Self::Cause(cause) => cause.may_pass(),
            Self::Connect(_) | Self::Session(_) | Self::Watch(_) | Self::Path(_) => false,
        }
    }
}

/// The server is cut off from the quorum at present.
fn may_pass(rejection: Rejection) -> bool {
    rejection == Rejection::ReadOnly
}

impl Cause {
    /// Whether the next attempt may succeed.
    const fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Disconnected(_)
                | Self::NotConnected
                | Self::DeadlineExceeded
                | Self::QueueFull
                | Self::Throttled
        )
    }
}
