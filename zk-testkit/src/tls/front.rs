//! TLS in front of a server that has none: it takes off the TLS and passes on what is inside.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, PoisonError, RwLock},
};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::authority::{Authority, Issued};

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug)]
pub enum ClientAuth<'a> {
    /// They need not.
    None,
    /// They must have one of this authority, as is ZooKeeper's default.
    Need(&'a Authority),
}

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
    config: Arc<RwLock<Arc<ServerConfig>>>,
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
        let config = Arc::new(RwLock::new(server_config(certificate, clients)));
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
        let config = server_config(certificate, clients);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }
}

fn server_config(certificate: &Issued, clients: ClientAuth<'_>) -> Arc<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions that the provider has");
    let builder = match clients {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::Need(authority) => {
            let mut roots = RootCertStore::empty();
            let authority = CertificateDer::from_pem_slice(authority.pem().as_bytes());
            roots.add(authority.expect("a certificate")).expect("an authority");
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("an authority"))
        }
    };
    let chain = CertificateDer::from_pem_slice(certificate.chain.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes());
    let config = builder.with_single_cert(vec![chain.expect("a certificate")], key.expect("a key"));
    Arc::new(config.expect("a certificate and its key"))
}

async fn accept(listener: TcpListener, server: SocketAddr, config: Arc<RwLock<Arc<ServerConfig>>>) {
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

async fn carry(client: TcpStream, server: SocketAddr, config: Arc<ServerConfig>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut secured = TlsAcceptor::from(config).accept(client).await?;
    let mut plain = TcpStream::connect(server).await?;
    plain.set_nodelay(true)?;
    copy_bidirectional(&mut secured, &mut plain).await?;
    Ok(())
}
