//! The consumer's side: the batches of one epoch, in order.

use std::fmt;
use std::time::{Duration, Instant};

use tl_handoff::ring::Taken;
use tl_handoff::sync::Arc;

use crate::batch::Batch;
use crate::crew::{Parking, Workers};
use crate::error::PipelineError;
use crate::metrics::ConsumerWatch;
use crate::note::LoaderNote;
use crate::policy::ErrorCount;
use crate::run::Filled;
use crate::schedule::Tail;
use crate::shared::Shared;
use crate::state::LoaderState;
use crate::trace::Trace;
use crate::worker;

/// The batches of one epoch, in order.
///
/// Batches whose samples were all left out by [`OnError::Skip`](crate::OnError::Skip) are not
/// returned: their numbers are missing, and the state counts them as received.
///
/// An error ends the epoch, except [`TimedOut`](PipelineError::TimedOut) and
/// [`BatchesHeld`](PipelineError::BatchesHeld), after which the same batch can be requested again.
/// Dropping an epoch early stops the workers and waits for them: for the time of one sample. At its
/// end they continue with the next epoch's first batches, as far as `prefetch` allows, and
/// [`Loader::epoch`](crate::Loader::epoch) resumes there.
pub struct Epoch {
    shared: Arc<Shared>,
    parking: Arc<Parking>,
    /// `None` after the last batch, and in a forked process.
    workers: Option<Workers>,
    number: u32,
    /// Batches received, also before a resumption.
    received: u64,
    has_failed: bool,
    watch: ConsumerWatch,
    /// Bad samples among those received.
    errors: ErrorCount,
}

impl Epoch {
    /// The batches of epoch `number` after the first `received`.
    pub(crate) fn new(
        shared: Arc<Shared>,
        parking: Arc<Parking>,
        workers: Option<Workers>,
        number: u32,
        received: u64,
    ) -> Self {
        let watch = ConsumerWatch::new(shared.trace.as_ref().map(Trace::consumer));
        let errors = ErrorCount::new(shared.config.error_budget, shared.schedule.counted_rows());
        Self { shared, parking, workers, number, received, has_failed: false, watch, errors }
    }

    /// The number of the epoch.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The number of batches that are left without an error; fewer if all samples of a batch are
    /// left out.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        if self.has_failed {
            return 0;
        }
        self.shared.schedule.batches().saturating_sub(self.received)
    }

    /// The state to resume from: what this consumer has received, and not what was prepared for it.
    ///
    /// It is the same on every rank after the same number of batches. A rank that has one batch less
    /// than others ([`Tail::Uneven`](crate::Tail::Uneven)) ends before the last global batch, because
    /// it does not know whether the others have received theirs. So no sample is lost with any rank's
    /// state.
    ///
    /// # Errors
    /// When the data set's fingerprint cannot be made, on the first call for a loader;
    /// [`PipelineError::Forked`].
    pub fn state(&self) -> Result<LoaderState, PipelineError> {
        self.shared.state(self.number, self.received)
    }

    /// As `next`, for at most `timeout`. [`PipelineError::TimedOut`] does not end the epoch: the
    /// batch can be requested again. So it is with [`PipelineError::BatchesHeld`], which `next`
    /// returns at once and this only if no batch was released in time.
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<Result<Batch, PipelineError>> {
        self.receive(Some(timeout))
    }

    /// The number of samples that were skipped, replaced or filled among those received so far; a
    /// resumed epoch starts at zero.
    #[must_use]
    pub fn bad_samples(&self) -> u64 {
        self.errors.errors()
    }

    fn receive(&mut self, timeout: Option<Duration>) -> Option<Result<Batch, PipelineError>> {
        let asked = Instant::now();
        loop {
            let timeout = timeout.map(|timeout| timeout.saturating_sub(asked.elapsed()));
            match self.receive_any(timeout)? {
                Ok(batch) if batch.is_empty() => {}
                result => return Some(result),
            }
        }
    }

    /// As `next`, but also returns a batch without a sample.
    pub(crate) fn receive_any(
        &mut self,
        timeout: Option<Duration>,
    ) -> Option<Result<Batch, PipelineError>> {
        if self.remaining() == 0 {
            return None;
        }
        let result = self.wait_for_next(timeout);
        match &result {
            Ok(_) => {
                self.received += 1;
                if self.remaining() == 0 {
                    self.parking.park(self.workers.take());
                }
            }
            Err(PipelineError::TimedOut { .. } | PipelineError::BatchesHeld { .. }) => {}
            Err(_) => {
                self.has_failed = true;
                self.workers = None;
            }
        }
        Some(result)
    }

    fn wait_for_next(&mut self, timeout: Option<Duration>) -> Result<Batch, PipelineError> {
        let workers = self.workers.as_ref().filter(|_| !self.shared.is_forked());
        let workers = workers.ok_or(PipelineError::Forked)?;
        let waited = workers.run().check_held(timeout.unwrap_or_default())?;
        let timeout = timeout.map(|timeout| timeout.saturating_sub(waited));
        let counters = &self.shared.counters;
        let ring = &workers.run().ring;
        let ready = ring.ready();
        let asking = self.watch.ask(self.received, ready);
        let (taken, slept) = ring.take(timeout);
        let taken = match taken {
            Taken::Ready(filled) => Taken::Ready(worker::checked(workers.run(), filled)),
            taken @ (Taken::Failed(_) | Taken::TimedOut | Taken::Ended) => taken,
        };
        let (wait, busy) = self.watch.receive(asking, self.received);
        counters.asked(wait, busy, ready);
        match taken {
            Taken::Ready(Filled { batch, rows, audit, .. }) => {
                let is_first = self.errors.errors() == 0;
                let first = audit.iter().find(|entry| is_first && entry.outcome.is_counted());
                if let Some(first) = first {
                    self.shared.note(LoaderNote::bad_sample(first));
                }
                let counted = self.errors.count(rows, &audit);
                counters.note(audit);
                let batch = batch?.received();
                counted?;
                if batch.is_empty() {
                    self.check_empty()?;
                } else {
                    counters.batch(batch.len());
                    counters.pad(batch.padding());
                }
                Ok(batch)
            }
            Taken::Failed(error) => Err(error),
            Taken::TimedOut => Err(PipelineError::TimedOut { waited: waited + slept }),
            Taken::Ended => unreachable!("a run has every batch of its epochs, or a failure"),
        }
    }
}

impl Epoch {
    /// Fails where the batch that is received now cannot be left out: with several ranks, which take
    /// their steps together, unless it is the last one and ranks may end one batch apart.
    fn check_empty(&self) -> Result<(), PipelineError> {
        let schedule = &self.shared.schedule;
        let is_last = self.received + 1 == schedule.batches();
        if schedule.is_alone() || is_last && schedule.tail() == Tail::Uneven {
            return Ok(());
        }
        let world = self.shared.config.shard.world;
        Err(PipelineError::EmptyBatch { epoch: self.number, batch: self.received, world })
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch, PipelineError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.receive(None)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.remaining()).ok())
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoch")
            .field("number", &self.number)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
