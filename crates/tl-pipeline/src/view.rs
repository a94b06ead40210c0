//! Views: some samples of a data set, chosen lazily and without copying any.
//!
//! A view has a data set and the numbers of its samples there, as ranges where neighbours follow
//! each other. It selects; the order of an epoch is the sampler's, to which a view maps.
//! `docs/pipeline/views.md` specifies what each method selects.

mod filter;
mod join;
mod meta;
mod pass;
mod selection;
mod split;
mod step;

use std::ops::Range;

use tl_handoff::sync::Arc;

use crate::dataset::Dataset;
use crate::error::{self, PipelineError, ViewError};
use crate::order::{Length, Replacement, Sampler, Samples, Shuffle, Weights};
use meta::Reads;
use selection::{Collector, Selection};
use step::Step;

pub use filter::Filter;
pub use split::Split;

/// Some samples of a data set, in an order, or draws from them.
///
/// Views are made from each other and share the data set; none copies a sample. A loader takes a
/// view in place of a data set. The numbers of samples in batches are those in the data set.
///
/// ```no_run
/// use tl_pipeline::{Dataset, DatasetView, Split};
///
/// let data = DatasetView::from(Dataset::open(&["train.tar"])?);
/// let large = data.filter(&"width >= 224 and height >= 224".parse()?)?;
/// let parts = large.split(&[0.9, 0.1], Split { seed: 0, stratify: true })?;
/// println!("{}", parts[0].take(1000)?.explain());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DatasetView {
    dataset: Arc<Dataset>,
    content: Content,
    repeat: u32,
    /// Positions of an epoch.
    len: u64,
    steps: Vec<Step>,
}

/// The samples of a view.
#[derive(Clone, Debug)]
enum Content {
    /// These, in this order.
    Plain(Arc<Selection>),
    /// Draws from samples, by the view with this name.
    Drawn { by: &'static str, samples: Arc<Samples> },
}

/// All samples of the data set.
impl From<Dataset> for DatasetView {
    fn from(dataset: Dataset) -> Self {
        Self::from(Arc::new(dataset))
    }
}

/// All samples of the data set.
impl From<Arc<Dataset>> for DatasetView {
    fn from(dataset: Arc<Dataset>) -> Self {
        let len = dataset.len();
        let sources = dataset.shards().len();
        let plural = if sources == 1 { "" } else { "s" };
        let words = format!("{sources} source{plural}");
        let steps = vec![Step { depth: 0, words, len, cost: String::new() }];
        let content = Content::Plain(Arc::new(Selection::all(len)));
        Self { dataset, content, repeat: 1, len, steps }
    }
}

impl DatasetView {
    /// The number of samples, which is the number of positions of an epoch: draws and repetitions
    /// count as often as they come.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True without samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The data set that the samples are of.
    #[must_use]
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// The samples as a setting of a [`Sampler`].
    #[must_use]
    pub fn samples(&self) -> Samples {
        match &self.content {
            Content::Plain(selection) => selection.samples(self.dataset.len()),
            Content::Drawn { samples, .. } => Samples::clone(samples),
        }
    }

    /// The samples and their order: shuffled in this way. Samples that are drawn by weight are always
    /// shuffled fully, also with [`Shuffle::None`].
    #[must_use]
    pub fn sampler(&self, shuffle: Shuffle) -> Sampler {
        let samples = self.samples();
        let is_weighted = matches!(samples, Samples::Weighted { .. });
        let shuffle = if is_weighted && shuffle == Shuffle::None { Shuffle::Full } else { shuffle };
        Sampler { samples, shuffle, repeat: self.repeat }
    }

    /// True if it has all samples of its data set in their order, once.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let Content::Plain(selection) = &self.content else { return false };
        self.repeat == 1 && selection.samples(self.dataset.len()) == Samples::All
    }

    /// The number in the data set of the sample at `place`; `None` past the end, and for samples
    /// that are drawn.
    #[must_use]
    pub fn sample_at(&self, place: u64) -> Option<u64> {
        match &self.content {
            Content::Plain(selection) if self.repeat == 1 => selection.sample(place),
            Content::Plain(_) | Content::Drawn { .. } => None,
        }
    }

    /// The numbers in the data set of the samples, in order.
    ///
    /// # Errors
    /// [`ViewError::NoPlaces`] for samples that are drawn or repeated.
    pub fn indices(&self) -> Result<impl Iterator<Item = u64> + '_, PipelineError> {
        match self.plain("indices") {
            Ok(selection) => Ok(selection.iter()),
            Err(ViewError::Drawn { drawn, .. }) => Err(ViewError::NoPlaces { drawn }.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// The views that it was made by, one line each, with the samples that each has and its cost.
    #[must_use]
    pub fn explain(&self) -> String {
        let lines: Vec<String> = self.steps.iter().map(Step::to_string).collect();
        lines.join("\n")
    }

    /// The first `count` samples, or all if there are fewer.
    ///
    /// # Errors
    /// [`ViewError::Drawn`].
    pub fn take(&self, count: u64) -> Result<Self, PipelineError> {
        let selection = self.plain("take")?.slice(0..count);
        Ok(self.with(format!("take {count}"), "", selection))
    }

    /// All but the first `count` samples.
    ///
    /// # Errors
    /// [`ViewError::Drawn`].
    pub fn skip(&self, count: u64) -> Result<Self, PipelineError> {
        let selection = self.plain("skip")?.slice(count..u64::MAX);
        Ok(self.with(format!("skip {count}"), "", selection))
    }

    /// The samples at these places, counted in this view, as far as there are any.
    ///
    /// # Errors
    /// [`ViewError::Drawn`].
    pub fn slice(&self, places: Range<u64>) -> Result<Self, PipelineError> {
        let words = format!("slice {}..{}", places.start, places.end);
        let selection = self.plain("slice")?.slice(places);
        Ok(self.with(words, "", selection))
    }

    /// The samples at these places, counted in this view, in this order. They may repeat.
    ///
    /// # Errors
    /// [`ViewError::OutOfRange`] for a place that the view does not have; [`ViewError::Drawn`].
    pub fn subset(&self, places: impl IntoIterator<Item = u64>) -> Result<Self, PipelineError> {
        let selection = self.plain("subset")?;
        let mut collector = Collector::default();
        for place in places {
            let len = self.len;
            collector.add(selection.sample(place).ok_or(ViewError::OutOfRange { place, len })?);
        }
        Ok(self.with("subset".to_owned(), "", collector.finish()))
    }

    /// Part `number`, counted from 0, of `of` parts of neighbours whose sizes differ by one at most.
    ///
    /// # Errors
    /// [`ViewError::Shard`] unless `number` is less than `of`; [`ViewError::Drawn`].
    pub fn shard(&self, number: u64, of: u64) -> Result<Self, PipelineError> {
        let selection = self.plain("shard")?;
        if number >= of {
            return Err(ViewError::Shard { number, of }.into());
        }
        let at = |part: u64| {
            let start = u128::from(self.len) * u128::from(part) / u128::from(of);
            u64::try_from(start).expect("a place of the view")
        };
        let selection = selection.slice(at(number)..at(number + 1));
        Ok(self.with(format!("shard {number} of {of}"), "", selection))
    }

    /// The samples with one of these labels.
    ///
    /// # Errors
    /// [`ViewError::UnknownLabel`] for a label outside named classes; [`PipelineError::Open`] for the
    /// first label that cannot be read; [`ViewError::Drawn`].
    pub fn select_labels(&self, labels: &[i64]) -> Result<Self, PipelineError> {
        self.select(labels, format!("select label {}", step::listed(labels)))
    }

    fn select(&self, labels: &[i64], words: String) -> Result<Self, PipelineError> {
        let selection = self.plain("select")?;
        let classes = self.dataset.class_names().len();
        let is_class = |label: i64| usize::try_from(label).is_ok_and(|label| label < classes);
        if let Some(&label) = labels.iter().find(|&&label| classes > 0 && !is_class(label)) {
            return Err(ViewError::UnknownLabel { label, classes: classes as u64 }.into());
        }
        let mut wanted = labels.to_vec();
        wanted.sort_unstable();
        let mut collector = Collector::default();
        for sample in selection.iter() {
            let label = self.dataset.try_label(sample)?;
            if label.is_some_and(|label| wanted.binary_search(&label).is_ok()) {
                collector.add(sample);
            }
        }
        Ok(self.with(words, "reads the labels", collector.finish()))
    }

    /// The samples of the classes with these names.
    ///
    /// # Errors
    /// [`ViewError::UnknownClass`]; otherwise as for [`select_labels`](Self::select_labels).
    pub fn select_classes<N: AsRef<str>>(&self, names: &[N]) -> Result<Self, PipelineError> {
        let classes = self.dataset.class_names();
        let label = |name: &N| {
            let name = name.as_ref();
            let number = classes.iter().position(|class| class == name);
            let unknown = || ViewError::UnknownClass {
                name: name.to_owned(),
                classes: classes.iter().take(error::MAX_LISTED).cloned().collect(),
            };
            number.and_then(|number| i64::try_from(number).ok()).ok_or_else(unknown)
        };
        let labels: Vec<i64> = names.iter().map(label).collect::<Result<_, _>>()?;
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        self.select(&labels, format!("select class {}", step::listed(&names)))
    }

    /// Random parts of these sizes, as fractions of the view: no two have a sample in common, and
    /// each keeps the order of this view. Fractions that sum to less than 1 leave samples out.
    ///
    /// # Errors
    /// [`ViewError`] for fractions that are not parts of 1, for a sample without the label that
    /// `stratify` needs, and for one that is in the view twice; [`PipelineError::Open`] for a label that cannot be read;
    /// [`ViewError::Drawn`].
    pub fn split(&self, fractions: &[f64], split: Split) -> Result<Vec<Self>, PipelineError> {
        let selection = self.without_repeats("split")?;
        let sizes = split::sizes(fractions, self.len)?;
        let mut dealer = split::Dealer::new(&sizes);
        let parts = self.deal(split, || dealer.next())?;
        let mut collectors: Vec<Collector> = sizes.iter().map(|_| Collector::default()).collect();
        for (sample, part) in selection.iter().zip(parts) {
            collectors[part as usize].add(sample);
        }
        let names: Vec<String> = fractions.iter().map(f64::to_string).collect();
        let words = format!("split {}{}", names.join(", "), in_words(split));
        let view = |(collector, number): (Collector, usize)| {
            let words = format!("{words}, part {number} of {}", fractions.len());
            self.with(words, cost_of(split), collector.finish())
        };
        Ok(collectors.into_iter().zip(1..).take(fractions.len()).map(view).collect())
    }

    /// The parts of fold `fold`, counted from 0, of `of`: the other folds, to train on, and this one,
    /// to validate with. Folds are equal, or the first ones have a sample more.
    ///
    /// # Errors
    /// [`ViewError::Fold`]; otherwise as for [`split`](Self::split).
    pub fn fold(&self, fold: u32, of: u32, split: Split) -> Result<Fold, PipelineError> {
        let selection = self.without_repeats("fold")?;
        if of < 2 || fold >= of {
            return Err(ViewError::Fold { fold, of }.into());
        }
        let mut folds = (0..of).cycle();
        let parts = self.deal(split, || folds.next().unwrap_or(0))?;
        let mut train = Collector::default();
        let mut validation = Collector::default();
        for (sample, part) in selection.iter().zip(parts) {
            if part == fold { &mut validation } else { &mut train }.add(sample);
        }
        let view = |part, collector: Collector| {
            let words = format!("fold {fold} of {of}{}, {part}", in_words(split));
            self.with(words, cost_of(split), collector.finish())
        };
        Ok(Fold { train: view("train", train), validation: view("validation", validation) })
    }

    /// The part of each place, where `next` has the parts in turn.
    fn deal(&self, split: Split, next: impl FnMut() -> u32) -> Result<Vec<u32>, PipelineError> {
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        let bytes = self.len.saturating_mul(4);
        let no_memory = |_| PipelineError::OutOfMemory { bytes };
        Vec::<u32>::new().try_reserve_exact(len).map_err(no_memory)?;
        let labels = if split.stratify { Some(self.known_labels()?) } else { None };
        Ok(split::deal(len, split.seed, labels.as_deref(), next))
    }

    /// The labels of the samples, all of which have one.
    fn known_labels(&self) -> Result<Vec<i64>, PipelineError> {
        let label = |sample| {
            let label = self.dataset.try_label(sample)?;
            Ok(label.ok_or(ViewError::Unlabelled { sample })?)
        };
        self.plain("split")?.iter().map(label).collect()
    }

    /// The samples that meet a condition.
    ///
    /// # Errors
    /// [`ViewError::UnknownName`] if it names a file that no sample has;
    /// [`ViewError::AmbiguousName`] for a built-in name that a field has too;
    /// [`PipelineError::Sample`] for the first sample whose properties cannot be read;
    /// [`ViewError::Value`] for one whose properties have no truth; [`ViewError::TableFilter`];
    /// [`ViewError::Drawn`].
    pub fn filter(&self, filter: &Filter) -> Result<Self, PipelineError> {
        let selection = self.plain("filter")?;
        filter.check(&self.dataset)?;
        let reads = Reads::default();
        let selection =
            pass::filter(&self.dataset, selection, &reads, |sample| filter.matches(sample))?;
        Ok(self.with(format!("filter `{filter}`"), &reads.cost(), selection))
    }

    /// Samples drawn at random, each in proportion to its weight. There is a weight for every sample
    /// of the view, in its order. `count` is the number of draws; by default that of the samples,
    /// and without replacement that of those with a weight.
    ///
    /// # Errors
    /// [`ViewError::WeightCount`]; [`ViewError::Repeated`] if a sample is in the view twice;
    /// [`PipelineError::Sampler`] if there are too few samples to draw; [`ViewError::Drawn`].
    pub fn weights(
        &self,
        weights: &Weights,
        replacement: Replacement,
        count: Option<u64>,
    ) -> Result<Self, PipelineError> {
        let selection = self.plain("weights")?;
        let given = weights.as_slice().len() as u64;
        if given != self.len {
            return Err(ViewError::WeightCount { weights: given, len: self.len }.into());
        }
        if let Some(sample) = selection.repeated() {
            return Err(ViewError::Repeated { sample }.into());
        }
        let sample_count = usize::try_from(self.dataset.len()).unwrap_or(usize::MAX);
        let bytes = self.dataset.len().saturating_mul(4);
        let mut of_samples: Vec<u32> = Vec::new();
        let room = of_samples.try_reserve_exact(sample_count);
        room.map_err(|_| PipelineError::OutOfMemory { bytes })?;
        of_samples.resize(sample_count, 0);
        for (sample, &weight) in selection.iter().zip(weights.as_slice()) {
            of_samples[usize::try_from(sample).expect("a sample with a weight")] = weight;
        }
        let count = count.or((replacement == Replacement::With).then_some(self.len));
        let samples = Samples::Weighted { weights: of_samples.into(), replacement, count };
        let words = match replacement {
            Replacement::With => "weights, with replacement",
            Replacement::Without => "weights, without replacement",
        };
        let cost = step::bytes(bytes);
        self.drawn(Arc::clone(&self.dataset), "weights", words.to_owned(), &cost, samples)
    }

    /// As many samples of every class, whatever its size; `length` is how many in all.
    ///
    /// # Errors
    /// [`PipelineError::Sampler`] for a sample without a label; [`PipelineError::Open`] for a label
    /// that cannot be read; [`ViewError::Drawn`].
    pub fn balance(&self, length: Length) -> Result<Self, PipelineError> {
        let selection = self.plain("balance")?;
        let of = (!self.is_whole()).then(|| selection.subset());
        let samples = Samples::ClassBalanced { of, length };
        let dataset = Arc::clone(&self.dataset);
        self.drawn(dataset, "balance", "balance classes".to_owned(), "reads the labels", samples)
    }

    /// The samples `count` times in an epoch, each time in another random order.
    ///
    /// # Errors
    /// [`PipelineError::Sampler`] for 0, for more than 2^22 repetitions in all, and for epochs of 2^63
    /// positions or more.
    pub fn repeat(&self, count: u32) -> Result<Self, PipelineError> {
        let mut repeated = self.clone();
        repeated.repeat = self.repeat.saturating_mul(count);
        repeated.len = repeated.positions()?;
        let words = format!("repeat {count} times");
        repeated.steps.push(Step { depth: 0, words, len: repeated.len, cost: String::new() });
        Ok(repeated)
    }

    /// The samples, for the view called `view`, which needs to know them.
    fn plain(&self, view: &'static str) -> Result<&Selection, ViewError> {
        match &self.content {
            Content::Drawn { by, .. } => Err(ViewError::Drawn { view, drawn: by }),
            Content::Plain(_) if self.repeat > 1 => Err(ViewError::Drawn { view, drawn: "repeat" }),
            Content::Plain(selection) => Ok(selection),
        }
    }

    /// The samples, for the view called `view`, whose parts have none in common.
    fn without_repeats(&self, view: &'static str) -> Result<&Selection, ViewError> {
        let selection = self.plain(view)?;
        match selection.repeated() {
            Some(sample) => Err(ViewError::RepeatedInParts { view, sample }),
            None => Ok(selection),
        }
    }

    /// A view of the same data set.
    fn with(&self, words: String, cost: &str, selection: Selection) -> Self {
        let len = selection.len();
        let kept = step::bytes(selection.bytes());
        let cost = if cost.is_empty() { kept } else { format!("{cost}; {kept}") };
        let mut steps = self.steps.clone();
        steps.push(Step { depth: 0, words, len, cost });
        let content = Content::Plain(Arc::new(selection));
        Self { dataset: Arc::clone(&self.dataset), content, repeat: 1, len, steps }
    }

    /// A view that draws.
    fn drawn(
        &self,
        dataset: Arc<Dataset>,
        by: &'static str,
        words: String,
        cost: &str,
        samples: Samples,
    ) -> Result<Self, PipelineError> {
        let content = Content::Drawn { by, samples: Arc::new(samples) };
        let steps = self.steps.clone();
        let mut view = Self { dataset, content, repeat: 1, len: 0, steps };
        view.len = view.positions()?;
        view.steps.push(Step { depth: 0, words, len: view.len, cost: cost.to_owned() });
        Ok(view)
    }

    /// The number of positions of an epoch, if the sampler can be used.
    fn positions(&self) -> Result<u64, PipelineError> {
        Ok(self.sampler(Shuffle::Full).resolve(&self.dataset, 1)?.len())
    }
}

/// The two parts of [`DatasetView::fold`].
#[derive(Clone, Debug)]
pub struct Fold {
    /// The samples of the other folds.
    pub train: DatasetView,
    /// The samples of the fold.
    pub validation: DatasetView,
}

fn in_words(split: Split) -> String {
    let by = if split.stratify { " by label" } else { "" };
    format!("{by}, seed {}", split.seed)
}

fn cost_of(split: Split) -> &'static str {
    if split.stratify { "reads the labels" } else { "" }
}
