//! tbl-io: random reads by way of access and state of the page cache, indexing, writing.
//!
//! The files lie in the target folder. `cargo test --benches` makes small ones.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use tbl_io::{
    Damage, Mapped, NewSample, ReadOptions, SampleSource, Source, StreamWriter, TarArchive,
    TarOptions, TarWriter, TblFile, Verify, WriteOptions,
};
use tl_benches::{PAYLOAD_BYTES, is_measuring, random_bytes, split_mix};

/// Reads in one cold iteration, and how far ahead of them the system is told.
const COLD_READS: u64 = 64;
const AHEAD: usize = 8;

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("benches-io");
    fs::create_dir_all(&folder).expect("the target folder is writable");
    folder
}

/// A TBL file of `count` samples of `bytes` bytes. Written anew: an old one may be of old code.
fn tbl(name: &str, count: u64, bytes: usize) -> PathBuf {
    let path = folder().join(name);
    write_tbl(&path, count, &random_bytes(bytes, 1));
    path
}

fn write_tbl(path: &Path, count: u64, payload: &[u8]) {
    let sample_count = Some(count);
    let options =
        WriteOptions { sample_count, sync: false, overwrite: true, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(path, options).expect("the folder is writable");
    for index in 0..count {
        let key = format!("{index:08}.jpg");
        let label = i64::try_from(index % 1000).ok();
        let sample = NewSample { key: Some(key.as_bytes()), label, ..NewSample::new(payload) };
        writer.write_sample(&sample).expect("the disk has room");
    }
    writer.finish().expect("the disk has room");
}

fn open(path: &Path, verify: Verify) -> TblFile {
    let options = ReadOptions { verify, damage: Damage::Refuse, ..ReadOptions::default() };
    let source = Source::open(path).expect("the file was just written");
    TblFile::from_source(source, options).expect("the file is whole")
}

fn random_reads(criterion: &mut Criterion) {
    let count = if is_measuring() { 2000 } else { 80 };
    let path = tbl("reads.tbl", count, PAYLOAD_BYTES);
    warm_reads(criterion, &path);
    cold_reads(criterion, &path);
    fs::remove_file(path).expect("the file is ours");
}

fn warm_reads(criterion: &mut Criterion, path: &Path) {
    let mut group = criterion.benchmark_group("random read of 110 KB, warm");
    group.throughput(Throughput::Elements(1));
    for (name, verify) in [("pread", Verify::Nothing), ("pread and CRC-16", Verify::Stored)] {
        let file = open(path, verify);
        let (mut state, mut bytes) = (1, Vec::new());
        group.bench_function(name, |b| {
            b.iter(|| {
                let index = split_mix(&mut state) % file.sample_count();
                file.read_into(index, &mut bytes).expect("the file is whole");
                black_box(&bytes);
            });
        });
    }
    let file = open(path, Verify::Nothing);
    let mapped = map(path);
    let (mut state, mut bytes) = (1, vec![0; PAYLOAD_BYTES]);
    group.bench_function("mapped and copied", |b| {
        b.iter(|| {
            let index = split_mix(&mut state) % file.sample_count();
            let offset = file.entry(index).expect("the file is whole").offset;
            mapped.read_exact_at(offset, &mut bytes).expect("the file is whole");
            black_box(&bytes);
        });
    });
    group.finish();
}

fn map(path: &Path) -> Mapped {
    let source = Source::open(path).expect("the file was just written");
    Mapped::new(&source, 0, source.len()).expect("the file can be mapped")
}

/// Cold reads drop the file from the page cache before each iteration, outside the timed part.
fn cold_reads(criterion: &mut Criterion, path: &Path) {
    let file = open(path, Verify::Nothing);
    let mut bytes = Vec::new();
    let mut group = criterion.benchmark_group("random read of 110 KB, cold");
    group.sample_size(10).throughput(Throughput::Elements(COLD_READS));
    cold(&mut group, "pread", path, |order| {
        for &index in order {
            file.read_into(index, &mut bytes).expect("the file is whole");
        }
    });
    cold(&mut group, "pread, told 8 ahead", path, |order| {
        order.iter().take(AHEAD).for_each(|&soon| file.will_need(soon));
        for (at, &index) in order.iter().enumerate() {
            order.get(at + AHEAD).into_iter().for_each(|&soon| file.will_need(soon));
            file.read_into(index, &mut bytes).expect("the file is whole");
        }
    });
    let mut copy = vec![0; PAYLOAD_BYTES];
    cold(&mut group, "mapped and copied", path, |order| {
        let mapped = map(path);
        for &index in order {
            let offset = file.entry(index).expect("the file is whole").offset;
            mapped.read_exact_at(offset, &mut copy).expect("the file is whole");
        }
    });
    group.finish();
}

/// Times `read` on `COLD_READS` samples in random order, with none of the file in memory.
fn cold(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    path: &Path,
    mut read: impl FnMut(&[u64]),
) {
    let count = open(path, Verify::Nothing).sample_count();
    let source = Source::open(path).expect("the file was just written");
    // Only pages that are on the disk can be dropped from memory.
    fs::File::open(path).and_then(|file| file.sync_all()).expect("the disk has room");
    let mut state = 7;
    group.bench_function(name, |b| {
        b.iter_custom(|iterations| {
            let mut total = Duration::ZERO;
            for _ in 0..iterations {
                let order: Vec<u64> =
                    (0..COLD_READS).map(|_| split_mix(&mut state) % count).collect();
                source.dont_need(0, source.len()).expect("advice is taken");
                let start = Instant::now();
                read(&order);
                total += start.elapsed();
            }
            total
        });
    });
}

fn indexing(criterion: &mut Criterion) {
    let count = if is_measuring() { 1_000_000 } else { 1000 };
    let path = tbl("index.tbl", count, 16);
    let mut group = criterion.benchmark_group("open");
    group.sample_size(20);
    group.bench_function(BenchmarkId::new("TBL v2 of samples", count), |b| {
        b.iter(|| open(black_box(&path), Verify::Stored));
    });
    fs::remove_file(path).expect("the file is ours");

    let members = if is_measuring() { 20_000 } else { 100 };
    let path = folder().join("index.tar");
    let options = TarOptions { sync: false, overwrite: true };
    let mut writer = TarWriter::create(&path, options).expect("the folder is writable");
    let payload = random_bytes(4000, 1);
    for index in 0..members {
        let name = format!("{index:08}.jpg");
        writer.append(name.as_bytes(), &payload).expect("the disk has room");
    }
    writer.finish().expect("the disk has room");
    group.throughput(Throughput::Elements(members));
    group.bench_function(BenchmarkId::new("TAR of members", members), |b| {
        b.iter(|| TarArchive::open(black_box(&path)).expect("the archive is whole"));
    });
    fs::remove_file(path).expect("the file is ours");
    group.finish();
}

fn writing(criterion: &mut Criterion) {
    let count = if is_measuring() { 1000 } else { 10 };
    let payload = random_bytes(PAYLOAD_BYTES, 1);
    let path = folder().join("write.tbl");
    let mut group = criterion.benchmark_group("write");
    group.sample_size(10).throughput(Throughput::Elements(count));
    group.bench_function(BenchmarkId::new("TBL v2 of 110 KB samples, not synced", count), |b| {
        b.iter(|| write_tbl(&path, count, black_box(&payload)));
    });
    group.finish();
    fs::remove_file(path).expect("the file is ours");
}

criterion_group!(benches, random_reads, indexing, writing);
criterion_main!(benches);
