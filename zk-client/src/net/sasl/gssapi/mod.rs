//! `GSSAPI` (RFC 4752) with Kerberos, using the system's library.

mod exchange;
mod fault;
mod principal;
mod turns;

use std::{fmt, sync::Arc};

use self::{exchange::Exchange, turns::Turns};
use super::{SaslExchange, SaslMechanism};

/// The service name of servers, by default.
const SERVICE: &str = "zookeeper";

/// Authentication by Kerberos: tickets instead of passwords, verified on both sides.
///
/// ```no_run
/// # async fn example() -> Result<(), zk_client::ConnectError> {
/// use zk_client::{ConnectOptions, Gssapi};
///
/// let zk = ConnectOptions::new("zk1.example:2181,zk2.example:2181")?
///     .sasl(Gssapi::new())
///     .connect()
///     .await?;
/// # drop(zk);
/// # Ok(())
/// # }
/// ```
///
/// **Server principals.** A server that is `zk1.example` in the connection string must be `zookeeper/zk1.example`, in
/// lower case; DNS names or addresses that it resolves to do not count. The ticket is requested from the client's own
/// realm, and those that it refers to ([`realm`](Self::realm) names one). Java's client asks DNS first unless
/// `zookeeper.sasl.client.canonicalize.hostname` is `false`: where servers are given by addresses or aliases, set
/// [`server_principal`](Self::server_principal).
///
/// **Client principal.** Chosen by the library: from the ticket cache of `KRB5CCNAME` or its default, filled by `kinit`
/// and the like; else from the keys of `KRB5_CLIENT_KTNAME` or its default, for which the library gets tickets itself,
/// and new ones when those have expired. `KRB5_CONFIG` names the library's settings. All of that is read again for each
/// connection.
///
/// **Time.** Requests to a key distribution centre run in a separate thread, one at a time for each server, and may
/// outlast the connection attempt, which has its own [bound](crate::ConnectOptions::connect_timeout); the next attempt
/// then finds the ticket in the cache. Such a thread does not keep the process from exiting.
///
/// **Errors.** Without a ticket ([`SaslFault::NoCredentials`](crate::SaslFault::NoCredentials) and those behind it) another
/// attempt is made, since tickets are renewed while sessions live. [`SaslFault::Unproved`](crate::SaslFault::Unproved) for servers that cannot
/// use their ticket. Servers that refuse ours end the session.
///
/// Nothing is delegated to the server, credentials included. No security layer is negotiated, as ZooKeeper has none:
/// after the exchange everything is sent as it is. Use it within TLS.
#[derive(Clone)]
#[must_use = "a mechanism does nothing until it is given to `ConnectOptions::sasl`"]
pub struct Gssapi {
    service: String,
    realm: Option<String>,
    server: Option<String>,
    client: Option<String>,
    turns: Arc<Turns>,
}

impl Gssapi {
    /// Uses the environment's client principal, for servers `zookeeper/<host>`.
    pub fn new() -> Self {
        Self {
            service: SERVICE.to_owned(),
            realm: None,
            server: None,
            client: None,
            turns: Arc::default(),
        }
    }

    /// Sets the part of server principals before the `/`; Java's `zookeeper.sasl.client.username`. Default:
    /// `zookeeper`.
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.service = service.into();
        self
    }

    /// Sets the realm of the servers; Java's `zookeeper.server.realm`. Default: the client's, or another one that it
    /// refers to.
    pub fn realm(mut self, realm: impl Into<String>) -> Self {
        self.realm = Some(realm.into());
        self
    }

    /// Sets the principal of all servers, such as `zookeeper/ensemble.example@EXAMPLE`, whatever their names in the
    /// connection string; Java's `zookeeper.server.principal`. Without a realm it is in the default one. Default: each
    /// server has its own.
    pub fn server_principal(mut self, principal: impl Into<String>) -> Self {
        self.server = Some(principal.into());
        self
    }

    /// Sets the client principal, such as `ann@EXAMPLE`, if the environment has tickets or keys of several. Default:
    /// its first choice.
    pub fn client_principal(mut self, principal: impl Into<String>) -> Self {
        self.client = Some(principal.into());
        self
    }

    /// The expected principal of this server.
    fn server(&self, address: &str) -> String {
        match &self.server {
            Some(whole) => whole.clone(),
            None => principal::of_server(&self.service, address, self.realm.as_deref()),
        }
    }
}

impl Default for Gssapi {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Gssapi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gssapi")
            .field("service", &self.service)
            .field("realm", &self.realm)
            .field("server", &self.server)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

impl SaslMechanism for Gssapi {
    fn begin(&self, server: &str) -> Box<dyn SaslExchange> {
        let server = self.server(server);
        Box::new(Exchange::new(self.client.clone(), server, self.turns.clone()))
    }
}
