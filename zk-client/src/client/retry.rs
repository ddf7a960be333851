//! Trying again what is safe to be tried again.

use std::{future::IntoFuture, time::Duration};

use super::error::Error;
use crate::error::{Cause, ReadError, Rejection, WriteError};

/// How often, and how long, to try again what has certainly not been done.
///
/// The client itself repeats what is harmless as long as the session lives: reads over lost connections, and writes
/// that have not been sent. This is for what it reports instead: a server that throttles, a full queue, a server
/// that is cut off from the quorum, a deadline or a lost connection of a request that was not to wait. A write in
/// doubt is never tried again, nor is what a server has rejected for what it is.
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

    /// How often to try in all, at least once.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// How long to wait behind the first attempt; twice as long behind each further one, up to
    /// [`pause_max`](Self::pause_max).
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The longest wait between two attempts. Default 5 s.
    pub const fn pause_max(mut self, pause: Duration) -> Self {
        self.pause_max = pause;
        self
    }

    /// Tries until it succeeds, fails in a way that is not safe to be tried again, or has been tried often enough; then
    /// that is the result. Dropping the future ends it, between attempts or in one.
    ///
    /// # Errors
    /// That of the last attempt.
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

/// Errors that tell whether to try again may help and cannot hurt.
///
/// ```
/// use zk_client::{Cause, ReadError, Retry, SafeToRetry};
///
/// /// What our own operations fail with.
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
    /// Whether nothing has been done, for a reason that may pass.
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
            Self::InDoubt(_) => false,
        }
    }
}

impl SafeToRetry for Error {
    fn is_safe_to_retry(&self) -> bool {
        match self {
            Self::Read(error) => error.is_safe_to_retry(),
            Self::Write(error) => error.is_safe_to_retry(),
            Self::Multi(error) => may_pass(error.rejection),
            Self::DeleteRecursive(error) => error.deleted == 0 && error.error.is_safe_to_retry(),
            Self::Cause(cause) => cause.may_pass(),
            Self::Connect(_)
            | Self::Session(_)
            | Self::Watch(_)
            | Self::Close(_)
            | Self::Path(_) => false,
        }
    }
}

/// A server that is cut off from the quorum now.
fn may_pass(rejection: Rejection) -> bool {
    rejection == Rejection::ReadOnly
}

impl Cause {
    /// Whether the next try may go better.
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
