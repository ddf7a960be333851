//! A session for one command.

use std::{future::Future, time::Duration};

use zk_client::{Client, ConnectOptions, CreateMode, Created, Rejection, SessionState, WriteError};

use crate::{
    args::ConnectArgs,
    exit::{Exit, Failure},
    profile::Profile,
};

/// Where a server is looked for if nobody says anything.
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
        // A profile's limit is not asked: whoever gives this one knows better.
        let own = self.connect_timeout.unwrap_or(TIMEOUT_DEFAULT);
        self.connect_timeout = Some(own.min(limit));
    }

    /// Makes a session.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        Ok(self.options()?.connect().await?)
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

/// Creates a node in the first of these ways that the servers know.
///
/// Those before 3.5 know neither containers nor the create that others are asked for, as nobody can know
/// before the first refusal. From then on the client asks them in their own words: so an ordinary way is
/// worth a second try.
pub(crate) async fn create(
    client: &Client,
    path: &str,
    data: &[u8],
    modes: &[CreateMode],
) -> Result<Created, WriteError> {
    let mut modes = modes.iter().copied().peekable();
    loop {
        let mode = modes.next().unwrap_or_default();
        let epoch = client.session().epoch();
        match client.create(path, data).mode(mode).await {
            Err(WriteError::Rejected(Rejection::Unimplemented)) if modes.peek().is_some() => {
                reconnected(client, epoch).await;
            }
            created => return created,
        }
    }
}

/// Waits for another connection than this one, which the server drops after such a refusal: what is sent
/// over it meanwhile is lost.
async fn reconnected(client: &Client, epoch: u64) {
    let mut session = client.session();
    while session.epoch() == epoch {
        if let SessionState::Ended(_) = session.changed().await {
            return;
        }
    }
}
