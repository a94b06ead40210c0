//! Warps: exact turns, bad arguments, and levels against each other at every width.

use crate::noise;
use tl_simd::Level;
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
