//! The server's side as scripts write it: `reply xid=1 zxid=5 err=NoNode`.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode, EventType, KeeperState, OpCode, Secret, SessionId, Stat, Text, Xid, Zxid,
    frame::{ReplyHeader, encode_frame, encode_frame_with},
    jute::Encode,
    request::{
        ConnectResponse, ErrorResponse, GetDataResponse, MultiHeader, SetSaslResponse,
        TrailingFlag, WatcherEvent,
    },
};

use crate::session::command::{Args, Error, code, int};

/// Appends the frame of one of the server's messages:
///
/// * `connect-response [id=N] [timeout=DURATION] [read-only] [without-flag]`
/// * `reply xid=N [zxid=N] [err=CODE] [data=TEXT] [err-body=CODE] [multi-err=CODE]`
/// * `event TYPE PATH [zxid=N]`
/// * `pong [err=CODE]`
/// * `auth [err=CODE]`
/// * `sasl xid=N [token=TEXT] [err=CODE]`
pub(crate) fn message(args: &mut Args<'_>, out: &mut BytesMut) -> Result<(), Error> {
    let what = args.word("the message")?;
    let err = args.option("err").map_or(Ok(ErrorCode::OK), code)?;
    let zxid = args.number("zxid")?;
    match what {
        "connect-response" => encode_frame(&connect_response(args)?, out),
        "reply" => {
            let xid = Xid(int(args.number("xid")?.ok_or("whose reply?")?)?);
            let header = ReplyHeader { xid, zxid: Zxid(zxid.unwrap_or_default()), err };
            let body = body(args)?;
            reply(header, |out| out.extend_from_slice(&body), out);
        }
        "event" => {
            let header =
                ReplyHeader { xid: Xid::NOTIFICATION, zxid: Zxid(zxid.unwrap_or(-1)), err };
            let kind = args.word("the event")?;
            let kind = EventType::KNOWN.iter().find(|known| known.name() == Some(kind));
            let kind = *kind.ok_or("no such event")?;
            let path = Text::from(args.word("the path")?);
            let event = WatcherEvent { kind, state: KeeperState::SYNC_CONNECTED, path };
            reply(header, |out| event.encode(out), out);
        }
        "pong" => {
            reply(ReplyHeader { xid: Xid::PING, zxid: Zxid(zxid.unwrap_or(1)), err }, |_| {}, out);
        }
        "sasl" => {
            let xid = Xid(int(args.number("xid")?.ok_or("whose reply?")?)?);
            let token = args.option("token").map(|token| Bytes::copy_from_slice(token.as_bytes()));
            let answer = SetSaslResponse { token: Secret(token) };
            let header = ReplyHeader { xid, zxid: Zxid(0), err };
            reply(
                header,
                |out| {
                    if err.is_ok() {
                        answer.encode(out)
                    }
                },
                out,
            );
        }
        "auth" => reply(ReplyHeader { xid: Xid::AUTH, zxid: Zxid(0), err }, |_| {}, out),
        _ => return Err(format!("servers do not send {what}")),
    }
    args.finish()
}

pub(crate) fn reply(header: ReplyHeader, body: impl FnOnce(&mut BytesMut), out: &mut BytesMut) {
    encode_frame_with(out, |out| {
        header.encode(out);
        body(out);
    });
}

/// What the server makes its passwords of is its own business; here it is the id, twice.
fn password(id: i64) -> Bytes {
    let mut password = BytesMut::new();
    id.encode(&mut password);
    id.encode(&mut password);
    password.freeze()
}

fn connect_response(args: &mut Args<'_>) -> Result<ConnectResponse, Error> {
    let id = args.number("id")?.unwrap_or_default();
    let timeout = args.duration("timeout")?.unwrap_or(Duration::ZERO);
    let read_only = args.flag("read-only");
    let flag = !args.flag("without-flag");
    Ok(ConnectResponse {
        protocol_version: 0,
        time_out: i32::try_from(timeout.as_millis()).map_err(|error| error.to_string())?,
        session_id: SessionId(id),
        passwd: Secret(Some(password(id))),
        read_only: TrailingFlag(flag.then_some(read_only)),
    })
}

/// Sessions pass most bodies on as they are.
fn body(args: &mut Args<'_>) -> Result<BytesMut, Error> {
    let mut out = BytesMut::new();
    if let Some(data) = args.option("data") {
        let data = Some(Bytes::copy_from_slice(data.as_bytes()));
        GetDataResponse { data, stat: Stat::default() }.encode(&mut out);
    }
    if let Some(err) = args.option("err-body") {
        ErrorResponse { err: code(err)? }.encode(&mut out);
    }
    if let Some(err) = args.option("multi-err") {
        let err = code(err)?;
        MultiHeader { op: OpCode::ERROR, done: false, err }.encode(&mut out);
        ErrorResponse { err }.encode(&mut out);
        MultiHeader::END.encode(&mut out);
    }
    Ok(out)
}
