//! A session for one command.

use std::{future::Future, time::Duration};

use zk_client::{Client, ConnectOptions};

use crate::{
    args::ConnectArgs,
    exit::{Exit, Failure},
    profile::Profile,
};

/// Where a server is looked for by default.
const SERVER_DEFAULT: &str = "127.0.0.1:2181";

/// Of the session, and of trying for one.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

impl ConnectArgs {
    /// What the command line, the environment, the profile and, last, the defaults say.
    pub(crate) fn options(&self) -> Result<ConnectOptions, Failure> {
        let profile = self.profile.as_deref().map(Profile::named).transpose()?.unwrap_or_default();
        let server = self.server.as_deref().or(profile.server.as_deref());
        let timeout = |own: Option<Duration>, profiles| own.or(profiles).unwrap_or(TIMEOUT_DEFAULT);
        let options = ConnectOptions::new(server.unwrap_or(SERVER_DEFAULT))
            .map_err(|error| Failure::new(Exit::Usage, format_args!("servers: {error}")))?
            .session_timeout(timeout(self.session_timeout, profile.session_timeout))
            .connect_deadline(Some(timeout(self.connect_timeout, profile.connect_timeout)));
        self.security.clone().or(profile.security).apply(options)
    }

    /// Sees to it that getting a session takes this long at most.
    pub(crate) fn within(&mut self, limit: Duration) {
        // A profile's limit is not asked: this one was given explicitly.
        let own = self.connect_timeout.unwrap_or(TIMEOUT_DEFAULT);
        self.connect_timeout = Some(own.min(limit));
    }

    /// Makes a session. Its client asks busy servers again.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        Ok(self.options()?.connect().await?.patient())
    }

    /// Makes a session, does something with it, and closes it.
    pub(crate) async fn with_session<T, F>(
        &self,
        work: impl FnOnce(Client) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let client = self.connect().await?;
        let result = work(client.clone()).await;
        // The answer is known; that a server has not confirmed the end of the session does not change it.
        let _ = client.close().await;
        result
    }
}
