//! The windows of one epoch: made by the first worker that gets there, from the index alone.

use tl_handoff::recent::RecentCache;
use tl_handoff::sync::Arc;
use tl_handoff::window::MAX_ROWS;
use tl_transform::{Draw, Plan, Recipe};

use crate::batching::{Buckets, PaddingStats};
use crate::bucket::{self, Size, Window, Windows};
use crate::error::{PipelineError, SampleError, SampleFault};
use crate::layout::BatchLayout;
use crate::order::Order;
use crate::panics::catch_panic;
use crate::readers::{READ_AHEAD, Readers};
use crate::retry::Attempts;
use crate::run::Run;
use crate::shared::Shared;
use crate::work::Work;

/// The grouping of the samples of one epoch.
pub(crate) struct Bucketing {
    epoch: u32,
    windows: Windows,
    latest: RecentCache<Window>,
}

impl Bucketing {
    pub(crate) fn new(shared: &Shared, epoch: u32, buckets: Buckets) -> Self {
        let schedule = &shared.schedule;
        let positions = schedule.positions();
        let places = schedule.places();
        let windows =
            Windows::new(positions, places, schedule.global_batch(), buckets.window.into());
        Self { epoch, windows, latest: RecentCache::new(in_use(shared, buckets)) }
    }

    /// The window of `place`, which has all of its batch.
    ///
    /// # Errors
    /// The sample whose size cannot be read now, though a later try may succeed.
    pub(crate) fn window(
        &self,
        run: &Run,
        order: &Order,
        place: u64,
    ) -> Result<Arc<Window>, PipelineError> {
        let number = self.windows.of(place);
        self.latest.get(number, || self.make(run, order, number))
    }

    fn make(&self, run: &Run, order: &Order, number: u64) -> Result<Window, PipelineError> {
        let shared = run.shared();
        let places = self.windows.range(number);
        let mut sizes = Sizes { shared, epoch: self.epoch, plan: Plan::whole(1, 1) };
        let size = |place| {
            if run.is_over() {
                // Nobody receives what would stand where.
                return Ok((0, 0));
            }
            sizes.of(run, order, shared.schedule.position(place))
        };
        let sizes = places.clone().map(size).collect::<Result<_, _>>()?;
        let draw = bucket::Draw { seed: shared.config.seed, epoch: self.epoch, window: number };
        let draw = self.windows.is_arranged(number).then_some(draw);
        Ok(Window::new(places, shared.schedule.global_batch(), sizes, draw))
    }
}

/// The windows that are in use at once: from the batch that is received next to the furthest row that
/// somebody looks at, and one more at either end.
fn in_use(shared: &Shared, buckets: Buckets) -> usize {
    let config = &shared.config;
    let ahead = if config.readers == Readers::Workers { READ_AHEAD } else { MAX_ROWS };
    let batches = config.prefetch as u64 + ahead.div_ceil(config.batch_size as u64);
    let windows = batches.min(shared.schedule.batches()).div_ceil(buckets.window.into());
    usize::try_from(windows).unwrap_or(usize::MAX).saturating_add(2)
}

/// The form of batch `batch` of this rank, which is in `window`.
pub(crate) fn layout(
    shared: &Shared,
    buckets: Buckets,
    window: &Window,
    batch: u64,
) -> Result<BatchLayout, PipelineError> {
    let first = shared.schedule.slot(batch, 0).place;
    let places = first..first + shared.schedule.rows_of(batch);
    let multiple = buckets.multiple;
    let extent = window.extent(places.clone()).rounded(multiple);
    let padding = PaddingStats {
        image_pixels: extent.pixels,
        padded_pixels: extent.padded_pixels(),
        unbucketed_pixels: window.extent_before(places).rounded(multiple).padded_pixels(),
    };
    let Work::Images(recipe) = &shared.config.work else {
        unreachable!("`Buckets::check` refuses bytes")
    };
    shared
        .layout
        .padded(&shared.config, recipe, extent.size, padding)
        .ok_or(PipelineError::OutOfMemory { bytes: extent.padded_pixels() })
}

/// Sizes of what the recipe makes of samples.
struct Sizes<'a> {
    shared: &'a Shared,
    epoch: u32,
    plan: Plan,
}

impl Sizes<'_> {
    /// Width and height of the result at `position` of the order, 0 where the data set never has
    /// them: then the sample does not fit its batch, and processing it reports the reason. The
    /// others stand where sizes say, so one that is missing only now must not be taken for such a
    /// sample.
    fn of(&mut self, run: &Run, order: &Order, position: u64) -> Result<Size, PipelineError> {
        let Work::Images(recipe) = &self.shared.config.work else { return Ok((0, 0)) };
        let Some(sample) = order.sample_at(position) else { return Ok((0, 0)) };
        let dataset = &self.shared.dataset;
        let mut attempts = Attempts::new(self.shared.config.retry, &self.shared.counters.retries);
        let facts = loop {
            let facts = catch_panic(|| dataset.facts(sample));
            let Ok(Err(error)) = &facts else { break facts };
            if !attempts.wait(error, &|| run.is_over()) {
                break facts;
            }
        };
        let fault = match facts {
            Ok(Ok(facts)) => {
                let draw = Draw { seed: order.seed_at(position), epoch: self.epoch, sample };
                let size = (facts.width, facts.height);
                return Ok(self.planned(recipe, size, draw).unwrap_or((0, 0)));
            }
            Ok(Err(error)) if error.is_lasting() => return Ok((0, 0)),
            Ok(Err(error)) => error.into(),
            Err(message) => SampleFault::Panicked { message },
        };
        let error = dataset.sample_error(sample, fault);
        let attempts = attempts.failed().max(1);
        Err(PipelineError::SizeUnknown(Arc::new(SampleError { attempts, ..error })))
    }

    fn planned(&mut self, recipe: &Recipe, size: Size, draw: Draw) -> Option<Size> {
        recipe.plan_into(size.0, size.1, draw, &mut self.plan).ok()?;
        let bytes = recipe.scratch_bytes(&self.plan).ok()?;
        let (width, height) = self.plan.output_size();
        let pixel = u64::from(recipe.channels().count()) * recipe.output().dtype.bytes() as u64;
        let result = u64::from(width) * u64::from(height) * pixel;
        let limit = self.shared.config.decode.limits.max_decoded_bytes;
        (bytes.max(result) <= limit).then_some((width, height))
    }
}
