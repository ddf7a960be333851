//! Connections: the only place that touches a socket.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use futures_core::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio_util::io::poll_read_buf;
use zeroize::Zeroize as _;
use zk_proto::session::{Outbound, ProbeAnswer};

use super::connect::Transport;
use crate::error::LinkError;

/// What is read at a time where little is expected: more than the answer to a handshake or a ping, or than most events.
pub(crate) const LITTLE: usize = 128;

/// How many bytes are given at once to a stream that does not tell how many of them it has passed on when it fails.
const DOUBTED_MAX: usize = 64 * 1024;

/// How many pieces are written at once at most.
const PIECES_MAX: usize = 16;

/// The driver's connection.
pub(crate) enum Link {
    Down,
    Dialing(BoxFuture<'static, io::Result<Box<dyn Transport>>>),
    Up(Box<dyn Transport>),
}

impl Link {
    /// Polls the dial in progress; pending if there is none.
    pub(crate) fn poll_dial(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let Self::Dialing(dial) = self else { return Poll::Pending };
        match ready!(dial.as_mut().poll(cx)) {
            Ok(stream) => {
                *self = Self::Up(stream);
                Poll::Ready(Ok(()))
            }
            Err(error) => {
                *self = Self::Down;
                Poll::Ready(Err(link_error(&error)))
            }
        }
    }

    /// Appends received bytes to `inbound`, as far as there is room; pending without a connection.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        inbound: &mut BytesMut,
    ) -> Poll<Result<(), LinkError>> {
        let Self::Up(stream) = self else { return Poll::Pending };
        let outcome = match ready!(poll_read_buf(Pin::new(stream), cx, inbound)) {
            Ok(0) => Err(LinkError::Closed),
            Ok(_) => Ok(()),
            Err(error) => Err(link_error(&error)),
        };
        self.down_on_error(&outcome);
        Poll::Ready(outcome)
    }

    /// As `poll_read`, but makes room only once something has arrived: for connections that are waited on for seconds,
    /// and then for a few bytes.
    pub(crate) fn poll_read_little(
        &mut self,
        cx: &mut Context<'_>,
        inbound: &mut BytesMut,
    ) -> Poll<Result<(), LinkError>> {
        let Self::Up(stream) = self else { return Poll::Pending };
        let mut room = [MaybeUninit::uninit(); LITTLE];
        let mut little = ReadBuf::uninit(&mut room);
        let outcome = match ready!(Pin::new(stream).poll_read(cx, &mut little)) {
            Ok(()) if little.filled().is_empty() => Err(LinkError::Closed),
            Ok(()) => {
                if inbound.capacity() == 0 {
                    // Once for all of a frame: one with a password is not to be moved.
                    inbound.reserve(LITTLE);
                }
                inbound.extend_from_slice(little.filled());
                little.filled_mut().zeroize();
                Ok(())
            }
            Err(error) => Err(link_error(&error)),
        };
        self.down_on_error(&outcome);
        Poll::Ready(outcome)
    }

    /// Writes as much of `outbound` as the connection accepts, and removes it.
    ///
    /// What is left behind an error was certainly not written: see [`Connect::fails_whole`](super::connect::Connect::fails_whole).
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        outbound: &mut Outbound,
        fails_whole: bool,
    ) -> Poll<Result<(), LinkError>> {
        let Self::Up(stream) = self else { return Poll::Pending };
        let outcome = loop {
            if outbound.is_empty() {
                break ready!(Pin::new(stream).poll_flush(cx)).map_err(|error| link_error(&error));
            }
            let stream = Pin::new(&mut *stream);
            let in_pieces = fails_whole && outbound.is_in_pieces();
            let (written, offered) = if in_pieces && stream.is_write_vectored() {
                let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
                let filled = pieces.iter_mut().zip(outbound.pieces());
                let count = filled.map(|(slice, piece)| *slice = IoSlice::new(piece)).count();
                let pieces = pieces.get(..count).unwrap_or_default();
                let offered = pieces.iter().map(|piece| piece.len()).sum();
                (stream.poll_write_vectored(cx, pieces), offered)
            } else {
                let chunk = outbound.chunk();
                let most = if fails_whole { usize::MAX } else { DOUBTED_MAX };
                let chunk = chunk.get(..most).unwrap_or(chunk);
                (stream.poll_write(cx, chunk), chunk.len())
            };
            match ready!(written) {
                Ok(0) => break Err(LinkError::Closed),
                Ok(len) => outbound.advance(len),
                Err(error) => {
                    if !fails_whole {
                        outbound.advance(offered);
                    }
                    break Err(link_error(&error));
                }
            }
        };
        self.down_on_error(&outcome);
        Poll::Ready(outcome)
    }

    fn down_on_error(&mut self, outcome: &Result<(), LinkError>) {
        if outcome.is_err() {
            *self = Self::Down;
        }
    }
}

/// Converts errors of the operating system, and of TLS.
fn link_error(error: &io::Error) -> LinkError {
    use io::ErrorKind as Kind;
    #[cfg(feature = "tls")]
    if let Some(fault) = crate::net::tls::fault(error) {
        return LinkError::Tls(fault);
    }
    match error.kind() {
        Kind::ConnectionRefused => LinkError::Refused,
        Kind::ConnectionReset | Kind::BrokenPipe | Kind::ConnectionAborted => LinkError::Reset,
        Kind::UnexpectedEof => LinkError::Closed,
        Kind::TimedOut => LinkError::TimedOut,
        Kind::NotFound => LinkError::Unresolved(error.to_string()),
        _ => LinkError::Other(error.to_string()),
    }
}

/// Longest time to wait for the answer to a probe, as in the Java client.
const PROBE_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// Asks a server over a separate connection whether it accepts writes.
pub(crate) async fn probe(dial: BoxFuture<'static, io::Result<Box<dyn Transport>>>) -> ProbeAnswer {
    let ask = async {
        let mut stream = dial.await?;
        stream.write_all(b"isro").await?;
        let mut answer = Vec::new();
        // Longer than any of the answers; a refusal in words is cut off, and means neither.
        stream.take(8).read_to_end(&mut answer).await?;
        io::Result::Ok(answer)
    };
    match tokio::time::timeout(PROBE_TIME_MAX, ask).await {
        Ok(Ok(answer)) => match answer.trim_ascii() {
            b"rw" => ProbeAnswer::ReadWrite,
            b"ro" | b"null" => ProbeAnswer::ReadOnly,
            _ => ProbeAnswer::Unknown,
        },
        Ok(Err(_)) | Err(_) => ProbeAnswer::ReadOnly,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a probe's result for a server that answers with these bytes and closes.
    fn probed(answer: Option<&'static [u8]>) -> ProbeAnswer {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let dial: BoxFuture<'static, io::Result<Box<dyn Transport>>> = Box::pin(async move {
            let answer = answer.ok_or(io::ErrorKind::ConnectionRefused)?;
            let (near, mut far) = tokio::io::duplex(64);
            tokio::spawn(async move {
                let mut question = [0; 4];
                far.read_exact(&mut question).await.unwrap();
                assert_eq!(&question, b"isro");
                // The client may have read enough and closed.
                let _ = far.write_all(answer).await;
            });
            Ok(Box::new(near) as Box<dyn Transport>)
        });
        runtime.block_on(probe(dial))
    }

    #[test]
    fn only_exact_answers_tell_read_write_mode() {
        for (answer, meaning) in [
            (&b"rw"[..], ProbeAnswer::ReadWrite),
            (b"rw\n", ProbeAnswer::ReadWrite),
            (b"ro", ProbeAnswer::ReadOnly),
            (b"null", ProbeAnswer::ReadOnly),
            (b"isro is not executed because it is not in the whitelist.\n", ProbeAnswer::Unknown),
            (b"rwro", ProbeAnswer::Unknown),
            (b"", ProbeAnswer::Unknown),
            (b"This ZooKeeper instance is not currently serving requests\n", ProbeAnswer::Unknown),
        ] {
            assert_eq!(probed(Some(answer)), meaning, "{:?}", answer.escape_ascii().to_string());
        }
        assert_eq!(probed(None), ProbeAnswer::ReadOnly, "who cannot be reached takes no writes");
    }

    /// Whether it takes the question, or not even the connection.
    #[test]
    fn probe_waits_a_second_for_a_mute_server() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (near, _mute) = tokio::io::duplex(64);
            let connected = async { Ok(Box::new(near) as Box<dyn Transport>) };
            let dials: [BoxFuture<'static, _>; 2] =
                [Box::pin(connected), Box::pin(std::future::pending())];
            for dial in dials {
                let began = tokio::time::Instant::now();
                let limit = std::time::Duration::from_secs(60);
                let answer = tokio::time::timeout(limit, probe(dial)).await;
                assert_eq!(answer, Ok(ProbeAnswer::ReadOnly));
                assert_eq!(began.elapsed().as_secs(), 1);
            }
        });
    }
}
