//! Ports with TLS, beside those without.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};

use super::{
    Listening, Member,
    listen::{Accepted, Core, serve},
    member_port::MemberPort,
};
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
        self.tasks.spawn(accept(self.core.clone(), port, tls.clone()));
        Ok(bound)
    }
}

async fn accept(core: Arc<Core>, mut port: MemberPort, tls: ServerTls) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = clients.join_next() => {}
            (stream, peer) = port.accept() => {
                clients.spawn(shake_hands(core.clone(), stream, peer, port.member, tls.clone()));
            }
        }
    }
}

async fn shake_hands(
    core: Arc<Core>,
    stream: TcpStream,
    peer: SocketAddr,
    member: Member,
    tls: ServerTls,
) {
    // Without Nagle's wait; a socket that refuses this is slower, and works.
    let _ = stream.set_nodelay(true);
    // Whatever breaks here breaks for the client, which is the one to tell of it.
    let Ok(Ok((stream, subject))) = timeout(HANDSHAKE_MAX, tls.accept(stream)).await else {
        return;
    };
    serve(core, stream, Accepted { member, peer, subject }).await;
}
