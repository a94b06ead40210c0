//! Every level against the scalar one, at all lengths and offsets.

use crate::noise;
use tl_simd::Level;
use tl_simd::resample::{
    Area, Filter, ImageView, Rect, Resampler, Resize, ResizeArea, TensorFilter, WeightedSum,
    Weights,
};

/// Four times the most bytes of a vector, and one.
const LONGEST: u32 = 4 * 64 + 1;

fn rows(resampler: &mut Resampler, level: Level, image: ImageView<'_>, resize: &Resize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut expected = 0;
    resampler.run(level, image, resize, |y, row| {
        assert_eq!(y, expected, "rows come in order");
        expected += 1;
        out.extend_from_slice(row);
    });
    assert_eq!(expected, resize.window.height, "every row comes");
    out
}

/// Compares all levels on a part of an image that begins `offset` bytes into its buffer.
fn check(pixels: &[u8], offset: usize, channels: usize, size: (u32, u32), resize: &Resize) {
    let (width, height) = size;
    let row_bytes = width as usize * channels + offset;
    let image = ImageView::new(&pixels[offset..], width, height, row_bytes, channels);
    let expected = rows(&mut Resampler::new(), Level::Scalar, image, resize);
    for level in Level::available() {
        let found = rows(&mut Resampler::new(), level, image, resize);
        assert!(found == expected, "{level} {size:?} offset {offset} {channels} {resize:?}");
    }
}

#[test]
fn levels_agree_at_every_width_and_offset() {
    let pixels = noise(300 * 4 * 12 + 100, 5);
    for width in 1..=LONGEST {
        let offset = width as usize % 9;
        let channels = [1, 3, 4][width as usize % 3];
        for (resized, filter) in [
            ((width * 2 / 5 + 1, 4), Filter::Bilinear),
            ((width / 9 + 1, 5), Filter::Lanczos),
            ((width * 3 / 2 + 1, 13), Filter::Bicubic),
            ((width, 3), Filter::Box),
        ] {
            let region = Rect { x: 0, y: 1, width, height: 8 };
            let window = Rect::of_size(resized.0, resized.1);
            let resize = Resize { region, resized, window, filter };
            check(&pixels, offset, channels, (width, 9), &resize);
        }
    }
}

#[test]
fn levels_agree_at_every_window_and_region() {
    let pixels = noise(120 * 4 * 30, 6);
    for offset in 0..=8_u32 {
        for length in 1..=70 {
            let region = Rect { x: offset, y: 2, width: 100, height: 20 };
            let window = Rect { x: offset, y: 1, width: length, height: 5 };
            for channels in [1, 3, 4] {
                let resize = Resize { region, resized: (80, 7), window, filter: Filter::Bilinear };
                check(&pixels, offset as usize, channels, (110, 25), &resize);
            }
        }
    }
}

#[test]
fn a_resampler_keeps_nothing_of_the_image_before() {
    let pixels = noise(200 * 200 * 3, 7);
    let mut reused = Resampler::new();
    for index in 0..200_u32 {
        let (width, height) = (1 + index * 37 % 190, 1 + index * 53 % 190);
        let region = Rect { x: index % 7, y: index % 5, width, height };
        let resized = (1 + index * 29 % 120, 1 + index * 31 % 120);
        let window = Rect::of_size(resized.0, resized.1);
        let filter = [Filter::Bilinear, Filter::Nearest, Filter::Lanczos][index as usize % 3];
        let resize = Resize { region, resized, window, filter };
        let image = ImageView::packed(&pixels, 200, 200, 3);
        let level = Level::available().nth(index as usize % 3).unwrap_or(Level::Scalar);
        let expected = rows(&mut Resampler::new(), Level::Scalar, image, &resize);
        assert!(rows(&mut reused, level, image, &resize) == expected, "{index} {resize:?}");
    }
}

/// Every filter on windows of every kind, from memory that holds only the source rectangle.
#[test]
fn the_source_rectangle_is_all_that_is_read() {
    let (width, height) = (90_u32, 70_u32);
    let pixels = noise(width as usize * height as usize * 3, 8);
    let image = ImageView::packed(&pixels, width, height, 3);
    let filters = [Filter::Nearest, Filter::Box, Filter::Bilinear, Filter::Hamming];
    let filters = filters.into_iter().chain([Filter::Bicubic, Filter::Lanczos]);
    for (number, filter) in filters.cycle().take(600).zip(0_u32..).map(|(f, n)| (n, f)) {
        let region = Rect {
            x: number * 7 % 40,
            y: number * 11 % 30,
            width: 1 + number * 13 % 50,
            height: 1 + number * 17 % 40,
        };
        let resized = (1 + number * 19 % 80, 1 + number * 23 % 90);
        let window = Rect {
            x: number * 5 % resized.0,
            y: number * 3 % resized.1,
            width: (1 + number % 17).min(resized.0 - number * 5 % resized.0),
            height: (1 + number % 13).min(resized.1 - number * 3 % resized.1),
        };
        let resize = Resize { region, resized, window, filter };
        let rect = resize.source();
        let outer = (region.x + region.width, region.y + region.height);
        assert!(rect.x >= region.x && rect.x + rect.width <= outer.0, "{resize:?} {rect:?}");
        assert!(rect.y >= region.y && rect.y + rect.height <= outer.1, "{resize:?} {rect:?}");
        let mut part = Vec::new();
        for y in rect.y..rect.y + rect.height {
            let start = (y * width + rect.x) as usize * 3;
            part.extend_from_slice(&pixels[start..start + rect.width as usize * 3]);
        }
        let part = ImageView::packed(&part, rect.width, rect.height, 3).at(rect.x, rect.y);
        for level in Level::available() {
            let mut resampler = Resampler::new();
            let expected = rows(&mut resampler, level, image, &resize);
            assert!(rows(&mut resampler, level, part, &resize) == expected, "{level} {resize:?}");
        }
    }
}

#[test]
fn an_area_touches_whole_pixels() {
    let area = |left, right| ResizeArea {
        area: Area { left, right, top: 3.0, bottom: 4.0 },
        resized: (8, 1),
        window: Rect::of_size(8, 1),
        filter: Filter::Bilinear,
    };
    let check = |left, right, x, width| {
        assert_eq!(area(left, right).source(), Rect { x, y: 3, width, height: 1 });
    };
    check(10.0, 12.0, 10, 2);
    check(10.5, 12.0, 10, 2);
    check(10.5, 12.125, 10, 3);
    check(10.5, 10.75, 10, 1);
}

#[test]
fn an_empty_window_has_no_rows() {
    let image = ImageView::packed(&[1, 2, 3], 1, 1, 3);
    let resize = Resize {
        region: Rect::of_size(1, 1),
        resized: (5, 0),
        window: Rect::default(),
        filter: Filter::Bilinear,
    };
    assert_eq!(rows(&mut Resampler::new(), Level::detect(), image, &resize), []);
}

/// The weighted sums of a line of samples that are `step` apart, the first one at `line`.
fn pass<'a>(
    sums: impl Iterator<Item = WeightedSum<'a>>,
    samples: &[u8],
    step: usize,
    line: usize,
) -> Vec<u8> {
    let sum = |WeightedSum { start, weights }| {
        let products =
            (start..).zip(weights).map(|(i, &weight)| weight * i32::from(samples[i * step + line]));
        let sum = products.sum::<i32>() + (1 << 21);
        u8::try_from((sum >> 22).clamp(0, 255)).expect("within bytes")
    };
    sums.map(sum).collect()
}

#[test]
fn weights_give_the_samples_of_a_resampler() {
    let (width, height) = (37, 29);
    let pixels = noise(37 * 29, 7);
    let image = ImageView::packed(&pixels, width, height, 1);
    let tensor = [TensorFilter::Bilinear, TensorFilter::PlainBicubic, TensorFilter::Nearest];
    let filters = [Filter::Nearest, Filter::Box, Filter::Bilinear, Filter::Lanczos];
    let filters = filters.into_iter().chain(tensor.map(Filter::Tensor));
    let mut weights = Weights::default();
    for (filter, resized) in filters.flat_map(|filter| {
        [(11, 7), (60, 9), (5, 70), (30, 29), (37, 20), (37, 29)].map(|resized| (filter, resized))
    }) {
        let region = Rect { x: 3, y: 0, width: 30, height: 29 };
        let window = Rect { x: 1, y: 2, width: resized.0 - 2, height: resized.1 - 3 };
        let resize = Resize { region, resized, window, filter };
        let mut expected = Vec::new();
        Resampler::new()
            .run(Level::Scalar, image, &resize, |_, row| expected.extend_from_slice(row));
        weights.prepare(&resize.into());
        let Rect { x, y, width: columns, height: rows } = weights.source();
        let part: Vec<u8> = (y..y + rows)
            .flat_map(|row| image.row(row)[x as usize..][..columns as usize].to_vec())
            .collect();
        let columns = columns as usize;
        let found = if weights.is_vertical_first() {
            // Column after column of the first pass, then rows.
            let between: Vec<Vec<u8>> =
                (0..columns).map(|x| pass(weights.rows(), &part, columns, x)).collect();
            let row = |y: usize| between.iter().map(|column| column[y]).collect::<Vec<u8>>();
            (0..weights.rows().len())
                .flat_map(|y| pass(weights.columns(), &row(y), 1, 0))
                .collect::<Vec<u8>>()
        } else {
            let between: Vec<Vec<u8>> =
                part.chunks(columns).map(|row| pass(weights.columns(), row, 1, 0)).collect();
            let width = weights.columns().len();
            let made: Vec<Vec<u8>> = (0..width)
                .map(|x| {
                    let column: Vec<u8> = between.iter().map(|row| row[x]).collect();
                    pass(weights.rows(), &column, 1, 0)
                })
                .collect();
            (0..weights.rows().len())
                .flat_map(|y| made.iter().map(move |column| column[y]).collect::<Vec<u8>>())
                .collect()
        };
        assert_eq!(found, expected, "{filter:?} to {resized:?}");
    }
}
