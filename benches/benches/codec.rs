//! What encoding and decoding cost.

#![expect(missing_docs, reason = "criterion's macros make functions that nobody calls")]

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use zk_proto::{
    List, Stat, Str, Xid,
    frame::RequestFrame,
    jute::{Encode, decode_prefix},
    request::{GetChildren2Response, GetDataRequest, GetDataResponse},
};

fn encoded(value: &impl Encode) -> Bytes {
    let mut out = BytesMut::new();
    value.encode(&mut out);
    out.freeze()
}

fn codec(c: &mut Criterion) {
    let request = GetDataRequest { path: Str::from("/services/report/leader"), watch: false };
    let mut out = BytesMut::with_capacity(1 << 10);
    c.bench_function("encode getData", |b| {
        b.iter(|| {
            out.clear();
            RequestFrame::of(black_box(&request)).write(Xid(1), &mut out);
        });
    });

    let data = Some(Bytes::from_static(&[7; 128]));
    let reply = encoded(&GetDataResponse { data, stat: Stat::default() });
    c.bench_function("decode getData reply of 128 bytes", |b| {
        b.iter(|| decode_prefix::<GetDataResponse>(black_box(&reply)));
    });

    let names: Vec<String> = (0..10_000)
        .map(|number| format!("_c_3b5f6a0e-0000-4000-8000-0123456789ab-lock-{number:010}"))
        .collect();
    let children = List::of_strs(names.iter().map(String::as_str));
    let listing = encoded(&GetChildren2Response { children, stat: Stat::default() });
    let mut group = c.benchmark_group("listing of 10 000 lock nodes");
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
    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
