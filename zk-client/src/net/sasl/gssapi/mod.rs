//! `GSSAPI` (RFC 4752) with Kerberos, by the system's library.

mod exchange;
mod fault;
mod principal;
mod turns;

use std::{fmt, sync::Arc};

use self::{exchange::Exchange, turns::Turns};
use super::{SaslExchange, SaslMechanism};

/// The service that servers are, unless somebody has named theirs otherwise.
const SERVICE: &str = "zookeeper";

/// Kerberos: tickets instead of passwords, checked on both sides.
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
/// **Whom we take servers for.** `zookeeper/zk1.example` for the server that is `zk1.example` in the connection string, in
/// small letters; what DNS makes of the name, or of the address, does not count. The client's own realm is asked for it,
/// and those that it refers to ([`realm`](Self::realm) names one). Java's client asks DNS first unless
/// `zookeeper.sasl.client.canonicalize.hostname` is `false`: where servers are named by addresses or aliases, say
/// [`server_principal`](Self::server_principal).
///
/// **Who we are.** Whoever the library finds: the ticket cache of `KRB5CCNAME` or its default, filled by `kinit` and the
/// like; else the keys of `KRB5_CLIENT_KTNAME` or its default, for which the library gets tickets itself, and new ones when
/// those have expired. `KRB5_CONFIG` names the library's settings. All of that is looked at for each connection anew.
///
/// **Time.** What asks a key distribution centre runs in a thread of its own, one at a time for each server, and may
/// outlast the connection attempt, which has its own [bound](crate::ConnectOptions::connect_timeout); the next attempt then
/// finds the ticket in the cache. Such a thread does not keep the process from ending.
///
/// **Errors.** [`SaslFault::Ticket`](crate::SaslFault::Ticket) if there is no ticket: another attempt is made, since
/// tickets are renewed while sessions live. [`SaslFault::Unproved`](crate::SaslFault::Unproved) for servers that cannot use
/// theirs. Servers that refuse ours end the session.
///
/// Neither credentials nor anything else is handed over to the server (no delegation). No security layer is
/// agreed on, as ZooKeeper has none: after the exchange everything goes as it is. Use it within TLS.
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
    /// Whoever the environment says we are, to servers `zookeeper/<host>`.
    pub fn new() -> Self {
        Self {
            service: SERVICE.to_owned(),
            realm: None,
            server: None,
            client: None,
            turns: Arc::default(),
        }
    }

    /// What servers are called before the `/`; Java's `zookeeper.sasl.client.username`. Default: `zookeeper`.
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.service = service.into();
        self
    }

    /// The realm that servers are in; Java's `zookeeper.server.realm`. Default: the client's, or another one that it
    /// refers to.
    pub fn realm(mut self, realm: impl Into<String>) -> Self {
        self.realm = Some(realm.into());
        self
    }

    /// Who all servers are, such as `zookeeper/ensemble.example@EXAMPLE`, whatever they are called in the connection
    /// string; Java's `zookeeper.server.principal`. Without a realm it is in the default one. Default: each has a name of
    /// its own.
    pub fn server_principal(mut self, principal: impl Into<String>) -> Self {
        self.server = Some(principal.into());
        self
    }

    /// Who to be, such as `ann@EXAMPLE`, if the environment has tickets or keys of several. Default: its first choice.
    pub fn client_principal(mut self, principal: impl Into<String>) -> Self {
        self.client = Some(principal.into());
        self
    }

    /// Who this server should be.
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
