//! One row of a batch: its sample, a replacement, or the reason why it has none.

use std::mem;

use tl_decode::{DecodeError, Image};
use tl_handoff::slab::{Complete, Identity, Parts};
use tl_handoff::sync::Arc;
use tl_transform::Draw;

use crate::audit::Outcome;
use crate::error::{SampleError, SampleFault};
use crate::fetch::{ReadRow, RowSource};
use crate::layout::BatchLayout;
use crate::metrics::WorkerMetrics;
use crate::order::Ordered;
use crate::panics::catch_panic;
use crate::policy::{OnError, replacements};
use crate::reader;
use crate::readers::READ_AHEAD;
use crate::retry::Attempts;
use crate::row::{Finding, Interrupted, RowExtras};
use crate::run::{Place, Run};
use crate::scratch::Scratch;
use crate::stage::Stage;
use crate::worker::Current;
use crate::worker::process::{Processed, process};

/// The outcome of filling a row.
#[derive(Clone, Copy)]
struct Row {
    index: u64,
    label: Option<i64>,
    /// Height and width of the image.
    size: [u32; 2],
    valid: bool,
}

/// Puts the sample at `place` into its row, or what the policy says. Returns the batch when this was
/// its last row. In a run that is over the row may stay as it is.
pub(super) fn fill<'a>(
    run: &Run,
    scratch: &mut Scratch,
    current: &'a Current,
    place: Place,
    read_row: ReadRow,
) -> Option<Complete<'a, RowExtras>> {
    let Current { epoch, grouping, lease, .. } = current;
    let slot = run.slot(grouping.as_deref(), place);
    // The order takes longer than a short row.
    let known = scratch.tokens.next.and_then(|next| next.at(epoch.number, slot.position));
    let index = known.or_else(|| epoch.order.sample_at(slot.position));
    let index = index.expect("a position is below their number");
    // Telling what will be read takes the system's time, and belongs to reading.
    scratch.metrics.lap(Stage::Overhead);
    scratch.metrics.work_on(index);
    if run.shared().tokens.is_some() {
        // Files of tokens are mapped: the processor is told of the row that most likely is the next.
        scratch.tokens.next = run.ahead(epoch, place, run.config().workers as u64);
    } else if run.window().is_none()
        && scratch.clips.is_none()
        && let Some(Ordered { sample, .. }) = run.ahead(epoch, place, READ_AHEAD)
    {
        reader::catch_prefetch_panic(run, sample, || {
            if !run.caches().expects(run.dataset(), sample, &mut scratch.bytes) {
                run.dataset().will_need(sample);
            }
        });
    }
    let row = usize::try_from(place.row).expect("a row is below the batch size");
    let mut row = lease.claim(row).expect("a row is claimed once");
    let mut parts = row.parts();
    parts.extra.findings.clear();
    parts.extra.left_out = false;
    let mut filler = Filler { run, scratch, current, place, read_row };
    let filled = match filler.try_fill(slot.position, index, &mut parts) {
        Ok(filled) => filled,
        Err(error) => filler.apply_error_policy(slot.position, error, &mut parts),
    };
    let Row { index, label, size, valid } = filled?;
    run.memory().charge(lease, parts.extra);
    let label = label.unwrap_or(-1);
    let valid = valid && slot.valid;
    row.identify(Identity { label, index, size, valid });
    row.finish()
}

/// The state for filling one row.
struct Filler<'w> {
    run: &'w Run,
    scratch: &'w mut Scratch,
    current: &'w Current,
    place: Place,
    read_row: ReadRow,
}

impl Filler<'_> {
    /// Puts sample `index`, which is at `position` of the epoch, into the row. `None` when the run is
    /// over.
    fn try_fill(
        &mut self,
        position: u64,
        index: u64,
        parts: &mut Parts<'_, RowExtras>,
    ) -> Result<Option<Row>, Arc<SampleError>> {
        let Self { run, scratch, current: Current { epoch, layout, .. }, read_row, .. } = self;
        let run = *run;
        parts.extra.view_of = None;
        let seed = epoch.order.seed_at(position);
        let draw = Draw { seed, epoch: epoch.number, sample: index };
        scratch.metrics.work_on(index);
        let source = RowSource { run, draw, row: read_row };
        let mut attempts = Attempts::new(run.config().retry, &run.shared().counters.retries);
        let result = loop {
            let row = parts.reborrow();
            let work = || within_limits(source, scratch, layout, row);
            let result = catch_panic(work).unwrap_or_else(|message| {
                // Whatever the panic interrupted is in an unknown state.
                scratch.renew(run.shared().new_scratch());
                parts.extra.image = Image::new();
                Err(SampleFault::Panicked { message }.into())
            });
            let Err(Interrupted::Fault(fault)) = &result else { break result };
            if !attempts.wait(fault, &|| run.is_over()) {
                break result;
            }
            scratch.metrics.lap_repeating();
        };
        // The bytes read ahead are this sample's, and useless for its replacement.
        read_row.discard(run);
        scratch.metrics.process();
        scratch.trim();
        let attempts = attempts.failed().max(1);
        let error = |fault| {
            let error = run.dataset().sample_error(index, fault);
            Arc::new(SampleError { attempts, ..error })
        };
        let Processed { label, size, damage } = match result {
            Ok(processed) => processed,
            Err(Interrupted::Fault(fault)) => return Err(error(fault)),
            Err(Interrupted::Over) => return Ok(None),
        };
        if let Some(damage) = damage {
            let error = error(DecodeError::from(damage).into());
            parts.extra.findings.push(Finding { outcome: Outcome::Kept, error });
        }
        Ok(Some(Row { index, label, size, valid: true }))
    }

    /// Does with a row what the policy says, when the sample at `position` cannot be used. `None` when
    /// the run is over.
    fn apply_error_policy(
        &mut self,
        position: u64,
        error: Arc<SampleError>,
        parts: &mut Parts<'_, RowExtras>,
    ) -> Option<Row> {
        let nothing = Row { index: error.index, label: None, size: [0; 2], valid: false };
        let (row, outcome) = match self.run.config().on_error {
            _ if error.fault.is_of_store() => (None, Outcome::Raised),
            OnError::Raise => (None, Outcome::Raised),
            OnError::Skip => (None, Outcome::Skipped),
            OnError::Fill => {
                parts.image.fill(0);
                parts.columns.clear();
                if let Some(field) = &self.run.config().fields.mask {
                    field.pad(parts.mask);
                }
                (Some(nothing), Outcome::Filled)
            }
            OnError::Replace => {
                let mut row = None;
                for other in self.others(position) {
                    let Some(index) = self.current.epoch.order.sample_at(other) else { continue };
                    if let Ok(filled) = self.try_fill(other, index, parts) {
                        row = Some(filled?);
                        break;
                    }
                }
                // With this many bad samples in sequence the cause is elsewhere.
                let outcome = row.as_ref().map(|row| Outcome::Replaced { by: row.index });
                (row, outcome.unwrap_or(Outcome::Raised))
            }
        };
        parts.extra.left_out = row.is_none();
        if row.is_none_or(|row| !row.valid) {
            // Values left by another filling, or by the bad sample, are not part of the row.
            parts.extra.clear();
        }
        parts.extra.findings.insert(0, Finding { outcome, error });
        Some(row.unwrap_or(nothing))
    }

    /// The positions whose samples are tried instead of the one at `position`. A padded batch fits
    /// only the images of its own samples.
    fn others(&self, position: u64) -> Vec<u64> {
        let Self { run, current: Current { epoch, grouping, layout, .. }, place, .. } = self;
        let seed = run.config().seed;
        let of_batch = |row| run.slot(grouping.as_deref(), Place { row, ..*place }).position;
        if layout.is_padded {
            let rows = run.shared().schedule.rows_of(place.batch);
            replacements(seed, epoch.number, position, rows).map(of_batch).collect()
        } else {
            replacements(seed, epoch.number, position, epoch.order.len()).collect()
        }
    }
}

/// Processes a sample within a worker's share of the memory budget, or where that is too little
/// within the reserve, which one worker has at a time.
fn within_limits(
    source: RowSource<'_>,
    scratch: &mut Scratch,
    layout: &BatchLayout,
    mut row: Parts<'_, RowExtras>,
) -> Result<Processed, Interrupted> {
    let run = source.run;
    let result = process(source, scratch, layout, row.reborrow());
    if !matches!(&result, Err(Interrupted::Fault(fault)) if fault.is_limit()) {
        return result;
    }
    let Some((_leave, limits)) = run.memory().reserve() else { return result };
    // Others may have had it for long.
    if run.is_over() {
        return Err(Interrupted::Over);
    }
    let metrics = mem::replace(&mut scratch.metrics, WorkerMetrics::start(None));
    let mut large = Scratch { metrics, ..run.shared().scratch_within(limits) };
    let result = catch_panic(|| process(source, &mut large, layout, row.reborrow()));
    // Also after a panic: the counters outlive it.
    scratch.metrics = large.metrics;
    result.unwrap_or_else(|message| {
        row.extra.image = Image::new();
        Err(SampleFault::Panicked { message }.into())
    })
}
