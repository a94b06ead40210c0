//! The handling of bad samples, and the error budget.

use tl_handoff::sync::Arc;
use tl_transform::Rng;

use crate::audit::AuditEntry;
use crate::error::PipelineError;

/// The handling of a sample that cannot be read, decoded or processed.
///
/// A store that does not deliver within its deadline, and an object that was replaced, end the epoch
/// whatever is chosen: no sample is bad, and which ones are hit is a matter of chance.
///
/// The choice does not change other samples. Its effect is a function of the order, the seed, the
/// epoch and the position; it depends on no thread and no other failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnError {
    /// The epoch ends with the error instead of the sample's batch.
    #[default]
    Raise,
    /// The sample is left out, counted and listed. Its batch is shorter by one; no other sample
    /// moves into it, so what the other batches hold does not change. A batch without any sample left
    /// is left out too, or with several ranks the error [`PipelineError::EmptyBatch`].
    Skip,
    /// Another sample of the epoch takes its row, drawn from the seed, the epoch and the position;
    /// if that one is bad too, the next draw. With padded images it comes from the same batch, so
    /// that it fits. The row has the index and label of that sample.
    Replace,
    /// The row is filled with zeros (a mask with its padding), keeps the sample's index, has the label -1 and does not count
    /// as valid ([`Batch::valid`](crate::Batch::valid)).
    Fill,
}

/// The number of bad samples in an epoch above which it ends with [`PipelineError::ErrorBudget`].
///
/// Bad samples are counted in the order of batches, so that the epoch ends at the same batch for
/// any number of workers. Every rank counts its own samples, and a resumed epoch starts at zero.
/// The default is half of an epoch.
///
/// ```
/// use tl_pipeline::{ErrorBudget, LoaderConfig, OnError, Work};
///
/// let error_budget = ErrorBudget { count: Some(100), rate: Some(0.001) };
/// let config = LoaderConfig { error_budget, on_error: OnError::Skip, ..LoaderConfig::new(Work::Bytes) };
/// # let _ = config;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBudget {
    /// The greatest number of bad samples. `None`, the default, allows any number.
    pub count: Option<u64>,
    /// The greatest part of what was received, from 0 to 1, rounded down. So many samples that ten
    /// may be bad, or 1000, are looked at together before it counts. `None` allows any part; the
    /// default is [`ErrorBudget::DEFAULT_RATE`].
    pub rate: Option<f64>,
}

impl ErrorBudget {
    /// The part of an epoch that may be bad by default: one half. Where more is bad, the data set
    /// or the settings are wrong, and not a few samples.
    pub const DEFAULT_RATE: f64 = 0.5;

    /// Any number of bad samples, also all.
    pub const UNLIMITED: Self = Self { count: None, rate: None };
}

impl Default for ErrorBudget {
    fn default() -> Self {
        Self { count: None, rate: Some(Self::DEFAULT_RATE) }
    }
}

/// With fewer samples, or fewer allowed bad ones, a rate is not reliable: even in a data set that
/// keeps to the rate, chance alone would soon exceed it.
const RATE_SAMPLES: f64 = 1000.0;
const RATE_ERRORS: f64 = 10.0;

impl ErrorBudget {
    /// The number of bad samples that are allowed among the first `received` of an epoch of
    /// `samples`.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a count, rounded down; saturates"
    )]
    fn allowed(&self, received: u64, samples: u64) -> u64 {
        let of_rate = self.rate.map_or(u64::MAX, |rate| {
            let first = RATE_SAMPLES.max(RATE_ERRORS / rate).min(samples as f64);
            (rate * first.max(received as f64)).floor() as u64
        });
        self.count.unwrap_or(u64::MAX).min(of_rate)
    }

    /// Fails for a rate outside 0 to 1.
    pub(crate) fn check(&self) -> Result<(), PipelineError> {
        match self.rate {
            Some(rate) if !(0.0..=1.0).contains(&rate) => Err(PipelineError::ErrorRate { rate }),
            Some(_) | None => Ok(()),
        }
    }
}

/// Counts the bad samples of an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorCount {
    budget: ErrorBudget,
    /// Samples of the epoch.
    samples: u64,
    received: u64,
    errors: u64,
}

impl ErrorCount {
    pub(crate) fn new(budget: ErrorBudget, samples: u64) -> Self {
        Self { budget, samples, received: 0, errors: 0 }
    }

    /// The number of bad samples so far.
    pub(crate) const fn errors(&self) -> u64 {
        self.errors
    }

    /// Counts a batch of `rows` samples and what was wrong with some of them.
    ///
    /// # Errors
    /// [`PipelineError::ErrorBudget`] when those are too many now.
    pub(crate) fn count(&mut self, rows: u64, audit: &[AuditEntry]) -> Result<(), PipelineError> {
        let counts = |entry: &&AuditEntry| entry.outcome.is_counted();
        self.received += rows;
        self.errors += audit.iter().filter(counts).count() as u64;
        let allowed = self.budget.allowed(self.received, self.samples);
        match audit.iter().rfind(counts) {
            Some(last) if self.errors > allowed => Err(PipelineError::ErrorBudget {
                errors: self.errors,
                received: self.received,
                allowed,
                last: Arc::clone(&last.error),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

/// The number of samples that are tried instead of a bad one.
pub(crate) const REPLACEMENTS: u64 = 16;

/// The key that separates these draws from those of samples: the fraction of the cube root of 2.
const REPLACEMENT_KEY: u64 = 0x428A_2F98_D728_AE22;

/// The candidates among `count` samples to replace the one at `position`, in the order in which
/// they are tried. It can be among them itself, and then fails again.
pub(crate) fn replacements(
    seed: u64,
    epoch: u32,
    position: u64,
    count: u64,
) -> impl Iterator<Item = u64> {
    let mut rng = Rng::new(seed ^ REPLACEMENT_KEY, epoch, position, 0);
    // The upper half of a product with 64 random bits: at worst one part in 2^64 / count uneven.
    let draw = move |_| {
        let product = u128::from(rng.next_u64()) * u128::from(count);
        u64::try_from(product >> 64).expect("less than the count")
    };
    (0..REPLACEMENTS).map(draw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Outcome;
    use crate::error::{SampleError, SampleFault};

    fn skipped(position: u64) -> AuditEntry {
        let fault = SampleFault::Panicked { message: String::new() };
        let index = position;
        let shard = "a.tar".into();
        let error =
            Arc::new(SampleError { index, key: None, shard, offset: None, fault, attempts: 1 });
        AuditEntry { epoch: 0, position, error, outcome: Outcome::Skipped }
    }

    /// The errors, the samples and the allowed errors after the first batch that exceeds the
    /// budget. Each batch has `rows` samples and this many errors.
    fn end(budget: ErrorBudget, rows: u64, errors: &[u64]) -> Option<(u64, u64, u64)> {
        let mut count = ErrorCount::new(budget, rows * errors.len() as u64);
        errors.iter().find_map(|&errors| {
            let kept = AuditEntry { outcome: Outcome::Kept, ..skipped(99) };
            let audit: Vec<_> = (0..errors).map(skipped).chain([kept]).collect();
            match count.count(rows, &audit) {
                Err(PipelineError::ErrorBudget { errors, received, allowed, .. }) => {
                    Some((errors, received, allowed))
                }
                Err(error) => panic!("{error}"),
                Ok(()) => None,
            }
        })
    }

    #[test]
    fn counts_and_rates_end_an_epoch() {
        let count = |count| ErrorBudget { count: Some(count), rate: None };
        assert_eq!(end(count(3), 8, &[1, 2, 0, 1, 1]), Some((4, 32, 3)));
        assert_eq!(end(count(5), 8, &[1, 2, 0, 1, 1]), None);
        assert_eq!(end(count(0), 8, &[0, 1]), Some((1, 16, 0)));
        let rate = |rate| ErrorBudget { count: None, rate: Some(rate) };
        // 1 % of the first 1000 is 10, also where they all come at once; then 1 % of what was seen.
        assert_eq!(end(rate(0.01), 100, &[10; 1]), Some((10, 100, 1)));
        let early: Vec<u64> = [10].into_iter().chain([0; 19]).collect();
        assert_eq!(end(rate(0.01), 100, &early), None);
        assert_eq!(end(rate(0.01), 100, &[1; 30]), None);
        let late: Vec<u64> = [1; 19].into_iter().chain([2]).collect();
        assert_eq!(end(rate(0.01), 100, &late), Some((21, 2_000, 20)));
        // One in 10 000: the first 100 000 may have ten, wherever they are.
        assert_eq!(end(rate(0.0001), 1_000, &[&[10][..], &[0; 99]].concat()), None);
        assert_eq!(
            end(rate(0.0001), 1_000, &[&[11][..], &[0; 99]].concat()),
            Some((11, 1_000, 10))
        );
        assert_eq!(end(rate(0.0), 1_000, &[0, 1]), Some((1, 2_000, 0)));
        let both = ErrorBudget { count: Some(12), rate: Some(0.01) };
        assert_eq!(end(both, 100, &[1; 30]), Some((13, 1_300, 12)));
        assert_eq!(end(ErrorBudget::UNLIMITED, 1, &[1; 100]), None);
    }

    #[test]
    fn by_default_more_than_half_of_an_epoch_is_too_much() {
        let default = ErrorBudget::default();
        assert_eq!(end(default, 1, &[1]), Some((1, 1, 0)));
        assert_eq!(end(default, 1, &[1, 0]), None);
        assert_eq!(end(default, 1, &[1, 1, 0]), Some((2, 2, 1)));
        assert_eq!(end(default, 4, &[2, 2, 2, 2]), None);
        assert_eq!(end(default, 4, &[2, 3, 2, 2]), Some((9, 16, 8)));
        // A cluster of damage at the start of a large epoch is less than half of it.
        assert_eq!(end(default, 100, &[&[100; 5][..], &[0; 15]].concat()), None);
        assert_eq!(end(default, 100, &[100; 20]), Some((600, 600, 500)));
    }

    #[test]
    fn a_rate_lies_between_none_and_all() {
        for (rate, good) in
            [(0.0, true), (1.0, true), (-0.1, false), (1.1, false), (f64::NAN, false)]
        {
            let budget = ErrorBudget { count: None, rate: Some(rate) };
            assert_eq!(budget.check().is_ok(), good, "{rate}");
        }
        assert_eq!(ErrorBudget { count: None, rate: Some(1.0) }.allowed(7, 7), 7);
    }

    /// `testdata/tools/reference.py` has the same constants.
    #[test]
    fn replacements_are_a_function_of_seed_epoch_and_position() {
        let draw = |samples, seed, epoch, position| {
            replacements(seed, epoch, position, samples).take(4).collect::<Vec<_>>()
        };
        assert_eq!(draw(1_000, 42, 0, 7), [888, 184, 931, 111]);
        assert_eq!(draw(1_000, 0, 3, 999), [288, 824, 240, 662]);
        let large = [39_355_263_275, 561_021_841_044, 350_880_557_931, 395_745_427_907];
        assert_eq!(draw(1 << 40, 42, 0, 1 << 33), large);
        let of = |seed, epoch, position| replacements(seed, epoch, position, 1_000).sum::<u64>();
        let sums = [of(42, 0, 7), of(43, 0, 7), of(42, 1, 7), of(42, 0, 8)];
        assert!((0..4).all(|one| (0..one).all(|other| sums[one] != sums[other])), "{sums:?}");
        assert!(replacements(1, 2, 3, 1_000).all(|position| position < 1_000));
        assert_eq!(replacements(1, 2, 0, 1).collect::<Vec<_>>(), [0; 16]);
    }
}
