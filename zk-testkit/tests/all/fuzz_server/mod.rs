//! The example that fuzzes servers finds what is wrong, and nothing where nothing is.

#[path = "../../../examples/fuzz_server/duel.rs"]
mod duel;
#[path = "../../../examples/fuzz_server/peer.rs"]
mod peer;
#[path = "../../../examples/fuzz_server/play.rs"]
mod play;
#[path = "../../../examples/fuzz_server/show.rs"]
mod show;

use std::{cell::Cell, collections::BTreeSet, net::SocketAddr};

use bytes::BytesMut;
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::TestRunner,
};
use zk_proto::{
    ErrorCode, OpCode, Xid,
    frame::{LEN_PREFIX, ReplyHeader, RequestFrame},
    jute::{Decode as _, Reader},
    request::{
        AnyRequest, Create2Request, ExistsRequest, GetDataRequest, MultiOp, MultiReadRequest,
        MultiResponse,
    },
    strategy::{Frame, FrameKind, Nodes, OwnedAnyRequest, number, requests},
};
use zk_testkit::{TestServer, proxy::Match, server::Config};

use super::support::connect_request;
use duel::{Found, Tally, duel, fight, is_empty};
use play::Play;

/// Enough to meet every operation that the strategies make up often.
const PLAYS: u32 = 60;

async fn fuzz(server: &TestServer) -> Result<Tally, Box<Found>> {
    let addr: SocketAddr = server.connect_string().parse().unwrap();
    tokio::task::spawn_blocking(move || {
        assert!(is_empty(addr).unwrap());
        fight(addr, &Config::default(), PLAYS, 7)
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_found_in_a_healthy_server() {
    let server = TestServer::start().await.unwrap();
    let tally = fuzz(&server).await.unwrap_or_else(|found| panic!("{found}"));
    assert!(tally.compared > u64::from(PLAYS), "{tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn corrupted_reply_is_found_and_minimized() {
    let server = TestServer::start().await.unwrap();
    // The last bytes of a stat are its pzxid, and before that is the number of children.
    let _rule = server.on(Match::reply(OpCode::CREATE2)).rewrite(|content| {
        if let Some(at) = content.len().checked_sub(9).filter(|at| *at > 60) {
            content[at] ^= 1;
        }
    });
    let found = fuzz(&server).await.unwrap_err();
    assert!(found.play.frames.len() <= 2, "{found}");
    let transcript = found.to_string();
    assert!(transcript.contains("create2"), "{transcript}");
    assert!(found.how.contains("numChildren"), "{transcript}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_connections_is_found() {
    let server = TestServer::start().await.unwrap();
    let _rule = server.on(Match::request(OpCode::SET_DATA)).cut();
    let found = fuzz(&server).await.unwrap_err();
    assert!(found.how.contains("Closed"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reply_is_paired_with_its_request() {
    let server = TestServer::start().await.unwrap();
    let addr: SocketAddr = server.connect_string().parse().unwrap();
    // The root remembers this. That is not compared, where it is known for what it is.
    let zk = zk_client::Client::connect(&server.connect_string()).await.unwrap();
    zk.create("/a", b"").await.unwrap();
    zk.delete("/a").await.unwrap();

    let frame = |kind, bytes| Frame { bytes, ..Frame::new(kind, |_| {}) };
    let request = |op, request: RequestFrame| {
        let mut bytes = BytesMut::new();
        request.write(Xid::FIRST, &mut bytes);
        frame(FrameKind::Request(op), bytes.freeze())
    };
    let get = MultiOp::GetData(GetDataRequest { path: "/".into(), watch: false });
    let reads = MultiReadRequest([get].into_iter().collect());
    let reads = request(OpCode::MULTI_READ, RequestFrame::of(&reads));
    let exists = ExistsRequest { path: "/".into(), watch: false };
    let exists = request(OpCode::EXISTS, RequestFrame::of(&exists));
    // A length that is not true: the second request is the end of the first.
    let mut longer = BytesMut::from(&reads.bytes[..]);
    let len = reads.bytes.len() - LEN_PREFIX + exists.bytes.len();
    longer[LEN_PREFIX - 1] = u8::try_from(len).unwrap();
    let longer = frame(reads.kind, longer.freeze());
    let hello = frame(FrameKind::ConnectRequest, connect_request().freeze());

    let play = Play { frames: vec![hello, longer, exists] };
    let compared = Cell::new(0);
    tokio::task::spawn_blocking(move || {
        duel(addr, &Config::default(), &play, &compared).unwrap_or_else(|how| panic!("{how}"));
        // The handshake's, that of the reads, and the heartbeat's.
        assert_eq!(compared.get(), 3);
    })
    .await
    .unwrap();
}

/// Of generated requests: how many there were, how many succeeded, and how many were about a node of an earlier one.
#[derive(Debug, Default)]
struct Count {
    sent: u32,
    succeeded: u32,
    /// Multis that delete something, or make a container, or a node with a time to live: all of them, and those that succeeded.
    multis: [(u32, u32); 3],
    about_nodes: u32,
    about_known: u32,
}

impl Count {
    /// Sends requests to a fresh server, one after the other, until one of them ends the connection.
    fn play(&mut self, asked: &[(Xid, OwnedAnyRequest)]) {
        let mut config = Config::default();
        config.extended_types = true;
        let mut server = peer::Model::connect(&config);
        server.answers(&connect_request());
        let mut created = BTreeSet::new();
        for (xid, request) in asked {
            let frame = request.frame(*xid);
            let (answers, closed) = server.answers(&frame.bytes);
            let succeeded = answers.iter().any(|answer| {
                let mut rest = Reader::new(answer);
                let header = ReplyHeader::decode(&mut rest).unwrap();
                // That of a multi is without an error, whatever becomes of its operations.
                let is_done = |multi: MultiResponse| multi.iter().all(|(it, _)| it.err.is_ok());
                (header.xid, header.err) == (*xid, ErrorCode::OK)
                    && (request.op() != OpCode::MULTI
                        || MultiResponse::decode(&mut rest).is_ok_and(is_done))
            });
            self.sent += 1;
            self.succeeded += u32::from(succeeded);
            if let AnyRequest::Multi(multi) = request.as_request() {
                let has = |op: OpCode| multi.iter().any(|(header, _)| header.op == op);
                let kinds = [OpCode::DELETE, OpCode::CREATE_CONTAINER, OpCode::CREATE_TTL];
                for (op, (all, well)) in kinds.into_iter().zip(&mut self.multis) {
                    *all += u32::from(has(op));
                    *well += u32::from(has(op) && succeeded);
                }
            }
            let path = match request.as_request() {
                AnyRequest::Create(it) | AnyRequest::Create2(Create2Request(it)) => {
                    if succeeded {
                        created.insert(it.path.lossy().into_owned());
                    }
                    None
                }
                AnyRequest::GetData(it) => Some(it.path),
                AnyRequest::SetData(it) => Some(it.path),
                AnyRequest::Delete(it) => Some(it.path),
                AnyRequest::Exists(it) => Some(it.path),
                AnyRequest::GetChildren2(it) => Some(it.path),
                _ => None,
            };
            if let Some(path) = path {
                self.about_nodes += 1;
                self.about_known += u32::from(created.contains(&*path.lossy()));
            }
            if closed {
                return;
            }
        }
    }
}

#[test]
fn half_of_the_requests_succeed() {
    let mut runner = TestRunner::deterministic();
    let mut count = Count::default();
    for _ in 0..500 {
        let asked = requests(Nodes::default(), 12).new_tree(&mut runner).unwrap().current();
        count.play(&number(asked));
    }
    assert!(count.succeeded * 2 >= count.sent, "{count:?}");
    assert!(count.about_known * 3 >= count.about_nodes, "{count:?}");
    assert!(count.multis.iter().all(|(all, well)| *all >= 50 && well * 3 >= *all), "{count:?}");
    assert!(count.succeeded * 5 <= count.sent * 4, "refusals happen: {count:?}");
}
