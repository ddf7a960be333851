//! Trusted authorities and the client's identity.

use std::{fmt, fs, io, path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    client::{VerifierBuilderError, WebPkiServerVerifier},
    crypto::CryptoProvider,
    pki_types::{
        CertificateDer, CertificateRevocationListDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
};
use zeroize::Zeroizing;

/// TLS options: trusted authorities and the client's identity. All in PEM, from files or from memory.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use zk_client::{ConnectOptions, TlsOptions};
///
/// let tls = TlsOptions::new()
///     .ca_file("/etc/zk/ca.pem")
///     .identity_files("/etc/zk/client.pem", "/etc/zk/client.key");
/// let zk = ConnectOptions::new("zk1.example:2281,zk2.example:2281")?.tls(tls)?.connect().await?;
/// # drop(zk);
/// # Ok(())
/// # }
/// ```
///
/// No authority is trusted by default, not even the system's, since ensembles have their own.
#[derive(Clone, Default)]
#[must_use = "options do nothing until connections are made with them"]
pub struct TlsOptions {
    authorities: Vec<Source>,
    revoked: Vec<Source>,
    identity: Option<Identity>,
    provider: Option<Arc<CryptoProvider>>,
}

#[derive(Clone, Debug)]
struct Identity {
    chain: Source,
    key: Source,
}

/// A source of PEM.
#[derive(Clone)]
enum Source {
    File(PathBuf),
    Memory(Arc<Zeroizing<Vec<u8>>>),
}

impl TlsOptions {
    /// Creates options without trusted authorities or an identity.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the authorities in this file. Several such files add up.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.authorities.push(Source::File(path.into()));
        self
    }

    /// Trusts these authorities.
    pub fn ca_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(Source::memory(pem));
        self
    }

    /// Adds lists of revoked certificates, of all authorities: a server whose certificate no list covers is not trusted
    /// then. Default: none, and revocation is not checked.
    pub fn revoked_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.revoked.push(Source::File(path.into()));
        self
    }

    /// As `revoked_file`, from memory.
    pub fn revoked_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.revoked.push(Source::memory(pem));
        self
    }

    /// Sets the client's identity: a certificate, with its chain up to an authority that servers know, and its private
    /// key. May be the same file. Servers ask for one by default, and identify the client by its subject under the
    /// scheme `x509`.
    pub fn identity_files(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        let (chain, key) = (Source::File(chain.into()), Source::File(key.into()));
        self.identity = Some(Identity { chain, key });
        self
    }

    /// As `identity_files`, from memory. The key is overwritten when the last copy of the options is dropped.
    pub fn identity_pem(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        let (chain, key) = (Source::memory(chain), Source::memory(key));
        self.identity = Some(Identity { chain, key });
        self
    }

    /// Sets the cryptography to use. Default: that of the process ([`CryptoProvider::install_default`]), or else ring
    /// with the feature `tls-ring`.
    pub fn provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Reads all files and builds the configuration.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = self.provider.clone().or_else(default_provider);
        let provider = provider.ok_or(TlsError::NoCryptography)?;
        let mut roots = RootCertStore::empty();
        for source in &self.authorities {
            for authority in source.certificates()? {
                roots.add(authority).map_err(|error| source.refused(&error))?;
            }
        }
        if roots.is_empty() {
            return Err(TlsError::NobodyTrusted);
        }
        let revoked =
            self.revoked.iter().map(Source::revocations).collect::<Result<Vec<_>, _>>()?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .with_crls(revoked.into_iter().flatten())
                .only_check_end_entity_revocation()
                .build()?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?
            .with_webpki_verifier(verifier);
        Ok(Arc::new(match &self.identity {
            None => builder.with_no_client_auth(),
            Some(Identity { chain, key }) => builder
                .with_client_auth_cert(chain.certificates()?, key.key()?)
                .map_err(TlsError::Unusable)?,
        }))
    }
}

fn default_provider() -> Option<Arc<CryptoProvider>> {
    let installed = CryptoProvider::get_default().cloned();
    #[cfg(feature = "tls-ring")]
    let installed = installed.or_else(|| Some(Arc::new(rustls::crypto::ring::default_provider())));
    installed
}

impl Source {
    fn memory(pem: impl Into<Vec<u8>>) -> Self {
        Self::Memory(Arc::new(Zeroizing::new(pem.into())))
    }

    fn read(&self) -> Result<Zeroizing<Vec<u8>>, TlsError> {
        match self {
            Self::Memory(pem) => Ok(Zeroizing::clone(pem)),
            Self::File(path) => fs::read(path).map(Zeroizing::new).map_err(|error| {
                TlsError::Unreadable { path: path.clone(), error: Arc::new(error) }
            }),
        }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        self.all("a certificate")
    }

    fn revocations(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
        self.all("a list of revoked certificates")
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.read()?).map_err(|error| match error {
            pem::Error::NoItemsFound => self.lacks("a private key"),
            error => self.refused(&error),
        })
    }

    /// All items of a kind; at least one.
    fn all<T: PemObject>(&self, what: &'static str) -> Result<Vec<T>, TlsError> {
        let pem = self.read()?;
        let items = T::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let items = items.map_err(|error| self.refused(&error))?;
        if items.is_empty() { Err(self.lacks(what)) } else { Ok(items) }
    }

    fn lacks(&self, what: &'static str) -> TlsError {
        TlsError::Lacking { from: self.to_string(), what }
    }

    fn refused(&self, why: &impl fmt::Display) -> TlsError {
        TlsError::Malformed { from: self.to_string(), why: why.to_string() }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Memory(_) => f.write_str("PEM from memory"),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("authorities", &self.authorities)
            .field("revoked", &self.revoked)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Why TLS cannot be set up.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// No authority was given, so no server could be trusted.
    #[error("no authority to trust was named")]
    NobodyTrusted,
    /// No cryptography was chosen: not in the options, not for the process, and not by the feature `tls-ring`.
    #[error("no cryptography was chosen")]
    NoCryptography,
    /// A file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Arc<io::Error>,
    },
    /// An item is missing.
    #[error("{from} has not {what}")]
    Lacking {
        /// Where it was expected.
        from: String,
        /// The missing item.
        what: &'static str,
    },
    /// The input is malformed.
    #[error("{from}: {why}")]
    Malformed {
        /// Where.
        from: String,
        /// What is wrong with it.
        why: String,
    },
    /// The items are valid, but cannot be used together.
    #[error("certificates cannot be used: {0}")]
    Unusable(rustls::Error),
    /// The configuration did not come from [`TlsOptions`].
    #[error("nothing is known that could be read again")]
    NothingToReload,
}

impl From<VerifierBuilderError> for TlsError {
    fn from(error: VerifierBuilderError) -> Self {
        match error {
            VerifierBuilderError::NoRootAnchors => Self::NobodyTrusted,
            other => {
                Self::Malformed { from: "revoked certificates".into(), why: other.to_string() }
            }
        }
    }
}
