//! A session for one command.

use std::future::Future;

use zk_client::{Client, ConnectOptions};

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
