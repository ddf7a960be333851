//! Ports with TLS, beside those without.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{net::TcpListener, time::timeout};

use super::{Listening, Member, listen::accept};
use crate::tls::ServerTls;

/// How long a client may take to agree on TLS.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

impl Listening {
    /// Has a member listen on one more port, with TLS. Its clients are known to it by their certificates, too; let
    /// [`Config::x509`](super::Config::x509) be set for access control lists that name those.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn secure(
        &mut self,
        member: Member,
        addr: SocketAddr,
        tls: &ServerTls,
    ) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(addr).await?;
        let port = self.core.port(listener, member)?;
        let bound = port.addr;
        let tls = tls.clone();
        self.tasks.spawn(accept(self.core.clone(), port, move |stream| {
            let tls = tls.clone();
            async move {
                // Whatever breaks here breaks for the client, which is the one to tell of it.
                timeout(HANDSHAKE_MAX, tls.accept(stream)).await.ok()?.ok()
            }
        }));
        Ok(bound)
    }
}
