//! tl-simd: one line per kernel and instruction set, at the sizes that training meets.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fast_image_resize as fir;
use tl_benches::random_bytes;
use tl_simd::Level;
use tl_simd::color::{self, Arithmetic};
use tl_simd::jpeg::{self, Block, Scale};
use tl_simd::normalize::{Dtype, ImageWriter, Layout, PixelFormat, Table};
use tl_simd::resample::{Filter, ImageView, Rect, Resampler, Resize};
use tl_simd::vp8::{
    self, Above, BlockPrediction, Chroma, FilterKind, Luma, Macroblock, PlanesMut, Residue,
};

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

/// One plane of a photograph, as fast decoding has them: luma, and chroma of half the size.
fn resample_plane(criterion: &mut Criterion) {
    let samples = random_bytes(pixel_bytes(SOURCE), 1);
    let mut group = criterion.benchmark_group("resample a plane to 224x224");
    group.throughput(Throughput::Elements(1));
    for (width, height) in [SOURCE, (SOURCE.0 / 2, SOURCE.1.div_ceil(2))] {
        let image = ImageView::packed(&samples, width, height, 1);
        let resize = Resize {
            region: Rect::of_size(width, height),
            resized: TARGET,
            window: Rect::of_size(TARGET.0, TARGET.1),
            filter: Filter::Bilinear,
        };
        for level in Level::available() {
            let mut resampler = Resampler::new();
            let id = BenchmarkId::new(format!("{width}x{height}"), level);
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
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::U8] {
        let format = PixelFormat { dtype, layout: Layout::Chw, flip: true };
        let mut out = vec![0_u8; pixels.len() * dtype.bytes()];
        for level in Level::available() {
            let id = BenchmarkId::new(format!("{dtype:?}").to_lowercase(), level);
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

/// As many neighbours as a decoder hands over at a time.
const BLOCKS: usize = 16;

fn idct(criterion: &mut Criterion) {
    let bytes = random_bytes(BLOCKS * 64, 3);
    let coefficient = |&byte: &u8| if byte < 64 { i16::from(byte) - 32 } else { 0 };
    let drawn: Vec<i16> = bytes.iter().map(coefficient).collect();
    let source: Vec<Block> = drawn.as_chunks().0.iter().map(|&words| Block(words)).collect();
    let mut blocks = source.clone();
    let mut out = vec![0_u8; BLOCKS * 64];
    let mut group = criterion.benchmark_group("jpeg idct");
    group.throughput(Throughput::Elements(BLOCKS as u64));
    for scale in Scale::HALVINGS {
        for level in Level::available() {
            group.bench_function(BenchmarkId::new(scale.to_string(), level), |b| {
                b.iter(|| {
                    blocks.copy_from_slice(black_box(&source));
                    jpeg::idct(level, scale, &[8; 64], &mut blocks, &mut out, BLOCKS * 8);
                    black_box(&out);
                });
            });
        }
    }
    group.finish();
}

fn jpeg_rows(criterion: &mut Criterion) {
    let width = SOURCE.0 as usize;
    let bytes = random_bytes(width * 3, 4);
    let rows: Vec<&[u8]> = bytes.chunks_exact(width).collect();
    let [y, cb, cr] = [rows[0], rows[1], rows[2]];
    let half = &cb[..width / 2];
    let other_half = &cr[..width / 2];
    let mut row = vec![0_u8; width];
    let mut pixels = vec![0_u8; width * 3];
    let mut group = criterion.benchmark_group("jpeg rows of 500 pixels");
    group.throughput(Throughput::Elements(width as u64));
    for level in Level::available() {
        group.bench_function(BenchmarkId::new("h2v1", level), |b| {
            b.iter(|| jpeg::upsample_h2v1(level, black_box(half), black_box(&mut row)));
        });
        group.bench_function(BenchmarkId::new("h2v2", level), |b| {
            b.iter(|| {
                let out = black_box(&mut row);
                jpeg::upsample_h2v2(level, black_box(half), other_half, out);
            });
        });
        group.bench_function(BenchmarkId::new("h1v2", level), |b| {
            b.iter(|| jpeg::upsample_h1v2(level, black_box(cb), cr, true, black_box(&mut row)));
        });
        group.bench_function(BenchmarkId::new("replicate 2", level), |b| {
            b.iter(|| jpeg::replicate(level, black_box(half), 2, black_box(&mut row)));
        });
        group.bench_function(BenchmarkId::new("ycc to rgb", level), |b| {
            b.iter(|| jpeg::ycc_to_rgb(level, black_box([y, cb, cr]), black_box(&mut pixels)));
        });
        group.bench_function(BenchmarkId::new("ycc to rgb planes", level), |b| {
            b.iter(|| {
                let (red, rest) = black_box(&mut pixels).split_at_mut(width);
                let (green, blue) = rest.split_at_mut(width);
                jpeg::ycc_to_rgb_planar(level, black_box([y, cb, cr]), [red, green, blue]);
            });
        });
    }
    group.finish();
}

/// The kernels of colours, on the median photograph.
fn colors(criterion: &mut Criterion) {
    /// Its products with differences are nearly whole, as those of most factors people choose.
    const FACTOR: f64 = 1.3;
    let mut pixels = random_bytes(pixel_bytes(SOURCE), 5);
    let width = SOURCE.0 as usize;
    let mut rows = vec![0_u8; 2 * width * 3];
    let table: [u8; 256] = std::array::from_fn(|value| !value.to_le_bytes()[0]);
    let mut group = criterion.benchmark_group("colours of 500x375");
    group.throughput(Throughput::Bytes(pixels.len() as u64));
    group.bench_function("histograms", |b| b.iter(|| color::histograms(black_box(&pixels))));
    for level in Level::available() {
        let mut bench = |name: &str, change: &mut dyn FnMut(&mut [u8])| {
            let id = BenchmarkId::new(name, level);
            group.bench_function(id, |b| b.iter(|| change(black_box(&mut pixels))));
        };
        bench("lookup", &mut |pixels| color::lookup(level, &table, pixels));
        bench("lookup a channel", &mut |pixels| {
            color::lookup_channels(level, &[table; 3], pixels);
        });
        bench("extremes", &mut |pixels| {
            black_box(color::extremes(level, pixels));
        });
        bench("hue pil", &mut |pixels| color::shift_hue_bytes(level, 20, pixels));
        bench("hue float", &mut |pixels| color::shift_hue(level, 0.08, pixels));
        for (mode, arithmetic) in [("pil", Arithmetic::Pillow), ("tensor", Arithmetic::Torch)] {
            bench(&format!("mean grey {mode}"), &mut |pixels| {
                black_box(color::grey_sum(level, arithmetic, pixels));
            });
            bench(&format!("saturation {mode}"), &mut |pixels| {
                color::blend_with_grey(level, arithmetic, FACTOR, pixels);
            });
            bench(&format!("sharpness {mode}"), &mut |pixels| {
                color::sharpen(level, arithmetic, FACTOR, width, pixels, &mut rows);
            });
        }
    }
    group.finish();
}

/// A row of the median photograph, of macroblocks that are predicted block by block or as a whole,
/// with all coefficients.
fn vp8_rows(criterion: &mut Criterion) {
    const MACROBLOCKS: usize = 32;
    let mut whole = Macroblock::ZERO;
    let words = random_bytes(2 * whole.coefficients.len(), 7);
    for (coefficient, word) in whole.coefficients.iter_mut().zip(words.as_chunks::<2>().0) {
        *coefficient = i16::from_le_bytes(*word) >> 8;
    }
    (0..24).for_each(|block| whole.residues.add(block, Residue::Full));
    let blocks = Macroblock { luma: Luma::Blocks([BlockPrediction::LeftDown; 16]), ..whole };
    let width = MACROBLOCKS * 16;
    let mut y = random_bytes(2 * 16 * width, 8);
    let mut u = random_bytes(2 * 4 * width, 9);
    let mut v = u.clone();
    let mut planes =
        PlanesMut { y: &mut y, u: &mut u, v: &mut v, y_stride: width, uv_stride: width / 2 };
    let filters =
        [vp8::Filter { limit: 40, interior: 12, high_variance: 1, inner: true }; MACROBLOCKS];
    let mut above = Above::default();
    above.reset(MACROBLOCKS);
    let mut group = criterion.benchmark_group("vp8 row");
    group.throughput(Throughput::Elements(MACROBLOCKS as u64));
    for level in Level::available() {
        for (name, macroblock) in [("reconstruct blocks", blocks), ("reconstruct whole", whole)] {
            group.bench_function(BenchmarkId::new(name, level), |b| {
                b.iter(|| {
                    let mut row = [black_box(macroblock); MACROBLOCKS];
                    vp8::reconstruct(level, &mut row, &mut above, 0..MACROBLOCKS, &mut planes, 0);
                });
            });
        }
        for kind in [FilterKind::Normal, FilterKind::Simple] {
            group.bench_function(BenchmarkId::new(format!("{kind:?} filter"), level), |b| {
                b.iter(|| vp8::filter(level, kind, &filters, 0..MACROBLOCKS, &mut planes, 1));
            });
        }
        let mut out = vec![0; width * 3];
        group.bench_function(BenchmarkId::new("16 rows to rgb", level), |b| {
            let rows = random_bytes(3 * width, 10);
            let [near, far] = [&rows[..width / 2], &rows[width / 2..width]];
            let chroma = Chroma { near, far };
            b.iter(|| {
                for luma in rows[width..].chunks(width).cycle().take(16) {
                    vp8::upsample_rgb(level, luma, chroma, chroma, 0..width, black_box(&mut out));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, resample, resample_plane, normalize, idct, jpeg_rows, vp8_rows, colors);
criterion_main!(benches);
