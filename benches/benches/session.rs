//! What the session alone costs, without any I/O: requests out, replies in, watches fired and restored.

#![expect(missing_docs, reason = "criterion's macros make functions that nobody calls")]

use std::{hint::black_box, sync::Arc};

use bytes::{Buf as _, Bytes, BytesMut};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use zk_proto::{
    ErrorCode, EventType, KeeperState, Secret, SessionId, Stat, Str, Text, Time, Xid, Zxid,
    frame::{ReplyHeader, RequestFrame, encode_frame, encode_frame_with},
    jute::Encode,
    request::{ConnectResponse, GetDataRequest, GetDataResponse, TrailingFlag, WatcherEvent},
    session::{
        Config, LinkError, OnLoss, Outgoing, Output, Session, WatchBy, WatchIntent, Watcher,
    },
};

const NOW: Time = Time::ZERO;
const IN_FLIGHT: i32 = 256;

#[derive(Clone, Copy, Debug)]
struct Listener;

impl Watcher for Listener {}

type Core = Session<u64, Listener>;

/// A session with a connection.
fn connected() -> Core {
    let mut session = Core::new(Config::new(["zk1:2181"]), 7, NOW);
    greet(&mut session);
    session
}

/// Brings a session that dials to where it can be used.
fn greet(session: &mut Core) {
    drain(session);
    session.dialed(NOW, Ok(()));
    session.outbound().clear();
    let greeting = ConnectResponse {
        protocol_version: 0,
        time_out: 10_000,
        session_id: SessionId(1),
        passwd: Secret(Some(Bytes::from_static(&[1; 16]))),
        read_only: TrailingFlag(Some(false)),
    };
    encode_frame(&greeting, session.inbound());
    session.received(NOW);
}

fn drain(session: &mut Core) -> usize {
    std::iter::from_fn(|| session.poll()).filter(|it| !matches!(it, Output::State(_))).count()
}

fn get(path: &str, watched: bool) -> Outgoing<u64, Listener> {
    let (frame, token) =
        (RequestFrame::of(&GetDataRequest { path: path.into(), watch: watched }), 0);
    let intent =
        || Box::new(WatchIntent { path: Arc::from(path), by: WatchBy::Data, watcher: Listener });
    Outgoing {
        frame,
        token,
        watch: watched.then(intent),
        on_loss: OnLoss::Resend,
        fail_fast: false,
    }
}

/// Replies to all these requests, in one piece.
fn replies(xids: impl Iterator<Item = i32>) -> BytesMut {
    let data = Some(Bytes::from_static(&[7; 128]));
    let body = GetDataResponse { data, stat: Stat::default() };
    let mut out = BytesMut::new();
    for xid in xids {
        encode_frame_with(&mut out, |out| {
            ReplyHeader { xid: Xid(xid), zxid: Zxid(1), err: ErrorCode::OK }.encode(out);
            body.encode(out);
        });
    }
    out
}

fn requests(c: &mut Criterion) {
    let mut group = c.benchmark_group("256 requests");
    group.throughput(Throughput::Elements(IN_FLIGHT as u64));
    let made = || (connected(), (0..IN_FLIGHT).map(|_| get("/a", false)).collect::<Vec<_>>());
    group.bench_function("submit", |b| {
        b.iter_batched(
            made,
            |(mut session, gets)| {
                for get in gets {
                    session.submit(NOW, get);
                }
                session
            },
            BatchSize::SmallInput,
        );
    });
    let answers = replies(1..=IN_FLIGHT).freeze();
    let answered = || {
        let (mut session, gets) = made();
        for get in gets {
            session.submit(NOW, get);
        }
        session.inbound().extend_from_slice(&answers);
        session
    };
    group.bench_function("receive", |b| {
        b.iter_batched(
            answered,
            |mut session| {
                session.received(NOW);
                assert_eq!(drain(&mut session), IN_FLIGHT as usize);
                session
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// A session that watches so many nodes.
fn watching(count: usize) -> Core {
    let mut session = connected();
    for number in 0..count {
        session.submit(NOW, get(&path(number), true));
    }
    let written = session.outbound().len();
    session.outbound().advance(written);
    let answers = replies(1..=i32::try_from(count).unwrap());
    session.inbound().extend_from_slice(&answers);
    session.received(NOW);
    assert_eq!(drain(&mut session), count);
    session
}

fn path(number: usize) -> String {
    format!("/services/report/node-{number:06}")
}

/// Cost must grow with the number of watches, and not faster.
fn watches(c: &mut Criterion) {
    for count in [100, 1_000, 10_000] {
        let mut group = c.benchmark_group(format!("{count} watches"));
        group.throughput(Throughput::Elements(count as u64));
        let mut events = BytesMut::new();
        for number in 0..count {
            encode_frame_with(&mut events, |out| {
                let (xid, zxid) = (Xid::NOTIFICATION, Zxid(2));
                ReplyHeader { xid, zxid, err: ErrorCode::OK }.encode(out);
                let (kind, state) = (EventType::NODE_DATA_CHANGED, KeeperState::SYNC_CONNECTED);
                WatcherEvent { kind, state, path: Text::from(&*path(number)) }.encode(out);
            });
        }
        group.bench_function("fire", |b| {
            b.iter_batched(
                || {
                    let mut session = watching(count);
                    session.inbound().extend_from_slice(&events);
                    session
                },
                |mut session| {
                    session.received(NOW);
                    assert_eq!(drain(&mut session), count);
                    session
                },
                BatchSize::LargeInput,
            );
        });
        group.bench_function("restore", |b| {
            b.iter_batched(
                || {
                    let mut session = watching(count);
                    session.hung_up(NOW, LinkError::Reset);
                    drain(&mut session);
                    // The pause before the next attempt.
                    while session.server().is_none() {
                        session.elapsed(session.deadline().unwrap_or(NOW));
                    }
                    session
                },
                |mut session| {
                    greet(&mut session);
                    assert!(session.outbound().len() > count * Str::from(&*path(0)).lossy().len());
                    black_box(session)
                },
                BatchSize::LargeInput,
            );
        });
        group.finish();
    }
}

criterion_group!(benches, requests, watches);
criterion_main!(benches);
