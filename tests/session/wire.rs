//! What the session writes to the server, a line for each frame.

use bytes::Bytes;
use zk_proto::{
    List, OpCode, Text, Xid,
    frame::{LEN_PREFIX, RequestHeader},
    jute::{Decode, DecodeError, Reader},
    request::{
        AddWatchRequest, AuthPacket, CheckWatchesRequest, ConnectRequest, Create2Request,
        CreateRequest, DeleteRequest, ExistsRequest, GetChildren2Request, GetDataRequest,
        GetSaslRequest, RemoveWatchesRequest, SetDataRequest, SetWatches, SetWatches2, SyncRequest,
    },
};

/// Longest list of paths that is shown in full.
const PATHS_SHOWN: usize = 4;

/// Reads what goes to one server.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    greeted: bool,
}

impl Wire {
    /// Describes a frame. The first one of a connection is the handshake.
    pub(crate) fn describe(&mut self, frame: &Bytes) -> String {
        let mut reader = Reader::new(frame);
        let greeted = std::mem::replace(&mut self.greeted, true);
        let description = if greeted { request(&mut reader) } else { handshake(&mut reader) };
        let description = description.expect("what the session sends can be decoded");
        reader.finish().expect("nothing follows the last field");
        format!("send {description}")
    }
}

fn handshake(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let request = ConnectRequest::decode(reader)?;
    let read_only = if request.read_only.0 == Some(true) { " read-only" } else { "" };
    let (id, zxid, timeout) = (request.session_id, request.last_zxid_seen, request.time_out);
    Ok(format!("connect-request id={id} zxid={zxid} timeout={timeout}ms{read_only}"))
}

fn request(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let len = reader.left() + LEN_PREFIX;
    let RequestHeader { xid, op } = RequestHeader::decode(reader)?;
    let arguments = arguments(op, reader)?;
    let xid = match xid {
        Xid::PING | Xid::AUTH => String::new(),
        xid => format!("#{xid} "),
    };
    let len = if len > 500 { format!(" ({len} bytes)") } else { String::new() };
    Ok(format!("{xid}{op}{arguments}{len}"))
}

fn arguments(op: OpCode, reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let watching = |watch| if watch { " watch" } else { "" };
    let text = |data: Option<&[u8]>| match data {
        Some(data) if data.len() > 40 => format!("{} bytes", data.len()),
        Some(data) => format!("{:?}", String::from_utf8_lossy(data)),
        None => "null".into(),
    };
    Ok(match op {
        OpCode::GET_DATA => {
            let GetDataRequest { path, watch } = Decode::decode(reader)?;
            format!(" {path}{}", watching(watch))
        }
        OpCode::EXISTS => {
            let ExistsRequest { path, watch } = Decode::decode(reader)?;
            format!(" {path}{}", watching(watch))
        }
        OpCode::GET_CHILDREN2 => {
            let GetChildren2Request { path, watch } = Decode::decode(reader)?;
            format!(" {path}{}", watching(watch))
        }
        OpCode::CREATE => {
            let CreateRequest { path, data, flags, .. } = Decode::decode(reader)?;
            format!(" {path} {} {flags}", text(data))
        }
        OpCode::CREATE2 => {
            let Create2Request(CreateRequest { path, data, flags, .. }) = Decode::decode(reader)?;
            format!(" {path} {} {flags}", text(data))
        }
        OpCode::SET_DATA => {
            let SetDataRequest { path, data, version } = Decode::decode(reader)?;
            format!(" {path} {} version={version}", text(data))
        }
        OpCode::DELETE => {
            let DeleteRequest { path, version } = Decode::decode(reader)?;
            format!(" {path} version={version}")
        }
        OpCode::SYNC => format!(" {}", SyncRequest::decode(reader)?.path),
        OpCode::ADD_WATCH => {
            let AddWatchRequest { path, mode } = Decode::decode(reader)?;
            format!(" {path} {mode}")
        }
        OpCode::REMOVE_WATCHES => {
            let RemoveWatchesRequest(CheckWatchesRequest { path, kind }) = Decode::decode(reader)?;
            format!(" {path} {kind}")
        }
        OpCode::AUTH => {
            let AuthPacket { scheme, auth, .. } = Decode::decode(reader)?;
            format!(" {scheme} {}", text(auth.0))
        }
        OpCode::SASL => {
            let GetSaslRequest { token } = Decode::decode(reader)?;
            format!(" {}", text(token.0))
        }
        OpCode::SET_WATCHES => set_watches(&SetWatches::decode(reader)?),
        OpCode::SET_WATCHES2 => set_watches2(SetWatches2::decode(reader)?),
        _ => String::new(),
    })
}

fn set_watches(set: &SetWatches) -> String {
    format!(
        " since={}{}{}{}",
        set.relative_zxid,
        paths("data", &set.data_watches),
        paths("exist", &set.exist_watches),
        paths("child", &set.child_watches),
    )
}

fn set_watches2(set: SetWatches2) -> String {
    let persistent = paths("persistent", &set.persistent_watches);
    let recursive = paths("recursive", &set.persistent_recursive_watches);
    let one_shot = set_watches(&SetWatches {
        relative_zxid: set.relative_zxid,
        data_watches: set.data_watches,
        exist_watches: set.exist_watches,
        child_watches: set.child_watches,
    });
    format!("{one_shot}{persistent}{recursive}")
}

fn paths(kind: &str, paths: &List<Text>) -> String {
    match paths.len() {
        0 => String::new(),
        1..=PATHS_SHOWN => format!(" {kind}=[{}]", paths.strs().collect::<Vec<_>>().join(" ")),
        count => format!(" {kind}={count}"),
    }
}
