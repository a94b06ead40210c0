//! Borders against the place every pixel comes from, and against numpy's own words for them.

use crate::noise;
use tl_simd::Level;
use tl_simd::pad::{Border, Flips, Margins, frame, pad};
use tl_simd::resample::ImageView;

const BORDERS: [Border; 4] =
    [Border::Constant([7, 8, 9, 10]), Border::Edge, Border::Reflect, Border::Symmetric];

/// Where the pixel `place` of an endless line comes from: one step of the walk at a time.
fn origin(border: Border, place: i64, len: u32) -> Option<usize> {
    let len = i64::from(len);
    if (0..len).contains(&place) {
        return usize::try_from(place).ok();
    }
    let (outer, inner) = if place < 0 { (-place, 0) } else { (place - len + 1, len - 1) };
    let (mut at, mut step) = (inner, if place < 0 { 1 } else { -1 });
    for taken in 0..outer {
        match border {
            Border::Edge => {}
            Border::Reflect if len == 1 => {}
            Border::Reflect => {
                if !(0..len).contains(&(at + step)) {
                    step = -step;
                }
                at += step;
            }
            // The first step stays where it is, and so does every turn.
            Border::Symmetric if taken == 0 => {}
            Border::Symmetric => {
                if (0..len).contains(&(at + step)) {
                    at += step;
                } else {
                    step = -step;
                }
            }
            Border::Constant(_) | _ => return None,
        }
    }
    usize::try_from(at).ok()
}

fn padded(
    level: Level,
    pixels: &[u8],
    size: (u32, u32),
    channels: usize,
    margins: Margins,
    border: Border,
) -> Vec<u8> {
    let Margins { left, top, right, bottom } = margins;
    let (width, height) = (left + size.0 + right, top + size.1 + bottom);
    let mut out = vec![0xAA; width as usize * height as usize * channels];
    let row_bytes = size.0 as usize * channels + 5;
    let view = ImageView::new(pixels, size.0, size.1, row_bytes, channels);
    pad(level, view, margins, border, &mut out);
    out
}

/// The image with its border, one pixel after the other; rows of `pixels` have five bytes more.
fn define(
    pixels: &[u8],
    (width, height): (u32, u32),
    channels: usize,
    margins: Margins,
    border: Border,
) -> Vec<u8> {
    let row_bytes = width as usize * channels + 5;
    let Margins { left, top, right, bottom } = margins;
    let mut out = Vec::new();
    for y in -i64::from(top)..i64::from(height + bottom) {
        for x in -i64::from(left)..i64::from(width + right) {
            let source = origin(border, x, width).zip(origin(border, y, height));
            if let Some((x, y)) = source {
                out.extend_from_slice(&pixels[y * row_bytes + x * channels..][..channels]);
            } else if let Border::Constant(value) = border {
                out.extend_from_slice(&value[..channels]);
            }
        }
    }
    out
}

#[test]
fn every_pixel_comes_from_where_the_border_says() {
    let pixels = noise(100_000, 11);
    let sizes = [(1, 1), (1, 3), (2, 2), (3, 1), (5, 4), (40, 3), (131, 2), (300, 5)];
    let margins =
        [(0, 0, 0, 0), (1, 1, 1, 1), (4, 0, 0, 7), (0, 9, 23, 1), (70, 3, 150, 2), (500, 30, 2, 0)];
    let cases = sizes.into_iter().flat_map(|size| margins.map(|margins| (size, margins)));
    for (number, (size, (left, top, right, bottom))) in cases.enumerate() {
        let margins = Margins { left, top, right, bottom };
        for (border, level) in BORDERS.iter().flat_map(|&b| Level::available().map(move |l| (b, l)))
        {
            let channels = [1, 3, 4][number % 3];
            let expected = define(&pixels, size, channels, margins, border);
            let found = padded(level, &pixels, size, channels, margins, border);
            assert!(found == expected, "{level} {size:?} {channels} {margins:?} {border:?}");
        }
    }
}

/// `numpy.pad([0, 1, 2, 3], (11, 13), mode)` of NumPy 2.1.3, which torchvision calls.
#[test]
fn wide_borders_are_those_of_numpy() {
    let check = |border, expected: &str| {
        let margins = Margins { left: 11, right: 13, ..Margins::default() };
        let out = padded(Level::detect(), &[0, 1, 2, 3], (4, 1), 1, margins, border);
        let digits: String = out.iter().map(|sample| char::from(b'0' + sample)).collect();
        assert_eq!(digits, expected);
    };
    check(Border::Reflect, "1232101232101232101232101232");
    check(Border::Symmetric, "2100123321001233210012332100");
    check(Border::Edge, "0000000000001233333333333333");
}

#[test]
fn a_frame_is_flipped_with_its_image() {
    let (size, margins) = ((50, 4), Margins { left: 7, top: 2, right: 90, bottom: 1 });
    let pixels = noise(4 * (50 * 3 + 5), 3);
    let plain = define(&pixels, size, 3, margins, Border::Constant([1, 2, 3, 0]));
    let width = 50 + 7 + 90;
    let view = ImageView::new(&pixels, size.0, size.1, 50 * 3 + 5, 3);
    for level in Level::available() {
        for (horizontal, vertical) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut rows: Vec<Vec<[u8; 3]>> =
                plain.as_chunks().0.chunks(width).map(<[_]>::to_vec).collect();
            if horizontal {
                rows.iter_mut().for_each(|row| row.reverse());
            }
            if vertical {
                rows.reverse();
            }
            let mut out = vec![0xAA; plain.len()];
            frame(level, view, margins, &[1, 2, 3], Flips { horizontal, vertical }, &mut out);
            assert_eq!(out, rows.concat().concat(), "{level} {horizontal} {vertical}");
        }
    }
}
