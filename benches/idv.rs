//! idv-format: reading a column of numbers beside a plain copy, inflating beside the inflater
//! alone, opening a file of many columns, writing.
//!
//! The file lies in the target folder and in the page cache.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Cursor, Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use flate2::{Decompress, FlushDecompress};
use idv_format::{
    Codec, Column, Compression, IdvFile, NewColumn, Number, ReadAt, ReadError, Scratch, Values,
    WriteOptions, Writer,
};
use tl_benches::{is_measuring, split_mix};

fn rows() -> usize {
    if is_measuring() { 10_000_000 } else { 20_000 }
}

/// Numbers with one digit behind the point, as measurements have: DEFLATE halves them.
fn singles() -> Values<'static> {
    let mut state = 1;
    let mut next = || u16::try_from(split_mix(&mut state) % 1000).unwrap_or(0);
    Values::Single((0..rows()).map(|_| f32::from(next()) / 10.0).collect())
}

fn options(threads: usize) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
    options
}

fn column(compression: Compression) -> Vec<NewColumn> {
    vec![NewColumn { compression, ..NewColumn::new("x", Codec::number(Number::Single)) }]
}

/// Writes the values into memory that is there already.
fn write(values: &Values<'_>, compression: Compression, threads: usize, room: Vec<u8>) -> Vec<u8> {
    let sink = Cursor::new(room);
    let writer = Writer::new(sink, column(compression), options(threads));
    let mut writer = writer.expect("the column is one that can be written");
    writer.write(&[values.slice(0..values.len())]).expect("memory has room");
    let (sink, _) = writer.finish().expect("memory has room");
    sink.into_inner()
}

fn path(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("benches-idv");
    fs::create_dir_all(&folder).expect("the target folder is writable");
    folder.join(name)
}

/// Looks at every value, block by block.
fn scan<R: ReadAt>(column: &Column<'_, R>, scratch: &mut Scratch) -> u32 {
    (0..column.blocks().len() as u64).fold(0, |sum, block| {
        let values = column.read_block(block, scratch).expect("the file is whole");
        let Values::Single(values) = values else { return sum };
        values.iter().fold(sum, |sum, value| sum ^ value.to_bits())
    })
}

fn scans(criterion: &mut Criterion) {
    let values = singles();
    let bytes = write(&values, Compression::None, 1, Vec::new());
    let path = path("scan.idv");
    fs::write(&path, &bytes).expect("the disk has room");
    let mut group = criterion.benchmark_group("scan");
    group.throughput(Throughput::Bytes(4 * rows() as u64));
    let mut copy = vec![0u8; 4 * rows()];
    group.bench_function("copy of as many bytes", |b| {
        b.iter(|| copy.copy_from_slice(black_box(&bytes[256..256 + 4 * rows()])));
    });
    let file = IdvFile::open(File::open(path).expect("just written")).expect("just written");
    scan_lines(&mut group, "file", &file);
    scan_lines(&mut group, "memory", &IdvFile::open(bytes).expect("just written"));
    group.finish();
}

fn scan_lines<R: ReadAt + Sync>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    file: &IdvFile<R>,
) {
    let column = file.column(0).expect("the column is there");
    let mut scratch = Scratch::new();
    group.bench_function(format!("{name}, block by block"), |b| {
        b.iter(|| scan(black_box(&column), &mut scratch));
    });
    group.bench_function(format!("{name}, into one array"), |b| {
        b.iter(|| column.read(0..file.row_count()).expect("the file is whole"));
    });
    group.bench_function(format!("{name}, two threads"), |b| {
        let threads = NonZeroUsize::new(2).unwrap_or(NonZeroUsize::MIN);
        let visit = |_, values: Values<'_>| -> Result<(), ReadError> {
            black_box(values);
            Ok(())
        };
        b.iter(|| column.scan(threads, visit).expect("the file is whole"));
    });
}

fn inflate(criterion: &mut Criterion) {
    let values = singles();
    let bytes = write(&values, Compression::Deflate, 1, Vec::new());
    let file = IdvFile::open(bytes.as_slice()).expect("just written");
    let column = file.column(0).expect("the column is there");
    let mut group = criterion.benchmark_group("inflate");
    group.throughput(Throughput::Bytes(4 * rows() as u64)).sample_size(10);
    let mut inflated = vec![0u8; 64 << 10];
    let mut stream = Decompress::new(false);
    group.bench_function("the inflater alone", |b| {
        b.iter(|| {
            for block in column.blocks() {
                let start = usize::try_from(block.offset).unwrap_or(usize::MAX);
                let stored = &bytes[start..start + block.stored_bytes as usize];
                stream.reset(false);
                let finish = FlushDecompress::Finish;
                black_box(stream.decompress(stored, &mut inflated, finish).expect("whole"));
            }
        });
    });
    let mut scratch = Scratch::new();
    group.bench_function("block by block", |b| b.iter(|| scan(&column, &mut scratch)));
    group.bench_function("two threads", |b| {
        let threads = NonZeroUsize::new(2).unwrap_or(NonZeroUsize::MIN);
        let visit = |_, values: Values<'_>| -> Result<(), ReadError> {
            black_box(values);
            Ok(())
        };
        b.iter(|| column.scan(threads, visit).expect("the file is whole"));
    });
    group.finish();
}

fn open(criterion: &mut Criterion) {
    let column = |i| NewColumn::new(format!("column {i}"), Codec::number(Number::Double));
    let path = path("open.idv");
    let sink = File::create(&path).expect("the folder is writable");
    let columns = (0..1000).map(column).collect();
    let mut writer = Writer::new(sink, columns, options(1)).expect("columns can be written");
    writer.write(&vec![Values::Double(vec![0.5; 100].into()); 1000]).expect("the disk has room");
    drop(writer.finish().expect("the disk has room"));
    let bytes = fs::read(&path).expect("just written");
    let mut group = criterion.benchmark_group("open");
    group.bench_function("1,000 columns in memory", |b| {
        b.iter(|| IdvFile::open(black_box(bytes.as_slice())).expect("whole"));
    });
    group.bench_function("1,000 columns in a file", |b| {
        b.iter(|| IdvFile::open(File::open(&path).expect("just written")).expect("whole"));
    });
    group.finish();
}

fn writes(criterion: &mut Criterion) {
    let values = singles();
    let mut group = criterion.benchmark_group("write");
    group.throughput(Throughput::Bytes(4 * rows() as u64)).sample_size(10);
    for (compression, threads) in
        [(Compression::None, 1), (Compression::Deflate, 1), (Compression::Deflate, 2)]
    {
        let mut room = Vec::new();
        group.bench_function(format!("memory, {compression}, {threads} threads"), |b| {
            b.iter(|| room = write(&values, compression, threads, std::mem::take(&mut room)));
        });
    }
    let mut sink = File::create(path("write.idv")).expect("the folder is writable");
    group.bench_function("file, none", |b| {
        b.iter(|| {
            sink.seek(SeekFrom::Start(0)).expect("a file can be sought");
            let writer = Writer::new(&sink, column(Compression::None), options(1));
            let mut writer = writer.expect("the column can be written");
            writer.write(&[values.slice(0..values.len())]).expect("the disk has room");
            writer.finish().expect("the disk has room").1
        });
    });
    group.finish();
}

criterion_group!(benches, scans, inflate, open, writes);
criterion_main!(benches);
