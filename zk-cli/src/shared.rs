//! A session that several commands share, one after the other: those of a shell.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{sync::Mutex as AsyncMutex, task_local};
use zk_client::{Client, SessionState};

use crate::{args::ConnectArgs, exit::Failure};

task_local! {
    static CURRENT: Arc<Shared>;
}

/// The session of a shell: made when it is first needed, and again when it was lost.
#[derive(Debug)]
pub(crate) struct Shared {
    connect: ConnectArgs,
    client: AsyncMutex<Option<Client>>,
    /// What became of an earlier session, until that has been said.
    loss: Mutex<Option<String>>,
}

impl Shared {
    pub(crate) fn new(connect: ConnectArgs) -> Arc<Self> {
        Arc::new(Self { connect, client: AsyncMutex::default(), loss: Mutex::default() })
    }

    /// The session of the shell that the command runs in, if it is to use that.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Has a command, which does not spawn what needs a session, use this one.
    pub(crate) async fn scope<F: Future>(self: &Arc<Self>, command: F) -> F::Output {
        CURRENT.scope(Arc::clone(self), command).await
    }

    /// The session, or the next one if it is over.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        let mut client = self.client.lock().await;
        if let Some(there) = &*client {
            let session = there.session();
            let SessionState::Ended(end) = session.state() else { return Ok(there.clone()) };
            let loss = format!("session {} is lost: {end}; this is another one", session.id());
            *self.loss.lock().unwrap_or_else(PoisonError::into_inner) = Some(loss);
            *client = None;
        }
        Ok(client.insert(self.connect.fresh().await?).clone())
    }

    /// What there is to say of an earlier session, once.
    pub(crate) fn loss(&self) -> Option<String> {
        self.loss.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the session, if there is one.
    pub(crate) async fn close(&self) {
        if let Some(client) = self.client.lock().await.take() {
            // As for a single command: all that was asked for has been answered.
            let _ = client.close().await;
        }
    }
}
