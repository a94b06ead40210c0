//! Bounds on the distance of the separable sum from the chain, and the weights that it can omit.

/// The largest relative error of one rounding.
const UNIT: f32 = f32::EPSILON / 2.0;

/// A bound on the distance of the fast sum from the chain: `relative` times itself, and `absolute`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bound {
    pub(super) relative: f32,
    pub(super) absolute: f32,
}

impl Bound {
    /// The errors of the chain over `products` and of `fast_taps` steps whose weights lack
    /// `dropped`.
    pub(super) fn new(products: &[f32], fast_taps: usize, dropped: f32) -> Self {
        let largest = f32::from(u8::MAX);
        // Two roundings a step without fused operations, and those of the products.
        let mut relative = (2 * fast_taps + 4) as f32 * UNIT;
        let mut absolute = largest * dropped + f32::MIN_POSITIVE;
        let mut total = 0.0;
        for &product in products {
            total += product;
            // A step errs by no more than what it adds, and by half a unit of the sum so far.
            if product <= UNIT / 2.0 {
                absolute += largest * product;
            } else if total < 0.5 {
                absolute += largest * total * UNIT;
            } else {
                relative += UNIT;
            }
        }
        // The sums above round as well, and errors add up to more errors.
        Self { relative: relative * 1.01, absolute: absolute * 1.01 }
    }
}

/// The weights without the ones at both ends that are worth less than a rounding, and the sum of
/// those.
pub(super) fn trim(weights: &[f32], kept: &mut Vec<f32>) -> f32 {
    let negligible = UNIT / 4.0;
    let middle = weights.len() / 2;
    let small = |&index: &usize| {
        weights[index] <= negligible && weights[weights.len() - 1 - index] <= negligible
    };
    let dropped = (0..middle).take_while(small).count();
    let (left, rest) = weights.split_at(dropped);
    let (middle, right) = rest.split_at(rest.len() - dropped);
    kept.clear();
    kept.extend_from_slice(middle);
    left.iter().chain(right).sum()
}
