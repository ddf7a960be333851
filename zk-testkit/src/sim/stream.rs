//! The simulated network as the client sees it: streams, and how they are made.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};
use zk_client::{BoxFuture, Connect, Transport};

use super::{
    Cluster,
    net::{ConnectorId, LinkId},
};

/// What the members are called in a connection string: `m0:2181,m1:2181` and so on.
#[must_use]
pub fn servers(members: usize) -> String {
    let names: Vec<String> = (0..members).map(|member| format!("m{member}:2181")).collect();
    names.join(",")
}

/// A client's way into the simulated network.
#[derive(Clone, Debug)]
pub struct SimConnect {
    cluster: Cluster,
    client: u32,
    id: ConnectorId,
}

impl SimConnect {
    /// The way of this client.
    #[must_use]
    pub fn new(cluster: &Cluster, client: u32) -> Self {
        let id = cluster.state().new_connector();
        Self { cluster: cluster.clone(), client, id }
    }

    /// Its number, which tells apart the sessions of a client that overlap.
    #[must_use]
    pub const fn id(&self) -> ConnectorId {
        self.id
    }
}

impl Connect for SimConnect {
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let Self { cluster, client, id } = self.clone();
        let member = server.strip_prefix('m').and_then(|name| name.split(':').next()?.parse().ok());
        Box::pin(async move {
            let member: usize = member.ok_or(io::ErrorKind::NotFound)?;
            let link = cluster.state().dial(client, id, member);
            // From here on dropping it hangs up.
            let stream = SimStream { cluster, link };
            let answer = poll_fn(|cx| {
                let answer = stream.cluster.state().net.poll_dial(link, cx.waker());
                answer.map_or(Poll::Pending, Poll::Ready)
            });
            match answer.await {
                0 => Ok(Box::new(stream) as Box<dyn Transport>),
                1 => Err(io::ErrorKind::ConnectionRefused.into()),
                _ => Err(io::Error::new(io::ErrorKind::NotFound, "name has no address")),
            }
        })
    }

    fn fails_whole(&self) -> bool {
        true
    }
}

/// A client's end of a connection. Dropping it closes it.
#[derive(Debug)]
pub struct SimStream {
    cluster: Cluster,
    link: LinkId,
}

impl AsyncRead for SimStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.cluster.state().net.poll_read(self.link, buf.remaining(), cx.waker());
        let Some(read) = read else { return Poll::Pending };
        Poll::Ready(read.map(|bytes| buf.put_slice(&bytes)))
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.cluster.state();
        let now = state.now();
        let Some(taken) = state.net.poll_write(now, self.link, buf, cx.waker()) else {
            return Poll::Pending;
        };
        if let Ok(taken) = taken {
            state.written(self.link, &buf[..taken]);
        }
        Poll::Ready(taken)
    }

    /// As a socket does: of all pieces, as much as there is room for.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let pieces: Vec<&[u8]> = pieces.iter().map(|piece| &**piece).collect();
        self.poll_write(cx, &pieces.concat())
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        self.cluster.state().left(self.link);
    }
}

/// A client's clock: virtual time since now, as a clock shows it that is too fast by so many millionths (too slow if
/// negative).
pub fn sim_clock(drift: i32) -> impl Fn() -> Duration + Send + Sync + 'static {
    let start = Instant::now();
    move || {
        let elapsed = start.elapsed();
        let error = elapsed / 1_000_000 * drift.unsigned_abs();
        if drift < 0 { elapsed - error } else { elapsed + error }
    }
}
