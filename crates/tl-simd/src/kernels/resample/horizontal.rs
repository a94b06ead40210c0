//! The horizontal pass: rows of interleaved pixels to rows of another width.

use super::axis::{Axis, ROUND};
use super::clip;

/// One row by the definition: every output byte is a rounded sum of products.
pub(super) fn define(axis: &Axis, channels: usize, src: &[u8], out: &mut [u8]) {
    for (taps, out) in axis.iter().zip(out.chunks_exact_mut(channels)) {
        let src = &src[taps.start * channels..][..taps.weights.len() * channels];
        for (channel, out) in out.iter_mut().enumerate() {
            let samples = src[channel..].iter().step_by(channels);
            let products = samples.zip(taps.weights).map(|(&s, &w)| i32::from(s).wrapping_mul(w));
            *out = clip(products.fold(ROUND, i32::wrapping_add));
        }
    }
}
