//! Both directions of a connection.

use alloc::vec::Vec;

use proptest::{
    arbitrary::any,
    collection::vec,
    option,
    strategy::{BoxedStrategy, Just, Strategy},
};

use crate::{
    code::ErrorCode,
    data::{SessionId, Xid, Zxid},
    frame::ReplyHeader,
    jute::Encode,
    op::OpCode,
    request::{ConnectResponse, TrailingFlag, WatcherEvent},
    strategy::{
        AsRecord, Frame, FrameKind, OwnedAnyRequest, OwnedConnectRequest, frames::reply,
        record::arbitrary, response_to, text::password,
    },
    text::Secret,
};

/// Most requests of a generated conversation.
const REQUESTS_MAX: usize = 12;

/// Both directions of a connection on which nothing goes wrong: a handshake that succeeds, then
/// requests, each answered in its turn, with watch events in between.
///
/// A reply may be any that the operation allows; the server behind it has no memory.
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

/// Legal answers to `requests`, one for each and in their order, with watch events in between.
/// Transaction numbers never fall.
pub fn replies_to(requests: &[(Xid, OwnedAnyRequest)]) -> BoxedStrategy<Vec<Frame>> {
    let events = option::weighted(0.2, any::<WatcherEvent>());
    let steps = vec((0..3_i64, events), requests.len());
    let requests = requests.to_vec();
    steps
        .prop_flat_map(move |steps| {
            let mut zxid = 0_i64;
            let turns = requests.iter().zip(steps).map(|((xid, request), (step, event))| {
                zxid = zxid.saturating_add(step);
                let event = event.map(|event| Frame::notification(Zxid(zxid), &event));
                (Just(event), answer(*xid, request, Zxid(zxid)))
            });
            turns.collect::<Vec<_>>()
        })
        .prop_map(|turns| {
            let frames =
                turns.into_iter().flat_map(|(event, reply)| event.into_iter().chain([reply]));
            frames.collect()
        })
        .boxed()
}

/// The answer to one request. Heartbeats always succeed on a connection that lasts.
fn answer(xid: Xid, request: &OwnedAnyRequest, zxid: Zxid) -> BoxedStrategy<Frame> {
    let op = request.op();
    match op {
        OpCode::PING | OpCode::AUTH | OpCode::CLOSE_SESSION => {
            let header = ReplyHeader { xid, zxid, err: ErrorCode::OK };
            Just(Frame::reply(op, header, &[])).boxed()
        }
        _ => reply(op, xid, zxid, Some(response_to(request))).boxed(),
    }
}

/// A handshake that succeeds.
fn handshake() -> impl Strategy<Value = (Frame, Frame)> {
    let response = (4000..40_000_i32, 1..i64::MAX, password(), any::<bool>());
    (any::<OwnedConnectRequest>(), response).prop_map(|(request, response)| {
        let (time_out, session_id, passwd, read_only) = response;
        let response = ConnectResponse {
            protocol_version: 0,
            time_out,
            session_id: SessionId(session_id),
            passwd: Secret(passwd),
            // Both sides know the flag, or one does not send it.
            read_only: TrailingFlag(request.read_only.0.map(|_| read_only)),
        };
        (
            Frame::new(FrameKind::ConnectRequest, |out| request.as_record().encode(out)),
            Frame::new(FrameKind::ConnectResponse, |out| response.encode(out)),
        )
    })
}

/// A conversation of up to a dozen requests, of which only the last may close the session.
pub fn conversation() -> impl Strategy<Value = Conversation> {
    let requests = vec(any::<OwnedAnyRequest>(), 0..REQUESTS_MAX).prop_map(|mut requests| {
        requests.retain(|request| request.op() != OpCode::CLOSE_SESSION);
        requests
    });
    let close = option::of(Just(OwnedAnyRequest::CloseSession(crate::request::CloseSession)));
    (handshake(), requests, close).prop_flat_map(|((hello, welcome), requests, close)| {
        let requests = number(requests.into_iter().chain(close));
        let asked = requests.iter().map(|(xid, request)| request.frame(*xid));
        let client: Vec<_> = core::iter::once(hello).chain(asked).collect();
        replies_to(&requests).prop_map(move |replies| Conversation {
            client: client.clone(),
            server: core::iter::once(welcome.clone()).chain(replies).collect(),
        })
    })
}

arbitrary! {
    Conversation = conversation();
}
