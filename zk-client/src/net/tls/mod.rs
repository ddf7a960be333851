//! Connections over TLS: trusted authorities, the client's identity, and faults.

mod fault;
mod options;

use std::{
    fmt, io,
    sync::{Arc, PoisonError, RwLock},
};

use futures_core::future::BoxFuture;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio_rustls::TlsConnector;

use self::fault::CutOff;
use crate::net::{
    connect::{Connect, Transport},
    resolve::ResolvedConnect,
};

pub(crate) use self::fault::fault;
pub use self::options::{TlsError, TlsOptions};

/// Connections over TLS. Clones share their certificates.
///
/// The server's certificate must be for the name in the connection string, which is also the name sent (SNI); the
/// address it resolves to does not matter. Versions are 1.3 and 1.2.
///
/// # New certificates
///
/// Certificates expire while services run. Keep a clone, and reload it when there are new ones:
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use zk_client::{ConnectOptions, TlsConnect, TlsOptions};
///
/// let options = TlsOptions::new().ca_file("/etc/zk/ca.pem").identity_files("/etc/zk/me.pem", "/etc/zk/me.key");
/// let tls = TlsConnect::new(options)?;
/// let zk = ConnectOptions::new("zk1.example:2281")?.connector(tls.clone()).connect().await?;
///
/// // Later, periodically or when notified that the files have changed. A half-written file does no harm:
/// // the previous certificates stay in use.
/// if let Err(error) = tls.reload() {
///     eprintln!("certificates: {error}");
/// }
/// # drop(zk);
/// # Ok(())
/// # }
/// ```
///
/// The new certificates are used from the next connection on; existing connections stay open.
#[derive(Clone)]
pub struct TlsConnect {
    config: Arc<RwLock<Arc<ClientConfig>>>,
    /// The source of `config`, unless the application provided it.
    options: Option<Arc<TlsOptions>>,
    inner: Arc<dyn Connect>,
}

impl TlsConnect {
    /// TLS over TCP. Reads the certificates now.
    ///
    /// # Errors
    /// [`TlsError`] if they cannot be read or are invalid.
    pub fn new(options: TlsOptions) -> Result<Self, TlsError> {
        let config = options.config()?;
        Ok(Self { options: Some(Arc::new(options)), ..Self::with_config(config) })
    }

    /// TLS over TCP with this configuration: for smart cards, other verifiers, other cryptography.
    #[must_use]
    pub fn with_config(config: Arc<ClientConfig>) -> Self {
        Self {
            config: Arc::new(RwLock::new(config)),
            options: None,
            inner: Arc::new(ResolvedConnect::default()),
        }
    }

    /// Uses other connections than TCP's: through a proxy, in a simulation.
    #[must_use]
    pub fn over(self, connector: impl Connect) -> Self {
        self.over_shared(Arc::new(connector))
    }

    pub(crate) fn over_shared(self, inner: Arc<dyn Connect>) -> Self {
        Self { inner, ..self }
    }

    /// Reads the certificates again, for future connections of all clones. Blocks while it reads files.
    ///
    /// # Errors
    /// [`TlsError`] if they cannot be read or are invalid; the previous ones stay in use. Certificates that were not
    /// given as [`TlsOptions`] must be [`replace`](Self::replace)d instead.
    pub fn reload(&self) -> Result<(), TlsError> {
        let options = self.options.as_ref().ok_or(TlsError::NothingToReload)?;
        self.replace(options.config()?);
        Ok(())
    }

    /// Uses another configuration for future connections of all clones.
    pub fn replace(&self, config: Arc<ClientConfig>) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn current(&self) -> Arc<ClientConfig> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Connect for TlsConnect {
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let name = server_name(server);
        let config = self.current();
        let plain = self.inner.connect(server);
        Box::pin(async move {
            let name = name?;
            let handshake = TlsConnector::from(config).connect(name, plain.await?);
            let stream = handshake.await.map_err(CutOff::tell)?;
            Ok(Box::new(stream) as Box<dyn Transport>)
        })
    }
}

/// The name that the certificate must be for: as in the connection string, without the port.
fn server_name(server: &str) -> io::Result<ServerName<'static>> {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
    ServerName::try_from(host.to_owned()).map_err(invalid)
}

impl fmt::Debug for TlsConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnect").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_must_match_the_given_host() {
        for (server, name) in [
            ("zk1.example:2281", "zk1.example"),
            ("10.0.0.1:2281", "10.0.0.1"),
            ("[::1]:2281", "::1"),
        ] {
            assert_eq!(server_name(server).unwrap().to_str(), name);
        }
        assert!(server_name("not a name:1").is_err());
    }
}
