//! Warps: exact turns, bad arguments, and levels against each other at every width.

use crate::noise;
use tl_simd::Level;
use tl_simd::normalize::PixelType;
use tl_simd::resample::ImageView;
use tl_simd::warp::{Filter, Grid, GridWarp, Map, Turn, Warp, Warper, turn};

const CHANNELS: [usize; 2] = [1, 3];

/// A rotation by about 17 degrees that leaves and enters the image.
const ROTATION: [f64; 6] = [0.956, -0.292, 3.25, 0.292, 0.956, -2.5];

#[test]
fn levels_agree_at_every_width() {
    let mut warper = Warper::new();
    for (width, channels) in (1..=130).flat_map(|width| CHANNELS.map(|channels| (width, channels)))
    {
        let (row, size) = (width as usize * channels, (width, 3));
        let pixels = noise(row * 3, u64::from(width));
        let src = ImageView::packed(&pixels, width, 3, channels);
        for filter in [Filter::Nearest, Filter::Bilinear, Filter::Bicubic] {
            let warp = Warp { map: Map::Affine(ROTATION), size, filter, fill: [9, 8, 7] };
            let made = Level::available().map(|level| {
                let mut out = vec![0; row * 3];
                warper.pil(level, src, &warp, &mut out);
                out
            });
            let made: Vec<_> = made.collect();
            assert!(made.iter().all(|out| *out == made[0]), "{width} {channels} {filter:?}");
        }
    }
}

#[test]
fn padding_of_rows_is_not_read() {
    let (width, height, row_bytes) = (5_u32, 4_u32, 40);
    for channels in CHANNELS {
        let packed = noise(width as usize * height as usize * channels, 3);
        let mut padded = vec![255; row_bytes * height as usize];
        let rows = packed.chunks(width as usize * channels);
        for (row, padded) in rows.zip(padded.chunks_mut(row_bytes)) {
            padded[..row.len()].copy_from_slice(row);
        }
        let size = (width, height);
        for filter in [Filter::Nearest, Filter::Bilinear, Filter::Bicubic] {
            let warp = Warp { map: Map::Affine(ROTATION), size, filter, fill: [1, 2, 3] };
            for level in Level::available() {
                let [mut expected, mut out] = [vec![0; packed.len()], vec![0; packed.len()]];
                let src = ImageView::packed(&packed, width, height, channels);
                Warper::new().pil(level, src, &warp, &mut expected);
                let src = ImageView::new(&padded, width, height, row_bytes, channels);
                Warper::new().pil(level, src, &warp, &mut out);
                assert_eq!(out, expected, "{level} {channels} {filter:?}");
            }
        }
    }
}

#[test]
fn turns_move_every_pixel() {
    let sizes = [(1, 1, 3), (5, 3, 3), (16, 16, 3), (40, 15, 1), (70, 41, 1), (33, 64, 3)];
    for ((columns, rows, channels), padding) in sizes.into_iter().flat_map(|s| [(s, 0), (s, 7)]) {
        let (width, height) = (columns as usize, rows as usize);
        let pixels = noise(width * height * channels, 11);
        let mut padded = vec![255; (width * channels + padding) * height];
        let lines = padded.chunks_mut(width * channels + padding);
        for (row, line) in pixels.chunks(width * channels).zip(lines) {
            line[..row.len()].copy_from_slice(row);
        }
        let src = ImageView::new(&padded, columns, rows, width * channels + padding, channels);
        for level in Level::available() {
            for by in [Turn::Quarter, Turn::Half, Turn::ThreeQuarters] {
                let mut out = vec![0; pixels.len()];
                turn(level, src, by, &mut out);
                let pixel = |x: usize, y: usize| &pixels[(y * width + x) * channels..][..channels];
                for (at, out) in out.chunks(channels).enumerate() {
                    let expected = match by {
                        Turn::Quarter => pixel(width - 1 - at / height, at % height),
                        Turn::Half => pixel(width - 1 - at % width, height - 1 - at / width),
                        Turn::ThreeQuarters => pixel(at / height, height - 1 - at % height),
                    };
                    assert_eq!(out, expected, "{level} {by:?} {width}x{height} pixel {at}");
                }
            }
        }
    }
}

#[test]
fn an_empty_source_gives_the_fill_and_an_empty_output_nothing() {
    let src = ImageView::packed(&[], 0, 7, 3);
    let mut out = [0; 12];
    let filter = Filter::Bilinear;
    let map = Map::Affine(ROTATION);
    let warp = Warp { map, size: (2, 2), filter, fill: [1, 2, 3] };
    Warper::new().pil(Level::detect(), src, &warp, &mut out);
    assert_eq!(out.as_chunks().0, [[1, 2, 3]; 4]);
    let grid = GridWarp {
        grid: Grid::Affine([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
        size: (4, 1),
        filter,
        fill: None,
    };
    Warper::new().tensor(Level::detect(), src, &grid, &mut out);
    assert_eq!(out, [0; 12]);
    Warper::new().pil(Level::detect(), src, &Warp { size: (0, 5), ..warp }, &mut []);
}

#[test]
fn maps_without_numbers_are_defined() {
    let pixels = noise(9 * 3 * 3, 5);
    let src = ImageView::packed(&pixels, 9, 3, 3);
    let hostile = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE];
    for level in Level::available() {
        for number in hostile {
            for filter in [Filter::Nearest, Filter::Bilinear, Filter::Bicubic] {
                for map in [Map::Affine([number; 6]), Map::Perspective([number; 8])] {
                    let warp = Warp { map, size: (9, 3), filter, fill: [1, 2, 3] };
                    let [mut out, mut expected] = [vec![0; 81], vec![0; 81]];
                    Warper::new().pil(level, src, &warp, &mut out);
                    Warper::new().pil(Level::Scalar, src, &warp, &mut expected);
                    assert_eq!(out, expected, "{level} {warp:?}");
                }
            }
        }
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE] {
            for grid in [Grid::Affine([number; 6]), Grid::Perspective([number; 8])] {
                for filter in [Filter::Nearest, Filter::Bilinear] {
                    let warp = GridWarp { grid, size: (9, 3), filter, fill: Some([1.0; 3]) };
                    let [mut out, mut expected] = [vec![0; 81], vec![0; 81]];
                    Warper::new().tensor(level, src, &warp, &mut out);
                    Warper::new().tensor(Level::Scalar, src, &warp, &mut expected);
                    assert_eq!(out, expected, "{level} {warp:?}");
                }
            }
        }
    }
}

/// Bytes as samples of a type.
fn widened(bytes: &[u8], pixels: PixelType) -> Vec<u8> {
    let samples = bytes.iter().flat_map(|&byte| match pixels {
        PixelType::U8 => vec![byte],
        PixelType::U16 => u16::from(byte).to_ne_bytes().to_vec(),
        PixelType::F32 => f32::from(byte).to_ne_bytes().to_vec(),
    });
    samples.collect()
}

/// The samples as bytes; floats are rounded by `round`.
fn narrowed(samples: &[u8], pixels: PixelType, round: fn(f32) -> f32) -> Vec<u8> {
    let value = |sample: &[u8]| match (pixels, sample) {
        (PixelType::U16, [a, b]) => f32::from(u16::from_ne_bytes([*a, *b])),
        (PixelType::F32, [a, b, c, d]) => round(f32::from_ne_bytes([*a, *b, *c, *d])),
        (_, sample) => f32::from(sample[0]),
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    samples.chunks_exact(pixels.bytes()).map(|sample| value(sample) as u8).collect()
}

/// Samples that are bytes in a wider type move as bytes do, at every level.
#[test]
fn wide_samples_move_as_bytes_do() {
    let size = (71, 9);
    let maps = [
        Map::Affine(ROTATION),
        Map::Affine([0.5, 0.0, 3.0, 0.0, 1.25, -2.0]),
        Map::Perspective([0.9, 0.1, 2.0, -0.1, 1.1, 1.0, 0.004, 0.01]),
    ];
    let moved: Vec<f32> = noise(71 * 9, 3).iter().map(|&n| f32::from(n) / 700.0 - 0.2).collect();
    let grids = [
        Grid::Affine([0.95, -0.3, 1.5, 0.3, 0.95, -2.0]),
        Grid::Perspective([0.9, 0.1, 2.0, -0.1, 1.1, 1.0, 0.004, 0.01]),
        Grid::Displaced([&moved, &moved]),
    ];
    let forms =
        [(PixelType::U16, 1), (PixelType::U16, 3), (PixelType::F32, 1), (PixelType::F32, 3)];
    for ((pixels, channels), level) in
        forms.into_iter().flat_map(|form| Level::available().map(move |level| (form, level)))
    {
        let bytes = noise(60 * 12 * channels, 5);
        let wide = widened(&bytes, pixels);
        let pixel = channels * pixels.bytes();
        let src = ImageView::packed(&bytes, 60, 12, channels);
        let wide_src = ImageView::of_pixels(&wide, 60, 12, 60 * pixel, pixel);
        let mut warper = Warper::new();
        let mut expected = vec![0; 71 * 9 * channels];
        let mut out = vec![0; 71 * 9 * pixel];
        for filter in [Filter::Nearest, Filter::Bilinear, Filter::Bicubic] {
            // `I;16` has nearest pixels with another rounding.
            let maps =
                maps.iter().filter(|_| filter != Filter::Nearest || pixels == PixelType::F32);
            for &map in maps {
                let warp = Warp { map, size, filter, fill: [9, 8, 7] };
                warper.pil(level, src, &warp, &mut expected);
                warper.pil_wide(level, pixels, wide_src, &warp, &mut out);
                // Without an upper bound of 255.
                assert_eq!(narrowed(&out, pixels, f32::floor), expected, "{level} {warp:?}");
            }
        }
        for (grid, filter) in grids
            .iter()
            .flat_map(|grid| [Filter::Nearest, Filter::Bilinear].map(|filter| (*grid, filter)))
        {
            for fill in [None, Some([9.0, 8.0, 7.0])] {
                let warp = GridWarp { grid, size, filter, fill };
                warper.tensor(level, src, &warp, &mut expected);
                warper.tensor_wide(level, pixels, wide_src, &warp, &mut out);
                let found = narrowed(&out, pixels, f32::round_ties_even);
                assert_eq!(found, expected, "{level} {warp:?}");
            }
        }
    }
}

#[test]
fn wide_pixels_turn() {
    for size in [2, 4, 6, 8, 12, 16] {
        let pixels = noise(3 * 2 * size, 1);
        let src = ImageView::of_pixels(&pixels, 3, 2, 3 * size, size);
        let at = |x: usize, y: usize| &pixels[(y * 3 + x) * size..][..size];
        let mut out = vec![0; pixels.len()];
        turn(Level::detect(), src, Turn::Quarter, &mut out);
        assert_eq!(out, [at(2, 0), at(2, 1), at(1, 0), at(1, 1), at(0, 0), at(0, 1)].concat());
        turn(Level::detect(), src, Turn::Half, &mut out);
        assert_eq!(out, [at(2, 1), at(1, 1), at(0, 1), at(2, 0), at(1, 0), at(0, 0)].concat());
    }
}
