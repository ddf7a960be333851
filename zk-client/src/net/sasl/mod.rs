//! SASL mechanisms, by which client and server authenticate each other.

#[cfg(feature = "sasl-digest")]
mod digest_md5;
#[cfg(feature = "sasl-gssapi")]
mod gssapi;

use std::fmt;

use bytes::Bytes;
use futures_core::future::BoxFuture;
use zk_proto::{Secret, session::SaslInput};

use crate::error::SaslFault;

#[cfg(feature = "sasl-digest")]
pub use self::digest_md5::DigestMd5;
#[cfg(feature = "sasl-gssapi")]
pub use self::gssapi::Gssapi;

/// A SASL mechanism, such as `DigestMd5` of the feature `sasl-digest` and `Gssapi` of `sasl-gssapi`. Applications can
/// implement their own.
///
/// ```
/// use std::future::ready;
/// use zk_client::{BoxFuture, bytes::Bytes, ConnectOptions, SaslExchange, SaslMechanism, SaslFault, SaslInput, Secret};
///
/// /// Sends a token, to servers behind a gateway that understands it.
/// #[derive(Debug)]
/// struct Bearer(Secret<String>);
///
/// struct Show(String);
///
/// impl SaslMechanism for Bearer {
///     fn begin(&self, _server: &str) -> Box<dyn SaslExchange> {
///         Box::new(Show(self.0.0.clone()))
///     }
/// }
///
/// impl SaslExchange for Show {
///     fn step(&mut self, said: SaslInput) -> BoxFuture<'_, Result<Option<Secret<Bytes>>, SaslFault>> {
///         Box::pin(ready(Ok(match said {
///             SaslInput::Nothing => Some(Secret(self.0.clone().into())),
///             SaslInput::Answer(_) => None,
///         })))
///     }
/// }
///
/// let options = ConnectOptions::new("zk1:2181")?.sasl(Bearer(Secret("a token".into())));
/// # drop(options);
/// # Ok::<(), zk_client::ConnectError>(())
/// ```
pub trait SaslMechanism: fmt::Debug + Send + Sync + 'static {
    /// Starts an exchange with a server, given as `host:port` as in the connection string. Each connection has its own.
    fn begin(&self, server: &str) -> Box<dyn SaslExchange>;
}

/// One exchange of a mechanism with a server.
pub trait SaslExchange: Send + 'static {
    /// Computes the next step, from nothing at the start, later from the server's reply: what to send, and wait for the
    /// answer to, or `None` once both sides are satisfied.
    ///
    /// The future runs within the session's task, and must not block. It is dropped with the connection. The session
    /// bounds the number of steps and, together with the connection attempt, the time.
    ///
    /// # Errors
    /// Why the exchange has failed.
    fn step(&mut self, said: SaslInput) -> BoxFuture<'_, Result<Option<Secret<Bytes>>, SaslFault>>;
}

/// What a step ends in.
pub(crate) type SaslStep = Result<Option<Secret<Bytes>>, SaslFault>;

#[cfg(any(feature = "sasl-digest", feature = "sasl-gssapi"))]
fn malformed(why: &str) -> SaslFault {
    SaslFault::Malformed(why.to_owned())
}
