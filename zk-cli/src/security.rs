//! Who to be, and whom to trust, as far as the command line says. Secrets come from files or from the environment,
//! which others cannot read.

use std::{env, ffi::OsStr, fs, path::PathBuf};

use clap::{Args as ClapArgs, builder::BoolishValueParser};
use serde::Deserialize;
use zk_client::{ConnectOptions, DigestMd5, TlsConnect, TlsOptions};

use crate::exit::{Exit, Failure};

/// Where the password is, unless in a file.
const SASL_PASSWORD: &str = "ZK_SASL_PASSWORD";

/// Where the environment has what goes together with something else, or excludes it.
const TLS_CERT: &str = "ZK_TLS_CERT";
const TLS_KEY: &str = "ZK_TLS_KEY";
const SASL_USER: &str = "ZK_SASL_USER";
const KERBEROS: &str = "ZK_KERBEROS";
const AUTH: &str = "ZK_AUTH";

/// Who to be, and whom to trust.
#[derive(Clone, Debug, Default, ClapArgs, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecurityArgs {
    /// Connect by TLS to servers with certificates of the authorities in this file (PEM)
    #[arg(long, env = "ZK_TLS_CA", value_name = "FILE", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    tls_ca: Option<PathBuf>,

    /// Certificate to present, with its chain (PEM)
    #[arg(long, env = TLS_CERT, value_name = "FILE", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    tls_cert: Option<PathBuf>,

    /// Private key of that certificate (PEM) [default: in the same file]
    #[arg(long, env = TLS_KEY, value_name = "FILE", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    tls_key: Option<PathBuf>,

    /// User for SASL DIGEST-MD5; the password is in $ZK_SASL_PASSWORD or in a file
    #[arg(long, env = SASL_USER, value_name = "NAME", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    sasl_user: Option<String>,

    /// File whose first line is the password of that user
    #[arg(long, value_name = "FILE")]
    #[arg(hide_short_help = true, hide_long_help = true)]
    sasl_password_file: Option<PathBuf>,

    /// Authenticate by Kerberos (SASL GSSAPI), with tickets or the keys of $KRB5_CLIENT_KTNAME
    #[arg(long, env = KERBEROS, value_parser = BoolishValueParser::new(), hide_env_values = true)]
    #[arg(hide_short_help = true, hide_long_help = true)]
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
    #[arg(long, env = AUTH, hide_env_values = true, value_name = "SCHEME:CREDENTIALS")]
    #[arg(hide_short_help = true, hide_long_help = true)]
    auth: Option<String>,

    /// File whose first line is the identity to prove
    #[arg(long, value_name = "FILE")]
    #[arg(hide_short_help = true, hide_long_help = true)]
    auth_file: Option<PathBuf>,
}

impl SecurityArgs {
    /// All that is said: on the command line, or else in the environment, or else in a profile.
    pub(crate) fn with(self, profile: Self) -> Result<Self, Failure> {
        let (tls_cert, set_cert) = typed(self.tls_cert, TLS_CERT);
        let (tls_key, set_key) = typed(self.tls_key, TLS_KEY);
        let (sasl_user, set_user) = typed(self.sasl_user, SASL_USER);
        let (auth, set_auth) = typed(self.auth, AUTH);
        let set_kerberos = self.kerberos && env::var_os(KERBEROS).is_some();
        let set = Self {
            tls_cert: set_cert,
            tls_key: set_key,
            sasl_user: set_user,
            kerberos: set_kerberos,
            auth: set_auth,
            ..Self::default()
        };
        let kerberos = self.kerberos && !set_kerberos;
        let typed = Self { tls_cert, tls_key, sasl_user, kerberos, auth, ..self };
        typed.unambiguous()?;
        // The password of the environment is said before the file of the profile.
        let file = profile.sasl_password_file.filter(|_| env::var_os(SASL_PASSWORD).is_none());
        Ok(typed.or(set).or(Self { sasl_password_file: file, ..profile }))
    }

    /// Of options that exclude each other, two in one place are a mistake.
    fn unambiguous(&self) -> Result<(), Failure> {
        let why = match self {
            Self { auth: Some(_), auth_file: Some(_), .. } => {
                "--auth cannot be used with --auth-file"
            }
            Self { kerberos: true, sasl_user: Some(_), .. } => {
                "--kerberos cannot be used with --sasl-user"
            }
            _ => return Ok(()),
        };
        Err(Failure::new(Exit::Usage, why))
    }

    /// With what is not said here as it is said there.
    fn or(self, there: Self) -> Self {
        // An identity is one thing, wherever it is.
        let (auth, auth_file) = match (self.auth, self.auth_file) {
            (None, None) => (there.auth, there.auth_file),
            own => own,
        };
        // The key of one certificate is none of another.
        let (tls_cert, tls_key) = match (self.tls_cert, self.tls_key) {
            (None, key) => (there.tls_cert, key.or(there.tls_key)),
            own => own,
        };
        // There is only one exchange on a connection, and a password is of one user.
        let (kerberos, sasl_user, sasl_password_file) = match (self.kerberos, self.sasl_user) {
            (false, None) => {
                let file = self.sasl_password_file.or(there.sasl_password_file);
                (there.kerberos, there.sasl_user, file)
            }
            (kerberos, user) => (kerberos, user, self.sasl_password_file),
        };
        Self {
            tls_ca: self.tls_ca.or(there.tls_ca),
            tls_cert,
            tls_key,
            sasl_user,
            sasl_password_file,
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
            None if self.sasl_password_file.is_some() => {
                return Err(Failure::new(
                    Exit::Usage,
                    "--sasl-password-file: of which --sasl-user?",
                ));
            }
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
        if self.tls_key.is_some() && self.tls_cert.is_none() {
            return Err(Failure::new(Exit::Usage, "--tls-key: of which --tls-cert?"));
        }
        let Some(authorities) = &self.tls_ca else {
            // Told to be secure, and not whom to trust.
            return match &self.tls_cert {
                Some(_) => Err(Failure::new(Exit::Usage, "--tls-cert: goes with --tls-ca")),
                None => Ok(None),
            };
        };
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

/// Of an option that the environment may have set: what was typed, and what is set. Typed the same, it is the same.
fn typed<T: AsRef<OsStr>>(value: Option<T>, variable: &str) -> (Option<T>, Option<T>) {
    match value {
        Some(value) if env::var_os(variable).as_deref() == Some(value.as_ref()) => {
            (None, Some(value))
        }
        value => (value, None),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_its_own_key() {
        let of = |cert: Option<&str>, key: Option<&str>| SecurityArgs {
            tls_cert: cert.map(PathBuf::from),
            tls_key: key.map(PathBuf::from),
            ..SecurityArgs::default()
        };
        let there = of(Some("theirs"), Some("their key"));
        for (own, cert, key) in [
            (of(None, None), "theirs", Some("their key")),
            (of(Some("mine"), None), "mine", None),
            (of(Some("mine"), Some("my key")), "mine", Some("my key")),
            (of(None, Some("moved")), "theirs", Some("moved")),
        ] {
            let used = own.or(there.clone());
            assert_eq!(used.tls_cert, Some(PathBuf::from(cert)));
            assert_eq!(used.tls_key, key.map(PathBuf::from), "{cert}");
        }
    }
}
