//! TLS in front of a server that has none: it takes off the TLS and passes on what is inside.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, PoisonError, RwLock},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{
    authority::Issued,
    server::{ClientAuth, ServerTls},
};

/// A port with TLS in front of a server that has none. Dropping it breaks all connections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zk_testkit::{TestServer, tls::{Authority, ClientAuth, TlsFront}};
///
/// let server = TestServer::start().await?;
/// let authority = Authority::new("test");
/// let certificate = authority.server(&["localhost"]);
/// let addr = server.proxy().addr();
/// let front = TlsFront::start(addr, &certificate, ClientAuth::None).await?;
/// println!("connect to localhost:{}", front.addr().port());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TlsFront {
    addr: SocketAddr,
    config: Arc<RwLock<ServerTls>>,
    _tasks: JoinSet<()>,
}

impl TlsFront {
    /// Listens on a free port of the loopback interface.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start(
        server: SocketAddr,
        certificate: &Issued,
        clients: ClientAuth<'_>,
    ) -> io::Result<Self> {
        let config = Arc::new(RwLock::new(ServerTls::issued(certificate, clients)));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server, config.clone()));
        Ok(Self { addr, config, _tasks: tasks })
    }

    /// Where clients connect.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Shows another certificate, and asks for others, from the next connection on.
    pub fn replace(&self, certificate: &Issued, clients: ClientAuth<'_>) {
        let config = ServerTls::issued(certificate, clients);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, config: Arc<RwLock<ServerTls>>) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = clients.join_next() => {}
            accepted = listener.accept() => {
                // Out of descriptors, or the client has gone already: others may fare better.
                let Ok((client, _)) = accepted else { tokio::task::yield_now().await; continue };
                let config = config.read().unwrap_or_else(PoisonError::into_inner).clone();
                clients.spawn(async move {
                    // Whatever breaks here breaks for the client, which is the one to tell of it.
                    let _ = carry(client, server, config).await;
                });
            }
        }
    }
}

async fn carry(client: TcpStream, server: SocketAddr, config: ServerTls) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (mut secured, _) = config.accept(client).await?;
    let mut plain = TcpStream::connect(server).await?;
    plain.set_nodelay(true)?;
    copy_bidirectional(&mut secured, &mut plain).await?;
    Ok(())
}
