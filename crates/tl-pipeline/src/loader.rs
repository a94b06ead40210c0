//! The loader: what a data set and a configuration come to, and where epochs start.

use std::fmt;

use tbl_io::Note;
use tl_cuda::UploadStats;
use tl_handoff::sync::{Arc, Mutex, lock, process_id};

use crate::audit::AuditEntry;
use crate::batch::Batch;
use crate::batching::Batching;
use crate::cache::{BlockSettings, CacheConfig, CacheStats, Caches};
use crate::config::LoaderConfig;
use crate::crew::{Parking, Workers};
use crate::dataset::Dataset;
use crate::delivered::Delivered;
use crate::device_batch::DeviceUse;
use crate::epoch::Epoch;
use crate::error::{ColumnsError, EmptyError, PipelineError, ViewError};
use crate::fields::FieldReaders;
use crate::layout::{BatchLayout, RowKind};
use crate::memory::MemoryReport;
use crate::memory_limits::MemoryLimits;
use crate::note::LoaderNote;
use crate::order::{Order, Sampler, Samples, Sequence};
use crate::reader;
use crate::readers::Readers;
use crate::schedule::Schedule;
use crate::shared::Shared;
use crate::source_memory::SourceMemory;
use crate::state::LoaderState;
use crate::stats::Counters;
use crate::table::{ColumnSpec, Columns, Gatherer};
use crate::token_gather::{TokenGatherer, is_readable};
use crate::trace::Trace;
use crate::videos::VideoIndexes;
use crate::view::DatasetView;
use crate::work::Work;

/// Makes batches of a data set, epoch by epoch.
///
/// What a batch holds is a function of the data set, the recipe, the seed and the epoch: the number
/// of workers, the speed of the consumer and other samples' errors have no part in it.
///
/// ```no_run
/// use tl_pipeline::{Dataset, Loader, LoaderConfig, Shuffle, Work};
/// use tl_transform::Recipe;
///
/// let work = Work::Images(Recipe::imagenet_train(224)?);
/// let config =
///     LoaderConfig { sampler: Shuffle::Full.into(), seed: 42, ..LoaderConfig::new(work) };
/// let loader = Loader::new(Dataset::open(&["train.tar"])?, config)?;
/// for epoch in 0..90 {
///     for batch in loader.epoch(epoch) {
///         let batch = batch?;
///         println!("{:?} {:?}", batch.shape(), batch.labels());
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Loader {
    pub(crate) shared: Arc<Shared>,
    parking: Arc<Parking>,
}

impl Loader {
    /// A loader for a data set or a view of one. It starts no thread and allocates no batch yet.
    ///
    /// # Errors
    /// [`ViewError::Configured`] for a view if [`LoaderConfig::sampler`] selects samples too.
    /// Settings out of range; fields that no sample has; a recipe without the fixed size that the
    /// settings need, with a user transform that was not given, or that mixes labelled images
    /// without a number of classes; a batch larger than the address space; a data set without
    /// samples, or without images for a recipe that decodes; a sampler that selects no sample;
    /// fewer samples than a global batch with [`Tail::Drop`](crate::Tail).
    pub fn new(view: impl Into<DatasetView>, config: LoaderConfig) -> Result<Self, PipelineError> {
        Self::of_view(&view.into(), config)
    }

    fn of_view(view: &DatasetView, config: LoaderConfig) -> Result<Self, PipelineError> {
        let configured_lead = config.read_ahead_bytes;
        let mut config = config.resolve()?;
        config.sampler = sampler_of(view, config.sampler)?;
        let mut dataset = Arc::clone(view.dataset());
        dataset.require_samples()?;
        if let Some(tables) = tables_of(&dataset, &config)? {
            dataset = Arc::new(tables);
        }
        let is_read = reads_samples(&config.work, &dataset);
        if config.readers == Readers::Workers && is_read && dataset.is_remote() {
            config.readers = Readers::Planned;
        }
        let tokens = TokenGatherer::new(&dataset, &config)?;
        config.work.check_samples(&dataset, &config.decoders)?;
        let note = |note: &Note| LoaderNote::Labels { note: note.clone() };
        let mut notes: Vec<LoaderNote> = dataset.label_notes().iter().map(note).collect();
        notes.extend(LoaderNote::unindexed_archives(&dataset));
        if let Work::Columns(Columns { label: Some(label), .. }) = &config.work {
            notes.extend(label_by(Arc::make_mut(&mut dataset), label, &config.sampler.samples)?);
        }
        if !matches!(config.work, Work::Columns(_)) {
            config.fields.check_names(&dataset)?;
        }
        let global_batch = (config.batch_size as u64).saturating_mul(config.shard.world.into());
        let sequence = config.sampler.resolve(&dataset, global_batch)?;
        if sequence.is_empty() {
            return Err(EmptyError::NothingSelected { sample_count: dataset.len() }.into());
        }
        let schedule = Schedule::new(sequence.len(), config.batch_size, config.shard)?;
        if schedule.global_batches() == 0 {
            let positions = schedule.positions();
            let global_batch = schedule.global_batch();
            return Err(EmptyError::NoBatch { positions, global_batch }.into());
        }
        if config.readers == Readers::Planned {
            let (bytes, note) = reader::lead_bytes(&dataset, &config, configured_lead);
            config.read_ahead_bytes = bytes;
            notes.extend(note);
        }
        let user_transforms = config.bind()?;
        if let Batching::Buckets(buckets) = config.batching {
            buckets.check(&config.work, config.decode.exif, &dataset, schedule.global_batch())?;
        }
        let gatherer = gatherer(&dataset, &config)?;
        let layout =
            |config: &LoaderConfig| layout(config, &dataset, gatherer.as_ref(), tokens.as_ref());
        let (delivered, (layout, fields)) = Delivered::begin(&mut config, &mut notes, layout)?;
        let sources = SourceMemory::reserve(&dataset, &config, &mut notes)?;
        let copies = delivered.has_copies(&config);
        let memory = MemoryLimits::new(&mut config, &layout, gatherer.as_ref(), sources, copies)?;
        delivered.limit_copies(memory.copies());
        // The slabs that can be returned at once; those in flight are not free.
        let free_slabs = config.prefetch.min(config.workers.saturating_add(2)) + 1;
        let pool = Arc::new(delivered.pool(free_slabs));
        let trace = (config.trace > 0).then(|| Arc::new(Trace::new(config.trace)));
        let caches = open_caches(&config, &dataset, &sequence, &mut notes);
        let shared = Shared {
            videos: VideoIndexes::new(config.index_bytes()),
            dataset,
            config,
            sequence,
            schedule,
            layout,
            user_transforms,
            fields,
            gatherer,
            tokens,
            pool,
            delivered,
            memory,
            scratch: Mutex::default(),
            caches,
            counters: Counters::default(),
            trace,
            notes: Mutex::new(notes),
            fingerprint: Mutex::default(),
            process: process_id(),
        };
        Ok(Self { shared: Arc::new(shared), parking: Arc::default() })
    }

    /// The exact number of batches of an epoch for this rank. With
    /// [`OnError::Skip`](crate::OnError::Skip) an epoch returns fewer where all samples of a batch
    /// are bad.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shared.schedule.batches()
    }

    /// True if an epoch has no batch for this rank because other ranks have all of them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data set that the loader reads.
    #[must_use]
    pub fn dataset(&self) -> &Dataset {
        &self.shared.dataset
    }

    /// The descriptions of the columns of numbers that batches have, in the order of
    /// [`Batch::columns`](crate::Batch::columns).
    #[must_use]
    pub fn column_specs(&self) -> &[ColumnSpec] {
        &self.shared.layout.columns
    }

    /// True if batches' column `tokens` has a further one in each row, and targets are its numbers
    /// from the second on.
    #[must_use]
    pub fn targets_overlap(&self) -> bool {
        self.shared.layout.rows == RowKind::Windows { targets: true }
    }

    /// The settings, with the zeros replaced by what they stand for.
    #[must_use]
    pub fn config(&self) -> &LoaderConfig {
        &self.shared.config
    }

    /// The order of the samples in `epoch`, over all ranks, before [`Batching`] groups them.
    #[must_use]
    pub fn order(&self, epoch: u32) -> Order {
        self.shared.order(epoch)
    }

    /// The batches of `epoch` in order. The workers are started, or taken over from the end of the
    /// epoch before.
    #[must_use]
    pub fn epoch(&self, epoch: u32) -> Epoch {
        self.start(epoch, 0)
    }

    /// The state at the start of `epoch`, of which nothing was received yet.
    ///
    /// # Errors
    /// As for [`Epoch::state`].
    pub fn state(&self, epoch: u32) -> Result<LoaderState, PipelineError> {
        self.shared.state(epoch, 0)
    }

    /// Resumes from `state`: returns the batches of its epoch that were not received yet.
    ///
    /// The number of workers, the prefetch and the policy for bad samples may differ. So may the
    /// number of ranks, if the global batch is the same (and bad samples are not replaced within
    /// padded batches, which belong to one rank). This loader's tail decides whether the last
    /// global batch is padded or short, whatever that of the state was. A state of a mixture that
    /// lacks stages of this loader's resumes if it is not past the start of the first of them.
    ///
    /// # Errors
    /// [`PipelineError::StateMismatch`] for another data set, recipe, order, seed, global batch,
    /// mixing group or replacement group, or if one of the two tails is
    /// [`Tail::Drop`](crate::Tail), with both values; [`PipelineError::StateBeyondEpoch`] and
    /// [`PipelineError::StateWithinBatch`] for a position that no epoch of this loader has;
    /// [`PipelineError::Forked`].
    pub fn resume(&self, state: &LoaderState) -> Result<Epoch, PipelineError> {
        let batch = self.next_batch(state)?;
        Ok(self.start(state.epoch, batch))
    }

    /// Checks that [`resume`](Self::resume) accepts `state`, without starting a run.
    ///
    /// # Errors
    /// As `resume`.
    pub fn check(&self, state: &LoaderState) -> Result<(), PipelineError> {
        self.next_batch(state).map(|_| ())
    }

    /// True if `state` is the end of its epoch: all ranks have received all their batches.
    /// [`resume`](Self::resume) then returns an epoch without batches. A rank with one batch less
    /// than others ([`Tail::Uneven`](crate::Tail::Uneven)) can also have none left of an epoch that
    /// the others have not finished.
    ///
    /// # Errors
    /// As `resume`.
    pub fn is_over(&self, state: &LoaderState) -> Result<bool, PipelineError> {
        Ok(self.next_batch(state)? == self.shared.schedule.global_batches())
    }

    fn next_batch(&self, state: &LoaderState) -> Result<u64, PipelineError> {
        let mut own = self.shared.state(state.epoch, self.shared.schedule.global_batches())?;
        // Rows of buckets come from positions that are further on.
        let is_in_order = !matches!(self.shared.config.batching, Batching::Buckets(_));
        if is_in_order && self.shared.sequence.begins_as(state.order, state.consumed) {
            own.order = state.order;
        }
        state.next_batch(&own)
    }

    /// Returns batch `number` of `epoch` alone, with the bytes that it has in its epoch. Under a
    /// memory budget this discards batches prepared for an epoch that was not requested yet. The
    /// batch is empty if all its samples are left out.
    ///
    /// # Errors
    /// Those of an epoch; [`PipelineError::EpochRunning`] under a memory budget while an epoch is
    /// unfinished; [`PipelineError::Setting`] if the epoch has no such batch.
    pub fn batch(&self, epoch: u32, number: u64) -> Result<Batch, PipelineError> {
        let none = PipelineError::Setting {
            setting: "batch",
            value: number,
            expected: "less than the batches of an epoch",
        };
        let shared = &self.shared;
        let runs = number < self.len() && !shared.is_forked();
        if runs && shared.memory.is_bounded() {
            // The memory of a further run would have to fit next to the run that waits for its
            // epoch.
            self.parking.park(None);
        }
        let one = number..number.saturating_add(1);
        let workers = runs.then(|| Workers::start(Arc::clone(shared), epoch, one));
        let mut epoch =
            Epoch::new(Arc::clone(shared), Arc::clone(&self.parking), workers, epoch, number);
        epoch.receive_any(None).unwrap_or(Err(none))
    }

    /// The memory that the loader uses and may use; zeros in a forked process.
    #[must_use]
    pub fn memory(&self) -> MemoryReport {
        self.unless_forked(|shared| shared.memory.report(&shared.config, shared.pool.slab_bytes()))
    }

    /// The device that batches are copied to, and its part of the work; `None` without one, and in a
    /// forked process.
    #[must_use]
    pub fn device_use(&self) -> Option<DeviceUse> {
        self.unless_forked(|shared| shared.delivered.device_use())
    }

    /// The counters of copies to a device; zeros in a forked process.
    pub(crate) fn uploads(&self) -> UploadStats {
        self.unless_forked(|shared| shared.delivered.stats())
    }

    /// The contents and counters of the caches; zeros in a forked process.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.unless_forked(|shared| shared.caches.stats())
    }

    /// The bad samples in the batches received so far, in that order, and what became of each; the
    /// first 10 000 of them, and none in a forked process. [`Loader::stats`] counts all.
    #[must_use]
    pub fn audit(&self) -> Vec<AuditEntry> {
        self.unless_forked(|shared| shared.counters.audit())
    }

    /// Notes recorded so far; usually empty.
    #[must_use]
    pub fn notes(&self) -> Vec<LoaderNote> {
        self.unless_forked(|shared| lock(&shared.notes).clone())
    }

    /// A value that a lock protects, or the default in a forked process: there the lock may be held
    /// by a thread that does not exist.
    fn unless_forked<T: Default>(&self, value: impl FnOnce(&Shared) -> T) -> T {
        if self.shared.is_forked() { T::default() } else { value(&self.shared) }
    }

    fn start(&self, epoch: u32, batch: u64) -> Epoch {
        let shared = &self.shared;
        let runs = batch < self.len() && !shared.is_forked();
        let workers = runs.then(|| {
            let (parked, in_order) = self.parking.unpark(epoch);
            let goes_on = in_order && shared.config.prefetch_next_epoch;
            let parked = parked.filter(|workers| workers.are_at(epoch, batch));
            // The numbers of epochs end with the type; so does the run.
            let epochs = if goes_on { u64::from(u32::MAX - epoch) + 1 } else { 1 };
            let batches = batch..self.len().saturating_mul(epochs);
            parked.unwrap_or_else(|| Workers::start(Arc::clone(shared), epoch, batches))
        });
        Epoch::new(Arc::clone(shared), Arc::clone(&self.parking), workers, epoch, batch)
    }
}

/// The rows of files of samples, for work on columns.
fn tables_of(dataset: &Dataset, config: &LoaderConfig) -> Result<Option<Dataset>, PipelineError> {
    let are_wanted = matches!(config.work, Work::Columns(_)) && dataset.tables().next().is_none();
    if are_wanted { dataset.as_tables() } else { Ok(None) }
}

/// The samples of the view in the order of the settings.
fn sampler_of(view: &DatasetView, sampler: Sampler) -> Result<Sampler, ViewError> {
    if view.is_whole() {
        return Ok(sampler);
    }
    match sampler {
        Sampler { samples: Samples::All, shuffle, repeat: 1 } => Ok(view.sampler(shuffle)),
        _ => Err(ViewError::Configured),
    }
}

/// Takes the classes of the label column, and its labels if the order needs them. Classes without
/// names do not prevent training.
fn label_by(
    dataset: &mut Dataset,
    label: &str,
    samples: &Samples,
) -> Result<Option<LoaderNote>, PipelineError> {
    let note = match dataset.name_classes(label) {
        Err(PipelineError::Table { source, .. }) => {
            Some(LoaderNote::NoClassNames { error: source.to_string() })
        }
        named => {
            named?;
            None
        }
    };
    if matches!(samples, Samples::ClassBalanced { .. }) {
        dataset.read_labels(label)?;
    }
    Ok(note)
}

/// True if readers can bring what is read for a row.
fn reads_samples(work: &Work, dataset: &Dataset) -> bool {
    match work {
        Work::Columns(_) | Work::Clips(_) => false,
        Work::Tokens(_) => dataset.sequences().is_none_or(is_readable),
        Work::Bytes | Work::Views | Work::Images(_) => true,
    }
}

/// The layout of batches, and the readers of fields that samples have.
fn layout(
    config: &LoaderConfig,
    dataset: &Dataset,
    gatherer: Option<&Gatherer>,
    tokens: Option<&TokenGatherer>,
) -> Result<(BatchLayout, FieldReaders), PipelineError> {
    let fields = FieldReaders::default();
    let (columns, kind, fields) = match (gatherer, tokens) {
        (Some(gatherer), _) => (Arc::clone(gatherer.specs()), RowKind::Table, fields),
        (None, Some(tokens)) => (Arc::clone(tokens.specs()), tokens.rows(), fields),
        (None, None) => {
            let mut columns = BatchLayout::image_columns(config);
            let fields = FieldReaders::new(&config.fields, dataset, &mut columns)?;
            (columns.into(), RowKind::Samples, fields)
        }
    };
    let layout = BatchLayout::fixed(config, columns, fields.keypoint_layouts(), kind)?;
    Ok((layout, fields))
}

/// The gatherer of table rows, for work on columns that this data set has.
fn gatherer(dataset: &Dataset, config: &LoaderConfig) -> Result<Option<Gatherer>, PipelineError> {
    let table = dataset.tables().next();
    let first = dataset.shards().first();
    let location = || first.map(|shard| shard.location().clone()).unwrap_or_default();
    let refused = |what| Err(ColumnsError::IsTable { location: location(), what }.into());
    match (&config.work, table) {
        (Work::Columns(columns), Some(_)) => {
            if config.readers != Readers::Workers {
                return refused("samples that readers bring");
            }
            if config.cache != CacheConfig::default() {
                return refused("samples for a cache; blocks of it are kept anyhow");
            }
            Gatherer::new(dataset, columns, &config.fields.bytes, config.memory_budget).map(Some)
        }
        (Work::Columns(_), None) => Err(ColumnsError::NoTable { location: location() }.into()),
        (Work::Images(_), Some(_)) => refused("images"),
        (Work::Clips(_), Some(_)) => refused("clips of videos"),
        (Work::Bytes | Work::Views, Some(_)) => refused("samples of bytes"),
        (Work::Tokens(_), Some(_)) => refused("tokens"),
        (Work::Bytes | Work::Views | Work::Images(_) | Work::Clips(_) | Work::Tokens(_), None) => {
            Ok(None)
        }
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        if !self.shared.is_forked() {
            self.parking.close();
        }
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("dataset", &self.shared.dataset)
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}

fn open_caches(
    config: &LoaderConfig,
    dataset: &Arc<Dataset>,
    sequence: &Sequence,
    notes: &mut Vec<LoaderNote>,
) -> Caches {
    let blocks = BlockSettings { dataset, sequence, buffer_bytes: config.block_bytes() };
    let caches = Caches::open(&config.cache, &config.decode_options(), &config.decoders, &blocks);
    notes.extend(caches.notes(dataset));
    caches
}
