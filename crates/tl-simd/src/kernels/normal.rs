//! Normal deviates as a function of a key and a place, and Gaussian noise on samples.
//!
//! The bits come from Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011): block `b` has the
//! counter `[b, 0, 0, 0]` and the key's low and high word. They become normal deviates by the
//! method of Box and Muller (1958) with logarithm, sine and cosine as polynomials: additions,
//! multiplications, divisions and square roots of `f32`, each rounded, so that every level and
//! every machine has the same bits.
//!
//! Deviates come in groups of [`GROUP`]: blocks `16 g` to `16 g + 15` make group `g`, and deviate
//! `16 w + l` of the group is computed from word `w` of block `16 g + l`. Words 0 and 2 give the
//! radius of the deviates of words 0 and 1, and of words 2 and 3; words 1 and 3 give the angle.
//! A radius can be as long as `sqrt(66 ln 2)`, 6.76.

use crate::Level;

/// Deviates that are made together.
pub const GROUP: usize = WORDS * LANES;

const WORDS: usize = 4;
const LANES: usize = 16;

type Words = [u32; LANES];
type Floats = [f32; LANES];

/// The deviates of group `group` of `key`, the same at every level.
#[must_use]
pub fn normals(level: Level, key: u64, group: u32) -> [f32; GROUP] {
    level.vectorize(
        #[inline(always)]
        || deviates(key, group),
    )
}

/// Fills `out` with the deviates of `key` from group `first` on.
pub fn fill_normals(level: Level, key: u64, first: u32, out: &mut [f32]) {
    level.vectorize(
        #[inline(always)]
        || fill(key, first, out),
    );
}

/// The noise that is added to samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// The mean, in steps of 8-bit samples.
    pub mean: f32,
    /// The standard deviation, in steps of 8-bit samples.
    pub sigma: f32,
    /// Whether sums are held within 0..=255; they wrap otherwise.
    pub clip: bool,
}

/// Adds noise to `samples`: sample `i` the deviate `i` of `key`, times `sigma` plus `mean`, without
/// its fraction. That is torchvision's `gaussian_noise` on `uint8`, given these deviates.
pub fn add_noise(level: Level, noise: Noise, key: u64, samples: &mut [u8]) {
    level.vectorize(
        #[inline(always)]
        || {
            if noise.clip {
                add::<true>(noise, key, samples);
            } else {
                add::<false>(noise, key, samples);
            }
        },
    );
}

#[inline(always)]
fn fill(key: u64, first: u32, out: &mut [f32]) {
    let (whole, rest) = out.as_chunks_mut::<GROUP>();
    let mut group = first;
    for out in whole {
        *out = deviates(key, group);
        group = group.wrapping_add(1);
    }
    if !rest.is_empty() {
        rest.copy_from_slice(&deviates(key, group)[..rest.len()]);
    }
}

#[inline(always)]
fn add<const CLIP: bool>(noise: Noise, key: u64, samples: &mut [u8]) {
    let (whole, rest) = samples.as_chunks_mut::<GROUP>();
    let mut group = 0_u32;
    for samples in whole {
        add_group::<CLIP>(noise, &deviates(key, group), samples);
        group = group.wrapping_add(1);
    }
    if !rest.is_empty() {
        let mut samples = [0; GROUP];
        samples[..rest.len()].copy_from_slice(rest);
        add_group::<CLIP>(noise, &deviates(key, group), &mut samples);
        rest.copy_from_slice(&samples[..rest.len()]);
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held, or wrapping")]
fn add_group<const CLIP: bool>(noise: Noise, deviates: &[f32; GROUP], samples: &mut [u8; GROUP]) {
    for (sample, deviate) in samples.iter_mut().zip(deviates) {
        let sum = i32::from(*sample) + truncate(deviate * noise.sigma + noise.mean);
        *sample = if CLIP { sum.clamp(0, 255) as u8 } else { sum as u8 };
    }
}

/// The integer part of a number, which is held within 2^22 in magnitude.
///
/// A cast does the same, except that for numbers out of range it has branches that keep a loop from
/// being vectorised.
#[inline(always)]
fn truncate(number: f32) -> i32 {
    /// From here on the last bit of a number is worth 1.
    const WHOLE: f32 = 8_388_608.0;
    let magnitude = number.abs().min(WHOLE / 2.0);
    let nearest = magnitude + WHOLE;
    let above = u32::from(nearest - WHOLE > magnitude);
    let whole = ((nearest.to_bits() - above) & 0x007F_FFFF).cast_signed();
    let sign = number.to_bits().cast_signed() >> 31;
    (whole ^ sign) - sign
}

#[inline(always)]
fn deviates(key: u64, group: u32) -> [f32; GROUP] {
    let words = philox(key, group);
    let mut out = [0.0; GROUP];
    let (pairs, _) = words.as_chunks::<2>();
    for ([radius, angle], out) in pairs.iter().zip(out.chunks_exact_mut(2 * LANES)) {
        let (first, second) = out.split_at_mut(LANES);
        box_muller(radius, angle, first, second);
    }
    out
}

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// The golden ratio and sqrt(3) - 1 as fractions of 2^32.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

/// Words 0 to 3 of the blocks of `group`.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "taking a word apart is the purpose")]
fn philox(key: u64, group: u32) -> [Words; WORDS] {
    let mut keys = [key as u32, (key >> 32) as u32];
    let mut words = [[0; LANES]; WORDS];
    for (counter, lane) in words[0].iter_mut().zip(0..) {
        *counter = group.wrapping_mul(LANES as u32).wrapping_add(lane);
    }
    for _ in 0..ROUNDS {
        let [mut first, mut second, mut third, mut fourth] = words;
        for lane in 0..LANES {
            let left = u64::from(first[lane]) * u64::from(MULTIPLIERS[0]);
            let right = u64::from(third[lane]) * u64::from(MULTIPLIERS[1]);
            (first[lane], third[lane]) = (
                (right >> 32) as u32 ^ second[lane] ^ keys[0],
                (left >> 32) as u32 ^ fourth[lane] ^ keys[1],
            );
            (second[lane], fourth[lane]) = (right as u32, left as u32);
        }
        words = [first, second, third, fourth];
        keys = [keys[0].wrapping_add(WEYL[0]), keys[1].wrapping_add(WEYL[1])];
    }
    words
}

/// 2^-32 and half of it: words become the middles of 2^32 equal parts of 0..1.
const PART: f32 = 1.0 / 4_294_967_296.0;

#[inline(always)]
#[expect(
    clippy::cast_precision_loss,
    reason = "rounded to nearest, which every machine does alike"
)]
fn box_muller(radii: &Words, angles: &Words, first: &mut [f32], second: &mut [f32]) {
    let mut lengths: Floats = [0.0; LANES];
    for (length, &word) in lengths.iter_mut().zip(radii) {
        let uniform = (word as f32 + 0.5) * PART;
        *length = (-2.0 * ln(uniform)).sqrt();
    }
    let results = first.iter_mut().zip(second);
    for (((first, second), &word), length) in results.zip(angles).zip(lengths) {
        // The two upper bits are the quadrant, the rest an angle of -45 to 45 degrees in it.
        let angle = (word << 2).cast_signed() as f32 * (std::f32::consts::FRAC_PI_4 * 2.0 * PART);
        let square = angle * angle;
        let sine = angle + angle * square * sine_tail(square);
        let cosine = 1.0 - 0.5 * square + square * square * cosine_tail(square);
        let swapped = word & 1 << 30 != 0;
        let (x, y) = if swapped { (sine, cosine) } else { (cosine, sine) };
        // A quarter turn changes the sign of the first, a half turn of both.
        let x_sign = (word ^ word << 1) & 1 << 31;
        let y_sign = word & 1 << 31;
        *first = length * f32::from_bits(x.to_bits() ^ x_sign);
        *second = length * f32::from_bits(y.to_bits() ^ y_sign);
    }
}

/// `(sin a - a) / a^3` by `a^2`, and `(cos a - 1 + a^2 / 2) / a^4`: the polynomials of the Cephes
/// library, good to the last bit or so within 45 degrees.
#[inline(always)]
fn sine_tail(square: f32) -> f32 {
    (-1.951_529_6e-4 * square + 8.332_161e-3) * square - 1.666_665_5e-1
}

#[inline(always)]
fn cosine_tail(square: f32) -> f32 {
    (2.443_315_7e-5 * square - 1.388_731_6e-3) * square + 4.166_664_6e-2
}

/// The natural logarithm of a normal number from 0 to 1, by the polynomial of the Cephes library.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "exponents are small")]
fn ln(x: f32) -> f32 {
    /// Half of the bits of the square root of 2, from which on a number counts as nearer to 2.
    const SPLIT: u32 = 0x3F35_04F3;
    let shifted = x.to_bits().wrapping_sub(SPLIT);
    let exponent = shifted.cast_signed() >> 23;
    let rest = f32::from_bits((shifted & 0x007F_FFFF).wrapping_add(SPLIT)) - 1.0;
    let square = rest * rest;
    let mut tail = 7.037_683_6e-2;
    for coefficient in [
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        tail = tail * rest + coefficient;
    }
    let exponent = exponent as f32;
    let low = rest * square * tail + exponent * -2.121_944_4e-4 - 0.5 * square;
    exponent * 0.693_359_4 + (rest + low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lose_their_fractions() {
        for step in -400_000..400_000_i32 {
            let number = step as f32 / 16.0;
            assert_eq!(truncate(number), step / 16, "{number}");
        }
        assert_eq!((truncate(0.999_999_94), truncate(-0.999_999_94)), (0, 0));
        assert_eq!((truncate(1e30), truncate(-1e30)), (1 << 22, -(1 << 22)));
    }

    #[test]
    fn logarithms_are_right_to_the_seventh_digit() {
        for step in 1..100_000_u32 {
            let x = step as f32 / 100_000.0;
            let exact = f64::from(x).ln();
            let error = (f64::from(ln(x)) - exact).abs();
            assert!(error < 2e-7 * exact.abs().max(0.01), "{x} {} {exact}", ln(x));
        }
        assert_eq!(ln(1.0), 0.0);
        assert!((ln(PART * 0.5) + 33.0 * std::f32::consts::LN_2).abs() < 2e-6);
    }

    /// The blocks of `kat_vectors` of the Random123 distribution, and of a second implementation.
    #[test]
    fn philox_gives_the_published_answer() {
        let words = philox(0, 0);
        let first = words.map(|words| words[0]);
        assert_eq!(first, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }
}
