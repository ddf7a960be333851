//! What is sent and received most often, to bytes and back.

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    Acl, CreateFlags, ErrorCode, EventType, KeeperState, List, Request, Stat, Str, Text, Xid, Zxid,
    frame::{ReplyHeader, RequestFrame},
    jute::{Encode, decode_prefix},
    request::{
        Create2Request, Create2Response, Create2View, CreateRequest, GetChildren2Response,
        GetDataRequest, GetDataResponse, GetDataView, MultiOp, MultiRequest, MultiResponse,
        MultiResult, SetDataRequest, SetDataResponse, WatcherEvent, WatcherEventView,
    },
};

use crate::{Piece, lock_nodes};

const TIMES: usize = 100;

const PATH: &str = "/services/report/leader";

/// What an exclusive lock of ours or Curator's creates.
const LOCK: &str = "/locks/report/_c_3b5f6a0e-0000-4000-8000-0123456789ab-lock-";

const DATA: &[u8] = &[7; 128];

/// Writes in one request.
const MULTI: usize = 16;

/// As a frame, behind others in a buffer that has room.
fn sent<R: Request + 'static>(name: &'static str, make: fn() -> R) -> Piece {
    Piece::new(name, TIMES, move || {
        let request = make();
        let mut out = BytesMut::with_capacity(4096);
        move || {
            for _ in 0..TIMES {
                out.clear();
                RequestFrame::of(black_box(&request)).write(Xid(1), &mut out);
            }
        }
    })
}

/// The same, encoded in a buffer that requests share.
fn sent_of_shared<R: Request + 'static>(name: &'static str, make: fn() -> R) -> Piece {
    Piece::new(name, TIMES, move || {
        let request = make();
        let (mut shared, mut out) = (BytesMut::new(), BytesMut::with_capacity(4096));
        move || {
            for _ in 0..TIMES {
                out.clear();
                RequestFrame::within(&mut shared, black_box(&request)).write(Xid(1), &mut out);
            }
        }
    })
}

fn encoded(value: &impl Encode) -> Bytes {
    let mut out = BytesMut::new();
    value.encode(&mut out);
    out.freeze()
}

fn written<T: Encode + 'static>(name: &'static str, make: fn() -> T) -> Piece {
    Piece::new(name, TIMES, move || {
        let value = make();
        let mut out = BytesMut::with_capacity(1 << 20);
        move || {
            for _ in 0..TIMES {
                out.clear();
                black_box(&value).encode(&mut out);
            }
        }
    })
}

fn read<T: Encode + 'static>(
    name: &'static str,
    make: fn() -> T,
    decode: impl Fn(&Bytes) + Copy + 'static,
) -> Piece {
    Piece::new(name, TIMES, move || {
        let bytes = encoded(&make());
        move || (0..TIMES).for_each(|_| decode(black_box(&bytes)))
    })
}

fn get() -> GetDataRequest<'static> {
    GetDataRequest { path: Str::from(PATH), watch: false }
}

fn set() -> SetDataRequest<'static> {
    SetDataRequest { path: Str::from(PATH), data: Some(DATA), version: -1 }
}

fn create() -> Create2Request<'static> {
    Create2Request(CreateRequest {
        path: Str::from(LOCK),
        data: Some(b""),
        acl: [Acl::open_unsafe()].into_iter().collect(),
        flags: CreateFlags::EPHEMERAL_SEQUENTIAL,
    })
}

fn multi() -> MultiRequest {
    (0..MULTI).map(|_| MultiOp::SetData(set())).collect()
}

fn header() -> ReplyHeader {
    ReplyHeader { xid: Xid(1), zxid: Zxid(2), err: ErrorCode::OK }
}

fn data() -> GetDataResponse {
    GetDataResponse { data: Some(Bytes::from_static(DATA)), stat: Stat::default() }
}

fn stat() -> SetDataResponse {
    SetDataResponse { stat: Stat::default() }
}

fn created() -> Create2Response {
    Create2Response { path: Text::from(LOCK), stat: Stat::default() }
}

fn event() -> WatcherEvent {
    let (kind, state) = (EventType::NODE_DELETED, KeeperState::SYNC_CONNECTED);
    WatcherEvent { kind, state, path: Text::from(LOCK) }
}

fn listing() -> GetChildren2Response {
    let names = lock_nodes(1000);
    let children = List::of_strs(names.iter().map(String::as_str));
    GetChildren2Response { children, stat: Stat::default() }
}

fn results() -> MultiResponse {
    (0..MULTI).map(|_| MultiResult::SetData(stat())).collect()
}

/// A closure that decodes a record of this type and throws it away.
macro_rules! decode {
    ($record:ty) => {
        |bytes| {
            black_box(decode_prefix::<$record>(bytes).is_ok());
        }
    };
}

pub(crate) fn pieces() -> Vec<Piece> {
    vec![
        sent("encode getData", get),
        sent_of_shared("encode getData, in a shared buffer", get),
        sent("encode setData of 128 bytes", set),
        sent("encode create2 of a lock's node", create),
        sent("encode multi of 16 setData", multi),
        written("encode header of a reply", header),
        written("encode reply to getData of 128 bytes", data),
        written("encode reply to getChildren2 of 1000", listing),
        read("decode getData", get, decode!(GetDataRequest<'_>)),
        read("decode setData of 128 bytes", set, decode!(SetDataRequest<'_>)),
        read("decode create2 of a lock's node", create, decode!(Create2Request<'_>)),
        read("decode multi of 16 setData", multi, decode!(MultiRequest)),
        read("decode header of a reply", header, decode!(ReplyHeader)),
        read("decode reply to getData of 128 bytes", data, decode!(GetDataResponse)),
        read("decode reply to getData of 128 bytes, borrowed", data, decode!(GetDataView<'_>)),
        read("decode reply to create2, borrowed", created, decode!(Create2View<'_>)),
        read("decode event, borrowed", event, decode!(WatcherEventView<'_>)),
        read("decode reply to setData", stat, decode!(SetDataResponse)),
        read("decode reply to create2", created, decode!(Create2Response)),
        read("decode reply to multi of 16 setData", results, decode!(MultiResponse)),
        read("decode reply to getChildren2 of 1000", listing, |bytes| {
            let names =
                |reply: GetChildren2Response| reply.children.strs().map(|it| it.len()).sum();
            black_box(decode_prefix(bytes).map_or(0_usize, names));
        }),
    ]
}
