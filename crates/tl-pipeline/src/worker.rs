//! Workers: the threads that turn places in a run into rows of batches.

mod cached;
mod fill;
mod process;
mod publish;

use std::mem;

use tl_decode::DecodeOptions;
use tl_handoff::pool::Lease;
use tl_handoff::sync::{Arc, thread};
use tl_transform::BoundTransforms;

pub(crate) use fill::READ_AHEAD;

use crate::audit::AuditEntry;
use crate::batch::Batch;
use crate::bucket::Window;
use crate::config::LoaderConfig;
use crate::error::PipelineError;
use crate::fields::Annotator;
use crate::form::Form;
use crate::memory::SampleLimits;
use crate::row::RowExtras;
use crate::run::{EpochOrder, Run};
use crate::sample::SampleRenderer;
use crate::stage::Stage;
use crate::table::TableScratch;
use crate::tally::Tally;
use crate::trace::EventBuffer;
use crate::work::Work;

/// What a published batch comes with.
pub(crate) struct Filled {
    pub(crate) batch: Result<Batch, PipelineError>,
    /// How many rows it has or would have, without padding.
    pub(crate) rows: u64,
    /// What was wrong with their samples.
    pub(crate) audit: Vec<AuditEntry>,
}

/// The memory of one worker, reused from sample to sample and from epoch to epoch.
#[derive(Debug)]
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    row_index: Vec<u8>,
    /// `None` where samples are not decoded.
    renderer: Option<SampleRenderer>,
    /// Rows of a batch as they were before it was mixed.
    unmixed: Vec<u8>,
    annotator: Annotator,
    table: TableScratch,
    /// What a sample may take of it.
    limits: SampleLimits,
    /// What was counted since the last batch.
    tally: Tally,
}

impl Scratch {
    pub(crate) fn new(
        config: &LoaderConfig,
        user_transforms: &BoundTransforms,
        limits: SampleLimits,
    ) -> Self {
        let decode = DecodeOptions { limits: limits.decode, ..config.decode };
        let renderer = match &config.work {
            Work::Bytes | Work::Views | Work::Columns(_) => None,
            Work::Images(recipe) => {
                let renderer = SampleRenderer::new(recipe, decode);
                Some(renderer.with_user_transforms(user_transforms.clone()))
            }
        };
        let annotator = Annotator::new(&config.fields, decode);
        let (bytes, row_index, unmixed) = (Vec::new(), Vec::new(), Vec::new());
        let (table, tally) = (TableScratch::default(), Tally::start(None));
        Self { bytes, row_index, renderer, unmixed, annotator, table, limits, tally }
    }

    /// Takes other memory for its own; the counts stay.
    fn renew(&mut self, run: &Run) {
        let tally = mem::replace(&mut self.tally, Tally::start(None));
        *self = Self { tally, ..run.new_scratch() };
    }

    /// Gives back buffers that are larger than what is kept for the next sample.
    fn trim(&mut self) {
        let keep = self.limits.keep;
        trim(&mut self.bytes, keep);
        trim(&mut self.row_index, keep);
        trim(&mut self.unmixed, keep);
        self.annotator.trim(keep);
        if let Some(renderer) = &mut self.renderer {
            renderer.trim(keep);
        }
    }
}

fn trim(buffer: &mut Vec<u8>, keep: usize) {
    if buffer.capacity() > keep {
        *buffer = Vec::new();
    }
}

/// The batch that a worker is at.
struct Current {
    /// Its number in the run.
    serial: u64,
    epoch: Arc<EpochOrder>,
    /// How its samples are grouped, where they are.
    grouping: Option<Arc<Window>>,
    form: Form,
    lease: Arc<Lease<RowExtras>>,
}

/// Works until there is nothing left to claim, or the run is closed, and counts what it does.
pub(crate) fn run(run: &Run, scratch: &mut Scratch, events: Option<EventBuffer>) {
    scratch.tally = Tally::start(events);
    work(run, scratch);
    scratch.tally.lap(Stage::Overhead);
    run.shared().counters.flush(&mut scratch.tally);
    scratch.tally = Tally::start(None);
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
                let form = run.form(grouping.as_deref(), place)?;
                Ok((grouping, form))
            });
            let (grouping, form) = match formed {
                Ok(formed) => formed,
                Err(error) => return run.ring.fail_at(place.serial, error),
            };
            run.shared().counters.flush(&mut scratch.tally);
            let Some(lease) = run.enter(place, &form, &mut scratch.tally) else { return };
            let epoch = known.unwrap_or_else(|| run.order(place.epoch));
            current = Some(Current { serial: place.serial, epoch, grouping, form, lease });
        }
        let Some(current) = &current else { return };
        if let Some(complete) = fill::fill(run, scratch, current, place) {
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
