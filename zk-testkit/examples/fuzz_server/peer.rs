//! The two that are compared: a server behind a socket, and the in-process one.

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use zk_proto::{Time, frame::split_frame};
use zk_testkit::server::{Config, Conn, Ensemble, Member, Output};

/// How long a server may take for an answer before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(5);

/// What came instead of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server has closed the connection.
    Closed,
    /// Nothing has come in time.
    Hung,
    /// What came is not a frame.
    NoFrame(String),
}

/// A connection to the server under test.
#[derive(Debug)]
pub(crate) struct Server {
    stream: TcpStream,
    inbound: BytesMut,
}

impl Server {
    pub(crate) fn connect(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, inbound: BytesMut::new() })
    }

    /// A connection that was closed meanwhile shows when it is read.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub(crate) fn frame(&mut self) -> Result<Bytes, Ended> {
        loop {
            match split_frame(&mut self.inbound, zk_proto::frame::LEN_REPLY_MAX) {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => {}
                Err(error) => return Err(Ended::NoFrame(error.to_string())),
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Ended::Closed),
                Ok(count) => self.inbound.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Err(Ended::Hung);
                }
                // A close with unread bytes behind it is a reset.
                Err(_) => return Err(Ended::Closed),
            }
        }
    }
}

/// A connection to the model.
#[derive(Debug)]
pub(crate) struct Model {
    ensemble: Ensemble,
    conn: Conn,
    inbound: BytesMut,
}

impl Model {
    pub(crate) fn connect(config: &Config) -> Self {
        let mut ensemble = Ensemble::new(config.clone());
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let conn = ensemble.accept(Time::ZERO, Member(0), peer).expect("it listens");
        Self { ensemble, conn, inbound: BytesMut::new() }
    }

    /// Everything that it answers to these bytes, and whether it closes the connection behind that.
    pub(crate) fn answers(&mut self, bytes: &[u8]) -> (Vec<Bytes>, bool) {
        self.ensemble.received(Time::ZERO, self.conn, bytes);
        let (mut frames, mut closed) = (Vec::new(), false);
        while let Some(output) = self.ensemble.poll() {
            match output {
                Output::Write { bytes, .. } => self.inbound.extend_from_slice(&bytes),
                Output::Close { .. } => closed = true,
            }
        }
        while let Some(frame) =
            split_frame(&mut self.inbound, usize::MAX).expect("the model sends frames")
        {
            frames.push(frame);
        }
        (frames, closed)
    }
}
