//! The vertical pass: several rows to one.

use super::axis::ROUND;
use super::clip;

/// One output row by the definition.
///
/// Row `t` is `out.len()` bytes of `data` from `offsets[t]` on and has the coefficient `weights[t]`.
pub(super) fn define(data: &[u8], offsets: &[usize], weights: &[i32], out: &mut [u8]) {
    for (column, out) in out.iter_mut().enumerate() {
        let samples = offsets.iter().map(|offset| data[offset + column]);
        let products = samples.zip(weights).map(|(s, &w)| i32::from(s).wrapping_mul(w));
        *out = clip(products.fold(ROUND, i32::wrapping_add));
    }
}
