//! tl-simd: one line per kernel and instruction set, at the sizes that training meets.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fast_image_resize as fir;
use tl_benches::random_bytes;
use tl_simd::Level;
use tl_simd::normalize::{Element, ImageWriter, Layout, PixelFormat, Table};
use tl_simd::resample::{Filter, ImageView, Rect, Resampler, Resize};

/// The median ImageNet photograph and the input of most networks.
const SOURCE: (u32, u32) = (500, 375);
const TARGET: (u32, u32) = (224, 224);

fn pixel_bytes((width, height): (u32, u32)) -> usize {
    width as usize * height as usize * 3
}

fn resample(criterion: &mut Criterion) {
    let pixels = random_bytes(pixel_bytes(SOURCE), 1);
    let image = ImageView::packed(&pixels, SOURCE.0, SOURCE.1, 3);
    let mut group = criterion.benchmark_group("resample 500x375 to 224x224");
    group.throughput(Throughput::Elements(1));
    for filter in [Filter::Bilinear, Filter::Bicubic, Filter::Lanczos] {
        let resize = Resize {
            region: Rect::of_size(SOURCE.0, SOURCE.1),
            resized: TARGET,
            window: Rect::of_size(TARGET.0, TARGET.1),
            filter,
        };
        for level in Level::available() {
            let mut resampler = Resampler::new();
            let id = BenchmarkId::new(format!("{filter:?}").to_lowercase(), level);
            group.bench_function(id, |b| {
                b.iter(|| {
                    let sink = |_: u32, row: &[u8]| {
                        black_box(row);
                    };
                    resampler.run(level, black_box(image), &resize, sink);
                });
            });
        }
    }
    group.bench_function("bilinear/fast_image_resize", |b| fast_image_resize(b, &pixels));
    group.finish();
}

/// The best peer at the same task; its result differs from Pillow's by up to 1.
fn fast_image_resize(bencher: &mut criterion::Bencher<'_>, pixels: &[u8]) {
    let kind = fir::PixelType::U8x3;
    let source = fir::images::Image::from_vec_u8(SOURCE.0, SOURCE.1, pixels.to_vec(), kind)
        .expect("the buffer has the image's size");
    let mut target = fir::images::Image::new(TARGET.0, TARGET.1, kind);
    let algorithm = fir::ResizeAlg::Convolution(fir::FilterType::Bilinear);
    let options = fir::ResizeOptions::new().resize_alg(algorithm);
    let mut resizer = fir::Resizer::new();
    bencher.iter(|| {
        resizer.resize(black_box(&source), &mut target, &options).expect("sizes are valid");
    });
}

fn normalize(criterion: &mut Criterion) {
    let pixels = random_bytes(pixel_bytes(TARGET), 2);
    let table = Table::imagenet();
    let (width, height) = (TARGET.0 as usize, TARGET.1 as usize);
    let mut group = criterion.benchmark_group("normalize 224x224 to CHW, flipped");
    group.throughput(Throughput::Bytes(pixels.len() as u64));
    for element in [Element::F32, Element::F16, Element::Bf16, Element::U8] {
        let format = PixelFormat { element, layout: Layout::Chw, flip: true };
        let mut out = vec![0_u8; pixels.len() * element.size()];
        for level in Level::available() {
            let id = BenchmarkId::new(format!("{element:?}").to_lowercase(), level);
            group.bench_function(id, |b| {
                b.iter(|| {
                    let mut writer = ImageWriter::new(&mut out, width, height, format, &table);
                    for (y, row) in (0..).zip(black_box(&pixels).chunks_exact(width * 3)) {
                        writer.write_row(level, y, row);
                    }
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, resample, normalize);
criterion_main!(benches);
