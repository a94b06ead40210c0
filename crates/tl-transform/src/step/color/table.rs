//! Tables of the 256 samples, for changes that depend on nothing else of the pixel.

use tl_simd::color::Extremes;

use crate::parity::Parity;

/// The result for every sample.
type Table = [u8; 256];

fn table(entry: impl Fn(u8) -> u8) -> Table {
    let mut sample = 0..=u8::MAX;
    [(); 256].map(|()| entry(sample.next().unwrap_or(u8::MAX)))
}

fn identity() -> Table {
    table(|sample| sample)
}

/// A number as a C `float`, as both libraries take their factors.
#[expect(clippy::cast_possible_truncation, reason = "the rounding that both libraries make")]
fn to_f32(value: f64) -> f32 {
    value as f32
}

/// Truncated and clipped; NaN gives 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn clip(value: f64) -> u8 {
    value as u8
}

/// `ImageEnhance.Brightness` and `adjust_brightness_image`, which agree.
pub(super) fn brightness(factor: f64) -> Table {
    let factor = to_f32(factor);
    table(|sample| clip(f64::from(f32::from(sample) * factor)))
}

/// `ImageEnhance.Contrast`, or `adjust_contrast_image`; `sum` is of the greys of `count` pixels.
pub(super) fn contrast(parity: Parity, factor: f64, sum: u64, count: usize) -> Table {
    // No image has enough pixels for these to be rounded.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    let sum = sum as f64;
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    let count = count.max(1) as f64;
    match parity {
        Parity::Pil => {
            let mean = f32::from(clip(sum / count + 0.5));
            let factor = to_f32(factor);
            table(|sample| clip(f64::from(mean + factor * (f32::from(sample) - mean))))
        }
        Parity::Tensor => {
            let mean = to_f32(sum) / to_f32(count);
            let rest = to_f32(1.0 - factor);
            let factor = to_f32(factor);
            // PyTorch fuses this product with the sum.
            table(|sample| clip(f64::from(mean.mul_add(rest, f32::from(sample) * factor))))
        }
    }
}

/// `ImageOps.posterize` and `posterize_image`, which agree; none of the bits gives black.
pub(super) fn posterize(bits: u8) -> Table {
    let dropped = u8::MAX.checked_shr(bits.into()).unwrap_or(0);
    table(|sample| sample & !dropped)
}

/// `ImageOps.solarize`, or `solarize_image`, which compares in `f32`.
pub(super) fn solarize(parity: Parity, threshold: f64) -> Table {
    let threshold = match parity {
        Parity::Pil => threshold,
        Parity::Tensor => f64::from(to_f32(threshold)),
    };
    table(|sample| if f64::from(sample) < threshold { sample } else { u8::MAX - sample })
}

/// `ImageOps.autocontrast` in `f64`, or `autocontrast_image` in `f32`. A channel of one value
/// stays.
pub(super) fn autocontrast(parity: Parity, Extremes { low, high }: Extremes) -> Table {
    if high <= low {
        return identity();
    }
    match parity {
        Parity::Pil => {
            let scale = 255.0 / f64::from(high - low);
            let offset = -f64::from(low) * scale;
            table(|sample| clip(f64::from(sample) * scale + offset))
        }
        Parity::Tensor => {
            let range = f32::from(high - low);
            let low = f32::from(low);
            let step = range * (1.0 / 255.0);
            table(|sample| clip(f64::from((f32::from(sample) - low) / step)))
        }
    }
}

/// `ImageOps.equalize` and `equalize_image`, which agree. A channel with too few pixels besides
/// those of its largest value stays.
pub(super) fn equalize(counts: &[u64; 256]) -> Table {
    let largest = counts.iter().rev().find(|&&count| count > 0).copied().unwrap_or(0);
    let step = (counts.iter().sum::<u64>() - largest) / 255;
    if step == 0 {
        return identity();
    }
    let mut below = step / 2;
    let mut equalized = [0; 256];
    for (entry, count) in equalized.iter_mut().zip(counts) {
        *entry = u8::try_from(below / step).unwrap_or(u8::MAX);
        below += count;
    }
    equalized
}
