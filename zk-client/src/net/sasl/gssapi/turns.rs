//! Blocking work, in dedicated threads.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    thread,
};

use tokio::sync::{Mutex, oneshot};

use crate::error::SaslFault;

/// The servers for which a thread is at work: one at a time each.
///
/// Connection attempts time out before the library gives up on a silent key distribution centre. Without turns each
/// attempt would leave one more thread behind; with one turn for all servers, a server whose ticket is available would
/// wait for one whose ticket is not.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// At most as many as there are servers in the connection string.
    servers: std::sync::Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

impl Turns {
    /// Runs `work` when it is this server's turn. Dropping the future gives up the turn, but not work that has started.
    ///
    /// Uses its own thread, since a blocking thread of the runtime would delay its shutdown.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        server: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SaslFault> {
        let turn = self.of(server).lock_owned().await;
        let (done, outcome) = oneshot::channel();
        let thread = thread::Builder::new().name("zk-gssapi".to_owned()).spawn(move || {
            let outcome = work();
            drop(turn);
            // If the attempt has been given up, no task waits any more.
            let _ = done.send(outcome);
        });
        thread.map_err(|error| SaslFault::Local(format!("no thread for Kerberos: {error}")))?;
        outcome.await.map_err(|_| SaslFault::Local("thread for Kerberos has panicked".to_owned()))
    }

    fn of(&self, server: &str) -> Arc<Mutex<()>> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.entry(server.to_owned()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc,
        task::{Context, Poll, Waker},
    };

    use super::*;

    #[tokio::test]
    async fn work_for_one_server_is_serialized() {
        let turns = Turns::default();
        let (go, wait) = mpsc::channel::<()>();
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = Box::pin(turns.work("a", move || wait.recv()));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        // Dropped, as by a connection attempt that timed out; its work continues.
        drop(first);
        let mut second = Box::pin(turns.work("a", || 2));
        assert!(second.as_mut().poll(&mut cx).is_pending());
        assert_eq!(turns.work("b", || 3).await, Ok(3));
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Pending);
        go.send(()).unwrap();
        assert_eq!(second.await, Ok(2));
    }

    #[tokio::test]
    async fn panic_is_reported_and_frees_the_turn() {
        let turns = Turns::default();
        let panicked = turns.work("a", || -> u32 { panic!("on purpose") }).await;
        assert!(matches!(panicked, Err(SaslFault::Local(_))), "{panicked:?}");
        assert_eq!(turns.work("a", || 1).await, Ok(1));
    }
}
