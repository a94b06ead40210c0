//! tbf-format: opening a mapped segment, edges of a row, ids that are there and that are not,
//! making, unpacking and verifying segments.
//!
//! The mapped file lies in the target folder. `cargo test --benches` makes a small one.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tbf_format::{
    AlignedBytes, BloomKey, BuildOptions, Compression, EncodedSegment, Node, Outcome, Relation,
    Segment, SegmentBuilder, UnpackOptions,
};
use tbl_io::{AtomicFile, Mapped, Placement, Source};
use tl_benches::{is_measuring, split_mix};

/// Edges that leave each node.
const EDGES: u32 = 8;

/// How many lookups one iteration makes.
const LOOKUPS: usize = 1024;

/// A segment of `count` nodes with random ids, edges and vectors.
fn segment(count: u32, options: BuildOptions) -> EncodedSegment {
    let mut state = 1;
    let mut vector = vec![0.0; options.dim as usize];
    let mut builder = SegmentBuilder::new(options);
    for row in 0..count {
        for component in &mut vector {
            *component = component_of(split_mix(&mut state));
        }
        let node = Node {
            id: id(split_mix(&mut state)),
            timestamp: u64::from(row) * 1000,
            context_hash: split_mix(&mut state) % 1000,
            confidence: 0.9,
            outcome: Outcome::Success,
            text: None,
        };
        builder.push(&node, &vector).expect("a small segment");
        for _ in 0..EDGES {
            let target = split_mix(&mut state) % u64::from(count);
            let target = u32::try_from(target).expect("below the count");
            builder.push_edge(row, target, Relation::Causal, 0.5);
        }
    }
    builder.finish().expect("random ids differ")
}

/// A number between -1 and 1.
fn component_of(random: u64) -> f32 {
    f32::from(random.to_le_bytes()[0]) / 127.5 - 1.0
}

fn id(random: u64) -> [u8; 16] {
    let mut state = random;
    let mut id = [0; 16];
    id[..8].copy_from_slice(&split_mix(&mut state).to_le_bytes());
    id[8..].copy_from_slice(&split_mix(&mut state).to_le_bytes());
    id
}

fn in_memory(count: u32, options: BuildOptions) -> AlignedBytes {
    AlignedBytes::copy_of(&segment(count, options).to_bytes())
}

/// A file that appears whole or not at all, as everybody above this crate writes one.
fn write(name: &str, segment: &EncodedSegment) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("benches-tbf");
    fs::create_dir_all(&folder).expect("the target folder is writable");
    let path = folder.join(name);
    let placement = Placement { overwrite: true, sync: false };
    let file = AtomicFile::create(&path, placement).expect("the folder is writable");
    segment.write_draft(file.file()).expect("the disk has room");
    segment.complete(file.file()).expect("the disk has room");
    file.commit().expect("the name is free");
    path
}

fn open(criterion: &mut Criterion) {
    let count = if is_measuring() { 660_000 } else { 200 };
    let options = BuildOptions { dim: 384, index: true, ..BuildOptions::default() };
    let path = write("open.tbf", &segment(count, options));
    let map = || {
        let source = Source::open(&path).expect("the file was just written");
        Mapped::new(&source, 0, source.len()).expect("the file can be mapped")
    };
    let mut group = criterion.benchmark_group("open");
    let name =
        |what| format!("{what} of {} MB", fs::metadata(&path).map_or(0, |m| m.len()) / 1_000_000);
    group.bench_function(name("mapped segment"), |b| {
        let mapped = map();
        let bytes = mapped.slice(0, mapped.len()).expect("the file is whole");
        b.iter(|| Segment::open(black_box(bytes)).expect("a whole segment").node_count());
    });
    group.bench_function(name("file, mapping and segment"), |b| {
        b.iter(|| {
            let mapped = map();
            let bytes = mapped.slice(0, mapped.len()).expect("the file is whole");
            Segment::open(bytes).expect("a whole segment").node_count()
        });
    });
    group.finish();
}

fn lookups(criterion: &mut Criterion) {
    let count = if is_measuring() { 100_000 } else { 200 };
    let options = BuildOptions { index: true, reverse: true, ..BuildOptions::default() };
    let file = in_memory(count, options);
    let segment = Segment::open(file.as_bytes()).expect("a whole segment");
    let mut state = 7;
    let mut random = || usize::try_from(split_mix(&mut state)).unwrap_or(0) % count as usize;
    let rows: Vec<usize> = (0..LOOKUPS).map(|_| random()).collect();
    let ids = segment.columns().expect("plain columns").ids();
    let present: Vec<[u8; 16]> = rows.iter().filter_map(|&row| ids.get(row)).collect();
    let absent: Vec<[u8; 16]> = (0..LOOKUPS as u64).map(|i| id(i + (1 << 60))).collect();

    let mut group = criterion.benchmark_group("lookup");
    group.throughput(Throughput::Elements(LOOKUPS as u64));
    group.bench_function("edges of a row", |b| {
        let degree = |&row: &usize| segment.edges(row).map_or(0, |edges| edges.len());
        b.iter(|| black_box(&rows).iter().map(degree).sum::<usize>());
    });
    group.bench_function("edges of a row, targets added up", |b| {
        let sum = |&row: &usize| {
            let edges = segment.edges(row).unwrap_or_default();
            edges.iter().map(|edge| u64::from(edge.target())).sum::<u64>()
        };
        b.iter(|| black_box(&rows).iter().map(sum).sum::<u64>());
    });
    let bloom = segment.bloom().expect("a plain filter");
    let may_contain = |id: &&[u8; 16]| bloom.may_contain(&BloomKey::new(*id));
    group.bench_function("filter, an id that is not there", |b| {
        b.iter(|| black_box(&absent).iter().filter(may_contain).count());
    });
    group.bench_function("filter, an id that is there", |b| {
        b.iter(|| black_box(&present).iter().filter(may_contain).count());
    });
    let find = |id: &[u8; 16]| segment.find(id).ok().flatten().unwrap_or(0);
    group.bench_function("find, an id that is not there", |b| {
        b.iter(|| black_box(&absent).iter().map(find).sum::<usize>());
    });
    group.bench_function("find, an id that is there", |b| {
        b.iter(|| black_box(&present).iter().map(find).sum::<usize>());
    });
    group.finish();
}

fn whole_segments(criterion: &mut Criterion) {
    let count = if is_measuring() { 20_000 } else { 100 };
    let options = BuildOptions { dim: 384, index: true, reverse: true, ..BuildOptions::default() };
    let file = in_memory(count, options.clone());
    let mut group = criterion.benchmark_group("segment");
    group.sample_size(10).throughput(Throughput::Bytes(file.as_bytes().len() as u64));
    group.bench_function("verify", |b| {
        let segment = Segment::open(file.as_bytes()).expect("a whole segment");
        b.iter(|| segment.verify().expect("a whole segment").len());
    });
    for (name, compression) in [("LZ4", Compression::Lz4), ("Zstandard", Compression::Zstd)] {
        let packed = in_memory(count, BuildOptions { compression, ..options.clone() });
        group.bench_function(format!("unpack {name}"), |b| {
            b.iter(|| {
                let mut segment = Segment::open(packed.as_bytes()).expect("a whole segment");
                segment.unpack_all(&UnpackOptions::default()).expect("a whole segment");
                segment.node_count()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, open, lookups, whole_segments);
criterion_main!(benches);
