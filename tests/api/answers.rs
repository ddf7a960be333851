//! Answers that do not fit what was asked for: none is believed, and none is kept.

use bytes::BytesMut;
use zk_client::{Cause, Client, CreateMode, OpCode, ReadError, WriteError};
use zk_proto::{
    Stat, Text,
    jute::Encode,
    request::{Create2Response, CreateResponse, MultiResponse, MultiResult, SetDataResponse},
};
use zk_testkit::proxy::{Match, Proxy, RuleHandle};
use zk_tests::{feature::Feature, test_with};

use crate::api::{Place, behind_proxy, on_each_release};

/// Bytes of a reply's header.
const LEN_HEADER: usize = 16;

/// Has this body stand in the next answer to such a request.
fn answered_with(proxy: &Proxy, op: OpCode, body: &impl Encode) -> RuleHandle {
    let mut out = BytesMut::new();
    body.encode(&mut out);
    let body = out.freeze();
    proxy.on(Match::reply(op).once()).rewrite(move |reply| {
        reply.truncate(LEN_HEADER);
        reply.extend(&body);
    })
}

/// What came of a write whose reply does not match it: unknown.
fn misfit<T: std::fmt::Debug>(written: Result<T, WriteError>) -> &'static str {
    match written {
        Err(WriteError::InDoubt { cause, .. }) => match cause {
            Cause::Mismatch(what) => what,
            cause => panic!("{cause:?}"),
        },
        written => panic!("{written:?}"),
    }
}

#[test_with(on_each_release)]
async fn multi_results_must_match_its_operations(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/n", b"").await.unwrap();
    let set = || MultiResult::SetData(SetDataResponse { stat: Stat::default() });
    let create = |path: &str| MultiResult::Create(CreateResponse { path: Text::from(path) });
    let too_many = "more results than operations";
    let other = "the result of another operation";
    let cases: [(Vec<MultiResult>, &str); 6] = [
        (vec![], "results are missing"),
        (vec![set()], "results are missing"),
        (vec![set(), MultiResult::Check, set()], too_many),
        (std::iter::repeat_with(|| MultiResult::Check).take(100_000).collect(), other),
        (vec![MultiResult::Check, set()], other),
        (vec![create("/n"), MultiResult::Check], other),
    ];
    for (results, expected) in cases {
        let results: MultiResponse = results.into_iter().collect();
        let changed = answered_with(&proxy, OpCode::MULTI, &results);
        let written = zk.multi().set("/n", b"").check("/n").await;
        assert_eq!((misfit(written), changed.times_fired()), (expected, 1));
    }
    let results: MultiResponse = [create("/other")].into_iter().collect();
    let changed = answered_with(&proxy, OpCode::MULTI, &results);
    let written = zk.multi().create("/new", b"", CreateMode::Persistent).await;
    assert_eq!((misfit(written), changed.times_fired()), ("another node was created", 1));

    if server.has(Feature::MultiRead) {
        let results: MultiResponse = [].into_iter().collect();
        let _changed = answered_with(&proxy, OpCode::MULTI_READ, &results);
        let read = zk.multi_read().get("/n").await.unwrap_err();
        assert_eq!(read, ReadError::Unavailable(Cause::Mismatch("results are missing")));
    }
    zk.multi().set("/n", b"").check("/n").await.unwrap().unwrap();
}

#[test_with(on_each_release)]
async fn created_path_must_match_the_request(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let op = server.create_op();
    let elsewhere = |proxy: &Proxy, path: &str| {
        // The path stands in front of whatever else the answer tells.
        let path = Text::from(path);
        answered_with(proxy, op, &Create2Response { path, stat: Stat::default() })
    };
    let sequential = CreateMode::PersistentSequential;
    for (path, mode, answer) in [
        ("/a", CreateMode::Persistent, "/b"),
        ("/a1", CreateMode::Persistent, "/a10000000001"),
        ("/s-", sequential, "/s-"),
        ("/s-", sequential, "/s-x000000001"),
        ("/s-", sequential, "/elsewhere/s-0000000001"),
    ] {
        let changed = elsewhere(&proxy, answer);
        let written = zk.create(path, b"").mode(mode).await;
        assert_eq!((misfit(written), changed.times_fired()), ("another node was created", 1));
    }

    // The session looks for its own.
    let changed = elsewhere(&proxy, "/s-0000000001");
    let seat = zk.create("/p-", b"").mode(CreateMode::EphemeralSequential).protected();
    let seat = seat.await.unwrap().owned.unwrap();
    assert_eq!(changed.times_fired(), 1);
    assert!(there(&zk, seat.path()).await, "{}", seat.path());
    seat.delete().await.unwrap();
}

async fn there(zk: &Client, path: &str) -> bool {
    zk.exists(path).await.unwrap().is_some()
}
