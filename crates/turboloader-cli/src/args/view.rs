//! Arguments that select samples of a data set.

use std::ops::Range;
use std::str::FromStr;

use clap::Args;
use tl_pipeline::{
    Dataset, DatasetView, Filter, PipelineError, Sampler, Samples, Shuffle, Split, Subset,
};

use crate::failure::Failure;

/// Some samples of the data set, selected in the order of these options.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Samples")]
pub(crate) struct ViewArgs {
    /// Only these samples: A..B, B excluded
    #[arg(long, value_name = "A..B", value_delimiter = ',', value_parser = sample_range)]
    samples: Vec<Range<u64>>,

    /// Only samples with these labels, or of the classes with these names: label=3,7 or
    /// class=cat,dog
    #[arg(long, value_name = "FIELD=VALUE,..")]
    select: Option<Select>,

    /// Only samples that meet a condition, such as 'width >= 224 and json:/score > 0.5'. It may name
    /// index, key, label, class, format, bytes, width, height, the text of a file (txt) and values
    /// of JSON
    #[arg(long, value_name = "CONDITION")]
    filter: Option<Filter>,

    /// Random parts of these sizes, as fractions, by a seed (default: 0); --part chooses one
    #[arg(long, value_name = "FRACTION,..[@SEED]", conflicts_with = "fold")]
    split: Option<Parts>,

    /// The samples outside of fold K, counted from 0, of N folds by a seed (default: 0); --part 1 is
    /// the fold itself
    #[arg(long, value_name = "K/N[@SEED]")]
    fold: Option<FoldOf>,

    /// The part of --split or --fold, counted from 0 (default: 0)
    #[arg(long, value_name = "N")]
    part: Option<usize>,

    /// Divide every class as --split or --fold divides the whole
    #[arg(long)]
    stratify: bool,

    /// Only part I, counted from 0, of N parts of neighbours
    #[arg(long, value_name = "I/N")]
    shard: Option<ShardOf>,

    /// Leave out the first N samples
    #[arg(long, value_name = "N")]
    skip: Option<u64>,

    /// Only the first N samples
    #[arg(long, value_name = "N")]
    take: Option<u64>,
}

impl ViewArgs {
    /// True if they select something.
    pub(crate) fn is_given(&self) -> bool {
        let Self { samples, select, filter, split, fold, part, stratify, shard, skip, take } = self;
        let choices = select.is_some() || filter.is_some() || split.is_some() || fold.is_some();
        let parts = part.is_some() || *stratify || shard.is_some();
        !samples.is_empty() || choices || parts || skip.is_some() || take.is_some()
    }

    /// The samples of a data set that are selected.
    pub(crate) fn of(&self, dataset: &Dataset) -> Result<DatasetView, Failure> {
        self.apply(DatasetView::from(dataset.clone()))
    }

    /// The samples of a view that are selected.
    pub(crate) fn apply(&self, view: DatasetView) -> Result<DatasetView, Failure> {
        let mut view = view;
        if !self.samples.is_empty() {
            view = ranges(&view, &self.samples)?;
        }
        match &self.select {
            Some(Select::Labels(labels)) => view = view.select_labels(labels)?,
            Some(Select::Classes(names)) => view = view.select_classes(names)?,
            None => {}
        }
        if let Some(filter) = &self.filter {
            view = view.filter(filter)?;
        }
        view = self.part(view)?;
        if let Some(ShardOf { number, of }) = self.shard {
            view = view.shard(number, of)?;
        }
        if let Some(count) = self.skip {
            view = view.skip(count)?;
        }
        if let Some(count) = self.take {
            view = view.take(count)?;
        }
        Ok(view)
    }

    fn part(&self, view: DatasetView) -> Result<DatasetView, Failure> {
        let stratify = self.stratify;
        let parts = match (&self.split, &self.fold) {
            (Some(Parts { fractions, seed }), _) => {
                view.split(fractions, Split { seed: *seed, stratify })?
            }
            (None, Some(FoldOf { fold, of, seed })) => {
                let fold = view.fold(*fold, *of, Split { seed: *seed, stratify })?;
                vec![fold.train, fold.validation]
            }
            (None, None) if self.part.is_some() || stratify => {
                let what = "--part and --stratify need --split or --fold";
                return Err(Failure::Usage { what });
            }
            (None, None) => return Ok(view),
        };
        let number = self.part.unwrap_or(0);
        let last = parts.len() - 1;
        parts.into_iter().nth(number).ok_or_else(|| {
            Failure::setting(format_args!("--part {number}: expected a number from 0 to {last}"))
        })
    }
}

/// The samples in these ranges, which must not overlap.
fn ranges(view: &DatasetView, ranges: &[Range<u64>]) -> Result<DatasetView, Failure> {
    let samples = Samples::Subset(Subset::Ranges(ranges.to_vec()));
    // Names what is wrong with them.
    Sampler { samples, ..Shuffle::None.into() }.resolve(view.dataset(), 1)?;
    let parts: Result<Vec<_>, PipelineError> =
        ranges.iter().map(|range| view.slice(range.clone())).collect();
    Ok(DatasetView::concat(&parts?)?)
}

/// The samples of some classes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Select {
    Labels(Vec<i64>),
    Classes(Vec<String>),
}

/// Text that selects no classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected label=NUMBER,.. or class=NAME,..")]
pub(crate) struct NoSelect;

impl FromStr for Select {
    type Err = NoSelect;

    fn from_str(text: &str) -> Result<Self, NoSelect> {
        let (field, values) = text.split_once('=').ok_or(NoSelect)?;
        let values = values.split(',');
        match field {
            "label" => {
                let labels = values.map(|label| label.parse().map_err(|_| NoSelect));
                Ok(Self::Labels(labels.collect::<Result<_, _>>()?))
            }
            "class" => Ok(Self::Classes(values.map(str::to_owned).collect())),
            _ => Err(NoSelect),
        }
    }
}

/// Fractions of a split, and its seed.
#[derive(Clone, Debug, PartialEq)]
struct Parts {
    fractions: Vec<f64>,
    seed: u64,
}

/// Text that is not a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected fractions and a seed, such as 0.9,0.1@0")]
pub(crate) struct NoParts;

impl FromStr for Parts {
    type Err = NoParts;

    fn from_str(text: &str) -> Result<Self, NoParts> {
        let (fractions, seed) = seeded(text).ok_or(NoParts)?;
        let fractions = fractions.split(',').map(|fraction| fraction.parse().map_err(|_| NoParts));
        Ok(Self { fractions: fractions.collect::<Result<_, _>>()?, seed })
    }
}

/// A fold, and the seed of the folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FoldOf {
    fold: u32,
    of: u32,
    seed: u64,
}

/// Text that is not a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a fold, the number of folds and a seed, such as 3/5@0")]
pub(crate) struct NoFold;

impl FromStr for FoldOf {
    type Err = NoFold;

    fn from_str(text: &str) -> Result<Self, NoFold> {
        let (folds, seed) = seeded(text).ok_or(NoFold)?;
        let (fold, of) = folds.split_once('/').ok_or(NoFold)?;
        let number = |text: &str| text.parse().map_err(|_| NoFold);
        Ok(Self { fold: number(fold)?, of: number(of)?, seed })
    }
}

/// One of several parts of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShardOf {
    number: u64,
    of: u64,
}

/// Text that is not a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a shard and the number of shards, such as 0/8")]
pub(crate) struct NoShard;

impl FromStr for ShardOf {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let (number, of) = text.split_once('/').ok_or(NoShard)?;
        let parse = |text: &str| text.parse().map_err(|_| NoShard);
        Ok(Self { number: parse(number)?, of: parse(of)? })
    }
}

/// The text before `@`, and the seed after it.
fn seeded(text: &str) -> Option<(&str, u64)> {
    match text.split_once('@') {
        Some((text, seed)) => Some((text, seed.parse().ok()?)),
        None => Some((text, 0)),
    }
}

/// Text that is not a range of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected two numbers, such as 1000..2000")]
pub(crate) struct NoRange;

fn sample_range(text: &str) -> Result<Range<u64>, NoRange> {
    let (start, end) = text.split_once("..").ok_or(NoRange)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| NoRange);
    Ok(number(start)?..number(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_numbers() {
        assert_eq!(sample_range("10..20"), Ok(10..20));
        for wrong in ["10", "10..", "..20", "10..=20", "a..b", "-1..2", "1...2"] {
            assert_eq!(sample_range(wrong), Err(NoRange), "{wrong}");
        }
    }

    #[test]
    fn parts_and_folds_have_a_seed() {
        assert_eq!("0.9,0.1@7".parse(), Ok(Parts { fractions: vec![0.9, 0.1], seed: 7 }));
        assert_eq!("1".parse(), Ok(Parts { fractions: vec![1.0], seed: 0 }));
        assert_eq!("3/5@8".parse(), Ok(FoldOf { fold: 3, of: 5, seed: 8 }));
        assert_eq!("0/2".parse(), Ok(FoldOf { fold: 0, of: 2, seed: 0 }));
        assert_eq!("1/4".parse(), Ok(ShardOf { number: 1, of: 4 }));
        for wrong in ["", "a", "0.5@", "0.5@x", "0.5,,0.5", "0.5@-1"] {
            assert_eq!(wrong.parse::<Parts>(), Err(NoParts), "{wrong}");
        }
        for wrong in ["", "3", "3/", "/5", "3/5@", "-1/5"] {
            assert_eq!(wrong.parse::<FoldOf>(), Err(NoFold), "{wrong}");
            assert_eq!(wrong.parse::<ShardOf>(), Err(NoShard), "{wrong}");
        }
    }

    #[test]
    fn classes_are_selected_by_label_or_name() {
        assert_eq!("label=3,-7".parse(), Ok(Select::Labels(vec![3, -7])));
        let names = vec!["cat".to_owned(), "a dog".to_owned()];
        assert_eq!("class=cat,a dog".parse(), Ok(Select::Classes(names)));
        for wrong in ["", "cat", "label=cat", "label=", "key=a"] {
            assert_eq!(wrong.parse::<Select>(), Err(NoSelect), "{wrong}");
        }
    }
}
