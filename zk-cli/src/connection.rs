//! A session for one command.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::sleep;
use zk_client::{Client, ConnectOptions, LinkError, SessionObserver};

use crate::{
    args::ConnectArgs,
    exit::{Exit, Failure},
    interrupt::Interrupt,
    profile::Profile,
    render::complain,
    security::SecurityArgs,
    shared::Shared,
};

/// Where a server is looked for by default.
const SERVER_DEFAULT: &str = "127.0.0.1:2181";

/// Of the session, and of trying for one.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// How long servers may refuse before it is reported, and how often other reasons are: within a second.
const PATIENCE: Duration = Duration::from_millis(700);

impl ConnectArgs {
    /// What the command line, the environment, the profile and, last, the defaults say.
    pub(crate) fn options(&self) -> Result<ConnectOptions, Failure> {
        let profile = self.profile.as_deref().map(Profile::named).transpose()?.unwrap_or_default();
        let server = self.server.as_deref().or(profile.server.as_deref());
        let timeout = |own: Option<Duration>, profiles| own.or(profiles).unwrap_or(TIMEOUT_DEFAULT);
        let options = ConnectOptions::new(server.unwrap_or(SERVER_DEFAULT))
            .map_err(|error| Failure::new(Exit::Usage, format_args!("servers: {error}")))
            .map_err(|failure| failure.next("--server HOST:PORT,HOST:PORT/CHROOT, or $ZK_SERVER"))?
            .read_only(self.read_only || profile.read_only)
            .session_timeout(timeout(self.session_timeout, profile.session_timeout))
            .connect_deadline(Some(timeout(self.connect_timeout, profile.connect_timeout)));
        self.security.clone().with(profile.security)?.apply(options)
    }

    /// The chroot of the connection string, if it has one.
    pub(crate) fn chroot(&self) -> Result<Option<String>, Failure> {
        let profile = self.profile.as_deref().map(Profile::named).transpose()?.unwrap_or_default();
        let server = self.server.as_deref().or(profile.server.as_deref()).unwrap_or_default();
        Ok(server.split_once('/').map(|(_, chroot)| format!("/{chroot}")).filter(|it| it != "/"))
    }

    /// Who to be, and whom to trust, the profile included.
    pub(crate) fn security(&self) -> Result<SecurityArgs, Failure> {
        let profile = self.profile.as_deref().map(Profile::named).transpose()?.unwrap_or_default();
        self.security.clone().with(profile.security)
    }

    /// Sees to it that getting a session takes this long at most.
    pub(crate) fn within(&mut self, limit: Duration) -> Result<(), Failure> {
        let profile = self.profile.as_deref().map(Profile::named).transpose()?.unwrap_or_default();
        let own = self.connect_timeout.or(profile.connect_timeout).unwrap_or(TIMEOUT_DEFAULT);
        self.connect_timeout = Some(own.min(limit));
        Ok(())
    }

    /// A session: that of the shell, or else a new one.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        let Some(shared) = Shared::current() else { return self.fresh().await };
        let client = shared.client().await;
        if let Some(loss) = shared.loss() {
            complain(&loss);
        }
        client
    }

    /// Makes a session. Its client asks busy servers again.
    pub(crate) async fn fresh(&self) -> Result<Client, Failure> {
        let refusals = Arc::new(Refusals::default());
        let options = self.options()?.lease(self.lease).observer(refusals.clone());
        tokio::select! {
            biased;
            client = options.connect() => Ok(client?.patient()),
            never = refusals.report() => match never {},
        }
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
        close(&client).await;
        result
    }

    /// The same for what lasts until a signal, which may come before there is a session: then `Err` is how to end.
    pub(crate) async fn until_told<T, F>(
        &self,
        work: impl FnOnce(Client) -> F,
    ) -> Result<Result<T, Exit>, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut interrupt = Interrupt::catch()?;
        let client = tokio::select! {
            biased;
            exit = interrupt.next() => return Ok(Err(exit)),
            client = self.connect() => client?,
        };
        let result = tokio::select! {
            biased;
            exit = interrupt.next() => Ok(Err(exit)),
            result = work(client.clone()) => result.map(Ok),
        };
        close(&client).await;
        result
    }
}

/// Closes a session, unless it is the shell's.
pub(crate) async fn close(client: &Client) {
    if Shared::current().is_none() {
        // The answer is known; that a server has not confirmed the end of the session does not change it.
        let _ = client.close().await;
    }
}

/// Servers that have not given a session, and why. One that does soon is no reason to say anything of the others.
#[derive(Default)]
struct Refusals(Mutex<BTreeMap<String, String>>);

impl SessionObserver for Refusals {
    fn attempt_failed(&self, server: &str, why: &LinkError) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.insert(server.to_owned(), why.to_string());
    }
}

impl Refusals {
    /// Reports each reason once, for as long as there is no session.
    async fn report(&self) -> std::convert::Infallible {
        let mut reported = BTreeMap::new();
        loop {
            sleep(PATIENCE).await;
            for (server, why) in self.news(&mut reported) {
                complain(&format_args!("{server}: {why}; still trying"));
            }
        }
    }

    /// Reasons that have not been reported.
    fn news(&self, reported: &mut BTreeMap<String, String>) -> Vec<(String, String)> {
        let now = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_new = |(server, why): &(&String, &String)| reported.get(*server) != Some(*why);
        let news = now.iter().filter(is_new).map(|(server, why)| (server.clone(), why.clone()));
        let news = news.collect();
        *reported = now;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const _: () = assert!(PATIENCE.as_millis() < 1_000, "within a second");

    #[test]
    fn each_refusal_is_reported_once() {
        let (refusals, mut reported) = (Refusals::default(), BTreeMap::new());
        assert!(refusals.news(&mut reported).is_empty());
        let refused = LinkError::NotServed;
        refusals.attempt_failed("zk1:2181", &refused);
        refusals.attempt_failed("zk2:2181", &refused);
        assert_eq!(refusals.news(&mut reported).len(), 2);
        refusals.attempt_failed("zk1:2181", &refused);
        assert!(refusals.news(&mut reported).is_empty());
        refusals.attempt_failed("zk1:2181", &LinkError::Closed);
        assert_eq!(
            refusals.news(&mut reported),
            [("zk1:2181".to_owned(), LinkError::Closed.to_string())]
        );
    }
}
