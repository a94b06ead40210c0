//! The weights of a Gaussian, with every rounding that torch makes on the way to them.

/// `log2(e)`, and `ln(2)` as the sum of two numbers of which the first has few bits: multiples of
/// it are exact.
const LOG2_E: f32 = std::f32::consts::LOG2_E;
const LN_2_HIGH: f32 = 0.693_145_75;
const LN_2_LOW: f32 = 1.428_606_8e-6;

/// The polynomial of `exp(s) - 1 - s` divided by `s * s`, highest power first: SLEEF's `expf`.
const POLYNOMIAL: [f32; 6] =
    [0.000_198_527_62, 0.001_393_043_6, 0.008_333_361, 0.041_666_485, 0.166_666_67, 0.5];

/// Below this the exponential is 0.
const LOWEST: f32 = -104.0;

/// Numbers in a vector of torch's AVX-512 build, by which it adds up.
const LANES: usize = 16;

/// The weights that torchvision's `gaussian_blur` gives `size` pixels of one axis: a softmax of
/// `-(x / sigma)^2`, `x` evenly spaced between `-(size - 1) / sqrt(8)` and its opposite.
///
/// Bit for bit those of torch 2.15 where it uses AVX-512; builds for AVX2 add up in another order
/// and can differ in the last bit from 9 pixels on.
///
/// # Panics
///
/// When `size` is even or above 65 535, or `sigma` is not a positive normal number as `f32`.
#[must_use]
pub fn weights(size: usize, sigma: f64) -> Vec<f32> {
    let mut weights = Vec::new();
    weights_into(size, sigma, &mut weights);
    weights
}

/// [`weights`] into memory that is used again.
#[expect(clippy::cast_possible_truncation, reason = "torch rounds these to f32 as well")]
#[expect(clippy::cast_precision_loss, reason = "sizes below 2^16 are exact")]
pub(super) fn weights_into(size: usize, sigma: f64, weights: &mut Vec<f32>) {
    assert!(size % 2 == 1 && size < 1 << 16, "{size} pixels, an odd number below 65536");
    let sigma = sigma as f32;
    assert!(sigma.is_normal() && sigma > 0.0, "sigma is {sigma}, a positive number");
    let last = size - 1;
    let limit = last as f64 / (2.0 * 2.0_f64.sqrt());
    let start = -limit as f32;
    let end = limit as f32;
    let step = if last == 0 { 0.0 } else { (end - start) / last as f32 };
    let exponents = (0..size).map(|index| {
        let near = if index < size / 2 {
            fused(step, index as f32, start)
        } else {
            fused(-step, (last - index) as f32, end)
        };
        let place = near / sigma;
        -(place * place)
    });
    weights.clear();
    weights.extend(exponents);
    // The middle's, which rounding can leave a little below 0.
    let largest = weights[size / 2];
    for weight in &mut *weights {
        *weight = exp(*weight - largest);
    }
    let factor = 1.0 / sum(weights);
    for weight in weights {
        *weight *= factor;
    }
}

/// SLEEF's `expf` of at most 1 ulp, for numbers up to 0.
#[expect(clippy::cast_possible_truncation, reason = "at most 151 in magnitude")]
fn exp(x: f32) -> f32 {
    if x < LOWEST {
        return 0.0;
    }
    let quotient = (x * LOG2_E).round_ties_even();
    let rest = fused(quotient, -LN_2_LOW, fused(quotient, -LN_2_HIGH, x));
    let [highest, others @ ..] = POLYNOMIAL;
    let tail = others.into_iter().fold(highest, |sum, next| fused(sum, rest, next));
    let mantissa = 1.0 + fused(rest * rest, tail, rest);
    // Twice half the power, because the whole one can be below the smallest normal number.
    let power = quotient as i32;
    let half = power >> 1;
    mantissa * power_of_two(half) * power_of_two(power - half)
}

fn power_of_two(power: i32) -> f32 {
    f32::from_bits((power + 127).cast_unsigned() << 23)
}

/// The sum in the order of torch's `reduce_all`: one lane each, then halves of the lanes.
fn sum(values: &[f32]) -> f32 {
    let (whole, rest) = values.as_chunks::<LANES>();
    let [first, others @ ..] = whole else {
        return rest.iter().copied().reduce(|sum, value| sum + value).unwrap_or_default();
    };
    let mut lanes = *first;
    for values in others.iter().map(<[f32; LANES]>::as_slice).chain([rest]) {
        for (lane, value) in lanes.iter_mut().zip(values) {
            *lane += value;
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// `a * b + c` rounded once, without an instruction for it.
///
/// The product is exact in `f64`. Its sum with `c` is rounded to odd: where it is inexact, the last
/// of its bits is set, and then rounding to `f32` cannot see a false tie (Boldo and
/// Melquiond 2008).
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
pub(super) fn fused(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let addend = f64::from(c);
    let sum = product + addend;
    let of_addend = sum - product;
    let error = (product - (sum - of_addend)) + (addend - of_addend);
    // Towards zero when the error has the other sign, so that setting the last bit is right.
    let bits = sum.to_bits();
    let below = u64::from((error < 0.0) != (sum < 0.0));
    let odd = if error == 0.0 { bits } else { (bits - below) | 1 };
    f64::from_bits(odd) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fused_rounds_once() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let [.., a, b, c, d] = state.to_be_bytes().map(u32::from);
            let bits = (a ^ d << 3) << 24 | b << 16 | c << 8 | d;
            // Exponents near 0, so that sums cancel and round.
            f32::from_bits(bits & 0x83FF_FFFF | 0x3C00_0000)
        };
        for _ in 0..2_000_000 {
            let a = next();
            let b = next();
            let c = next();
            assert_eq!(fused(a, b, c).to_bits(), a.mul_add(b, c).to_bits(), "{a} {b} {c}");
        }
        // f64 rounds a number next to a tie in f32 to that tie.
        let tie = 1.0 + f32::EPSILON;
        let beside = 2.0_f32.powi(-60);
        for (a, b, c) in [(tie, 1.0 + f32::EPSILON, beside), (beside, -1.0, tie * 0.5)] {
            assert_eq!(fused(a, b, c), a.mul_add(b, c));
        }
        assert_eq!(fused(3.0, 4.0, -12.0), 0.0);
    }
}
