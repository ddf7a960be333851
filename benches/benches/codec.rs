//! What encoding and decoding cost, beside copying the same bytes.

#![expect(missing_docs, reason = "criterion's macros make functions that nobody calls")]

use std::{borrow::Borrow, hint::black_box};

use bytes::{Bytes, BytesMut};
use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use zk_instructions::lock_nodes;
use zk_proto::{
    Acl, AclList, AddWatchMode, CreateFlags, ErrorCode, EventType, KeeperState, List, Request,
    Secret, SessionId, Stat, Str, Text, Xid, Zxid,
    frame::{ReplyHeader, RequestFrame},
    jute::{Encode, decode_prefix},
    request::{
        AddWatchRequest, ConnectResponse, ConnectView, Create2Request, Create2Response,
        Create2View, CreateRequest, DeleteRequest, ExistsRequest, ExistsResponse,
        GetChildren2Request, GetChildren2Response, GetDataRequest, GetDataResponse, GetDataView,
        MultiOp, MultiRequest, MultiResponse, MultiResult, SetDataRequest, SetDataResponse,
        TrailingFlag, WatcherEvent, WatcherEventView,
    },
};

const PATH: &str = "/services/report/leader";

/// The name of a lock's node, as Curator and we make them.
const LOCK: &str = "/locks/report/_c_3b5f6a0e-0000-4000-8000-0123456789ab-lock-";

fn encoded(value: &impl Encode) -> Bytes {
    let mut out = BytesMut::new();
    value.encode(&mut out);
    out.freeze()
}

/// A request, from its fields to bytes: the record alone, behind what is there already; and the frame that a client makes
/// of it. It is encoded by its caller, in a buffer that callers share, since it is not yet known when it will leave, or
/// how often; and copied behind its head when it does.
fn request<R: Request, B: Borrow<R>>(c: &mut Criterion, name: &str, make: impl Fn() -> B) {
    let record = encoded(make().borrow());
    let mut frame = BytesMut::new();
    RequestFrame::of(make().borrow()).write(Xid(1), &mut frame);
    let mut group = c.benchmark_group(format!("encode {name}"));
    group.throughput(Throughput::Bytes(frame.len() as u64));
    let mut out = BytesMut::with_capacity(frame.len());
    group.bench_function("record", |b| {
        b.iter(|| {
            out.clear();
            black_box(make()).borrow().encode(&mut out);
        });
    });
    let mut shared = BytesMut::new();
    group.bench_function("frame", |b| {
        b.iter(|| {
            out.clear();
            RequestFrame::within(&mut shared, black_box(make()).borrow()).write(Xid(1), &mut out);
        });
    });
    copied(&mut group, "record copied", &record);
    copied(&mut group, "frame copied", &frame);
    group.finish();
}

/// What decoding is called, and does.
type Way = (&'static str, fn(&Bytes));

/// A reply's body, from bytes to fields, in each of these ways.
fn reply(c: &mut Criterion, name: &str, value: &impl Encode, ways: &[Way]) {
    let bytes = encoded(value);
    let mut group = c.benchmark_group(format!("decode {name}"));
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    for &(way, read) in ways {
        group.bench_function(way, |b| b.iter(|| read(black_box(&bytes))));
    }
    copied(&mut group, "record copied", &bytes);
    group.finish();
}

/// Decodes a record.
macro_rules! decode {
    ($record:ty) => {
        |bytes| {
            let _ = black_box(decode_prefix::<$record>(bytes));
        }
    };
}

fn copied(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, bytes: &[u8]) {
    let mut out = BytesMut::with_capacity(bytes.len());
    group.bench_function(name, |b| {
        b.iter(|| {
            out.clear();
            out.extend_from_slice(black_box(bytes));
        });
    });
}

fn open() -> AclList {
    [Acl::open_unsafe()].into_iter().collect()
}

fn requests(c: &mut Criterion) {
    let path = Str::from(PATH);
    let data = [7; 64 << 10];
    request::<GetDataRequest<'_>, _>(c, "getData", || GetDataRequest { path, watch: false });
    request::<ExistsRequest<'_>, _>(c, "exists", || ExistsRequest { path, watch: false });
    request::<GetChildren2Request<'_>, _>(c, "getChildren2", || GetChildren2Request {
        path,
        watch: true,
    });
    let set = |len| SetDataRequest { path, data: data.get(..len), version: -1 };
    for len in [128, data.len()] {
        request::<SetDataRequest<'_>, _>(c, &format!("setData of {len} bytes"), || set(len));
    }
    let flags = CreateFlags::EPHEMERAL_SEQUENTIAL;
    let create = CreateRequest { path: Str::from(LOCK), data: Some(b""), acl: open(), flags };
    let create = Create2Request(create);
    request::<Create2Request<'_>, _>(c, "create2 of a lock's node", || &create);
    request::<DeleteRequest<'_>, _>(c, "delete", || DeleteRequest { path, version: -1 });
    request::<AddWatchRequest<'_>, _>(c, "addWatch", || AddWatchRequest {
        path,
        mode: AddWatchMode::PERSISTENT,
    });
    let sets = || (0..16).map(|_| MultiOp::SetData(set(128)));
    request::<MultiRequest, MultiRequest>(c, "multi of 16 setData", || sets().collect());
}

/// What the client reads is borrowed from the frame; it can be had sharing the frame's memory as well.
fn replies(c: &mut Criterion) {
    let stat = Stat::default();
    let header = ReplyHeader { xid: Xid(1), zxid: Zxid(2), err: ErrorCode::OK };
    reply(c, "header", &header, &[("record", decode!(ReplyHeader))]);
    for len in [128, 1 << 10, 64 << 10] {
        let data = GetDataResponse { data: Some(Bytes::from(vec![7; len])), stat };
        let ways: [Way; 2] =
            [("record", decode!(GetDataView<'_>)), ("shared", decode!(GetDataResponse))];
        reply(c, &format!("getData of {len} bytes"), &data, &ways);
    }
    reply(c, "exists", &ExistsResponse { stat }, &[("record", decode!(ExistsResponse))]);
    reply(c, "setData", &SetDataResponse { stat }, &[("record", decode!(SetDataResponse))]);
    let created = Create2Response { path: Text::from(LOCK), stat };
    let ways: [Way; 2] =
        [("record", decode!(Create2View<'_>)), ("shared", decode!(Create2Response))];
    reply(c, "create2", &created, &ways);
    let (kind, state) = (EventType::NODE_DELETED, KeeperState::SYNC_CONNECTED);
    let event = WatcherEvent { kind, state, path: Text::from(LOCK) };
    let ways: [Way; 2] =
        [("record", decode!(WatcherEventView<'_>)), ("shared", decode!(WatcherEvent))];
    reply(c, "event", &event, &ways);
    let connected = ConnectResponse {
        protocol_version: 0,
        time_out: 10_000,
        session_id: SessionId(1),
        passwd: Secret(Some(Bytes::from_static(&[1; 16]))),
        read_only: TrailingFlag(Some(false)),
    };
    let ways: [Way; 2] =
        [("record", decode!(ConnectView<'_>)), ("shared", decode!(ConnectResponse))];
    reply(c, "handshake", &connected, &ways);
    let results = (0..16).map(|_| MultiResult::SetData(SetDataResponse { stat }));
    let walk: fn(&Bytes) = |bytes| {
        let results: MultiResponse = decode_prefix(bytes).unwrap();
        results.iter().for_each(|result| drop(black_box(result)));
    };
    let multi = results.collect::<MultiResponse>();
    let ways: [Way; 2] = [("record", decode!(MultiResponse)), ("walked", walk)];
    reply(c, "multi of 16 setData", &multi, &ways);
}

/// Cost must grow with the length, and not faster.
fn listings(c: &mut Criterion) {
    for count in [10, 100, 1_000, 10_000, 100_000] {
        let names = lock_nodes(count);
        let children = List::of_strs(names.iter().map(String::as_str));
        let listing = encoded(&GetChildren2Response { children, stat: Stat::default() });
        let mut group = c.benchmark_group(format!("listing of {count} lock nodes"));
        group.throughput(Throughput::Bytes(listing.len() as u64));
        group.bench_function("decode", |b| {
            b.iter(|| decode_prefix::<GetChildren2Response>(black_box(&listing)));
        });
        group.bench_function("decode and walk", |b| {
            b.iter(|| {
                let reply: GetChildren2Response = decode_prefix(black_box(&listing)).unwrap();
                reply.children.strs().map(|name| name.len()).sum::<usize>()
            });
        });
        copied(&mut group, "record copied", &listing);
        group.finish();
    }
}

criterion_group!(benches, requests, replies, listings);
criterion_main!(benches);
