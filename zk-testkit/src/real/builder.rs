use std::time::Duration;

use super::config::Settings;
use super::distribution::Distribution;
use super::error::Error;
use super::kdc::Service;
use super::locator::{Install, Locator};
use super::server::{Blueprint, Server};
use crate::port::HeldPort;
use crate::release::Wanted;

/// How many ports are tried for one server. On Linux ports are held, so one is enough there.
pub(super) const PORT_ATTEMPTS: usize = 5;

/// Which ZooKeeper to start, and where to look for it.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) wanted: Wanted,
    pub(super) locator: Locator,
}

impl Default for Choice {
    fn default() -> Self {
        Self { wanted: Wanted::Any, locator: Locator::from_env() }
    }
}

impl Choice {
    /// Looks for it, and fetches it if need be, beside the runtime's own threads.
    pub(super) async fn locate(&self) -> Result<Distribution, Error> {
        let Self { wanted, locator } = self.clone();
        let located = tokio::task::spawn_blocking(move || locator.locate(wanted)).await;
        Ok(located.expect("locating neither panics nor is cancelled")?)
    }
}

/// The settings that one server and an ensemble have in common.
macro_rules! shared_settings {
    () => {
        /// Asks for a release line; any will do by default.
        pub fn release(mut self, wanted: impl Into<Wanted>) -> Self {
            self.choice.wanted = wanted.into();
            self
        }

        /// Looks for ZooKeeper in another way than the environment says.
        pub fn locator(mut self, locator: Locator) -> Self {
            self.choice.locator = locator;
            self
        }

        /// Allows or forbids installing packages if no ZooKeeper is found.
        pub fn install(mut self, install: Install) -> Self {
            self.choice.locator = self.choice.locator.install(install);
            self
        }

        /// The unit of servers' time, 200 ms by default. Sessions last at least two ticks.
        pub fn tick_time(mut self, tick_time: Duration) -> Self {
            self.settings.tick_time = tick_time;
            self
        }

        /// Adds a line to `zoo.cfg`, such as `"snapCount=100"`. Later lines override earlier ones.
        pub fn config(mut self, line: impl Into<String>) -> Self {
            self.settings.lines.push(line.into());
            self
        }

        /// Writes a file for the server to read. In lines and properties, `{files}` stands for the folder that it is in.
        pub fn file(mut self, name: &str, contents: impl Into<String>) -> Self {
            self.settings.files.push((name.to_owned(), contents.into()));
            self
        }

        /// Sets a Java system property, such as `jute.maxbuffer`.
        pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.settings.properties.push((name.into(), value.into()));
            self
        }

        /// Passes an option on to Java, such as `-Xmx1g`, behind those that make servers start fast and stay small, which
        /// it can override.
        pub fn java_option(mut self, option: impl Into<String>) -> Self {
            self.settings.java_options.push(option.into());
            self
        }

        /// Lets a server without a quorum serve reads to clients that accept it.
        pub fn read_only_mode(mut self, enabled: bool) -> Self {
            self.settings.read_only_mode = enabled;
            self
        }

        /// Waits for the disk at each write, as servers in production do. Off by default: data
        /// survive the death of a process without it.
        pub fn force_sync(mut self, enabled: bool) -> Self {
            self.settings.force_sync = enabled;
            self
        }
    };
}
pub(super) use shared_settings;

impl Server {
    /// Starts a server with the default settings and waits until it serves.
    ///
    /// # Errors
    ///
    /// As [`ServerBuilder::start`].
    pub async fn start(wanted: impl Into<Wanted>) -> Result<Self, Error> {
        Self::builder().release(wanted).start().await
    }

    /// Settings for a server that is not like the default one.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }
}

/// Settings for a [`Server`].
///
/// Not set here, and made for tests: a heap of 192 MB, no admin server, all four-letter words,
/// any number of connections, containers and nodes with time to live, sessions between two
/// ticks and a minute.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until start is called"]
pub struct ServerBuilder {
    choice: Choice,
    settings: Settings,
    port: Option<u16>,
    /// Whether there is a second port, for TLS.
    secured: bool,
}

impl ServerBuilder {
    shared_settings!();

    /// Uses this loopback port instead of a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Listens for TLS on a second port, [`Server::secure_addr`], with this certificate. Clients must show one of the
    /// authority's, or, without it, none.
    #[cfg(feature = "tls")]
    pub fn secure(
        mut self,
        certificate: &crate::tls::Issued,
        clients: crate::tls::ClientAuth<'_>,
    ) -> Self {
        use crate::tls::ClientAuth;
        let (need, trusted) = match clients {
            ClientAuth::None => ("none", certificate.chain.clone()),
            ClientAuth::Need(authority) => ("need", authority.pem()),
        };
        self.secured = true;
        self.file("server.pem", format!("{}{}", certificate.key, certificate.chain))
            .file("trusted.pem", trusted)
            .config("serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory")
            .config("ssl.keyStore.location={files}/server.pem")
            .config("ssl.keyStore.type=PEM")
            .config("ssl.trustStore.location={files}/trusted.pem")
            .config("ssl.trustStore.type=PEM")
            .config(format!("ssl.clientAuth={need}"))
    }

    /// Has clients prove who they are by Kerberos, if they wish, to this service. They are known by `sasl:` and their
    /// principal.
    pub fn kerberos(self, service: &Service) -> Self {
        let provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider";
        self.file("jaas.conf", service.jaas())
            .property("java.security.auth.login.config", "{files}/jaas.conf")
            .property("java.security.krb5.conf", service.config().to_string_lossy())
            .config(format!("authProvider.1={provider}"))
    }

    /// Starts the server and waits until it serves.
    ///
    /// Dropping the future kills a server that has been started. A fetch or an installation that
    /// is under way goes on to its end, for the next caller.
    ///
    /// # Errors
    ///
    /// [`Error::Locate`] if there is no ZooKeeper; [`Error::Exited`] or [`Error::NotServing`]
    /// with the server's log if it does not come up; [`Error::Io`].
    pub async fn start(self) -> Result<Server, Error> {
        let distribution = self.choice.locate().await?;
        let mut attempt = 1;
        loop {
            match self.start_once(&distribution).await {
                Err(error) if error.is_port_taken() && self.may_try_again(attempt) => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    fn may_try_again(&self, attempt: usize) -> bool {
        self.port.is_none() && attempt < PORT_ATTEMPTS
    }

    async fn start_once(&self, distribution: &Distribution) -> Result<Server, Error> {
        let port = match self.port {
            Some(port) => HeldPort::exactly(port),
            None => HeldPort::any(),
        };
        let mut secure_port = None;
        let mut lines = String::new();
        if self.secured {
            let port = HeldPort::any().map_err(Error::io("take a port"))?;
            lines = format!("secureClientPort={}\n", port.addr().port());
            lines.push_str("secureClientPortAddress=127.0.0.1\n");
            secure_port = Some(port);
        }
        let port = port.map_err(Error::io("take a port"))?;
        let server = Server::prepare(Blueprint {
            distribution,
            settings: &self.settings,
            addr: port.addr(),
            host: None,
            lines,
            member_id: None,
            secure_port,
            ports: vec![port],
        })?;
        server.launch()?;
        server.wait_until_serving().await?;
        Ok(server)
    }
}
