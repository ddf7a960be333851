//! Conversations: what a client says, made up by zk-proto's strategies and tamed as far as it must be.

use bytes::{Bytes, BytesMut};
use proptest::{collection::vec, option, prelude::*};
use zk_proto::{
    Acl, AclList, OpCode, Secret, SessionId, Str, Xid, Zxid,
    frame::RequestHeader,
    jute::{Decode, Encode, Reader},
    request::{
        AddWatchRequest, ConnectRequest, CreateRequest, DeleteRequest, MultiOp, MultiRequest,
        SetDataRequest, TrailingFlag,
    },
    strategy::{
        Frame, FrameKind, Nodes, OwnedAnyRequest, client_frame, malformed, number, requests,
    },
};

/// Most requests of a play besides its handshake.
const REQUESTS_MAX: usize = 16;

/// One conversation, frame by frame; the first is a handshake.
#[derive(Clone, Debug)]
pub(crate) struct Play {
    pub(crate) frames: Vec<Frame>,
}

/// Any conversation.
pub(crate) fn play() -> impl Strategy<Value = Play> {
    // Requests that have to do with each other or with nothing, and perhaps something that is none.
    let fitting = requests(Nodes::default(), 0..REQUESTS_MAX);
    let wild = vec(any::<OwnedAnyRequest>(), 0..REQUESTS_MAX);
    let said = prop_oneof![2 => fitting.boxed(), 1 => wild.boxed()].prop_map(|requests| {
        number(requests).iter().map(|(xid, request)| request.frame(*xid)).collect::<Vec<_>>()
    });
    let broken = option::weighted(0.3, (malformed(client_frame()), any::<prop::sample::Index>()));
    (hello(), said, broken).prop_map(|(hello, said, broken)| {
        let mut frames = vec![hello];
        frames.extend(said.into_iter().filter(is_tame));
        if let Some((broken, at)) = broken {
            frames.insert(at.index(frames.len() + 1), broken.frame);
            frames.retain(is_tame);
        }
        Play { frames }
    })
}

/// A handshake. What it shows is nothing that the server could know.
fn hello() -> impl Strategy<Value = Frame> {
    let session = prop_oneof![9 => Just(0), 1 => any::<i64>()];
    // More than any server has seen, or nothing.
    let zxid = prop_oneof![9 => Just(0), 1 => Just(i64::MAX)];
    let flag = option::of(any::<bool>());
    (session, zxid, flag).prop_map(|(session, zxid, read_only)| handshake(session, zxid, read_only))
}

fn handshake(session: i64, zxid: i64, read_only: Option<bool>) -> Frame {
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: Zxid(zxid),
        time_out: 10_000,
        session_id: SessionId(session),
        passwd: Secret(Some(&[0; 16])),
        read_only: TrailingFlag(read_only),
    };
    Frame::new(FrameKind::ConnectRequest, |out| request.encode(out))
}

/// The handshake of a client without any tricks.
pub(crate) fn greeting() -> Bytes {
    handshake(0, 0, Some(false)).bytes
}

fn open() -> AclList {
    [Acl::open_unsafe()].into_iter().collect()
}

/// Whether a frame cannot do lasting harm to the server, so that the next play finds it as this one did.
fn is_tame(frame: &Frame) -> bool {
    let content = frame.content();
    let mut reader = Reader::new(&content);
    let Ok(RequestHeader { xid, op }) = RequestHeader::decode(&mut reader) else { return true };
    if frame.kind == FrameKind::ConnectRequest {
        return true;
    }
    let body = content.slice(reader.offset()..);
    match op {
        // They lock nodes up, change the ensemble, or are for servers among themselves.
        OpCode::SET_ACL
        | OpCode::RECONFIG
        | OpCode::DELETE_CONTAINER
        | OpCode::CHECK
        | OpCode::SASL
        | OpCode::CREATE_SESSION => false,
        OpCode::CREATE | OpCode::CREATE2 | OpCode::CREATE_CONTAINER | OpCode::CREATE_TTL => {
            let create = CreateRequest::decode(&mut Reader::new(&body));
            create.is_ok_and(|it| is_passing(&MultiOp::Create(it)))
        }
        OpCode::SET_DATA => {
            let set = SetDataRequest::decode(&mut Reader::new(&body));
            set.is_ok_and(|it| is_passing(&MultiOp::SetData(it)))
        }
        OpCode::DELETE => {
            let delete = DeleteRequest::decode(&mut Reader::new(&body));
            delete.is_ok_and(|it| is_passing(&MultiOp::Delete(it)))
        }
        // Servers of 3.6 to 3.8 count the watches of other sessions, too.
        OpCode::CHECK_WATCHES => false,
        // Servers of 3.6 to 3.8 never close a connection that watches null.
        OpCode::ADD_WATCH => {
            let watch = AddWatchRequest::decode(&mut Reader::new(&body));
            watch.is_ok_and(|it| it.path != Str::NULL)
        }
        // What has changed since then depends on what the server has seen before.
        OpCode::SET_WATCHES | OpCode::SET_WATCHES2 => {
            Zxid::decode(&mut Reader::new(&body)).is_ok_and(|since| since.0 > 1 << 48)
        }
        OpCode::MULTI => {
            let multi = MultiRequest::decode(&mut Reader::new(&body));
            multi.is_ok_and(|multi| multi.iter().all(|(_, op)| is_passing(&op)))
        }
        // With these numbers an answer could be taken for something else.
        _ => xid != Xid::NOTIFICATION,
    }
}

/// Whether what a write leaves behind is deleted before the next play.
fn is_passing(op: &MultiOp<'_>) -> bool {
    let open = open();
    let (path, acl) = match op {
        MultiOp::Create(it) | MultiOp::Create2(it) | MultiOp::CreateContainer(it) => {
            (it.path, &it.acl)
        }
        MultiOp::CreateTtl(it) => (it.path, &it.acl),
        MultiOp::Delete(it) => (it.path, &open),
        MultiOp::SetData(it) => (it.path, &open),
        _ => return true,
    };
    let path = path.lossy();
    // The root is the one that stays, under both its names.
    let stays = matches!(&*path, "" | "/") || path.starts_with("/zookeeper");
    *acl == open && !stays
}

/// A request as it goes to a server, outside of any play.
pub(crate) fn frame_of(request: &OwnedAnyRequest, xid: Xid) -> BytesMut {
    BytesMut::from(&request.frame(xid).bytes[..])
}
