//! What encoding and decoding cost, beside copying the same bytes.

#![expect(missing_docs, reason = "criterion's macros make functions that nobody calls")]

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use zk_instructions::lock_nodes;
use zk_proto::{
    Acl, AclList, AddWatchMode, CreateFlags, ErrorCode, EventType, KeeperState, List, Request,
    Secret, SessionId, Stat, Str, Text, Xid, Zxid,
    frame::{ReplyHeader, RequestFrame},
    jute::{Decode, Encode, decode_prefix},
    request::{
        AddWatchRequest, ConnectResponse, Create2Request, Create2Response, CreateRequest,
        DeleteRequest, ExistsRequest, ExistsResponse, GetChildren2Request, GetChildren2Response,
        GetDataRequest, GetDataResponse, MultiOp, MultiRequest, MultiResponse, MultiResult,
        SetDataRequest, SetDataResponse, TrailingFlag, WatcherEvent,
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

/// A request, from its fields to bytes behind those of others; and those bytes, copied.
fn request<R: Request>(c: &mut Criterion, name: &str, request: &R) {
    let mut frame = BytesMut::new();
    RequestFrame::of(request).write(Xid(1), &mut frame);
    let mut group = c.benchmark_group(format!("encode {name}"));
    group.throughput(Throughput::Bytes(frame.len() as u64));
    let mut out = BytesMut::with_capacity(frame.len() + 64);
    group.bench_function("frame", |b| {
        b.iter(|| {
            out.clear();
            RequestFrame::of(black_box(request)).write(Xid(1), &mut out);
        });
    });
    group.bench_function("body alone", |b| {
        b.iter(|| {
            out.clear();
            black_box(request).encode(&mut out);
        });
    });
    copied(&mut group, &frame);
    group.finish();
}

/// A reply's body, from bytes to fields.
fn reply<T: Encode + for<'a> Decode<'a>>(c: &mut Criterion, name: &str, value: &T) {
    let bytes = encoded(value);
    let mut group = c.benchmark_group(format!("decode {name}"));
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("body", |b| b.iter(|| decode_prefix::<T>(black_box(&bytes))));
    copied(&mut group, &bytes);
    group.finish();
}

fn copied(group: &mut BenchmarkGroup<'_, WallTime>, bytes: &[u8]) {
    let mut out = BytesMut::with_capacity(bytes.len());
    group.bench_function("memcpy", |b| {
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
    request(c, "getData", &GetDataRequest { path, watch: false });
    request(c, "exists", &ExistsRequest { path, watch: false });
    request(c, "getChildren2", &GetChildren2Request { path, watch: true });
    for len in [128, data.len()] {
        let set = SetDataRequest { path, data: Some(&data[..len]), version: -1 };
        request(c, &format!("setData of {len} bytes"), &set);
    }
    let flags = CreateFlags::EPHEMERAL_SEQUENTIAL;
    let create = CreateRequest { path: Str::from(LOCK), data: Some(b""), acl: open(), flags };
    request(c, "create2 of a lock's node", &Create2Request(create));
    request(c, "delete", &DeleteRequest { path, version: -1 });
    request(c, "addWatch", &AddWatchRequest { path, mode: AddWatchMode::PERSISTENT });
    let set = SetDataRequest { path, data: Some(&data[..128]), version: -1 };
    let sets = (0..16).map(|_| MultiOp::SetData(set.clone()));
    request(c, "multi of 16 setData", &sets.collect::<MultiRequest>());
}

fn replies(c: &mut Criterion) {
    let stat = Stat::default();
    reply(c, "header", &ReplyHeader { xid: Xid(1), zxid: Zxid(2), err: ErrorCode::OK });
    for len in [128, 1 << 10, 64 << 10] {
        let data = Some(Bytes::from(vec![7; len]));
        reply(c, &format!("getData of {len} bytes"), &GetDataResponse { data, stat });
    }
    reply(c, "exists", &ExistsResponse { stat });
    reply(c, "setData", &SetDataResponse { stat });
    reply(c, "create2", &Create2Response { path: Text::from(LOCK), stat });
    let (kind, state) = (EventType::NODE_DELETED, KeeperState::SYNC_CONNECTED);
    reply(c, "event", &WatcherEvent { kind, state, path: Text::from(LOCK) });
    let connected = ConnectResponse {
        protocol_version: 0,
        time_out: 10_000,
        session_id: SessionId(1),
        passwd: Secret(Some(Bytes::from_static(&[1; 16]))),
        read_only: TrailingFlag(Some(false)),
    };
    reply(c, "handshake", &connected);
    let set = || MultiResult::SetData(SetDataResponse { stat });
    reply(c, "multi of 16 setData", &(0..16).map(|_| set()).collect::<MultiResponse>());
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
        copied(&mut group, &listing);
        group.finish();
    }
}

criterion_group!(benches, requests, replies, listings);
criterion_main!(benches);
