//! Options of requests, set by clients and single calls.

use std::time::Duration;

use zk_proto::session::Patience;

/// Options of a client's requests, unless a single call overrides them: see [`Client::with`](crate::Client::with).
///
/// They are for the program's own requests: recipes and caches wait for as long as the session lives.
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
    /// Whether submitting waits in line for room, where it would fail otherwise.
    pub(crate) in_turn: bool,
}

impl CallOptions {
    /// No timeout; requests survive lost connections.
    pub const fn new() -> Self {
        Self { timeout: None, patience: Patience::Connections, in_turn: false }
    }

    /// No timeout; requests end only with a reply or with the session.
    pub(crate) const fn patient() -> Self {
        Self { timeout: None, patience: Patience::Throttling, in_turn: true }
    }

    /// Bounds each request, from its submission: see [`Request::timeout`](crate::Request::timeout).
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Fails instead of waiting for connections: see [`Request::fail_fast`](crate::Request::fail_fast).
    pub const fn fail_fast(mut self) -> Self {
        (self.patience, self.in_turn) = (Patience::FailFast, false);
        self
    }

    /// Retries with backoff when a server replies that it is overloaded, instead of failing with
    /// [`Throttled`](crate::Cause::Throttled). Such a request has not been carried out; the retry comes after
    /// everything submitted in the meantime, so this is not for writes whose order matters.
    ///
    /// Requests that [fail fast](Self::fail_fast) do not wait for this either.
    pub const fn retry_throttled(mut self) -> Self {
        if !matches!(self.patience, Patience::FailFast) {
            self.patience = Patience::Throttling;
        }
        self
    }
}

/// What to do if there is no room for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Fail.
    Now,
    /// Wait in line.
    Waiting,
}
