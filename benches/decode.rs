//! tl-decode: photographs to RGB, all of a set in one iteration, and their headers alone.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tl_benches::photographs;
use tl_decode::{DecodeOptions, Decoder, Format, Image, probe};

/// Photographs of ImageNet per iteration: enough for the mean of the set, few enough for samples.
const MOST: usize = 32;

/// Files by the name of their set and format.
fn sets() -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut sets: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for photograph in photographs(MOST) {
        let format = Format::sniff(&photograph.bytes).expect("a photograph");
        let png = sets.entry(format!("{}/PNG", photograph.set)).or_default();
        if format == Format::Jpeg {
            png.push(as_png(&photograph.bytes));
        }
        let files = sets.entry(format!("{}/{format}", photograph.set)).or_default();
        files.push(photograph.bytes);
    }
    sets
}

/// The same photograph as a PNG file.
fn as_png(bytes: &[u8]) -> Vec<u8> {
    let mut image = Image::new();
    Decoder::new(DecodeOptions::default()).decode_into(bytes, &mut image).expect("a photograph");
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, image.width, image.height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().expect("a valid header");
    writer.write_image_data(&image.data).expect("writing to memory");
    writer.finish().expect("writing to memory");
    file
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode to RGB");
    group.sample_size(20).measurement_time(Duration::from_secs(8));
    for (name, files) in sets() {
        let mut decoder = Decoder::new(DecodeOptions::default());
        let mut image = Image::new();
        group.throughput(Throughput::Elements(files.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(&name), |b| {
            b.iter(|| {
                for bytes in black_box(&files) {
                    decoder.decode_into(bytes, &mut image).expect("a photograph");
                }
            });
        });
    }
    group.finish();
}

fn probe_headers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("probe");
    for (name, files) in sets() {
        group.throughput(Throughput::Elements(files.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(&name), |b| {
            b.iter(|| {
                for bytes in black_box(&files) {
                    black_box(probe(bytes).expect("a photograph"));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decode, probe_headers);
criterion_main!(benches);
