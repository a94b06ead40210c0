//! Several views as one: over their data set if they share it, otherwise over one that has the
//! sources of all.

use tbl_io::Escaped;
use tl_handoff::sync::Arc;

use super::selection::{Collector, Selection};
use super::step::{self, Step};
use super::{Content, DatasetView};
use crate::dataset::Dataset;
use crate::error::{PipelineError, ViewError};
use crate::order::{Length, MixStage, Part, Samples};

impl DatasetView {
    /// The samples of all views, one view after the other. If they are of different data sets, the
    /// view is of one that has the sources of all, whose labels are joined by class name
    /// ([`Labels`](tbl_io::Labels)). Labels that the caller gave stay with their samples.
    ///
    /// # Errors
    /// [`ViewError::NoViews`]; [`ViewError::Drawn`]; if the data sets cannot be joined, as for
    /// [`Dataset::from_sources`].
    pub fn concat(views: &[Self]) -> Result<Self, PipelineError> {
        let joined = Self::joined(views, "concat")?;
        let mut collector = Collector::default();
        for (number, view) in views.iter().enumerate() {
            joined.add(number, &view.dataset, view.plain("concat")?, &mut collector)?;
        }
        let selection = collector.finish();
        let len = selection.len();
        let words = format!("concat of {} views", views.len());
        let mut steps = nested(views.iter());
        let cost = joined.cost(step::bytes(selection.bytes()));
        steps.push(Step { depth: 0, words, len, cost });
        let content = Content::Plain(Arc::new(selection));
        Ok(Self { dataset: joined.dataset, content, repeat: 1, len, steps })
    }

    /// The samples of all views in the proportion of their weights; `length` is how many in all. Each
    /// view's samples come in rounds: all of them in one order, then all in another. Data sets are
    /// joined as by [`concat`](Self::concat).
    ///
    /// # Errors
    /// [`PipelineError::Sampler`] for a view without samples, a weight of 0 or weights whose sum is
    /// too large; otherwise as for [`concat`](Self::concat).
    pub fn mix(views: &[(Self, u32)], length: Length) -> Result<Self, PipelineError> {
        Self::mix_in_stages(views, length, Vec::new())
    }

    /// The same with other weights from positions on, where all views continue in their samples.
    /// Weights can be 0, for views that come later or pause.
    ///
    /// # Errors
    /// As for [`mix`](Self::mix); [`PipelineError::Sampler`] for stages that are not in order, or
    /// have not one weight for each view.
    pub fn mix_in_stages(
        views: &[(Self, u32)],
        length: Length,
        stages: Vec<MixStage>,
    ) -> Result<Self, PipelineError> {
        let only: Vec<Self> = views.iter().map(|(view, _)| view.clone()).collect();
        let joined = Self::joined(&only, "mix")?;
        let mut parts = Vec::new();
        let mut bytes = 0_u64;
        for (number, (view, weight)) in views.iter().enumerate() {
            let mut collector = Collector::default();
            joined.add(number, &view.dataset, view.plain("mix")?, &mut collector)?;
            let selection = collector.finish();
            bytes = bytes.saturating_add(selection.bytes());
            parts.push(Part { samples: selection.subset(), weight: *weight });
        }
        let weights: Vec<String> = views.iter().map(|(_, weight)| weight.to_string()).collect();
        let later: String = stages.iter().map(words_of).collect();
        let words = format!("mix of {} views by {}{later}", views.len(), weights.join(" : "));
        let steps = nested(only.iter());
        let cost = joined.cost(step::bytes(bytes));
        let first = Self { steps, repeat: 1, ..only[0].clone() };
        let samples = Samples::Mix { parts, length, stages };
        first.drawn(joined.dataset, "mix", words, &cost, samples)
    }

    fn joined(views: &[Self], view: &'static str) -> Result<Joined, PipelineError> {
        if views.is_empty() {
            return Err(ViewError::NoViews { view }.into());
        }
        for part in views {
            part.plain(view)?;
        }
        let datasets: Vec<&Arc<Dataset>> = views.iter().map(|view| &view.dataset).collect();
        Joined::new(&datasets)
    }
}

/// The weights of a stage.
fn words_of(stage: &MixStage) -> String {
    let weights: Vec<String> = stage.weights.iter().map(u32::to_string).collect();
    format!(", from {} on by {}", stage.start, weights.join(" : "))
}

/// The steps of views that are joined.
fn nested<'v>(views: impl Iterator<Item = &'v DatasetView>) -> Vec<Step> {
    let steps = views.flat_map(|view| view.steps.iter().cloned());
    steps.map(|step| Step { depth: step.depth + 1, ..step }).collect()
}

/// A data set with the sources of several.
struct Joined {
    dataset: Arc<Dataset>,
    /// For each data set the number in `dataset` of the first sample of each source.
    starts: Vec<Vec<u64>>,
    /// Whether the data set had to be made, and labels looked for again.
    is_new: bool,
}

impl Joined {
    /// The sources of `datasets`, each once, in the order in which they occur. Where the caller gave
    /// labels, a source is there once for each of its labellings. Without a source that the others
    /// lack, it is the first data set that has all of them.
    fn new(datasets: &[&Arc<Dataset>]) -> Result<Self, PipelineError> {
        let is_given = datasets.iter().any(|dataset| dataset.has_given_labels());
        let is_same = |a: Place<'_>, b: Place<'_>| {
            let has_same = || a.0.labels().has_same(a.1, b.0.labels(), b.1);
            is_same_source(a, b) && (!is_given || has_same())
        };
        // For each source a data set that has it, and its number there.
        let mut sources: Vec<Place<'_>> = Vec::new();
        let mut places = Vec::new();
        for dataset in datasets {
            let mut of_dataset = Vec::new();
            for number in 0..dataset.shards().len() {
                let known = sources.iter().position(|&known| is_same(known, (dataset, number)));
                of_dataset.push(known.unwrap_or(sources.len()));
                if known.is_none() {
                    sources.push((dataset, number));
                }
            }
            places.push(of_dataset);
        }
        let has_all = |places: &Vec<usize>| places.iter().copied().eq(0..sources.len());
        let (dataset, is_new) = match places.iter().position(has_all) {
            Some(number) => (Arc::clone(datasets[number]), false),
            None => {
                let shared = |place: &Place<'_>| Arc::clone(&place.0.shards()[place.1]);
                let shards = sources.iter().map(shared).collect();
                let joined = if is_given {
                    Dataset::from_labelled(shards, &sources)?
                } else {
                    Dataset::from_shared(shards)?
                };
                let joined = match label_column(datasets)? {
                    Some(column) => joined.with_labels_of(&column)?,
                    None => joined,
                };
                (Arc::new(joined), true)
            }
        };
        let start = |place| dataset.shard_samples(place).map_or(0, |samples| samples.start);
        let starts = places.into_iter().map(|places| places.into_iter().map(start).collect());
        Ok(Self { starts: starts.collect(), is_new, dataset })
    }

    /// Adds the samples of a view of data set number `number`, which is `dataset`.
    fn add(
        &self,
        number: usize,
        dataset: &Dataset,
        selection: &Selection,
        collector: &mut Collector,
    ) -> Result<(), PipelineError> {
        for mut run in selection.runs() {
            while run.start < run.end {
                let (shard, local) = dataset.place(run.start)?;
                let samples = dataset.shard_samples(shard).unwrap_or_default();
                let end = run.end.min(samples.end);
                let start = self.starts[number][shard] + local;
                collector.push(start..start + (end - run.start));
                run.start = end;
            }
        }
        Ok(())
    }
}

impl Joined {
    fn cost(&self, kept: String) -> String {
        if self.is_new { format!("joins labels by class name; {kept}") } else { kept }
    }
}

/// A source of a data set, by number.
type Place<'d> = (&'d Dataset, usize);

fn is_same_source(a: Place<'_>, b: Place<'_>) -> bool {
    let source = |place: Place<'_>| Arc::as_ptr(&place.0.shards()[place.1]);
    std::ptr::addr_eq(source(a), source(b))
}

/// The column whose labels all of the tables have.
fn label_column(datasets: &[&Arc<Dataset>]) -> Result<Option<String>, ViewError> {
    let columns: Vec<Option<&str>> =
        datasets.iter().map(|dataset| dataset.label_column()).collect();
    let first = columns.first().copied().flatten();
    let Some(&other) = columns.iter().find(|&&column| column != first) else {
        return Ok(first.map(str::to_owned));
    };
    let name = |column: Option<&str>| {
        column.map_or("none".to_owned(), |name| format!("`{}`", Escaped(name.as_bytes())))
    };
    Err(ViewError::LabelColumns { first: name(first), other: name(other) })
}
