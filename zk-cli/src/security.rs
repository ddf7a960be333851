//! Who to be, and whom to trust, as far as the command line says. Secrets come from files or from the environment,
//! which others cannot read.

use std::{env, fs, path::PathBuf};

use clap::{Args as ClapArgs, builder::BoolishValueParser};
use serde::Deserialize;
use zk_client::{ConnectOptions, DigestMd5, TlsConnect, TlsOptions};

use crate::exit::{Exit, Failure};

/// Where the password is, unless in a file.
const SASL_PASSWORD: &str = "ZK_SASL_PASSWORD";

/// Who to be, and whom to trust.
#[derive(Clone, Debug, Default, ClapArgs, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecurityArgs {
    /// Connect by TLS to servers with certificates of the authorities in this file (PEM)
    #[arg(long, env = "ZK_TLS_CA", value_name = "FILE", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    tls_ca: Option<PathBuf>,

    /// Certificate to present, with its chain (PEM)
    #[arg(
        long,
        env = "ZK_TLS_CERT",
        value_name = "FILE",
        requires = "tls_ca",
        hide_env_values = true
    )]
    #[arg(hide_short_help = true, hide_long_help = true)]
    tls_cert: Option<PathBuf>,

    /// Private key of that certificate (PEM) [default: in the same file]
    #[arg(
        long,
        env = "ZK_TLS_KEY",
        value_name = "FILE",
        requires = "tls_cert",
        hide_env_values = true
    )]
    #[arg(hide_short_help = true, hide_long_help = true)]
    tls_key: Option<PathBuf>,

    /// User for SASL DIGEST-MD5; the password is in $ZK_SASL_PASSWORD or in a file
    #[arg(long, env = "ZK_SASL_USER", value_name = "NAME", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    sasl_user: Option<String>,

    /// File whose first line is the password of that user
    #[arg(long, value_name = "FILE", requires = "sasl_user")]
    #[arg(hide_short_help = true, hide_long_help = true)]
    sasl_password_file: Option<PathBuf>,

    /// Authenticate by Kerberos (SASL GSSAPI), with tickets or the keys of $KRB5_CLIENT_KTNAME
    #[arg(long, env = "ZK_KERBEROS", value_parser = BoolishValueParser::new(), hide_env_values = true)]
    #[arg(conflicts_with = "sasl_user", hide_short_help = true, hide_long_help = true)]
    kerberos: bool,

    /// Principal of the servers [default: zookeeper/HOST, each as it is called in --server]
    #[arg(long, env = "ZK_KERBEROS_SERVER", value_name = "PRINCIPAL", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    kerberos_server: Option<String>,

    /// Principal of this client, if there are tickets or keys of several
    #[arg(long, env = "ZK_KERBEROS_CLIENT", value_name = "PRINCIPAL", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    kerberos_client: Option<String>,

    /// Identity to prove, such as digest:user:password. Command lines are visible to other users: better use
    /// --auth-file or $ZK_AUTH
    #[arg(long, env = "ZK_AUTH", hide_env_values = true, value_name = "SCHEME:CREDENTIALS")]
    #[arg(hide_short_help = true, hide_long_help = true)]
    auth: Option<String>,

    /// File whose first line is the identity to prove
    #[arg(long, value_name = "FILE", conflicts_with = "auth")]
    #[arg(hide_short_help = true, hide_long_help = true)]
    auth_file: Option<PathBuf>,
}

impl SecurityArgs {
    /// With what is not said here as it is said there.
    pub(crate) fn or(self, there: Self) -> Self {
        // An identity is one thing, wherever it is.
        let (auth, auth_file) = match (self.auth, self.auth_file) {
            (None, None) => (there.auth, there.auth_file),
            own => own,
        };
        // There is only one exchange on a connection.
        let (kerberos, sasl_user) = match (self.kerberos, self.sasl_user) {
            (false, None) => (there.kerberos, there.sasl_user),
            own => own,
        };
        Self {
            tls_ca: self.tls_ca.or(there.tls_ca),
            tls_cert: self.tls_cert.or(there.tls_cert),
            tls_key: self.tls_key.or(there.tls_key),
            sasl_user,
            sasl_password_file: self.sasl_password_file.or(there.sasl_password_file),
            kerberos,
            kerberos_server: self.kerberos_server.or(there.kerberos_server),
            kerberos_client: self.kerberos_client.or(there.kerberos_client),
            auth,
            auth_file,
        }
    }

    /// Puts all that into what a client connects with.
    pub(crate) fn apply(&self, mut options: ConnectOptions) -> Result<ConnectOptions, Failure> {
        if let Some(tls) = self.tls()? {
            options = options.connector(tls);
        }
        match &self.sasl_user {
            Some(_) if self.kerberos => {
                let what = "security: either kerberos or sasl_user";
                return Err(Failure::new(Exit::Usage, what));
            }
            Some(user) => options = options.sasl(DigestMd5::new(user, self.sasl_password()?)),
            None if self.kerberos => options = self.kerberos(options)?,
            None => {}
        }
        let auth = match &self.auth_file {
            Some(path) => Some(first_line("--auth-file", path)?),
            None => self.auth.clone(),
        };
        if let Some(identity) = auth {
            let (scheme, id) = identity
                .split_once(':')
                .ok_or_else(|| Failure::new(Exit::Usage, "--auth: expected SCHEME:CREDENTIALS"))?;
            options = options.auth(scheme, id.to_owned());
        }
        Ok(options)
    }

    /// How connections are secured, if they are.
    pub(crate) fn tls(&self) -> Result<Option<TlsConnect>, Failure> {
        let Some(authorities) = &self.tls_ca else { return Ok(None) };
        let mut tls = TlsOptions::new().ca_file(authorities);
        if let Some(certificate) = &self.tls_cert {
            tls = tls.identity_files(certificate, self.tls_key.as_ref().unwrap_or(certificate));
        }
        TlsConnect::new(tls).map(Some).map_err(|error| usage("--tls-ca", &error))
    }

    #[cfg(feature = "sasl-gssapi")]
    fn kerberos(&self, options: ConnectOptions) -> Result<ConnectOptions, Failure> {
        let mut kerberos = zk_client::Gssapi::new();
        if let Some(server) = &self.kerberos_server {
            kerberos = kerberos.server_principal(server);
        }
        if let Some(client) = &self.kerberos_client {
            kerberos = kerberos.client_principal(client);
        }
        Ok(options.sasl(kerberos))
    }

    #[cfg(not(feature = "sasl-gssapi"))]
    fn kerberos(&self, _options: ConnectOptions) -> Result<ConnectOptions, Failure> {
        let what = "--kerberos: this program was built without it (feature sasl-gssapi)";
        Err(Failure::new(Exit::Usage, what))
    }

    fn sasl_password(&self) -> Result<String, Failure> {
        match &self.sasl_password_file {
            Some(path) => first_line("--sasl-password-file", path),
            None => env::var(SASL_PASSWORD).map_err(|_| {
                let what =
                    format!("--sasl-user: neither ${SASL_PASSWORD} nor --sasl-password-file");
                Failure::new(Exit::Usage, what)
            }),
        }
    }
}

fn first_line(option: &str, path: &PathBuf) -> Result<String, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::new(Exit::Usage, format_args!("{option}: {}: {error}", path.display()))
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn usage(option: &str, error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Usage, format_args!("{option}: {error}"))
}
