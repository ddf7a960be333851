//! What the session writes to the server, a line for each frame.

use bytes::Bytes;
use zk_proto::{
    List, Text, Xid,
    frame::{LEN_PREFIX, RequestHeader},
    jute::{DecodeError, DecodeErrorKind, Encode as _},
    request::{
        AddWatchRequest, AnyRequest, AuthPacket, CheckWatchesRequest, ConnectRequest,
        Create2Request, CreateRequest, DeleteRequest, ExistsRequest, GetChildren2Request,
        GetDataRequest, RemoveWatchesRequest, SetDataRequest, SetWatches, SetWatches2,
    },
    traffic::{Sent, SentRequest, Traffic},
};

/// Longest list of paths that is shown in full.
const PATHS_SHOWN: usize = 4;

/// Reads what goes to one server.
#[derive(Debug, Default)]
pub(crate) struct Wire(Traffic);

impl Wire {
    /// Describes a frame. The first one of a connection is the handshake.
    pub(crate) fn describe(&mut self, frame: &Bytes) -> String {
        match self.0.sent(frame).expect("what the session sends can be decoded") {
            Sent::Connect(connect) => {
                assert_eq!(connect.encoded_len(), frame.len(), "nothing follows the last field");
                handshake(&connect)
            }
            Sent::Request(it) => request(&it, frame.len() + LEN_PREFIX),
        }
    }
}

fn handshake(request: &ConnectRequest<'_>) -> String {
    let read_only = if request.read_only.0 == Some(true) { " read-only" } else { "" };
    let (id, zxid, timeout) = (request.session_id, request.last_zxid_seen, request.time_out);
    format!("send connect-request id={id} zxid={zxid} timeout={timeout}ms{read_only}")
}

fn request(request: &SentRequest, len: usize) -> String {
    let RequestHeader { xid, op } = request.header;
    let arguments = match request.decode() {
        Ok(decoded) => {
            assert_eq!(decoded.encoded_len(), request.body.len(), "nothing follows the last field");
            arguments(decoded)
        }
        Err(DecodeError { kind: DecodeErrorKind::NoRequest(_), .. }) => String::new(),
        Err(error) => panic!("what the session sends cannot be decoded: {error}"),
    };
    let xid = match xid {
        Xid::PING | Xid::AUTH => String::new(),
        xid => format!("#{xid} "),
    };
    let len = if len > 500 { format!(" ({len} bytes)") } else { String::new() };
    format!("send {xid}{op}{arguments}{len}")
}

fn arguments(request: AnyRequest<'_>) -> String {
    use AnyRequest as Any;
    let watching = |watch| if watch { " watch" } else { "" };
    let text = |data: Option<&[u8]>| match data {
        Some(data) if data.len() > 40 => format!("{} bytes", data.len()),
        Some(data) => format!("{:?}", String::from_utf8_lossy(data)),
        None => "null".into(),
    };
    match request {
        Any::GetData(GetDataRequest { path, watch })
        | Any::Exists(ExistsRequest { path, watch })
        | Any::GetChildren2(GetChildren2Request { path, watch }) => {
            format!(" {path}{}", watching(watch))
        }
        Any::Create(CreateRequest { path, data, flags, .. })
        | Any::Create2(Create2Request(CreateRequest { path, data, flags, .. })) => {
            format!(" {path} {} {flags}", text(data))
        }
        Any::SetData(SetDataRequest { path, data, version }) => {
            format!(" {path} {} version={version}", text(data))
        }
        Any::Delete(DeleteRequest { path, version }) => format!(" {path} version={version}"),
        Any::Sync(sync) => format!(" {}", sync.path),
        Any::AddWatch(AddWatchRequest { path, mode }) => format!(" {path} {mode}"),
        Any::RemoveWatches(RemoveWatchesRequest(CheckWatchesRequest { path, kind })) => {
            format!(" {path} {kind}")
        }
        Any::Auth(AuthPacket { scheme, auth, .. }) => format!(" {scheme} {}", text(auth.0)),
        Any::Sasl(sasl) => format!(" {}", text(sasl.token.0)),
        Any::SetWatches(set) => set_watches(&set),
        Any::SetWatches2(set) => set_watches2(set),
        _ => String::new(),
    }
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
