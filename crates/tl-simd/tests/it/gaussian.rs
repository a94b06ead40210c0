//! Blurring against the chain of fused products that defines it, at every level.

use crate::noise;
use tl_simd::Level;
use tl_simd::gaussian::{GaussianBlur, weights};

const RGB: usize = 3;

/// The pixel at `index - back` of an image reflected at its edges as often as it takes.
fn reflected(index: usize, back: usize, len: usize) -> usize {
    let mut distance = index.abs_diff(back);
    while distance >= len {
        distance = if len == 1 { 0 } else { (2 * (len - 1)).abs_diff(distance) };
    }
    distance
}

fn chain(image: &[u8], width: usize, height: usize, across: &[f32], down: &[f32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(image.len());
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        for channel in 0..RGB {
            let mut sum = 0.0_f32;
            for (j, &down_weight) in down.iter().enumerate() {
                let row = reflected(y + j, down.len() / 2, height);
                for (i, &across_weight) in across.iter().enumerate() {
                    let column = reflected(x + i, across.len() / 2, width);
                    let sample = f32::from(image[(row * width + column) * RGB + channel]);
                    sum = sample.mul_add(down_weight * across_weight, sum);
                }
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=255")]
            out.push(sum.round_ties_even() as u8);
        }
    }
    out
}

/// Stripes and steps whose means are half way between two integers.
fn ties(width: usize, height: usize) -> Vec<u8> {
    let low = |n: usize| u8::from(n.is_multiple_of(2));
    let pixel = |y: usize, x: usize| match (x / 7 + y / 5) % 3 {
        0 => [low(x), 255 * low(x), 127 + low(y)],
        1 => [0, 255, 1],
        _ => [255, 0, 254],
    };
    (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(y, x))).collect()
}

#[test]
fn blurred_images_are_the_chains_at_every_level() {
    let sizes = [(1, 1), (1, 9), (9, 1), (2, 3), (23, 17), (43, 6), (64, 21), (67, 30)];
    let kernels = [(1, 1, 0.5), (3, 3, 0.8), (5, 9, 1.7), (23, 23, 2.0), (1, 7, 3.0), (9, 5, 0.2)];
    for (width, height) in sizes {
        for image in [noise(width * height * RGB, 3), ties(width, height)] {
            for (columns, rows, sigma) in kernels {
                let (across, down) = (weights(columns, sigma), weights(rows, sigma));
                let expected = chain(&image, width, height, &across, &down);
                let mut blur = GaussianBlur::default();
                blur.set((columns, rows), (sigma, sigma));
                for level in Level::available() {
                    let mut blurred = image.clone();
                    blur.run(level, &mut blurred, width, height);
                    assert_eq!(blurred, expected, "{level} {width}x{height} by {columns}x{rows}");
                }
            }
        }
    }
}
