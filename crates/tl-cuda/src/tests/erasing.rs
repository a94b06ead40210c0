//! Erasing in converted images, against the same on the host.

use std::sync::Arc;

use tl_simd::Level;
use tl_simd::erase::Canvas;
use tl_simd::normalize::{Dtype, ImageWriter, Layout, PixelFormat, Table};
use tl_simd::resample::Rect;

use super::{device, noise, pinned};
use crate::{BufferLimits, Conversion, Erasures, Images, RowErasures, Uploader};

const SIZE: (u32, u32) = (37, 23);
const PIXELS: usize = 37 * 23;
const IMAGES: usize = 6;

/// Numbers for a rectangle of this many bytes.
fn numbers(bytes: usize, seed: usize) -> Vec<u8> {
    (seed..seed + bytes).map(|i| (i * 31 % 251).to_le_bytes()[0]).collect()
}

/// A rectangle of an image, with numbers for each channel or for all pixels.
struct Case {
    image: usize,
    rect: Rect,
    is_color: bool,
}

fn cases() -> Vec<Case> {
    let case = |image, x, y, width, height, is_color| Case {
        image,
        rect: Rect { x, y, width, height },
        is_color,
    };
    vec![
        case(0, 0, 0, 37, 23, true),
        case(0, 5, 6, 7, 8, false),
        case(0, 8, 7, 9, 10, true),
        case(2, 36, 22, 1, 1, false),
        case(3, 1, 0, 30, 1, true),
        case(5, 0, 20, 37, 3, false),
    ]
}

/// Writes `bytes` into the rectangle of an image.
fn erase(image: &mut [u8], dtype: Dtype, layout: Layout, case: &Case, bytes: &[u8]) {
    let size = dtype.bytes();
    let [width, height] = [SIZE.0 as usize, SIZE.1 as usize];
    let Rect { x, y, width: columns, height: rows } = case.rect;
    let [x, y, columns, rows] = [x, y, columns, rows].map(|side| side as usize);
    for channel in 0..3 {
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |c| (row, c))) {
            let from = match case.is_color {
                true => channel,
                false => (channel * rows + row) * columns + column,
            };
            let at = (y + row) * width + x + column;
            let to = match layout {
                Layout::Chw => channel * width * height + at,
                Layout::Hwc => 3 * at + channel,
            };
            image[to * size..][..size].copy_from_slice(&bytes[from * size..][..size]);
        }
    }
}

#[test]
fn rectangles_are_erased_in_their_order_after_the_conversion() {
    let device = device();
    let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
    let table = Table::imagenet();
    for (dtype, layout) in [
        (Dtype::F32, Layout::Chw),
        (Dtype::F16, Layout::Hwc),
        (Dtype::Bf16, Layout::Chw),
        (Dtype::U8, Layout::Chw),
    ] {
        let conversion = Arc::new(Conversion::new(&device, dtype, layout, &table).unwrap());
        let source = noise(PIXELS * 3 * IMAGES + 64);
        let mut expected = vec![0; PIXELS * 3 * IMAGES * dtype.bytes()];
        let format = PixelFormat { dtype, layout, flip: false };
        let row = SIZE.0 as usize * 3;
        for (image, pixels) in expected
            .chunks_exact_mut(PIXELS * 3 * dtype.bytes())
            .zip(source.chunks_exact(PIXELS * 3))
        {
            let writer = ImageWriter::new(image, SIZE.0 as usize, SIZE.1 as usize, format, &table);
            writer.stream(|mut writer| {
                for (y, row) in (0..).zip(pixels.chunks_exact(row)) {
                    writer.write_row(Level::Scalar, y, row);
                }
            });
        }
        // Two images of each row, as views are.
        let mut rows: Vec<Erasures> = (0..IMAGES / 2).map(|_| Erasures::default()).collect();
        for (seed, case) in cases().iter().enumerate() {
            let erasures = &mut rows[case.image / 2];
            let view = case.image % 2;
            let to = match case.is_color {
                true => erasures.add_color(view, case.rect, dtype.bytes()),
                false => erasures.add_numbers(view, case.rect, dtype.bytes()),
            };
            let bytes = numbers(to.len(), seed);
            to.copy_from_slice(&bytes);
            let image = PIXELS * 3 * dtype.bytes();
            erase(&mut expected[case.image * image..][..image], dtype, layout, case, &bytes);
        }
        let erasures: Vec<RowErasures<'_>> = (0..)
            .step_by(2)
            .zip(&rows)
            .filter(|(_, erasures)| !erasures.is_empty())
            .map(|(first_image, erasures)| RowErasures { first_image, erasures })
            .collect();
        let images = Images {
            conversion: Some(conversion),
            decoder: None,
            count: IMAGES,
            pixels: PIXELS,
            width: SIZE.0 as usize,
            area: PIXELS * 3 * IMAGES,
        };
        let buffer =
            uploader.upload(pinned(&device, &source), Some(&images), &[], &erasures).unwrap();
        assert!(buffer.read().unwrap()[..expected.len()] == expected, "{dtype} {layout}");
    }
}

#[test]
fn the_numbers_of_a_rectangle_do_not_depend_on_its_place() {
    let rect = Rect { x: 7, y: 2, width: 19, height: 11 };
    let size = (SIZE.0 as usize, SIZE.1 as usize);
    let mut image = vec![0; PIXELS * 3 * 4];
    Canvas::new(&mut image, size, Dtype::F32, Layout::Chw).fill_normal(Level::Scalar, rect, 99);
    let mut alone = vec![0; 19 * 11 * 3 * 4];
    let all = Rect::of_size(19, 11);
    Canvas::new(&mut alone, (19, 11), Dtype::F32, Layout::Chw).fill_normal(Level::Scalar, all, 99);
    let mut expected = vec![0; PIXELS * 3 * 4];
    let case = Case { image: 0, rect, is_color: false };
    erase(&mut expected, Dtype::F32, Layout::Chw, &case, &alone);
    assert!(image == expected);
}
