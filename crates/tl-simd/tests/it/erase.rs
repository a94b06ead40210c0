//! Erasing and noise against their definitions, and the distribution of the deviates.

use crate::noise;
use tl_simd::Level;
use tl_simd::erase::Canvas;
use tl_simd::normal::{GROUP, Noise, add_noise, fill_normals, normals};
use tl_simd::normalize::{Dtype, Layout};
use tl_simd::resample::Rect;

#[test]
fn deviates_are_the_same_at_every_level_and_wherever_they_are_asked_for() {
    let mut all = vec![0.0; 10 * GROUP + 7];
    fill_normals(Level::Scalar, 42, u32::MAX - 3, &mut all);
    for level in Level::available() {
        let mut part = vec![0.0; 4 * GROUP + 1];
        fill_normals(level, 42, 1, &mut part);
        // Groups are counted modulo 2^32.
        assert_eq!(part, all[5 * GROUP..][..part.len()], "{level}");
        assert_eq!(normals(level, 42, 2), all[6 * GROUP..][..GROUP], "{level}");
    }
}

/// Computed by another implementation, in double precision, from the blocks of Philox.
#[test]
fn deviates_are_those_of_box_and_muller() {
    let first = normals(Level::detect(), 0, 0);
    // Block 0 of key 0 begins with these words, the published answer.
    let [radius, angle] = [0x6627_e8d5_u32, 0xe169_c58d].map(f64::from);
    let length = (-2.0 * ((radius + 0.5) / 4_294_967_296.0).ln()).sqrt();
    let quadrant = f64::from(0xe169_c58d_u32 >> 30) * std::f64::consts::FRAC_PI_2;
    let within = angle / 1_073_741_824.0;
    let within = if within.fract() < 0.5 { within.fract() } else { within.fract() - 1.0 };
    let (sine, cosine) = (quadrant + within * std::f64::consts::FRAC_PI_2).sin_cos();
    assert!((f64::from(first[0]) - length * cosine).abs() < 1e-6, "{}", first[0]);
    assert!((f64::from(first[16]) - length * sine).abs() < 1e-6, "{}", first[16]);
}

#[test]
fn deviates_are_normal() {
    const COUNT: usize = 4_000_000;
    let count = COUNT as f64;
    let mut deviates = vec![0.0; COUNT];
    fill_normals(Level::detect(), 7, 0, &mut deviates);
    let moment = |power| deviates.iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / count;
    // Each divided by its standard deviation.
    let scores = [
        moment(1) * count.sqrt(),
        (moment(2) - 1.0) * (count / 2.0).sqrt(),
        moment(3) * (count / 15.0).sqrt(),
        (moment(4) - 3.0) * (count / 96.0).sqrt(),
    ];
    assert!(scores.iter().all(|score| score.abs() < 4.0), "{scores:?}");
    for lag in [1, 16, 32, GROUP] {
        let products = deviates.iter().zip(&deviates[lag..]).map(|(a, b)| f64::from(a * b));
        let score = products.sum::<f64>() / count.sqrt();
        assert!(score.abs() < 4.0, "lag {lag}: {score}");
    }
    // Two-sided tails beyond 1 to 5, from tables of the normal distribution.
    let tails = [0.317_310_5, 0.045_500_26, 0.002_699_796, 6.334_248e-5, 5.733_031e-7];
    for (limit, tail) in (1_u8..).zip(tails) {
        let found = deviates.iter().filter(|x| x.abs() > f32::from(limit)).count() as f64;
        let score = (found - tail * count) / (tail * count).sqrt();
        assert!(score.abs() < 4.5, "beyond {limit}: {found}");
    }
    assert!(deviates.iter().all(|x| x.abs() < 6.77));
}

#[test]
fn noise_is_added_as_torchvision_adds_it() {
    let samples = noise(3 * GROUP + 5, 9);
    let mut deviates = vec![0.0; samples.len()];
    fill_normals(Level::Scalar, 11, 0, &mut deviates);
    #[expect(clippy::cast_possible_truncation, reason = "sums of some thousands")]
    let sum = |sample: u8, noise: f32| i64::from(sample) + noise.trunc() as i64;
    for (mean, sigma) in [(0.0, 25.5), (12.7, 300.0), (-40.0, 0.0)] {
        for clip in [true, false] {
            let expected: Vec<u8> = samples
                .iter()
                .zip(&deviates)
                .map(|(&sample, deviate)| {
                    let sum = sum(sample, mean + deviate * sigma);
                    let sum = if clip { sum.clamp(0, 255) } else { sum.rem_euclid(256) };
                    u8::try_from(sum).expect("a byte")
                })
                .collect();
            for level in Level::available() {
                let mut out = samples.clone();
                add_noise(level, Noise { mean, sigma, clip }, 11, &mut out);
                assert_eq!(out, expected, "{level} {mean} {sigma} {clip}");
            }
        }
    }
}

#[test]
fn rectangles_are_filled_in_every_form() {
    let (width, height) = (70, 5);
    let rect = Rect { x: 3, y: 1, width: 66, height: 3 };
    let values = [1.5_f32, -2.25, 200.0];
    for layout in [Layout::Chw, Layout::Hwc] {
        for (dtype, bytes) in [
            (Dtype::F32, values.map(|value| value.to_ne_bytes().to_vec())),
            (Dtype::F16, values.map(|value| half::f16::from_f32(value).to_ne_bytes().to_vec())),
            (Dtype::Bf16, values.map(|value| half::bf16::from_f32(value).to_ne_bytes().to_vec())),
            (Dtype::U8, [vec![1], vec![0], vec![200]]),
        ] {
            let size = dtype.bytes();
            let before = noise(width * height * 3 * size, 5);
            let mut after = before.clone();
            Canvas::new(&mut after, (width, height), dtype, layout).fill(rect, values);
            for (index, number) in after.chunks_exact(size).enumerate() {
                let (x, y, channel) = place(layout, index, width, height);
                let inside = (3..69).contains(&x) && (1..4).contains(&y);
                let expected =
                    if inside { &bytes[channel] } else { &before[index * size..][..size] };
                assert_eq!(number, expected, "{layout:?} {dtype:?} {x} {y} {channel}");
            }
        }
    }
}

#[test]
fn rectangles_of_deviates_have_them_row_by_row() {
    let (width, height) = (70, 5);
    let rect = Rect { x: 3, y: 1, width: 66, height: 3 };
    for layout in [Layout::Chw, Layout::Hwc] {
        for level in Level::available() {
            let mut image = vec![0; width * height * 3 * 4];
            let mut canvas = Canvas::new(&mut image, (width, height), Dtype::F32, layout);
            canvas.fill_normal(level, rect, 99);
            for (index, number) in image.chunks_exact(4).enumerate() {
                let (x, y, channel) = place(layout, index, width, height);
                let number = f32::from_ne_bytes(number.try_into().expect("4 bytes"));
                if !(3..69).contains(&x) || !(1..4).contains(&y) {
                    assert_eq!(number, 0.0);
                    continue;
                }
                let group = (channel * 3 + y - 1) * 2 + (x - 3) / GROUP;
                let group = normals(Level::Scalar, 99, u32::try_from(group).expect("few groups"));
                assert_eq!(number, group[(x - 3) % GROUP], "{level} {layout:?} {x} {y} {channel}");
            }
        }
    }
}

/// Column, row and channel of number `index` of an image.
fn place(layout: Layout, index: usize, width: usize, height: usize) -> (usize, usize, usize) {
    if layout == Layout::Chw {
        (index % width, index / width % height, index / (width * height))
    } else {
        (index / 3 % width, index / 3 / width, index % 3)
    }
}

#[test]
fn one_and_four_channels_are_erased() {
    let rect = Rect { x: 1, y: 1, width: 2, height: 1 };
    for (channels, values) in [(1, vec![7]), (4, vec![7, 8, 9, 9])] {
        for layout in [Layout::Chw, Layout::Hwc] {
            let mut image = vec![0; 4 * 2 * channels * 2];
            let mut canvas =
                Canvas::with_channels(&mut image, (4, 2), channels, Dtype::U16, layout);
            canvas.fill(rect, [7.0, 8.9, 9.0]);
            for (index, number) in image.as_chunks().0.iter().enumerate() {
                let pixel = if layout == Layout::Hwc { index / channels } else { index % 8 };
                let channel = if layout == Layout::Hwc { index % channels } else { index / 8 };
                let inside = [5, 6].contains(&pixel);
                let expected = if inside { values[channel] } else { 0 };
                assert_eq!(u16::from_ne_bytes(*number), expected, "{layout:?} {index}");
            }
        }
    }
}
