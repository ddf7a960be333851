//! Proving who one is, and having servers prove who they are: mechanisms of SASL.

#[cfg(feature = "sasl-digest")]
mod digest_md5;
#[cfg(feature = "sasl-gssapi")]
mod gssapi;

use std::{fmt, future::Future, pin::Pin};

use zk_proto::session::{SaslSaid, SaslStep};

#[cfg(any(feature = "sasl-digest", feature = "sasl-gssapi"))]
use zk_proto::session::SaslFault;

#[cfg(feature = "sasl-digest")]
pub use self::digest_md5::DigestMd5;
#[cfg(feature = "sasl-gssapi")]
pub use self::gssapi::Gssapi;

/// A way to prove who one is, such as `DigestMd5` of the feature `sasl-digest` and `Gssapi` of `sasl-gssapi`.
/// For mechanisms of one's own.
///
/// ```
/// use std::future::ready;
/// use zk_client::{ConnectOptions, SaslExchange, SaslMechanism, SaslSaid, SaslStep, SaslThought, Secret};
///
/// /// Shows a token, to servers behind something that knows what to make of it.
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
///     fn step(&mut self, said: SaslSaid) -> SaslThought<'_> {
///         Box::pin(ready(match said {
///             SaslSaid::Nothing => SaslStep::Say(Secret(self.0.clone().into())),
///             SaslSaid::Answer(_) => SaslStep::Done,
///         }))
///     }
/// }
///
/// let options = ConnectOptions::new("zk1:2181")?.sasl(Bearer(Secret("a token".into())));
/// # drop(options);
/// # Ok::<(), zk_client::ServersError>(())
/// ```
pub trait SaslMechanism: fmt::Debug + Send + Sync + 'static {
    /// An exchange with a server, given as `host:port` as in the connection string. Each connection has its own.
    fn begin(&self, server: &str) -> Box<dyn SaslExchange>;
}

/// One exchange.
pub trait SaslExchange: Send + 'static {
    /// What to do now that this has been said: nothing yet, at the start, later the server's answers.
    ///
    /// The future runs within the session's task, and must not block. It is dropped with the connection. The session
    /// bounds the time, together with the connection attempt, and the number of steps.
    fn step(&mut self, said: SaslSaid) -> SaslThought<'_>;
}

/// A step being thought about.
pub type SaslThought<'a> = Pin<Box<dyn Future<Output = SaslStep> + Send + 'a>>;

#[cfg(any(feature = "sasl-digest", feature = "sasl-gssapi"))]
fn malformed(why: &str) -> SaslFault {
    SaslFault::Malformed(why.to_owned())
}
