//! The loader: what a data set and a configuration come to, and where epochs start.

use std::fmt;

use tbl_io::Note;
use tl_handoff::pool::Pool;
use tl_handoff::sync::{Arc, Mutex, lock, process_id};

use crate::audit::AuditEntry;
use crate::batch::Batch;
use crate::batching::Batching;
use crate::cache::{CacheConfig, CacheStats, Caches};
use crate::config::LoaderConfig;
use crate::crew::{Parking, Workers};
use crate::dataset::Dataset;
use crate::epoch::Epoch;
use crate::error::{ColumnsError, EmptyError, PipelineError};
use crate::layout::BatchLayout;
use crate::memory::MemoryReport;
use crate::memory_limits::MemoryLimits;
use crate::note::LoaderNote;
use crate::order::{Order, Samples};
use crate::readers::Readers;
use crate::schedule::Schedule;
use crate::shared::Shared;
use crate::state::LoaderState;
use crate::stats::Counters;
use crate::table::{Columns, Gatherer};
use crate::trace::Trace;
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
    /// A loader for `dataset`. No thread is started and no batch allocated yet.
    ///
    /// # Errors
    /// Settings out of range, fields that no sample has, a recipe that gives no fixed size where one
    /// is needed, names a user's transform that there is not, or mixes labelled images without a
    /// number of classes, a batch larger than the address space; a data set without samples, or
    /// without images where they are decoded, a sampler that selects none, or fewer samples than a global batch where incomplete ones are
    /// dropped.
    pub fn new(dataset: Dataset, config: LoaderConfig) -> Result<Self, PipelineError> {
        let mut config = config.resolve()?;
        dataset.require_samples()?;
        if matches!(config.work, Work::Images(_)) {
            dataset.require_images()?;
        }
        check_class_count(&dataset, &config)?;
        let note = |note: &Note| LoaderNote::Labels { note: note.clone() };
        let mut notes: Vec<LoaderNote> = dataset.label_notes().iter().map(note).collect();
        let mut dataset = dataset;
        if let Work::Columns(Columns { label: Some(label), .. }) = &config.work {
            notes.extend(label_by(&mut dataset, label, &config.sampler.samples)?);
        }
        if !matches!(config.work, Work::Columns(_)) {
            config.fields.check_names(&dataset)?;
        }
        let sequence = config.sampler.resolve(&dataset)?;
        if sequence.is_empty() {
            return Err(EmptyError::NothingSelected { sample_count: dataset.len() }.into());
        }
        let schedule = Schedule::new(sequence.len(), config.batch_size, config.shard)?;
        if schedule.global_batches() == 0 {
            let positions = schedule.positions();
            let global_batch = schedule.global_batch();
            return Err(EmptyError::NoBatch { positions, global_batch }.into());
        }
        let user_transforms = config.bind()?;
        if let Batching::Buckets(buckets) = config.batching {
            buckets.check(&config.work, config.decode.exif, &dataset, schedule.global_batch())?;
        }
        let gatherer = gatherer(&dataset, &config)?;
        let columns = gatherer.as_ref().map(|gatherer| Arc::clone(gatherer.specs()));
        let layout = BatchLayout::fixed(&config, columns.unwrap_or_default())?;
        let memory = MemoryLimits::new(&mut config, &layout, gatherer.as_ref())?;
        // Those that are given back at once; what is in flight is not free.
        let pool = Arc::new(Pool::new(config.prefetch.min(config.workers.saturating_add(2)) + 1));
        let trace = (config.trace > 0).then(|| Arc::new(Trace::new(config.trace)));
        let caches = Caches::open(&config.cache, &config.decode);
        let shared = Shared {
            dataset: Arc::new(dataset),
            config,
            sequence,
            schedule,
            layout,
            user_transforms,
            gatherer,
            pool,
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

    /// How many batches an epoch has for this rank, exactly. With
    /// [`OnError::Skip`](crate::OnError::Skip) an epoch returns fewer where all samples of a batch are
    /// bad.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shared.schedule.batches()
    }

    /// Whether an epoch has no batch for this rank: other ranks have all of them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data set.
    #[must_use]
    pub fn dataset(&self) -> &Dataset {
        &self.shared.dataset
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

    /// Goes on from `state`: the batches of its epoch that were not received yet.
    ///
    /// The number of workers, the prefetch and the policy for bad samples may be others, and so may
    /// the number of ranks as long as all of them together have the same global batch (and do not
    /// replace bad samples within padded batches, which are those of one rank). The last global
    /// batch is padded or short as this loader's tail says, whichever of the two the state's was.
    ///
    /// # Errors
    /// [`PipelineError::StateMismatch`] for another data set, recipe, order, seed, global batch,
    /// mixing group or replacement group, or where one of both tails is [`Tail::Drop`](crate::Tail),
    /// with both values; [`PipelineError::StateBeyondEpoch`] and
    /// [`PipelineError::StateWithinBatch`] for a place that no epoch of this loader has;
    /// [`PipelineError::Forked`].
    pub fn resume(&self, state: &LoaderState) -> Result<Epoch, PipelineError> {
        let batch = self.next_batch(state)?;
        Ok(self.start(state.epoch, batch))
    }

    /// Whether [`resume`](Self::resume) goes on from `state`; begins nothing.
    ///
    /// # Errors
    /// As `resume`.
    pub fn check(&self, state: &LoaderState) -> Result<(), PipelineError> {
        self.next_batch(state).map(|_| ())
    }

    /// Whether `state` is the end of its epoch: all ranks have received all their batches.
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
        let own = self.shared.state(state.epoch, self.shared.schedule.global_batches())?;
        state.next_batch(&own)
    }

    /// Batch `number` of `epoch` alone: its bytes are those it has in its epoch. Under a memory budget
    /// what was prepared of an epoch that nobody has asked for yet is given up for it. Where all of
    /// its samples are left out, it is empty.
    ///
    /// # Errors
    /// As the epoch's, under a memory budget [`PipelineError::EpochRunning`] while there is an
    /// unfinished one; [`PipelineError::Setting`] where it has no such batch.
    pub fn batch(&self, epoch: u32, number: u64) -> Result<Batch, PipelineError> {
        let none = PipelineError::Setting {
            setting: "batch",
            value: number,
            expected: "less than the batches of an epoch",
        };
        let shared = &self.shared;
        let runs = number < self.len() && !shared.is_forked();
        if runs && shared.memory.is_bounded() {
            // There is no room for a run beside the one that waits for its epoch.
            self.parking.park(None);
        }
        let one = number..number.saturating_add(1);
        let workers = runs.then(|| Workers::start(Arc::clone(shared), epoch, one));
        let mut epoch =
            Epoch::new(Arc::clone(shared), Arc::clone(&self.parking), workers, epoch, number);
        epoch.receive_any(None).unwrap_or(Err(none))
    }

    /// What the loader takes of memory, and what it may take; nothing in a forked process.
    #[must_use]
    pub fn memory(&self) -> MemoryReport {
        self.unless_forked(|shared| shared.memory.report(&shared.config, shared.pool.slab_bytes()))
    }

    /// What the caches hold and have done so far; nothing in a forked process.
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

    /// What is kept under a lock, which in a forked process may be one that nobody is there to
    /// release: nothing is known there.
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

/// Checks that labels can follow the images that the recipe mixes, where there are labels.
fn check_class_count(dataset: &Dataset, config: &LoaderConfig) -> Result<(), PipelineError> {
    let Work::Images(recipe) = &config.work else { return Ok(()) };
    match recipe.batch_ops().first() {
        Some(op) if recipe.num_classes().is_none() && dataset.is_labelled() => {
            let found = match dataset.class_names().len() {
                0 => " to the number of classes".to_owned(),
                classes => format!(", the data set names {classes} classes"),
            };
            Err(PipelineError::Unusable(format!(
                "{} without num_classes mixes images and leaves their labels as they are: set \
                num_classes{found}",
                op.name()
            )))
        }
        Some(_) | None => Ok(()),
    }
}

/// Takes what is known of classes from the column of labels, and its labels if the order needs them.
/// Classes without names are no reason not to train.
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

/// What gathers rows of tables, if that is what is to be done, and can be with this data set.
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
            Gatherer::new(dataset, columns, &config.fields.columns, config.memory_budget).map(Some)
        }
        (Work::Columns(_), None) => Err(ColumnsError::NoTable { location: location() }.into()),
        (Work::Images(_), Some(_)) => refused("images"),
        (Work::Bytes | Work::Views, Some(_)) => refused("samples of bytes"),
        (Work::Bytes | Work::Views | Work::Images(_), None) => Ok(None),
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
