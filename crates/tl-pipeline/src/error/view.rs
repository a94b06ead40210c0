//! The errors of views.

use tbl_io::Escaped;

/// The defect of a view.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ViewError {
    /// A part of samples that are drawn anew in every epoch.
    #[error(
        "`{view}` cannot follow `{drawn}`, whose samples are drawn anew in every epoch: put `{view}` \
        before `{drawn}`"
    )]
    Drawn { view: &'static str, drawn: &'static str },
    /// A question about the samples of draws.
    #[error("samples of `{drawn}` have no numbers: they are drawn anew in every epoch")]
    NoPlaces { drawn: &'static str },
    /// A place that the view does not have.
    #[error("place {place} is not in a view of {len} samples")]
    OutOfRange { place: u64, len: u64 },
    /// A split into nothing.
    #[error("a split needs a fraction for each part, such as 0.9 and 0.1")]
    NoFraction,
    /// A fraction that no part can have.
    #[error("fraction {fraction} of a split: expected a number from 0 to 1")]
    Fraction { fraction: f64 },
    /// Fractions that take more than everything.
    #[error("the fractions of a split sum to {sum}, expected at most 1")]
    FractionSum { sum: f64 },
    /// A fold that does not exist.
    #[error("fold {fold} of {of}: expected at least 2 folds, and one of those from 0 to {of} - 1")]
    Fold { fold: u32, of: u32 },
    /// A shard that does not exist.
    #[error("shard {number} of {of}: expected at least 1 shard, numbered from 0 to {of} - 1")]
    Shard { number: u64, of: u64 },
    /// A sample without a label, where every sample needs one.
    #[error("sample {sample} has no label, and `stratify` divides samples by label")]
    Unlabelled { sample: u64 },
    /// A class that the data set does not name.
    #[error("no class is called `{}`; {}", Escaped(name.as_bytes()), listed(classes))]
    UnknownClass {
        name: String,
        /// The names of the classes; not all of many.
        classes: Vec<String>,
    },
    /// A label outside the classes of the data set.
    #[error("label {label} is out of range for {classes} classes")]
    UnknownLabel { label: i64, classes: u64 },
    /// Not one weight for every sample.
    #[error("{weights} weights for {len} samples")]
    WeightCount { weights: u64, len: u64 },
    /// A view that cannot be drawn from by weight.
    #[error(
        "sample {sample} is in the view more than once, and `weights` draws each by one weight"
    )]
    Repeated { sample: u64 },
    /// A view whose parts could have a sample in common.
    #[error(
        "sample {sample} is in the view more than once, and `{view}` could put it into two parts: \
        put `{view}` before the view that repeats it"
    )]
    RepeatedInParts { view: &'static str, sample: u64 },
    /// A view of no views.
    #[error("`{view}` needs at least one view")]
    NoViews { view: &'static str },
    /// Tables whose labels are those of different columns.
    #[error("cannot join tables with labels of column {first} and of column {other}")]
    LabelColumns { first: String, other: String },
    /// A loader that gets samples from a view and from its settings.
    #[error(
        "the data set is a view and the loader's sampler selects samples too: select them in the \
        view, and leave the sampler's `samples` and `repeat` at their defaults"
    )]
    Configured,
    /// Text that is not a filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A name in a filter that means nothing.
    #[error(
        "`{name}` in a filter: no sample has such a file, and a filter knows {known}; {}",
        super::files_called(found)
    )]
    UnknownName {
        name: String,
        /// The names that need no file.
        known: String,
        /// The names of files that samples have; not all of many.
        found: Vec<String>,
    },
    /// A name in a filter with two meanings.
    #[error(
        "`{name}` in a filter is built in, and sample {sample} has a field of that name too: write \
        `field:{name}` for the field, or rename the field to use the built-in `{name}`"
    )]
    AmbiguousName { name: &'static str, sample: u64 },
    /// Properties that rows of a table lack.
    #[error("`{name}` in a filter needs samples; rows of a table have index, label and class")]
    TableFilter { name: String },
    /// A value of a sample that a filter cannot use.
    #[error("sample {sample}: `{name}` {defect}")]
    Value { sample: u64, name: String, defect: String },
}

/// The defect of a filter's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter `{}` at byte {at}: {found}, expected {expected}", Escaped(text.as_bytes()))]
#[expect(missing_docs, reason = "the message names the fields")]
pub struct FilterError {
    pub text: String,
    pub at: usize,
    pub found: String,
    pub expected: &'static str,
}

/// Names of classes that a message lists.
pub(crate) const MAX_LISTED: usize = 16;

fn listed(classes: &[String]) -> String {
    match classes {
        [] => "its labels are numbers without names".to_owned(),
        classes => {
            let names: Vec<String> =
                classes.iter().map(|name| Escaped(name.as_bytes()).to_string()).collect();
            let more = if classes.len() < MAX_LISTED { "" } else { ", ..." };
            format!("classes are called: {}{more}", names.join(", "))
        }
    }
}
