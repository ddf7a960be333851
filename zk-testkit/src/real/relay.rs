//! Ways between members of an ensemble that can be cut.

use std::{io, net::SocketAddr};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Passes connections on to another address, as long as they are not severed.
#[derive(Debug)]
pub(super) struct Relay {
    addr: SocketAddr,
    severed: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Relay {
    pub(super) async fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let addr = listener.local_addr()?;
        let (severed, gate) = watch::channel(false);
        let accepting = tokio::spawn(async move {
            // Without the listener no connection is accepted any more, which tests notice.
            while let Ok((from, _)) = listener.accept().await {
                tokio::spawn(pass_on(from, target, gate.clone()));
            }
        });
        Ok(Self { addr, severed, accepting })
    }

    pub(super) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// From now on nothing gets through, in neither direction, without a notice; or else connections can be made again,
    /// and those that were severed end.
    pub(super) fn sever(&self, severed: bool) {
        self.severed.send_replace(severed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass_on(mut from: TcpStream, target: SocketAddr, mut gate: watch::Receiver<bool>) {
    let mut closed = gate.clone();
    tokio::select! {
        biased;
        // Kept open until it is over.
        Ok(_) = closed.wait_for(|severed| *severed) => {}
        () = async {
            if let Ok(mut to) = TcpStream::connect(target).await {
                // Both ends see how it ends.
                let _ = copy_bidirectional(&mut from, &mut to).await;
                if *gate.borrow_and_update() {
                    std::future::pending::<()>().await;
                }
            }
        } => return,
    }
    let _ = gate.wait_for(|severed| !*severed).await;
}
