//! A session for one command.

use std::future::Future;

use zk_client::{Client, ConnectOptions, CreateMode, Created, Rejection, SessionState, WriteError};

use crate::{
    args::ConnectArgs,
    exit::{Exit, Failure},
};

impl ConnectArgs {
    /// Makes a session.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        let mut options = ConnectOptions::new(&self.server)
            .map_err(|error| Failure::new(Exit::Usage, format_args!("--server: {error}")))?
            .session_timeout(self.session_timeout)
            .connect_deadline(Some(self.connect_timeout));
        if let Some(identity) = &self.auth {
            let (scheme, id) = identity
                .split_once(':')
                .ok_or_else(|| Failure::new(Exit::Usage, "--auth: expected SCHEME:CREDENTIALS"))?;
            options = options.auth(scheme, id.to_owned());
        }
        Ok(options.connect().await?)
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
