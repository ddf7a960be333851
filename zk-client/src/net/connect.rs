//! How connections are made; applications can provide their own.

use std::io;

use futures_core::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// Any byte stream that can carry a session.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Transport for T {}

/// Makes connections: over TCP, unless [`ConnectOptions::connector`] is set.
///
/// [`ConnectOptions::connector`]: crate::ConnectOptions::connector
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::io;
/// use tokio::net::UnixStream;
/// use zk_client::{BoxFuture, Connect, ConnectOptions, Transport};
///
/// /// Connects over a proxy on this machine that listens on a socket for each server.
/// struct Sidecar;
///
/// impl Connect for Sidecar {
///     fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
///         let socket = format!("/run/zookeeper/{server}");
///         Box::pin(async move {
///             let stream = UnixStream::connect(socket).await?;
///             Ok(Box::new(stream) as Box<dyn Transport>)
///         })
///     }
/// }
///
/// let zk = ConnectOptions::new("zk1:2181,zk2:2181")?.connector(Sidecar).connect().await?;
/// # drop(zk);
/// # Ok(())
/// # }
/// ```
pub trait Connect: Send + Sync + 'static {
    /// Starts to connect to `server`, given as `host:port` as in the connection string. Called again for each attempt,
    /// so that names are resolved each time. The session bounds the time.
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>>;

    /// Whether a write that fails has passed on none of the bytes that it was given, as on a plain socket. `false` by default: a
    /// stream that takes bytes in parts and fails behind the first, as those of TLS do, does not tell how many have left. A
    /// connector that delegates to another one delegates this, too.
    ///
    /// What may have left with a lost connection is in doubt; a request that certainly has not is sent over the next one.
    fn fails_whole(&self) -> bool {
        false
    }
}
