//! Workers: the threads that turn places in a run into rows of batches.

mod again;
mod cached;
mod clips;
mod custom;
mod fill;
mod process;
mod publish;

use tl_handoff::pool::Lease;
use tl_handoff::sync::{Arc, thread};

use crate::bucket::Window;
use crate::error::PipelineError;
use crate::fetch::ReadRow;
use crate::layout::BatchLayout;
use crate::metrics::WorkerMetrics;
use crate::row::RowExtras;
use crate::run::{EpochOrder, Run};
use crate::scratch::Scratch;
use crate::stage::Stage;
use crate::trace::EventBuffer;
pub(crate) use again::checked;

/// The batch that a worker is at.
struct Current {
    /// Its number in the run.
    serial: u64,
    epoch: Arc<EpochOrder>,
    /// The grouping of its samples, if images are padded.
    grouping: Option<Arc<Window>>,
    layout: BatchLayout,
    lease: Arc<Lease<RowExtras>>,
}

/// Works until no rows are left or the run is closed, and counts its work.
pub(crate) fn run(run: &Run, scratch: &mut Scratch, events: Option<EventBuffer>) {
    scratch.metrics = WorkerMetrics::start(events);
    work(run, scratch);
    scratch.metrics.lap(Stage::Overhead);
    run.shared().counters.flush(&mut scratch.metrics);
    scratch.metrics = WorkerMetrics::start(None);
}

fn work(run: &Run, scratch: &mut Scratch) {
    let mut current: Option<Current> = None;
    while let Some(row) = run.ring.claim() {
        let place = run.place(row);
        if current.as_ref().is_none_or(|current| current.serial != place.serial) {
            // Let go of the last batch before sleeping: its memory may be what is waited for.
            let known = current.take().map(|current| current.epoch);
            let known = known.filter(|epoch| epoch.number == place.epoch);
            // Only the size of padded batches depends on the order.
            let known = known.or_else(|| run.is_padded().then(|| run.order(place.epoch)));
            let grouping = known.as_deref().map_or(Ok(None), |epoch| run.grouping(epoch, place));
            let formed = grouping.and_then(|grouping| {
                let layout = run.layout(grouping.as_deref(), place)?;
                Ok((grouping, layout))
            });
            let (grouping, layout) = match formed {
                Ok(formed) => formed,
                Err(error) => return run.ring.fail_at(place.serial, error),
            };
            run.shared().counters.flush(&mut scratch.metrics);
            let Some(lease) = run.enter(place, &layout, &mut scratch.metrics) else { return };
            let epoch = known.unwrap_or_else(|| run.order(place.epoch));
            current = Some(Current { serial: place.serial, epoch, grouping, layout, lease });
        }
        let Some(current) = &current else { return };
        let read_row = ReadRow::new(place.run_row);
        if let Some(complete) = fill::fill(run, scratch, current, place, read_row) {
            publish::publish(run, scratch, current, place, complete);
        }
    }
}

/// Tells the consumer when a worker dies of anything but a sample.
pub(crate) struct Watch<'a> {
    pub(crate) run: &'a Run,
    pub(crate) worker: usize,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.run.ring.fail(PipelineError::WorkerPanicked { worker: self.worker });
        }
    }
}
