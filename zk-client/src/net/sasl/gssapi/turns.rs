//! Work that blocks, in threads of its own.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    thread,
};

use tokio::sync::{Mutex, oneshot};
use zk_proto::session::SaslFault;

/// Who is at work for which server: one at a time.
///
/// Connection attempts are given up sooner than the library gives up a key distribution centre that is silent. Without
/// turns each would leave one more thread behind; and with turns for all servers together, one that has its ticket
/// already would have to wait for one that does not get any.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// As many as there are servers in the connection string, at most.
    servers: std::sync::Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

impl Turns {
    /// Does it when it is this server's turn. Dropping the future gives up the turn, but not work that has begun.
    ///
    /// A thread, and none of the runtime's: those would keep the runtime from being shut down.
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
            // Nobody waits any more if the attempt has been given up.
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
    async fn work_is_done_one_at_a_time_for_each_server() {
        let turns = Turns::default();
        let (go, wait) = mpsc::channel::<()>();
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = Box::pin(turns.work("a", move || wait.recv()));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        // Given up, as by a connection attempt; its work goes on.
        drop(first);
        let mut second = Box::pin(turns.work("a", || 2));
        assert!(second.as_mut().poll(&mut cx).is_pending());
        assert_eq!(turns.work("b", || 3).await, Ok(3));
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Pending);
        go.send(()).unwrap();
        assert_eq!(second.await, Ok(2));
    }

    #[tokio::test]
    async fn a_panic_is_told_and_gives_the_turn_back() {
        let turns = Turns::default();
        let panicked = turns.work("a", || -> u32 { panic!("on purpose") }).await;
        assert!(matches!(panicked, Err(SaslFault::Local(_))), "{panicked:?}");
        assert_eq!(turns.work("a", || 1).await, Ok(1));
    }
}
