//! Scans that wait for memory: the nearest of many vectors, and searches of columns, beside a loop
//! that only reads the same bytes. In processor time.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tl_benches::vectors::{self, Rows};
use tl_benches::{ProcessorTime, is_measuring, split_mix};
use tl_simd::Level;
use tl_simd::column::{extremes, find_equal, find_range};
use tl_simd::similarity::{Element, Metric, Query, nearest};

const DIM: usize = 384;
const K: usize = 10;

/// 128 MiB of `u64`, more than caches hold.
const VALUES: usize = 1 << 24;

fn search(criterion: &mut Criterion<ProcessorTime>) {
    let count = if is_measuring() { 100_000 } else { 1_000 };
    let mut group = criterion.benchmark_group(format!("nearest {K} of {count} x {DIM}"));
    let query = Query::new(&vectors::random_values(DIM, 1));
    for element in [Element::F32, Element::F16, Element::Bf16, Element::I8] {
        let name = format!("{element:?}").to_lowercase();
        let rows = Rows::random(element, DIM, count);
        let matrix = rows.matrix();
        group.throughput(Throughput::Bytes(rows.bytes().len() as u64));
        group.bench_function(BenchmarkId::new(&name, "read"), |b| {
            b.iter(|| vectors::read(Level::detect(), black_box(rows.bytes())));
        });
        for level in Level::available() {
            for metric in [Metric::Cosine, Metric::Dot, Metric::SquaredL2] {
                let id = BenchmarkId::new(format!("{name} {metric:?}").to_lowercase(), level);
                group.bench_function(id, |b| {
                    b.iter(|| nearest(level, metric, black_box(&matrix), &query, K));
                });
            }
        }
    }
    group.finish();
}

fn columns(criterion: &mut Criterion<ProcessorTime>) {
    let count = if is_measuring() { VALUES } else { 1_000 };
    let mut state = 2;
    let timestamps: Vec<u64> = (0..count).map(|_| split_mix(&mut state) >> 20).collect();
    let bytes: Vec<u8> = timestamps.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut bits = vec![0; count.div_ceil(64)];
    let (first, last) = (1 << 42, 3 << 42);
    let mut group = criterion.benchmark_group(format!("column of {count} u64"));
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("read", |b| {
        b.iter(|| vectors::read(Level::detect(), black_box(&bytes)));
    });
    for level in Level::available() {
        group.bench_function(BenchmarkId::new("range", level), |b| {
            b.iter(|| find_range(level, black_box(&timestamps), first..=last, &mut bits));
        });
        group.bench_function(BenchmarkId::new("equal", level), |b| {
            b.iter(|| find_equal(level, black_box(&timestamps), first, &mut bits));
        });
        group.bench_function(BenchmarkId::new("extremes", level), |b| {
            b.iter(|| extremes(level, black_box(&timestamps)));
        });
    }
    group.finish();
}

/// Few and short rounds: a scan of milliseconds is no matter of chance.
fn shortly() -> Criterion<ProcessorTime> {
    let (second, samples) = (Duration::from_secs(1), 20);
    let criterion = Criterion::default().with_measurement(ProcessorTime);
    criterion.sample_size(samples).measurement_time(second).warm_up_time(second / 4)
}

criterion_group!(name = benches; config = shortly(); targets = search, columns);
criterion_main!(benches);
