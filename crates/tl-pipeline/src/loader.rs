//! The loader: starts the workers of an epoch and hands out its batches in order.

use std::fmt;

use tl_transform::BoundTransforms;

use crate::batch::{Batch, Extra, ImageSpec};
use crate::config::{LoaderConfig, Work};
use crate::dataset::Dataset;
use crate::error::PipelineError;
use crate::order::Order;
use crate::pool::{Lease, Pool};
use crate::ring::Ring;
use crate::slab::{RowBytes, Shape};
use crate::stats::{Counters, Damaged, LoaderStats, Skipped};
use crate::sync::{Arc, Mutex, lock, thread};
use crate::worker::{self, Filled, Scratch, Watch};

/// Makes batches of a data set, epoch by epoch.
///
/// What a batch holds is a function of the data set, the recipe, the seed and the epoch: the number
/// of workers, the speed of the consumer and other samples' errors have no part in it.
///
/// ```no_run
/// use tl_pipeline::{Dataset, Loader, LoaderConfig, Work};
/// use tl_transform::Recipe;
///
/// let work = Work::Images(Recipe::imagenet_train(224)?);
/// let config = LoaderConfig { shuffle: true, seed: 42, ..LoaderConfig::new(work) };
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
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    dataset: Dataset,
    config: LoaderConfig,
    spec: Option<ImageSpec>,
    shape: Shape,
    user_transforms: BoundTransforms,
    pool: Arc<Pool<Extra>>,
    /// Workers' memory between epochs.
    scratch: Mutex<Vec<Scratch>>,
    counters: Counters,
}

impl Loader {
    /// A loader for `dataset`. No thread is started and no batch allocated yet.
    ///
    /// # Errors
    /// Settings out of range, a recipe that gives no fixed size where one is needed or names a
    /// user's transform that there is not, or a batch larger than the address space.
    pub fn new(dataset: Dataset, config: LoaderConfig) -> Result<Self, PipelineError> {
        let config = config.resolve()?;
        let user_transforms = config.bind()?;
        let spec = match &config.work {
            Work::Bytes => None,
            Work::Images(recipe) => recipe.output_size().map(|(width, height)| ImageSpec {
                views: recipe.views(),
                width,
                height,
                output: recipe.output(),
            }),
        };
        let row_bytes = spec.map_or(Some(0), |spec| spec.bytes());
        let shape = row_bytes
            .and_then(|images| Shape::new(config.batch_size, RowBytes { images, masks: 0 }));
        let shape = shape.ok_or(PipelineError::Setting {
            setting: "batch_size",
            value: config.batch_size as u64,
            expected: "a batch that fits the address space",
        })?;
        // What is in flight, and the one the consumer has just given back.
        let pool = Arc::new(Pool::new(config.prefetch + 1));
        let (scratch, counters) = (Mutex::default(), Counters::default());
        let shared =
            Shared { dataset, config, spec, shape, user_transforms, pool, scratch, counters };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// How many batches an epoch has, exactly.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shared.positions().div_ceil(self.shared.config.batch_size as u64)
    }

    /// Whether an epoch has no batch.
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

    /// The order of the samples in `epoch`.
    #[must_use]
    pub fn order(&self, epoch: u32) -> Order {
        self.shared.order(epoch)
    }

    /// Starts the workers of `epoch` and returns its batches in order.
    ///
    /// Dropping the iterator stops the workers and waits for them: for the time of one sample.
    #[must_use]
    pub fn epoch(&self, epoch: u32) -> Epoch {
        let shared = Arc::clone(&self.shared);
        let (order, config) = (shared.order(epoch), &shared.config);
        let ring = Ring::new(shared.positions(), config.batch_size as u64, config.prefetch);
        let workers = config.workers;
        let state = Arc::new(EpochState { number: epoch, order, ring, shared });
        let mut threads = Vec::with_capacity(workers);
        if state.ring.batch_count() > 0 {
            for worker in 0..workers {
                let state_of_worker = Arc::clone(&state);
                let name = format!("tl-worker-{worker}");
                let body = move || state_of_worker.work(worker);
                match thread::Builder::new().name(name).spawn(body) {
                    Ok(thread) => threads.push(thread),
                    Err(source) => {
                        state.ring.fail(PipelineError::Spawn { worker, workers, source });
                        break;
                    }
                }
            }
        }
        Epoch { state, threads, remaining: self.len() }
    }

    /// What the loader has done so far.
    #[must_use]
    pub fn stats(&self) -> LoaderStats {
        let pool = &self.shared.pool;
        self.shared.counters.stats(pool.allocated(), pool.slab_bytes())
    }

    /// The samples that were left out of the batches received so far, in that order; the first
    /// 10 000 of them.
    #[must_use]
    pub fn skipped(&self) -> Vec<Skipped> {
        self.shared.counters.skipped()
    }

    /// The damaged samples in the batches received so far, in that order; the first 10 000 of them.
    /// There are none unless [`DecodeOptions::on_damaged`](tl_decode::DecodeOptions) keeps damage.
    #[must_use]
    pub fn damaged(&self) -> Vec<Damaged> {
        self.shared.counters.damaged()
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

impl Shared {
    /// Positions of an epoch: all samples, or those that fill whole batches.
    fn positions(&self) -> u64 {
        let (samples, batch_size) = (self.dataset.len(), self.config.batch_size as u64);
        if self.config.drop_last { samples - samples % batch_size } else { samples }
    }

    fn order(&self, epoch: u32) -> Order {
        let samples = self.dataset.len();
        if self.config.shuffle {
            Order::shuffled(samples, self.config.seed, epoch)
        } else {
            Order::sequential(samples)
        }
    }
}

/// What the workers of one epoch share with its consumer.
pub(crate) struct EpochState {
    pub(crate) number: u32,
    pub(crate) order: Order,
    pub(crate) ring: Ring<Arc<Lease<Extra>>, Filled, PipelineError>,
    shared: Arc<Shared>,
}

impl EpochState {
    /// Memory for a worker.
    pub(crate) fn new_scratch(&self) -> Scratch {
        Scratch::new(&self.shared.config, &self.shared.user_transforms)
    }

    pub(crate) fn config(&self) -> &LoaderConfig {
        &self.shared.config
    }

    pub(crate) fn dataset(&self) -> &Dataset {
        &self.shared.dataset
    }

    pub(crate) fn spec(&self) -> Option<ImageSpec> {
        self.shared.spec
    }

    pub(crate) fn count_bytes(&self, bytes: usize) {
        self.shared.counters.read(bytes);
    }

    /// The slab of batch `number`, waiting until it may be filled; `None` when the epoch is over.
    pub(crate) fn enter(&self, number: u64) -> Option<Arc<Lease<Extra>>> {
        let pool = &self.shared.pool;
        let (lease, slept) = self.ring.enter(number, || {
            let rows = usize::try_from(self.ring.rows_of(number));
            let rows = rows.expect("at most the batch size, which is a `usize`");
            let (lease, bytes) = (pool.take(self.shared.shape, rows), self.shared.shape.bytes());
            let bytes = bytes as u64;
            lease.map(Arc::new).ok_or(PipelineError::OutOfMemory { bytes })
        });
        self.shared.counters.worker_slept(slept);
        lease
    }

    fn work(&self, worker: usize) {
        let _watch = Watch { epoch: self, worker };
        let recycled = lock(&self.shared.scratch).pop();
        let mut scratch = recycled.unwrap_or_else(|| self.new_scratch());
        worker::run(self, &mut scratch);
        let mut pool = lock(&self.shared.scratch);
        if pool.len() < self.shared.config.workers {
            pool.push(scratch);
        }
    }
}

/// The batches of one epoch, in order.
///
/// After an error there are no more. Dropping it early stops and joins the workers.
pub struct Epoch {
    state: Arc<EpochState>,
    threads: Vec<thread::JoinHandle<()>>,
    remaining: u64,
}

impl Epoch {
    fn stop(&mut self) {
        self.remaining = 0;
        self.state.ring.close();
        for thread in self.threads.drain(..) {
            // A worker that panicked has reported it through its `Watch`.
            drop(thread.join());
        }
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch, PipelineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return None;
        }
        let (taken, slept) = self.state.ring.take();
        let counters = &self.state.shared.counters;
        counters.consumer_slept(slept);
        let result = match taken? {
            Ok(Filled { batch: Ok(batch), skipped, damaged }) => {
                counters.batch(batch.len());
                counters.skip(self.state.number, &skipped);
                counters.keep_damaged(self.state.number, &damaged);
                self.remaining -= 1;
                Ok(batch)
            }
            Ok(Filled { batch: Err(error), .. }) => Err(PipelineError::Sample(error)),
            Err(error) => Err(error),
        };
        if result.is_err() || self.remaining == 0 {
            self.stop();
        }
        Some(result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let remaining = usize::try_from(self.remaining);
        (0, remaining.ok())
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoch")
            .field("number", &self.state.number)
            .field("remaining", &self.remaining)
            .finish_non_exhaustive()
    }
}
