//! The settings of a loader: the work, the batches, the threads, the order.

use tbl_io::RetryPolicy;
use tl_decode::{Color, DecodeOptions, Decoders};
use tl_transform::{BoundTransforms, Channels, DecodeMode, Layout, Recipe, UserTransforms};

use crate::batching::Batching;
use crate::cache::{CacheConfig, CacheKind};
use crate::collate::Collate;
use crate::delivery::Delivery;
use crate::error::PipelineError;
use crate::fields::{Fields, ImageField};
use crate::nvjpeg;
use crate::order::Sampler;
use crate::policy::{ErrorBudget, OnError};
use crate::readers::{MAX_READERS, Readers};
use crate::retry::{MAX_ATTEMPTS, MAX_DEADLINE};
use crate::schedule::Shard;
use crate::threads::{self, Cpus};
use crate::work::Work;

/// The settings of a [`Loader`](crate::Loader).
///
/// ```
/// use tl_pipeline::{LoaderConfig, Shuffle, Work};
/// use tl_transform::Recipe;
///
/// let recipe = Recipe::imagenet_train(224)?;
/// let work = Work::Images(recipe);
/// let config =
///     LoaderConfig { sampler: Shuffle::Full.into(), seed: 42, ..LoaderConfig::new(work) };
/// assert_eq!(config.batch_size, 64);
/// # Ok::<(), tl_transform::RecipeError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LoaderConfig {
    /// The work on every sample.
    pub work: Work,
    /// Samples in a batch, of each rank. Default 64.
    pub batch_size: usize,
    /// The contents of batches besides images, labels and indices. Default none.
    pub fields: Fields,
    /// Code that runs on every batch, on the worker that finishes it. Default none.
    pub collate: Option<Collate>,
    /// The memory that batches arrive in. Default the host's. It changes no number of a batch.
    pub delivery: Delivery,
    /// The grouping of samples into batches. Default consecutive samples.
    pub batching: Batching,
    /// Worker threads; 0, the default, means one per logical core this process may run on, without
    /// an eighth of them, rounded up, for the consumer. At least one.
    pub workers: usize,
    /// Processors that workers run on. Default wherever the system sees fit.
    pub cpus: Cpus,
    /// Niceness of the workers, from -20 to 19: with a higher one they give way to other threads.
    /// Lower than the process's own takes a right that most have not. Default 0, as it is.
    pub nice: i32,
    /// Batches in flight besides those the consumer holds; 0, the default, means 2, or as many as
    /// it takes to give every worker two samples, or what `prefetch_bytes` says. Each costs the
    /// memory of a batch.
    pub prefetch: usize,
    /// Bytes of batches in flight, besides those the consumer holds: as many batches as fit, but
    /// one always, and not more than `prefetch` says, or 256 if that is 0. Where batches differ in
    /// size no other is begun once those begun have come to as much; by then each worker may be at
    /// one. Default no bound.
    pub prefetch_bytes: Option<u64>,
    /// The bound on everything that the loader takes: batches, also those with the consumer, memory
    /// of workers, caches in memory, samples read ahead. It lowers `prefetch` and changes no batch;
    /// a batch or sample that cannot fit is a named error. Default no bound.
    /// [`Loader::memory`](crate::Loader::memory) says how it is divided.
    pub memory_budget: Option<u64>,
    /// Prepares the next epoch's first batches while the current one ends. Default true; they count
    /// as in flight, and are kept until that epoch is requested.
    pub prefetch_next_epoch: bool,
    /// The samples of an epoch and their order. Default all, as stored.
    pub sampler: Sampler,
    /// The seed of order and augmentation. Default 0.
    pub seed: u64,
    /// The part of every global batch that this process gets. Default all.
    pub shard: Shard,
    /// The number of rows whose images are mixed with each other, for recipes that mix batches; it
    /// divides `batch_size`. 0, the default, means the whole batch. A run that resumes with another
    /// number of ranks must keep it.
    pub mixing_group: usize,
    /// The threads that read samples. Default the workers.
    pub readers: Readers,
    /// The lead of readers in bytes of samples; a larger sample is read alone. 0, the default,
    /// means 64 MiB. With [`Readers::Planned`] it means 256 MiB, or two windows of a block shuffle
    /// where those are more, but at most a quarter of the machine's memory and an eighth of
    /// `memory_budget`.
    pub read_ahead_bytes: u64,
    /// The number of latest events that a trace keeps, of 48 bytes each. 0, the default, means no
    /// trace. See [`Loader::write_trace`](crate::Loader::write_trace).
    pub trace: usize,
    /// The handling of bad samples. Default [`OnError::Raise`].
    pub on_error: OnError,
    /// The repetition of local reads that fail for a reason that may pass, which [`tbl_io::is_transient`]
    /// lists. A sample is bad only after its last attempt. Default four attempts within 3 s. Stores have
    /// their own tries.
    pub retry: RetryPolicy,
    /// The caches of samples. Default none. They change no batch.
    pub cache: CacheConfig,
    /// The number of bad samples that ends an epoch. Default more than half of the epoch.
    pub error_budget: ErrorBudget,
    /// The options of image decoding. Its colour is that of the recipe's channels.
    pub decode: DecodeOptions,
    /// Decoders of further formats, which are asked before the built-in ones; recipes apply to their
    /// images. Their names and versions are part of states. Default none.
    pub decoders: Decoders,
    /// The code of the user's transforms that the recipe names. Default none.
    pub user_transforms: UserTransforms,
}

impl LoaderConfig {
    /// The defaults, for `work`.
    #[must_use]
    pub fn new(work: Work) -> Self {
        Self {
            work,
            batch_size: 64,
            fields: Fields::default(),
            collate: None,
            delivery: Delivery::default(),
            batching: Batching::default(),
            workers: 0,
            prefetch: 0,
            prefetch_bytes: None,
            memory_budget: None,
            prefetch_next_epoch: true,
            sampler: Sampler::default(),
            seed: 0,
            shard: Shard::default(),
            mixing_group: 0,
            readers: Readers::default(),
            read_ahead_bytes: 0,
            trace: 0,
            on_error: OnError::Raise,
            retry: RetryPolicy::default(),
            cache: CacheConfig::default(),
            error_budget: ErrorBudget::default(),
            cpus: Cpus::default(),
            nice: 0,
            decode: DecodeOptions::default(),
            decoders: Decoders::new(),
            user_transforms: UserTransforms::new(),
        }
    }

    /// The user's transforms of the recipes.
    pub(crate) fn bind(&self) -> Result<BoundRecipes, PipelineError> {
        let Some(recipe) = self.work.recipe() else { return Ok(BoundRecipes::default()) };
        let recipe = &*recipe;
        let images = self
            .fields
            .images
            .iter()
            .map(|image| Ok(self.user_transforms.bind(&*image.recipe_with(recipe)?)?));
        let images = images.collect::<Result<_, PipelineError>>()?;
        let first = self.user_transforms.bind(recipe)?;
        self.check_moving(recipe, &first)?;
        Ok(BoundRecipes { first, images })
    }

    /// Refuses user's transforms that something moves with which cannot.
    fn check_moving(&self, recipe: &Recipe, bound: &BoundTransforms) -> Result<(), PipelineError> {
        let has_annotations = self.fields.has_annotations();
        if has_annotations {
            recipe.check_annotations(bound)?;
        }
        let of_any_size = |image: &&ImageField| {
            let recipe = image.recipe().filter(|_| !image.is_of_file());
            recipe.is_some_and(Recipe::is_of_any_size)
        };
        if let Some(ImageField { name, .. }) = self.fields.images.iter().find(of_any_size) {
            return Err(PipelineError::Unusable(format!(
                "image `{name}` has a user's transform of any size, which only the first image of a \
                 sample can have: declare its size"
            )));
        }
        let mut images = self.fields.images.iter();
        match images.find(|image| image.recipe().is_none()) {
            Some(ImageField { name, .. }) if recipe.split(bound, has_annotations).is_some() => {
                Err(PipelineError::Unusable(format!(
                    "image `{name}` moves with recipe `{recipe}`, which has a user's transform that moves \
                     pixels: leave the image out, give it a recipe of its own, or declare that the \
                     transform changes colours only"
                )))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The options of decoding, with the pixels that the recipe takes.
    pub(crate) fn decode_options(&self) -> DecodeOptions {
        let recipe = self.work.recipe();
        recipe.map_or(self.decode, |recipe| decode_options(&recipe, self.decode))
    }

    /// The bytes of blocks that are in memory until they are written; 0 without a cache of blocks.
    pub(crate) fn block_bytes(&self) -> u64 {
        if self.cache.has(CacheKind::Blocks) { self.read_ahead_bytes / 2 } else { 0 }
    }

    /// Cached images are whole and exact, so only recipes that decode exactly can use them.
    fn check_cache(&self) -> Result<(), PipelineError> {
        if self.cache.memory.is_some_and(|memory| memory.kind == CacheKind::Blocks) {
            return Err(PipelineError::Unusable(
                "a cache of blocks is on disk: keep encoded or decoded samples in memory"
                    .to_owned(),
            ));
        }
        if self.cache.has(CacheKind::Blocks)
            && !matches!(self.readers, Readers::Workers | Readers::Planned)
        {
            return Err(PipelineError::Unusable(
                "a cache of blocks keeps what is requested from stores ahead of the workers: leave \
                 the readers at their default"
                    .to_owned(),
            ));
        }
        if !self.cache.has(CacheKind::Decoded) {
            return Ok(());
        }
        let found = match &self.work {
            Work::Bytes | Work::Views | Work::Columns(_) | Work::Tokens(_) => {
                ", and stored bytes are not decoded".to_owned()
            }
            // Any cache is refused with clips.
            Work::Clips(_) => return Ok(()),
            Work::Images(recipe) if recipe.ops().is_empty() => return Ok(()),
            Work::Images(recipe) if recipe.decode_mode() == DecodeMode::Exact => return Ok(()),
            Work::Images(recipe) => {
                let is_nvjpeg = recipe.decode_mode() == DecodeMode::NvJpeg;
                let mode = if is_nvjpeg { "with nvJPEG" } else { "fast" };
                format!("; this recipe decodes {mode}: `{recipe}`")
            }
        };
        let needed = "a cache of decoded images needs a recipe that decodes exactly";
        Err(PipelineError::Unusable(format!("{needed}{found}")))
    }

    fn check_decoders(&self) -> Result<(), PipelineError> {
        let Some(decoder) = self.decoders.iter().next() else { return Ok(()) };
        let name = decoder.name();
        match &self.work {
            Work::Images(recipe) if recipe.decode_mode() == DecodeMode::NvJpeg => {
                Err(PipelineError::Unusable(format!(
                    "recipe `{recipe}` decodes with nvJPEG, and decoders such as `{name}` make pixels on \
                     the host: decode exactly"
                )))
            }
            Work::Images(_) => Ok(()),
            Work::Bytes | Work::Views | Work::Clips(_) | Work::Columns(_) | Work::Tokens(_) => {
                Err(PipelineError::Unusable(format!(
                    "decoders such as `{name}` need samples that are decoded as images"
                )))
            }
        }
    }

    fn check_retry(&self) -> Result<(), PipelineError> {
        let RetryPolicy { attempts, deadline, .. } = self.retry;
        if !(1..=MAX_ATTEMPTS).contains(&attempts) {
            let value = attempts.into();
            let expected = "1 to 100";
            return Err(PipelineError::Setting { setting: "retry.attempts", value, expected });
        }
        if deadline > MAX_DEADLINE {
            let value = deadline.as_secs();
            let expected = "at most 3600 seconds";
            return Err(PipelineError::Setting { setting: "retry.deadline", value, expected });
        }
        Ok(())
    }

    /// Refuses settings that clips cannot have.
    fn check_clips(&self) -> Result<(), PipelineError> {
        let Work::Clips(clips) = &self.work else { return Ok(()) };
        clips.check()?;
        let refused = |what: &str| {
            Err(PipelineError::Unusable(format!(
                "{what}, and of videos only the packets that a clip needs are read, by the \
                workers: leave it at its default"
            )))
        };
        if self.readers != Readers::Workers {
            return refused("readers bring whole samples");
        }
        if self.cache != CacheConfig::default() {
            return refused("caches keep whole samples");
        }
        Ok(())
    }

    /// Bytes of indexes of videos that are kept.
    pub(crate) fn index_bytes(&self) -> u64 {
        match &self.work {
            Work::Clips(_) => {
                let most = self.memory_budget.map(|budget| budget / INDEX_PART);
                most.map_or(INDEX_BYTES, |most| most.min(INDEX_BYTES))
            }
            Work::Images(_) | Work::Bytes | Work::Views | Work::Columns(_) | Work::Tokens(_) => 0,
        }
    }

    /// Replaces zeros by the defaults that they stand for.
    pub(crate) fn resolve(mut self) -> Result<Self, PipelineError> {
        if self.batch_size == 0 {
            let expected = "at least 1";
            return Err(PipelineError::Setting { setting: "batch_size", value: 0, expected });
        }
        if self.workers == 0 {
            self.workers = threads::default_workers(&self.cpus);
        }
        if self.workers > MAX_WORKERS {
            let value = self.workers as u64;
            let expected = "at most 1024";
            return Err(PipelineError::Setting { setting: "workers", value, expected });
        }
        if self.prefetch > MAX_PREFETCH {
            let value = self.prefetch as u64;
            let expected = "at most 65536";
            return Err(PipelineError::Setting { setting: "prefetch", value, expected });
        }
        self.error_budget.check()?;
        if self.prefetch == 0 {
            let default = (2 * self.workers).div_ceil(self.batch_size).max(2);
            self.prefetch = self.prefetch_bytes.map_or(default, |_| BATCHES_IN_BYTES);
        }
        let readers = match self.readers {
            Readers::Workers | Readers::Planned => 1,
            Readers::Threads(threads) => threads,
            Readers::Uring { depth, .. } => usize::try_from(depth).unwrap_or(usize::MAX),
        };
        if !(1..=MAX_READERS).contains(&readers) {
            let value = readers as u64;
            let expected = "1 to 1024";
            return Err(PipelineError::Setting { setting: "readers", value, expected });
        }
        if self.read_ahead_bytes == 0 {
            self.read_ahead_bytes = READ_AHEAD_BYTES;
        }
        if self.mixing_group == 0 {
            self.mixing_group = self.batch_size;
        }
        if !self.batch_size.is_multiple_of(self.mixing_group) {
            let value = self.mixing_group as u64;
            let expected = "a divisor of batch_size";
            return Err(PipelineError::Setting { setting: "mixing_group", value, expected });
        }
        self.check_retry()?;
        self.check_decoders()?;
        self.check_cache()?;
        if let Work::Images(recipe) = &self.work {
            let unusable =
                |why: &str| Err(PipelineError::Unusable(format!("recipe `{recipe}` {why}")));
            if recipe.views() > 1 && !recipe.batch_ops().is_empty() {
                return unusable("mixes batches, which works only with one view per sample");
            }
            if self.on_error == OnError::Fill && !recipe.batch_ops().is_empty() {
                return unusable(
                    "mixes batches, so bad samples cannot be filled in: skip or replace them",
                );
            }
            let output = recipe.output();
            let pixels = !recipe.makes_floats() && output.layout == Layout::Hwc;
            let varying = match self.batching {
                Batching::InOrder => pixels && recipe.views() == 1,
                Batching::Buckets(_) => true,
            };
            if recipe.output_size().is_none() && !varying && recipe.is_of_any_size() {
                return unusable(
                    "has a user's transform of any size, and floats or channels first need one size: \
                     declare it, or add Resize with height and width after it",
                );
            }
            if recipe.output_size().is_none() && !varying {
                return unusable(
                    "keeps the sizes of images, and floats or channels first need one size: add \
                     Resize with height and width, RandomResizedCrop or CenterCrop; or set buckets",
                );
            }
        }
        self.fields.check(&self.work, self.batching.pads())?;
        nvjpeg::check(&self)?;
        self.check_clips()?;
        Ok(self)
    }
}

/// `options` for the pixels that the recipe takes.
pub(crate) fn decode_options(recipe: &Recipe, options: DecodeOptions) -> DecodeOptions {
    let color = match recipe.channels() {
        Channels::Rgb => Color::Rgb,
        Channels::Grey => Color::Grey,
        Channels::Rgba => Color::Rgba,
    };
    DecodeOptions { color, pixels: recipe.pixels(), ..options }
}

/// The user's transforms of each recipe.
#[derive(Debug, Default)]
pub(crate) struct BoundRecipes {
    pub(crate) first: BoundTransforms,
    /// Those of further images, in their order.
    pub(crate) images: Vec<BoundTransforms>,
}

/// Some 600 photographs: enough to keep any disk busy while a worker decodes the first of them.
pub(crate) const READ_AHEAD_BYTES: u64 = 64 << 20;

/// Indexes of some 30 000 videos of 10 seconds.
const INDEX_BYTES: u64 = 64 << 20;

/// The part of a memory budget for indexes of videos.
const INDEX_PART: u64 = 16;

/// Batches in flight where bytes bound them and nothing else does: each takes memory that the bytes
/// do not count.
const BATCHES_IN_BYTES: usize = 256;

/// The most batches in flight: more are of no use.
const MAX_PREFETCH: usize = 1 << 16;

/// More threads than this are a mistake in the caller's arithmetic.
const MAX_WORKERS: usize = 1024;

#[cfg(test)]
mod tests {
    use tl_transform::Recipe;

    use super::*;

    #[test]
    fn zeros_become_what_they_stand_for() {
        let resolve = |batch_size, workers, prefetch| {
            let config = LoaderConfig::new(Work::Bytes);
            let config = LoaderConfig { batch_size, workers, prefetch, ..config };
            config.resolve().map(|config| (config.workers, config.prefetch))
        };
        assert_eq!(resolve(64, 0, 0).unwrap(), (threads::default_workers(&Cpus::default()), 2));
        assert_eq!(resolve(64, 3, 5).unwrap(), (3, 5));
        assert_eq!(resolve(1, 8, 0).unwrap(), (8, 16));
        assert_eq!(resolve(64, 100, 0).unwrap(), (100, 4));
        assert!(matches!(resolve(0, 1, 1), Err(PipelineError::Setting { value: 0, .. })));
        assert!(matches!(resolve(1, 1025, 1), Err(PipelineError::Setting { value: 1025, .. })));
        let setting = resolve(1, 1, usize::MAX);
        assert!(matches!(setting, Err(PipelineError::Setting { setting: "prefetch", .. })));
    }

    #[test]
    fn only_pixels_may_vary_in_size() {
        let resolve = |recipe| LoaderConfig::new(Work::Images(recipe)).resolve();
        assert!(resolve(Recipe::decode()).is_ok());
        let planar = Recipe::decode().into_pixels(Layout::Chw);
        assert!(matches!(resolve(planar), Err(PipelineError::Unusable(_))));
    }
}
