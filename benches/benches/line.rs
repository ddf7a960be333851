//! What a waiter makes of the listing of a lock.

#![expect(missing_docs, reason = "criterion's macros make functions that nobody calls")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use zk_instructions::joining;

/// Cost must grow with the number of waiters, and not faster.
fn line(c: &mut Criterion) {
    let mut group = c.benchmark_group("whom to wait for");
    for count in [10, 100, 1_000, 10_000, 100_000] {
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("{count} children"), |b| b.iter(joining(count)));
    }
    group.finish();
}

criterion_group!(benches, line);
criterion_main!(benches);
