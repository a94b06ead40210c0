//! Looking at a loader: its counters, what limits it, what happened when, and how fast its consumer
//! would be if batches cost nothing.

use std::io::{self, Write};

use crate::batch::Batch;
use crate::error::PipelineError;
use crate::loader::Loader;
use crate::report::Report;
use crate::stats::LoaderStats;
use crate::trace::Trace;

impl Loader {
    /// The statistics of the loader so far.
    ///
    /// Workers add their counts when they start another batch; until then their latest work is
    /// missing.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        let config = self.config();
        let pool = &self.shared.pool;
        self.shared.counters.stats(&LoaderStats {
            slabs: pool.allocated(),
            slabs_in_use: pool.in_use(),
            slab_bytes: pool.slab_bytes(),
            workers: config.workers,
            prefetch: config.prefetch,
            uploads: self.uploads(),
            ..LoaderStats::default()
        })
    }

    /// The report on where time was spent so far, and which stage limits the loader.
    #[must_use]
    pub fn report(&self) -> Report {
        Report::new(self.stats())
    }

    /// Writes the latest events as JSON in the trace event format, which
    /// [Perfetto](https://ui.perfetto.dev) and the trace viewers of browsers open: the activity of
    /// every worker and of the consumer over time. Without
    /// [`LoaderConfig::trace`](crate::LoaderConfig) the list is empty.
    ///
    /// # Errors
    /// Those of `out`, which should be buffered, and [`PipelineError::Forked`].
    pub fn write_trace(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.shared.is_forked() {
            return Err(io::Error::other(PipelineError::Forked));
        }
        match &self.shared.trace {
            Some(trace) => trace.write(out),
            None => Trace::new(0).write(out),
        }
    }

    /// The first `batches` batches of `epoch`, made once and served again and again: how fast the
    /// consumer is when batches cost nothing. All of them stay in memory.
    ///
    /// # Errors
    /// As the epoch's.
    pub fn replay(&self, epoch: u32, batches: u64) -> Result<Replay, PipelineError> {
        let batches = usize::try_from(batches).unwrap_or(usize::MAX);
        let batches = self.epoch(epoch).take(batches).collect::<Result<Vec<_>, _>>()?;
        Ok(Replay { batches, next: 0 })
    }
}

/// A few batches without end; see [`Loader::replay`].
#[derive(Clone, Debug)]
pub struct Replay {
    batches: Vec<Batch>,
    next: usize,
}

impl Iterator for Replay {
    type Item = Batch;

    /// `None` only where there was no batch to begin with.
    fn next(&mut self) -> Option<Batch> {
        let batch = self.batches.get(self.next)?.clone();
        self.next = (self.next + 1) % self.batches.len();
        Some(batch)
    }
}
