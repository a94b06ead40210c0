//! The memory limits of a loader: its divided budget and their enforcement.

use tl_handoff::permits::BatchPermits;
use tl_handoff::pool::Lease;
use tl_handoff::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering, lock};
use tl_handoff::window::{ALL_SPARE_BYTES, SPARE_BYTES};
use tl_transform::Op;

use crate::config::LoaderConfig;
use crate::error::PipelineError;
use crate::fields::Fields;
use crate::layout::{BatchLayout, RowKind};
use crate::memory::{Demand, Division, MemoryReport, SampleLimits};
use crate::row::RowExtras;
use crate::source_memory::SourceMemory;
use crate::table::Gatherer;
use crate::work::Work;

/// The memory of a row in a slab besides its bytes and numbers: buffers' headers, flags.
const ROW_BYTES: u64 = 512;

/// Batches whose pictures are copied to a device at the same time, under a budget.
const COPIES: u64 = 2;

/// Images that a mixture puts aside: a mosaic's.
const UNMIXED: u64 = 3;

/// The bounds of a loader's memory.
#[derive(Debug)]
pub(crate) struct MemoryLimits {
    /// The permits of batches.
    pub(crate) permits: Arc<BatchPermits>,
    /// Bytes of decoded blocks of tables.
    blocks: u64,
    /// The memory of sources.
    sources: SourceMemory,
    /// `None` without a budget.
    division: Option<Division>,
    /// The limits of a sample.
    usual: SampleLimits,
    /// Locked by a worker that uses more than its share.
    reserve: Mutex<()>,
    large_samples: AtomicU64,
    /// True if rows own buffers.
    grows: bool,
    /// Bytes of a batch that depend on its samples, at most; 0 without a budget.
    varying_bytes: u64,
    /// Bytes of memory that rows are copied to a device from.
    copies: u64,
    /// The unused bytes that each of a row's two kinds of buffers may keep: for all rows together a
    /// quarter of the bytes that they may hold. `None` if they are not bounded.
    kept_per_row: Option<usize>,
}

impl MemoryLimits {
    /// The limits for `config`, whose prefetch is lowered to fit. `sources` is the memory of the
    /// data set's sources, and rows may have pictures or numbers that are copied to a device.
    ///
    /// # Errors
    /// [`PipelineError::MemoryBudget`].
    pub(crate) fn new(
        config: &mut LoaderConfig,
        layout: &BatchLayout,
        gatherer: Option<&Gatherer>,
        sources: SourceMemory,
        has_copies: bool,
    ) -> Result<Self, PipelineError> {
        let blocks = gatherer.map_or(0, Gatherer::kept_bytes);
        let load_bytes = gatherer.map_or(0, Gatherer::load_bytes);
        let grows = match &config.work {
            // Views too are copied where a source has none.
            Work::Bytes | Work::Views => true,
            Work::Tokens(_) => matches!(layout.rows, RowKind::Documents { .. }),
            Work::Columns(_) => config.fields != Fields::default(),
            Work::Images(_) | Work::Clips(_) => {
                layout.spec.is_none() || config.fields != Fields::default() || has_copies
            }
        };
        // Padded batches have a size each, though their rows do not grow.
        let varying = grows || config.batching.pads();
        let both = grows && config.batching.pads();
        let rows = config.batch_size as u64;
        let batch_bytes = if config.batching.pads() { 0 } else { layout.shape.bytes() as u64 };
        let batch_bytes = batch_bytes.saturating_add(rows.saturating_mul(ROW_BYTES));
        if let (Some(bytes), false) = (config.prefetch_bytes, varying) {
            let batches = usize::try_from(bytes / batch_bytes.max(1)).unwrap_or(usize::MAX);
            config.prefetch = config.prefetch.min(batches).max(1);
        }
        let division = match config.memory_budget {
            None => None,
            Some(budget) => {
                let demand = demand(config, layout);
                let caches = demand.caches.saturating_add(blocks).saturating_add(sources.bytes);
                let worker_bytes = demand.worker_bytes.saturating_add(load_bytes);
                // A consumer may make a batch again while the first is still copied.
                let beside = if has_copies { COPIES + 1 } else { 0 };
                let workers = demand.workers + u64::from(has_copies);
                let demand = Demand { batch_bytes, rows, varying, caches, worker_bytes, ..demand };
                let demand = Demand { beside, workers, ..demand };
                let division = Division::new(budget, &demand)?;
                // A slab that was allocated for a larger batch stays, and fields need memory of
                // their own.
                let rows_bytes = division.rows_bytes / if both { 2 } else { 1 };
                Some(Division { rows_bytes, ..division })
            }
        };
        if let Some(division) = &division {
            let batches = usize::try_from(division.batches).unwrap_or(usize::MAX);
            config.prefetch = config.prefetch.min(batches.saturating_sub(1)).max(1);
        }
        let ahead = config.prefetch_bytes.filter(|_| varying).unwrap_or(u64::MAX);
        let most = division.map_or(u64::MAX, |division| division.batches);
        let rows_bytes = division.map_or(0, |division| division.rows_bytes / 4 * 5);
        let varying_bytes = rows_bytes.saturating_mul(if both { 2 } else { 1 });
        let copies = if has_copies { rows_bytes.saturating_mul(COPIES) } else { 0 };
        let usual = SampleLimits::configured(config.decode.limits);
        Ok(Self {
            permits: BatchPermits::new(most, ahead),
            blocks,
            sources,
            usual: division.map_or(usual, |division| division.usual),
            division,
            reserve: Mutex::default(),
            large_samples: AtomicU64::new(0),
            grows,
            varying_bytes,
            copies,
            kept_per_row: division.filter(|_| grows).map(|division| {
                // For what is read or decoded, and for fields.
                usize::try_from(division.rows_bytes / 4 / 2 / rows.max(1)).unwrap_or(usize::MAX)
            }),
        })
    }

    /// Bytes of memory that rows are copied to a device from, at most.
    pub(crate) fn copies(&self) -> u64 {
        if self.is_bounded() { self.copies } else { u64::MAX }
    }

    /// The limits of a sample that fits a worker's share.
    pub(crate) fn usual(&self) -> &SampleLimits {
        &self.usual
    }

    /// The limits of a sample that needs more, with the lock of the reserve; `None` if they are not
    /// higher.
    pub(crate) fn reserve(&self) -> Option<(MutexGuard<'_, ()>, SampleLimits)> {
        let division = self.division.as_ref().filter(|division| division.reserve > 0)?;
        let leave = lock(&self.reserve);
        self.large_samples.fetch_add(1, Ordering::Relaxed);
        Some((leave, division.largest))
    }

    /// True with a memory budget.
    pub(crate) fn is_bounded(&self) -> bool {
        self.division.is_some()
    }

    /// Frees buffers that rows kept from another filling, if they are bounded.
    pub(crate) fn trim(&self, lease: &mut Lease<RowExtras>) {
        if let Some(keep) = self.kept_per_row {
            for extra in lease.extras_mut() {
                extra.trim(keep);
            }
        }
    }

    /// Charges the buffers that a row owns now, and frees them if they do not fit; the batch is
    /// then an error.
    pub(crate) fn charge(&self, lease: &Lease<RowExtras>, extra: &mut RowExtras) {
        let Some(permit) = lease.permit().filter(|_| self.grows) else { return };
        let sum = permit.charge(extra.bytes());
        let Some(division) = &self.division else { return };
        if sum > division.rows_bytes {
            extra.trim(0);
        } else if let Some(keep) = self.kept_per_row {
            extra.fit(keep);
        }
    }

    /// Checks a batch that is complete, or the size of a padded one before it is begun.
    ///
    /// # Errors
    /// [`PipelineError::BatchMemory`].
    pub(crate) fn check(&self, epoch: u32, batch: u64, need: u64) -> Result<(), PipelineError> {
        match &self.division {
            Some(Division { rows_bytes: limit, .. }) if need > *limit => {
                Err(PipelineError::BatchMemory { epoch, batch, need, limit: *limit })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The memory in use and its limits.
    pub(crate) fn report(&self, config: &LoaderConfig, slab_bytes: u64) -> MemoryReport {
        let (batches, held) = self.permits.counts();
        let batch_bytes = if config.batching.pads() {
            slab_bytes.max(self.varying_bytes)
        } else {
            slab_bytes.saturating_add(self.varying_bytes)
        };
        MemoryReport {
            budget: config.memory_budget,
            batch_bytes,
            max_batches: self.division.map(|division| division.batches),
            batches,
            held,
            workers: config.workers as u64,
            share: self.division.map(|division| division.share),
            reserve: self.division.map_or(0, |division| division.reserve),
            large_samples: self.large_samples.load(Ordering::Relaxed),
            caches: caches(config).saturating_add(self.blocks).saturating_add(self.sources.bytes),
            readers: readers(config)
                .saturating_add(worker_spare(config).saturating_mul(config.workers as u64)),
            copies: self.copies,
        }
    }
}

/// Images that are held for user's transforms that run between plans: the one that each gets and the
/// one that it makes, a mask, and the masks of objects in their four forms on the way.
fn between_plans(config: &LoaderConfig) -> u64 {
    let Work::Images(recipe) = &config.work else { return 0 };
    let fields = &config.fields;
    let has_annotations = fields.has_annotations();
    let is_between =
        |op: &Op| matches!(op, Op::UserTransform(user) if has_annotations || user.size.is_any());
    if !recipe.ops().iter().any(is_between) {
        return 0;
    }
    let objects = if fields.instance_masks.is_some() { 4 } else { 0 };
    2 + u64::from(fields.mask.is_some()) + objects
}

/// The demand of a configuration, without its batches.
fn demand(config: &LoaderConfig, layout: &BatchLayout) -> Demand {
    let mixes = matches!(&config.work, Work::Images(recipe) if !recipe.batch_ops().is_empty());
    let row = layout.spec.and_then(|spec| spec.bytes()).unwrap_or(0) as u64;
    Demand {
        batch_bytes: 0,
        rows: 0,
        varying: false,
        decoded: u64::from(config.fields.mask.is_some())
            + u64::from(config.fields.instance_masks.is_some())
            + config.fields.decoded_images(),
        rendered: config.fields.images.len() as u64 + between_plans(config),
        worker_bytes: if mixes { row.saturating_mul(UNMIXED) } else { 0 }
            .saturating_add(worker_spare(config)),
        workers: config.workers as u64,
        prefetch: config.prefetch as u64,
        beside: 0,
        caches: caches(config),
        readers: readers(config),
        limits: config.work.recipe().is_some().then_some(config.decode.limits),
    }
}

fn caches(config: &LoaderConfig) -> u64 {
    let kept = config.cache.memory.map_or(0, |memory| memory.bytes);
    kept.saturating_add(config.block_bytes()).saturating_add(config.index_bytes())
}

/// Buffers are up to twice as large as what they hold, and some lie between two uses, besides one for
/// each worker.
fn readers(config: &LoaderConfig) -> u64 {
    if !config.readers.read_ahead() {
        return 0;
    }
    config.read_ahead_bytes.saturating_mul(2).saturating_add(ALL_SPARE_BYTES as u64)
}

/// The bytes of buffers that a worker may keep between two uses.
fn worker_spare(config: &LoaderConfig) -> u64 {
    if config.readers.read_ahead() { SPARE_BYTES as u64 } else { 0 }
}
