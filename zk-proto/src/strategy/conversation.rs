//! Both directions of a connection.

use alloc::vec::Vec;
use core::fmt::Debug;

use bytes::Bytes;
use proptest::{
    arbitrary::{Arbitrary, any},
    collection::vec,
    option, prop_oneof,
    sample::select,
    strategy::{BoxedStrategy, Just, Strategy},
};

use crate::{
    code::ErrorCode,
    data::{SessionId, Xid, Zxid},
    frame::ReplyHeader,
    jute::Encode,
    op::OpCode,
    request::{CloseSession, ConnectResponse, MultiResponse, TrailingFlag, WatcherEvent},
    strategy::{
        AsRecord, Frame, FrameKind, Nodes, OwnedAnyRequest, OwnedConnectRequest,
        multi::{multi_exchange, multi_read_exchange},
        nodes::{Memory, choice, one_each},
        number::{ends_connection, lasting_refusal},
        request, response, response_to,
        text::password,
    },
    text::Secret,
};

/// Most requests of a generated conversation.
const REQUESTS_MAX: usize = 12;

/// Both directions of a connection on which nothing goes wrong: a handshake that succeeds, then
/// requests, each answered in its turn, with watch events in between.
///
/// Requests fit each other, and are about a few [`Nodes`], which can be given: `any_with::<Conversation>(nodes)`. A reply
/// may be any that the operation allows; the server behind it has no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// What the client sends, from its handshake on.
    pub client: Vec<Frame>,
    /// What the server sends, from its handshake on.
    pub server: Vec<Frame>,
}

/// The xid that clients give to a request whose ordinary number would be `next`.
fn xid_of(request: &OwnedAnyRequest, next: Xid) -> Xid {
    match request.op() {
        OpCode::PING => Xid::PING,
        OpCode::AUTH => Xid::AUTH,
        _ => next,
    }
}

/// Numbers requests in order, as a client does: from 1 on, except for heartbeats and credentials.
pub fn number(requests: impl IntoIterator<Item = OwnedAnyRequest>) -> Vec<(Xid, OwnedAnyRequest)> {
    let mut next = Xid::FIRST;
    let numbered = requests.into_iter().map(|request| {
        let xid = xid_of(&request, next);
        if xid == next {
            next = next.next();
        }
        (xid, request)
    });
    numbered.collect()
}

/// What comes with a request.
#[derive(Clone, Debug)]
struct Turn {
    /// By how much the server's transaction number has grown.
    step: i64,
    /// An event in front of the reply.
    event: Option<WatcherEvent>,
    err: ErrorCode,
    /// The reply's, unless that has an error.
    body: Bytes,
}

/// A reply to such a request.
fn turn(op: OpCode, body: BoxedStrategy<Bytes>) -> BoxedStrategy<Turn> {
    let event = option::weighted(0.2, any::<WatcherEvent>());
    // Heartbeats and credentials are never refused on a connection that lasts.
    let err = match op {
        OpCode::PING | OpCode::AUTH | OpCode::CLOSE_SESSION => Just(ErrorCode::OK).boxed(),
        _ => prop_oneof![4 => Just(ErrorCode::OK), 1 => lasting_refusal()].boxed(),
    };
    (0..3_i64, event, err, body)
        .prop_map(|(step, event, err, body)| Turn { step, event, err, body })
        .boxed()
}

/// The server's frames of these turns. Transaction numbers never fall.
fn replies(turns: impl IntoIterator<Item = (Xid, OpCode, Turn)>) -> Vec<Frame> {
    let mut zxid = 0_i64;
    let mut frames = Vec::new();
    for (xid, op, Turn { step, event, err, body }) in turns {
        zxid = zxid.saturating_add(step);
        frames.extend(event.map(|event| Frame::notification(Zxid(zxid), &event)));
        frames.push(Frame::reply(op, ReplyHeader { xid, zxid: Zxid(zxid), err }, &body));
    }
    frames
}

/// Legal answers to `requests`, one for each and in their order, with watch events in between, on a connection that
/// lasts. Transaction numbers never fall.
pub fn replies_to(requests: &[(Xid, OwnedAnyRequest)]) -> BoxedStrategy<Vec<Frame>> {
    let asked: Vec<_> = requests.iter().map(|(xid, request)| (*xid, request.op())).collect();
    let turns: Vec<_> =
        requests.iter().map(|(_, request)| turn(request.op(), response_to(request))).collect();
    turns
        .prop_map(move |turns| {
            replies(asked.iter().zip(turns).map(|((xid, op), turn)| (*xid, *op, turn)))
        })
        .boxed()
}

/// A legal answer behind which the connection is over: the session has ended or moved, or its credentials were refused.
pub fn last_reply_to((xid, request): &(Xid, OwnedAnyRequest)) -> BoxedStrategy<Frame> {
    let (xid, op) = (*xid, request.op());
    let ending: Vec<_> =
        ErrorCode::KNOWN.iter().copied().filter(|err| ends_connection(*err)).collect();
    (select(ending), any::<Zxid>())
        .prop_map(move |(err, zxid)| Frame::reply(op, ReplyHeader { xid, zxid, err }, &[]))
        .boxed()
}

/// A handshake that succeeds.
fn handshake() -> impl Strategy<Value = (Frame, Frame)> {
    let response = (4000..40_000_i32, 1..i64::MAX, password(), any::<bool>());
    (any::<OwnedConnectRequest>(), response).prop_map(|(request, response)| {
        let (time_out, session_id, passwd, read_only) = response;
        // The session that is resumed, or a new one.
        let session_id = if request.session_id.0 == 0 { session_id } else { request.session_id.0 };
        let response = ConnectResponse {
            protocol_version: 0,
            time_out,
            session_id: SessionId(session_id),
            passwd: Secret(passwd),
            // Both sides know the flag, or one does not send it;
            // and a member without a quorum serves only those who ask for it.
            read_only: TrailingFlag(request.read_only.0.map(|asked| asked && read_only)),
        };
        (
            Frame::new(FrameKind::ConnectRequest, |out| request.as_record().encode(out)),
            Frame::new(FrameKind::ConnectResponse, |out| response.encode(out)),
        )
    })
}

/// A conversation of up to a dozen [requests](super::requests()), of which only the last may close the session.
///
/// Shrinks to fewer requests, and each of those with its reply.
pub fn conversation(nodes: Nodes) -> impl Strategy<Value = Conversation> {
    let turns = vec((exchange(), choice()), 0..REQUESTS_MAX);
    let close = OwnedAnyRequest::CloseSession(CloseSession);
    let close = option::of(
        turn(close.op(), response_to(&close)).prop_map(move |turn| (close.clone(), turn)),
    );
    (handshake(), turns, close).prop_map(move |((hello, welcome), drawn, close)| {
        let mut memory = Memory::new(&nodes);
        let fitted =
            drawn.into_iter().map(|((request, turn), choice)| (memory.fit(request, choice), turn));
        let (requests, turns): (Vec<_>, Vec<_>) = fitted.chain(close).unzip();
        let requests = number(requests);
        let asked = requests.iter().map(|(xid, request)| request.frame(*xid));
        let client = core::iter::once(hello).chain(asked).collect();
        let turns = requests.iter().zip(turns).map(|((xid, it), turn)| (*xid, it.op(), turn));
        let server = core::iter::once(welcome).chain(replies(turns)).collect();
        Conversation { client, server }
    })
}

/// Any request but the end of the session, with its reply.
fn exchange() -> impl Strategy<Value = (OwnedAnyRequest, Turn)> {
    one_each(|op| {
        Some(match op {
            OpCode::MULTI => answered(OwnedAnyRequest::Multi, multi_exchange()),
            OpCode::MULTI_READ => answered(OwnedAnyRequest::MultiRead, multi_read_exchange()),
            _ => (request(op)?, turn(op, response(op)?)).boxed(),
        })
    })
}

/// A multi with its reply.
fn answered<T: Debug + 'static>(
    request: fn(T) -> OwnedAnyRequest,
    exchange: impl Strategy<Value = (T, MultiResponse)> + 'static,
) -> BoxedStrategy<(OwnedAnyRequest, Turn)> {
    (exchange, turn(OpCode::MULTI, Just(Bytes::new()).boxed()))
        .prop_map(move |((multi, response), turn)| {
            (request(multi), Turn { body: response.encoded(), ..turn })
        })
        .boxed()
}

impl Arbitrary for Conversation {
    type Parameters = Nodes;
    type Strategy = BoxedStrategy<Self>;
    fn arbitrary_with(nodes: Nodes) -> Self::Strategy {
        conversation(nodes).boxed()
    }
}
