//! Drawing samples by weight, with and without replacement.

use tl_transform::rng::{EPOCH_STREAM, Rng};

use crate::error::SamplerError;

/// The operation of the epoch's stream that the key of all draws is from.
const DRAWS: u8 = 1;

/// The probabilities of drawing each sample, in proportion to each other.
///
/// ```
/// use tl_pipeline::Weights;
///
/// let weights = Weights::from_floats(&[0.5, 0.0, 1.0])?;
/// assert_eq!(weights, Weights::from(vec![2_147_483_648, 0, 4_294_967_295]));
/// # Ok::<(), tl_pipeline::SamplerError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights(Vec<u32>);

impl From<Vec<u32>> for Weights {
    fn from(weights: Vec<u32>) -> Self {
        Self(weights)
    }
}

impl Weights {
    /// The integers nearest to the weights times what makes the largest 2^32 - 1; of two as near,
    /// the even one. A positive weight becomes 1 at least.
    ///
    /// # Errors
    /// A weight that is negative, infinite or no number.
    pub fn from_floats(weights: &[f64]) -> Result<Self, SamplerError> {
        let bad = |&weight: &f64| !weight.is_finite() || weight < 0.0;
        if let Some(sample) = weights.iter().position(bad) {
            let value = weights[sample];
            return Err(SamplerError::Weight { sample: sample as u64, value });
        }
        let largest = weights.iter().copied().fold(0.0, f64::max);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "in 1..=2^32 - 1, and integers"
        )]
        let scale = |&weight: &f64| {
            if weight > 0.0 {
                (weight / largest * f64::from(u32::MAX)).round_ties_even().max(1.0) as u32
            } else {
                0
            }
        };
        Ok(Self(weights.iter().map(scale).collect()))
    }

    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// The number of samples with a weight above 0.
    pub(super) fn positive(&self) -> u64 {
        self.0.iter().filter(|&&weight| weight > 0).count() as u64
    }
}

/// Draws with replacement, one for each position.
#[derive(Debug)]
pub(super) struct Lots {
    /// The sum of the weights of each sample and those before it.
    ends: Vec<u64>,
}

impl Lots {
    /// `None` when no weight is positive, or their sum is above 2^64, for which there have to be
    /// 2^32 of them.
    pub(super) fn new(weights: &Weights) -> Option<Self> {
        let mut total = 0u64;
        let end = |&weight: &u32| {
            total = total.checked_add(u64::from(weight))?;
            Some(total)
        };
        let ends: Vec<u64> = weights.0.iter().map(end).collect::<Option<_>>()?;
        (ends.last()? > &0).then_some(Self { ends })
    }

    /// The sample at `position`, by the epoch's key of draws.
    pub(super) fn draw(&self, key: u64, epoch: u32, position: u64) -> u64 {
        let total = self.ends.last().copied().unwrap_or(0);
        let lot = below(&mut Rng::new(key, epoch, position, 0), total);
        self.ends.partition_point(|&end| end <= lot) as u64
    }
}

/// The key of the random numbers that draw an epoch.
pub(super) fn draw_key(seed: u64, epoch: u32) -> u64 {
    Rng::new(seed, epoch, EPOCH_STREAM, DRAWS).next_u64()
}

/// An integer below `bound`, each equally likely; 0 when `bound` is 0. Lemire's method, as
/// [`Rng::below`], with twice the bits.
#[expect(clippy::cast_possible_truncation, reason = "splitting a product is the purpose")]
fn below(rng: &mut Rng, bound: u64) -> u64 {
    let surplus = if bound == 0 { 0 } else { bound.wrapping_neg() % bound };
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(bound);
        let low = product as u64;
        let high = (product >> 64) as u64;
        if low >= surplus {
            return high;
        }
    }
}

/// `count` samples drawn without replacement, in the order in which they are drawn.
///
/// Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006): the samples with
/// the largest `u^(1 / weight)` of uniform numbers `u`, in that order. Here with the negative
/// logarithm, the smallest `-ln(1 - u) / weight`.
pub(super) fn draw_once(weights: &Weights, count: u64, key: u64, draw: (u32, u32)) -> Vec<u64> {
    let (epoch, repetition) = draw;
    let time = |(weight, sample): (&u32, u64)| {
        let mut rng = Rng::new(key, epoch, sample, 0).at_block(repetition);
        let time = -libm::log(1.0 - rng.unit_f64()) / f64::from(*weight);
        (*weight > 0).then_some((time, sample))
    };
    let mut times: Vec<(f64, u64)> = weights.0.iter().zip(0..).filter_map(time).collect();
    let earlier = |a: &(f64, u64), b: &(f64, u64)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count < times.len() {
        times.select_nth_unstable_by(count, earlier);
        times.truncate(count);
    }
    times.sort_unstable_by(earlier);
    times.into_iter().map(|(_, sample)| sample).collect()
}
