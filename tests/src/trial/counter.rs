//! Where those whom a trial watches come by: a socket, and somebody to serve each who connects.

use std::{
    future::Future,
    io,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Accepts connections until it is dropped. Those that are there go on.
#[derive(Debug)]
pub(super) struct Counter {
    addr: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Counter {
    /// On a free port of the loopback interface.
    pub(super) async fn open<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> io::Result<Self>
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Ok(Self { addr, accepting })
    }

    pub(super) const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
