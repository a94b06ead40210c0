//! One run of a loader for a while, as training would run it.

use std::thread;
use std::time::{Duration, Instant};

use tl_pipeline::{Dataset, Loader, LoaderConfig, PipelineError, Report};

use crate::bench::loader;
use crate::failure::Failure;

/// Batches that are kept to be served again and again.
const REPLAYED: u64 = 2;

/// How long to train, and how fast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Training {
    /// The time of the training step for a batch.
    pub(super) step: Duration,
    /// The time to stop.
    pub(super) time: Duration,
    /// Do not go beyond this batch, counted over the epochs; then start again.
    pub(super) batches: Option<u64>,
}

impl Training {
    /// As fast as batches come, for `time`.
    pub(super) fn for_time(time: Duration) -> Self {
        Self { step: Duration::ZERO, time, batches: None }
    }

    /// The first `batches` batches again and again, for `time`.
    pub(super) fn again(batches: u64, time: Duration) -> Self {
        Self { batches: Some(batches), ..Self::for_time(time) }
    }
}

/// The result of the pass.
pub(super) struct Outcome {
    pub(super) report: Report,
    /// Batches received.
    pub(super) batches: u64,
}

/// A loader to be run.
pub(super) struct Pass {
    loader: Loader,
}

impl Pass {
    pub(super) fn new(dataset: Dataset, config: LoaderConfig) -> Result<Self, Failure> {
        Ok(Self { loader: loader(dataset, config)? })
    }

    pub(super) fn loader(&self) -> &Loader {
        &self.loader
    }

    /// Takes batches, at least one.
    pub(super) fn run(&self, training: Training) -> Result<Outcome, PipelineError> {
        let before = self.loader.stats();
        let start = Instant::now();
        let mut batches = 0;
        let mut epoch = 0;
        // An epoch that is covered whole needs no second start: the next one has its samples.
        let prefix = training.batches.filter(|&batches| batches < self.loader.len());
        let at_most = prefix.map_or(usize::MAX, |batches| batches.try_into().unwrap_or(usize::MAX));
        'time: loop {
            for batch in self.loader.epoch(epoch).take(at_most) {
                drop(batch?);
                batches += 1;
                thread::sleep(training.step);
                if start.elapsed() >= training.time {
                    break 'time;
                }
            }
            if prefix.is_none() {
                epoch += 1;
            }
        }
        let report = Report::new(self.loader.stats().since(&before));
        Ok(Outcome { report, batches })
    }

    /// Samples a second that a consumer with this step takes when batches cost nothing.
    pub(super) fn replay(&self, step: Duration, time: Duration) -> Result<f64, PipelineError> {
        let start = None;
        let mut samples = 0u64;
        let mut start: Option<Instant> = start;
        for batch in self.loader.replay(0, REPLAYED)? {
            let start = *start.get_or_insert_with(Instant::now);
            samples += batch.len() as u64;
            thread::sleep(step);
            let spent = start.elapsed();
            if spent >= time {
                #[expect(clippy::cast_precision_loss, reason = "a rate")]
                return Ok(samples as f64 / spent.as_secs_f64());
            }
        }
        Ok(0.0)
    }
}
