//! Servers that one test after another has to itself: to start one for each test would take longer than all that tests do.

use std::{
    ops::Deref,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use tokio::time::timeout;
use zk_client::{Client, path::join};
use zk_testkit::real::{Server, Wanted};

/// Servers that no test uses now. When this process ends, their watchdogs end them.
static IDLE: Mutex<Vec<Server>> = Mutex::new(Vec::new());

/// A server that takes longer to empty is given up.
const CLEARED_WITHIN: Duration = Duration::from_secs(20);

/// A server that a test has to itself.
pub(crate) struct Pooled {
    // Taken out by `drop` only.
    server: Option<Server>,
    /// Whether it goes on to the next test, unless this one fails.
    is_shared: bool,
}

impl Pooled {
    /// A server without nodes, of any release.
    pub(crate) async fn empty() -> Self {
        loop {
            let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(server) = idle else {
                let server = Server::start(Wanted::Any).await.unwrap();
                return Self { server: Some(server), is_shared: true };
            };
            // One that a test has stopped, or closed its nodes to others, is of no use any more.
            if timeout(CLEARED_WITHIN, cleared(&server)).await.is_ok_and(|cleared| cleared.is_ok())
            {
                return Self { server: Some(server), is_shared: true };
            }
        }
    }

    /// One that ends with the test.
    pub(crate) fn alone(server: Server) -> Self {
        Self { server: Some(server), is_shared: false }
    }
}

impl Deref for Pooled {
    type Target = Server;

    fn deref(&self) -> &Server {
        self.server.as_ref().expect("only dropping takes it out")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if self.is_shared && !thread::panicking() {
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(self.server.take());
        }
    }
}

/// Deletes all nodes that the server has not made itself.
async fn cleared(server: &Server) -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&server.connect_string()).await?;
    for parent in ["/", "/zookeeper/quota"] {
        let (names, _) = client.children(parent).await?;
        for name in names.iter().filter(|name| *name != "zookeeper") {
            client.delete_recursive(&join(parent, name)).await?;
        }
    }
    client.close().await?;
    Ok(())
}
