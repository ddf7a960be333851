//! A port that is open as long as its member runs.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::Member;

/// How soon a port is tried again that another process has just now.
const RETRY: Duration = Duration::from_millis(10);

/// Which members run, by their places.
pub(super) type Running = Vec<bool>;

/// A member's port.
#[derive(Debug)]
pub(super) struct MemberPort {
    pub(super) member: Member,
    pub(super) addr: SocketAddr,
    listener: Option<TcpListener>,
    running: watch::Receiver<Running>,
}

impl MemberPort {
    pub(super) fn new(
        listener: TcpListener,
        member: Member,
        running: watch::Receiver<Running>,
    ) -> io::Result<Self> {
        let addr = listener.local_addr()?;
        Ok(Self { member, addr, listener: Some(listener), running })
    }

    /// The next client. Dropping the future loses none.
    pub(super) async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            let runs = self.running.borrow_and_update().get(self.member.0).copied();
            let accepted = match (runs.unwrap_or_default(), &self.listener) {
                (false, _) => {
                    // Clients are refused, as by any port that no process listens on.
                    self.listener = None;
                    None
                }
                (true, Some(listener)) => Some(listener.accept()),
                (true, None) => {
                    self.listener = TcpListener::bind(self.addr).await.ok();
                    if self.listener.is_none() {
                        tokio::time::sleep(RETRY).await;
                    }
                    continue;
                }
            };
            let accepted = async {
                match accepted {
                    Some(accepted) => accepted.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                changed = self.running.changed() => if changed.is_err() {
                    // The ensemble has gone, and this task with it.
                    std::future::pending::<()>().await;
                },
                accepted = accepted => match accepted {
                    Ok(accepted) => return accepted,
                    // Out of descriptors, or the client has gone already: others may fare better.
                    Err(_) => tokio::task::yield_now().await,
                },
            }
        }
    }
}
