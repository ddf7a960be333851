//! Connections that are cut from outside.

use std::{
    io,
    net::Shutdown,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::net::TcpStream;
use zk_client::{BoxFuture, Connect, Transport};

/// Connects as usual, and keeps what it takes to cut the last connection.
#[derive(Clone, Default)]
pub(super) struct Breakable {
    last: Arc<Mutex<Option<std::net::TcpStream>>>,
}

impl Breakable {
    /// Cuts the connection that was made last.
    pub(super) fn cut(&self) -> io::Result<()> {
        match self.last.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(stream) => stream.shutdown(Shutdown::Both),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Connect for Breakable {
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let (server, last) = (server.to_owned(), self.last.clone());
        Box::pin(async move {
            let stream = TcpStream::connect(server).await?.into_std()?;
            stream.set_nodelay(true)?;
            let kept = stream.try_clone()?;
            last.lock().unwrap_or_else(PoisonError::into_inner).replace(kept);
            Ok(Box::new(TcpStream::from_std(stream)?) as Box<dyn Transport>)
        })
    }
}
