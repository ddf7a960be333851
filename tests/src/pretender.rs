//! Servers that only pretend to know who they are.

use std::{io, net::SocketAddr};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use zk_proto::{
    ErrorCode, OpCode, Secret, SessionId, Xid, Zxid,
    frame::{ReplyHeader, RequestHeader, encode_frame, encode_frame_with},
    jute::{Decode as _, Encode as _, Reader},
    request::{ConnectResponse, SetSaslResponse, TrailingFlag},
};

/// What a server says to a token in place of what it should; `None` hangs up.
pub type Says = fn(usize) -> Option<(ErrorCode, Option<Bytes>)>;

/// A server that makes sessions, and then only talks SASL, as it likes. Goes with the returned set.
///
/// # Panics
/// There is no port to listen on; in its task, if a client says anything else.
pub async fn pretender(says: Says) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // One client at a time; that it hangs up is nothing to tell of.
            let _ = pretend(&mut stream, says).await;
        }
    });
    (addr, tasks)
}

/// What a server says that has made a session.
#[must_use]
pub fn greeting() -> ConnectResponse {
    ConnectResponse {
        protocol_version: 0,
        time_out: 10_000,
        session_id: SessionId(7),
        passwd: Secret(Some(Bytes::from_static(&[1; 16]))),
        read_only: TrailingFlag(Some(false)),
    }
}

async fn pretend(stream: &mut TcpStream, says: Says) -> io::Result<()> {
    async fn frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
        let len = stream.read_u32().await?;
        let mut frame = vec![0; len as usize];
        stream.read_exact(&mut frame).await?;
        Ok(frame)
    }
    frame(stream).await?;
    let mut out = BytesMut::new();
    encode_frame(&greeting(), &mut out);
    stream.write_all(&out).await?;
    for number in 0.. {
        let request = frame(stream).await?;
        let header = RequestHeader::decode(&mut Reader::new(&request.into())).unwrap();
        assert_eq!(header.op, OpCode::SASL, "nothing but the exchange");
        let Some((err, token)) = says(number) else { return Ok(()) };
        out.clear();
        encode_frame_with(&mut out, |out| {
            ReplyHeader { xid: Xid(header.xid.0), zxid: Zxid(0), err }.encode(out);
            SetSaslResponse { token: Secret(token) }.encode(out);
        });
        stream.write_all(&out).await?;
    }
    Ok(())
}
