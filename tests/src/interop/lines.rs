//! Requests and answers of a line each, between the processes of a test.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
};

/// Serves connections on a free port; closes them when it is dropped.
#[derive(Debug)]
pub(super) struct LineServer {
    addr: SocketAddr,
    _serving: JoinSet<()>,
}

impl LineServer {
    pub(super) async fn open<F>(
        here: IpAddr,
        serve: impl Fn(LineConnection) -> F + Send + 'static,
    ) -> io::Result<Self>
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind((here, 0)).await?;
        let addr = listener.local_addr()?;
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let Ok(connection) = LineConnection::new(stream) else { continue };
                let served = serve(connection);
                connections.spawn(async move {
                    if let Err(error) = served.await {
                        // A killed process leaves half a line, or a reset, behind.
                        tracing::debug!(%error, "a connection has gone");
                    }
                });
            }
        });
        Ok(Self { addr, _serving: serving })
    }

    pub(super) const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// Either end of a connection.
#[derive(Debug)]
pub(super) struct LineConnection {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl LineConnection {
    pub(super) async fn connect(addr: SocketAddr) -> io::Result<Self> {
        Self::new(TcpStream::connect(addr).await?)
    }

    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        Ok(Self { lines: BufReader::new(reader).lines(), writer })
    }

    pub(super) async fn say(&mut self, line: &str) -> io::Result<()> {
        self.writer.write_all(format!("{line}\n").as_bytes()).await
    }

    /// The next line; `None` at the end.
    pub(super) async fn hear(&mut self) -> io::Result<Option<String>> {
        self.lines.next_line().await
    }

    /// What is answered to a line.
    pub(super) async fn ask(&mut self, line: &str) -> io::Result<String> {
        self.say(line).await?;
        Ok(self.hear().await?.ok_or(io::ErrorKind::UnexpectedEof)?)
    }
}
