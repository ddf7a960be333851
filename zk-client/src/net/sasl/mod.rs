//! SASL mechanisms, by which client and server authenticate each other.

#[cfg(feature = "sasl-digest")]
mod digest_md5;
#[cfg(feature = "sasl-gssapi")]
mod gssapi;

use std::fmt;

use bytes::Bytes;
use zk_proto::{Secret, session::SaslInput};

use crate::{error::SaslFault, future::BoxFuture};

#[cfg(feature = "sasl-digest")]
pub use self::digest_md5::DigestMd5;
#[cfg(feature = "sasl-gssapi")]
pub use self::gssapi::Gssapi;

/// A SASL mechanism, such as `DigestMd5` of the feature `sasl-digest` and `Gssapi` of `sasl-gssapi`. Applications can
/// implement their own.
///
/// ```
/// use std::future::ready;
/// use zk_client::{BoxFuture, ConnectOptions, SaslExchange, SaslMechanism, SaslInput, SaslStep, Secret};
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
///     fn step(&mut self, said: SaslInput) -> BoxFuture<'_, SaslStep> {
///         Box::pin(ready(match said {
///             SaslInput::Nothing => SaslStep::Say(Secret(self.0.clone().into())),
///             SaslInput::Answer(_) => SaslStep::Done,
///         }))
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
    /// Computes the next step: from nothing at the start, later from the server's reply.
    ///
    /// The future runs within the session's task, and must not block. It is dropped with the connection. The session
    /// bounds the number of steps and, together with the connection attempt, the time.
    fn step(&mut self, said: SaslInput) -> BoxFuture<'_, SaslStep>;
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaslStep {
    /// Send this to the server, and wait for its answer.
    Say(Secret<Bytes>),
    /// Both sides are satisfied.
    Done,
    /// The exchange has failed.
    Failed(SaslFault),
}

#[cfg(any(feature = "sasl-digest", feature = "sasl-gssapi"))]
fn malformed(why: &str) -> SaslFault {
    SaslFault::Malformed(why.to_owned())
}
