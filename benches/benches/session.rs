//! What the session alone costs, without any I/O: requests out, replies in, watches fired and restored.

#![expect(missing_docs, reason = "criterion's macros make functions that nobody calls")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use zk_instructions::session::{
    IN_FLIGHT, NOW, connected, cut, drain, events, get, greet, path, replies, watching,
};

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

/// Cost must grow with the number of watches, and not faster.
fn watches(c: &mut Criterion) {
    for count in [100, 1_000, 10_000, 100_000] {
        let mut group = c.benchmark_group(format!("{count} watches"));
        // Each sample makes its watches anew.
        group.sample_size(10);
        group.throughput(Throughput::Elements(count as u64));
        let events = events(count);
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
                    cut(&mut session);
                    session
                },
                |mut session| {
                    greet(&mut session);
                    assert!(session.outbound().len() > count * path(0).len());
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
