//! How requests are made: what clients and single calls can choose.

use std::time::Duration;

use zk_proto::session::Patience;

/// How the requests of a client are made, unless a single call chooses otherwise: see
/// [`Client::with`](crate::Client::with).
///
/// ```no_run
/// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
/// use std::time::Duration;
/// use zk_client::CallOptions;
///
/// let hasty = zk.with(CallOptions::new().timeout(Duration::from_millis(300)).fail_fast());
/// let (config, _) = hasty.get("/config").await?;
/// # drop(config);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until a client has them"]
pub struct CallOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) patience: Patience,
    /// Whether what is submitted waits for room in turn, where it would fail otherwise.
    pub(crate) in_turn: bool,
}

impl CallOptions {
    /// No bound in time, and patience with lost connections.
    pub const fn new() -> Self {
        Self { timeout: None, patience: Patience::Connections, in_turn: false }
    }

    /// No end but an answer or that of the session.
    pub(crate) const fn patient() -> Self {
        Self { timeout: None, patience: Patience::Throttling, in_turn: true }
    }

    /// Bound on each request, from its submission: see [`Get::timeout`](crate::Get::timeout).
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// No waiting for connections: see [`Get::fail_fast`](crate::Get::fail_fast).
    pub const fn fail_fast(mut self) -> Self {
        self.patience = Patience::FailFast;
        self
    }

    /// Asks again, after a pause that grows, when a server answers that it has too much to do, instead of failing with
    /// [`Throttled`](crate::Cause::Throttled). Such a request has not been carried out; the next one is behind
    /// everything that has been submitted meanwhile, so this is not for writes whose order matters.
    ///
    /// Requests that [fail fast](Self::fail_fast) do not wait for this either.
    pub const fn retry_throttled(mut self) -> Self {
        if !matches!(self.patience, Patience::FailFast) {
            self.patience = Patience::Throttling;
        }
        self
    }
}

/// What to do if there are too many requests already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Fail.
    Now,
    /// Wait behind all who wait.
    Waiting,
}
