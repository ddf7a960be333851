//! TLS, for what it costs: a server's certificate is made on the spot, and clients find its authority in a file.

use std::{fs, net::TcpStream, path::Path, sync::Arc};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use tokio_rustls::TlsAcceptor;
use zk_testkit::tls::Authority;

use crate::client::Failure;

/// The name that servers are dialled by.
const HOST: &str = "127.0.0.1";

/// The first byte of every connection that begins with a handshake.
pub(crate) const HANDSHAKE: u8 = 0x16;

/// What shows a certificate of an authority that is written to this file, and asks clients for none.
pub(crate) fn acceptor(authority: &Path) -> Result<TlsAcceptor, Failure> {
    let made = Authority::new("zk-bench");
    fs::write(authority, made.pem())?;
    let certificate = made.server(&[HOST]);
    let chain = CertificateDer::pem_slice_iter(certificate.chain.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes())?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain.collect::<Result<_, _>>()?, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A connection on which one waits in the system.
pub(crate) type Secured = StreamOwned<ClientConnection, TcpStream>;

/// This connection, with TLS; the handshake is made with what is written first.
pub(crate) fn secured(stream: TcpStream, authority: &Path) -> Result<Secured, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let session = ClientConnection::new(Arc::new(config), ServerName::try_from(HOST)?)?;
    Ok(StreamOwned::new(session, stream))
}
