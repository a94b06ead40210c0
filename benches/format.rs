//! tbl-format: checksums of a payload, parsing an index, building one.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tbl_format::checksum::{crc32c, header_crc32, payload_crc16};
use tbl_format::{SampleFormat, v2};
use tl_benches::{PAYLOAD_BYTES, random_bytes};

fn checksums(criterion: &mut Criterion) {
    let payload = random_bytes(PAYLOAD_BYTES, 1);
    let mut group = criterion.benchmark_group("checksum");
    group.throughput(Throughput::Bytes(payload.len() as u64));
    group.bench_function("crc16 of a payload", |b| b.iter(|| payload_crc16(black_box(&payload))));
    group.bench_function("crc32c of a payload", |b| b.iter(|| crc32c(black_box(&payload))));
    let header = random_bytes(v2::FileHeader::SIZE, 2);
    group.throughput(Throughput::Bytes(header.len() as u64));
    group.bench_function("crc32 of a header", |b| b.iter(|| header_crc32(black_box(&header))));
    group.finish();
}

fn index(criterion: &mut Criterion) {
    let entries = 10_000;
    let index = index_of(entries);
    let mut group = criterion.benchmark_group("index");
    group.throughput(Throughput::Elements(entries));
    group.bench_function("parse and check every entry", |b| {
        b.iter(|| total_bytes(black_box(&index), entries));
    });
    group.finish();
}

/// The index of a file whose payloads follow one another.
fn index_of(entries: u64) -> Vec<u8> {
    let first = v2::index_end(entries).expect("a small index");
    let stored_bytes = u32::try_from(PAYLOAD_BYTES).expect("fits");
    let entry = |i: u64| {
        let offset = first + i * u64::from(stored_bytes);
        let payload = v2::Payload { offset, stored_bytes, bytes: stored_bytes, checksum: 0 };
        v2::IndexEntry::new(payload, (500, 375), SampleFormat::Jpeg, v2::EntryFlags::NONE)
    };
    (0..entries).flat_map(|i| entry(i).to_bytes()).collect()
}

fn total_bytes(index: &[u8], entries: u64) -> u64 {
    let index_end = v2::index_end(entries).expect("a small index");
    let extent = |bytes| {
        let entry = v2::IndexEntry::parse(bytes).expect("a whole entry");
        let payload = entry.payload(index_end, u64::MAX).expect("inside the file");
        payload.end - payload.start
    };
    index.chunks_exact(v2::IndexEntry::SIZE).map(extent).sum()
}

criterion_group!(benches, checksums, index);
criterion_main!(benches);
