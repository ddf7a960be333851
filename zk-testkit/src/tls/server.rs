//! What a server shows to clients, and what it wants to see of them.

use std::{io, sync::Arc};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    server::{VerifierBuilderError, WebPkiClientVerifier},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    authority::{Authority, Issued},
    subject,
};

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug)]
pub enum ClientAuth<'a> {
    /// They need not.
    None,
    /// They must have one of this authority, as is ZooKeeper's default.
    Need(&'a Authority),
}

/// A server's certificate with its key, and whose clients it trusts.
#[derive(Clone)]
pub struct ServerTls(TlsAcceptor);

/// What is wrong with what a server is to show.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PemFault {
    /// There is no such thing in the PEM.
    #[error("no {what} in the PEM: {error}")]
    Missing {
        /// What was expected.
        what: &'static str,
        /// What there is instead.
        error: pem::Error,
    },
    /// A certificate or its key cannot be used.
    #[error("certificate cannot be used: {0}")]
    Certificate(#[from] rustls::Error),
    /// There is no authority that clients could be of.
    #[error("authority cannot be used: {0}")]
    Authority(#[from] VerifierBuilderError),
}

impl ServerTls {
    /// From PEM: the certificate with those that vouch for it, its key, and the authorities whose certificates clients must
    /// show. Without authorities they need none.
    ///
    /// # Errors
    /// Something is missing in the PEM, or cannot be used.
    pub fn new(chain: &str, key: &str, authorities: Option<&str>) -> Result<Self, PemFault> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let builder = match authorities {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(pem)? {
                    roots.add(authority)?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build()?)
            }
        };
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|error| PemFault::Missing { what: "key", error })?;
        let config = builder.with_single_cert(certificates(chain)?, key)?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// A certificate of an authority that is made up, and those clients.
    ///
    /// # Panics
    /// The certificate and its key do not belong together.
    #[must_use]
    pub fn issued(certificate: &Issued, clients: ClientAuth<'_>) -> Self {
        let authority = match clients {
            ClientAuth::None => None,
            ClientAuth::Need(authority) => Some(authority.pem()),
        };
        Self::new(&certificate.chain, &certificate.key, authority.as_deref())
            .expect("a certificate, its key and an authority")
    }

    /// Agrees on TLS with a client, and tells the subject of its certificate.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<String>)> {
        let stream = self.0.accept(stream).await?;
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        let subject = certificate.and_then(|certificate| subject::of(certificate));
        Ok((stream, subject))
    }
}

/// Without the key.
impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerTls")
    }
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, PemFault> {
    let missing = |error| PemFault::Missing { what: "certificate", error };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let all = all.map_err(missing)?;
    if all.is_empty() {
        return Err(missing(pem::Error::NoItemsFound));
    }
    Ok(all)
}
