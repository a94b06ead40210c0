//! Labels that the caller gives, for sources that store none or others.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;

use super::boxes::BoxClasses;
use super::{LabelOrigin, Labels, NONE};
use crate::error::ReadError;
use crate::escape::Escaped;
use crate::list_error::{ListDefect, ListPlace};
use crate::lists::{read_label_table, val_classes};
use crate::location::Location;
use crate::note::{Note, NotedSample};
use crate::sample::SampleSource;
use crate::storage::Stores;

/// Labels for the samples of a data set: one for each sample in order, or by the samples' names.
///
/// A name is that of a sample as [`Entry::key`](crate::Entry::key) has it, or without its extension:
/// `val/0017.jpg` or `val/0017`. The full name counts if a table has both.
///
/// ```
/// use std::collections::HashMap;
///
/// use tbl_io::{Folder, GivenLabels, Labels, SampleSource};
///
/// let root = tempfile::tempdir()?;
/// std::fs::write(root.path().join("tom.jpg"), b"...")?;
/// let sources: [Box<dyn SampleSource>; 1] = [Box::new(Folder::open(root.path())?)];
/// let by_name = HashMap::from([(b"tom".to_vec(), "cat".to_owned())]);
/// let labels = Labels::given(&sources, &GivenLabels::classes_by_name(&by_name))?;
/// assert_eq!((labels.label(0, 0), labels.class_names()), (Some(0), &["cat".to_owned()][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct GivenLabels {
    values: Values,
    class_names: Vec<String>,
    /// The file that the labels come from.
    location: Option<Location>,
    allows_none: bool,
}

#[derive(Clone, Debug)]
enum Values {
    InOrder(Vec<i64>),
    ByName(HashMap<Vec<u8>, i64>),
    BySource,
}

impl GivenLabels {
    /// A label for each sample of all sources in order.
    #[must_use]
    pub fn in_order(labels: Vec<i64>) -> Self {
        Self::new(Values::InOrder(labels), Vec::new())
    }

    /// A class for each sample of all sources in order. Classes are numbered in sorted order.
    #[must_use]
    pub fn classes_in_order<T: AsRef<str>>(classes: &[T]) -> Self {
        let numbers = Numbers::new(classes.iter().map(AsRef::as_ref));
        let labels = classes.iter().map(|class| numbers.of(class.as_ref())).collect();
        Self::new(Values::InOrder(labels), numbers.names)
    }

    /// Labels by the names of samples.
    #[must_use]
    pub fn by_name(labels: HashMap<Vec<u8>, i64>) -> Self {
        Self::new(Values::ByName(labels), Vec::new())
    }

    /// Classes by the names of samples. Classes are numbered in sorted order.
    #[must_use]
    pub fn classes_by_name(classes: &HashMap<Vec<u8>, String>) -> Self {
        let numbers = Numbers::new(classes.values().map(String::as_str));
        let label = |(name, class): (&Vec<u8>, &String)| (name.clone(), numbers.of(class));
        Self::new(Values::ByName(classes.iter().map(label).collect()), numbers.names)
    }

    /// The name of each sample's archive or file, up to its first dot, as the class of the sample: for
    /// archives of one class each, such as `cats.tar` and `dogs.tar`. Classes are numbered in sorted
    /// order.
    #[must_use]
    pub fn classes_by_source() -> Self {
        Self::new(Values::BySource, Vec::new())
    }

    /// Reads labels by name from a file: a CSV or TSV file or JSON Lines with a column `label` and a
    /// column of names (`key`, `id`, or one that a [manifest](crate::Manifest) has), or of two
    /// columns; otherwise lines of a name, blanks and a label.
    ///
    /// # Errors
    /// [`ReadError::List`] with the line of a defect, also for a name that occurs twice.
    pub fn read(stores: &Stores, location: impl AsRef<OsStr>) -> Result<Self, ReadError> {
        let location = Location::new(location);
        let table = read_label_table(stores, &location)?;
        let labels = table.names.into_iter().zip(table.labels).collect();
        let given = Self::new(Values::ByName(labels), table.class_names);
        Ok(Self { location: Some(location), ..given })
    }

    /// Reads the labels of ImageNet's validation images from files as they are downloaded, below
    /// `root` or in the folder of the development kit there: the ground truth with `meta.mat`,
    /// `LOC_val_solution.csv` of Kaggle, or `imagenet_2012_validation_synset_labels.txt`. Classes are
    /// names of `WordNet` in sorted order, as those of the folders of training images.
    ///
    /// # Errors
    /// [`ReadError::List`] if no such file exists or one is damaged.
    pub fn imagenet_val(stores: &Stores, root: impl AsRef<OsStr>) -> Result<Self, ReadError> {
        let root = Location::new(root);
        let given = Self::classes_by_name(&val_classes(stores, &root)?);
        Ok(Self { location: Some(root), ..given })
    }

    /// Samples that have no label here get none, instead of an error.
    #[must_use]
    pub fn or_none(self) -> Self {
        Self { allows_none: true, ..self }
    }

    fn new(values: Values, class_names: Vec<String>) -> Self {
        Self { values, class_names, location: None, allows_none: false }
    }
}

/// The numbers of classes.
struct Numbers {
    names: Vec<String>,
}

impl Numbers {
    fn new<'a>(classes: impl Iterator<Item = &'a str>) -> Self {
        let sorted: BTreeSet<&str> = classes.collect();
        Self { names: sorted.into_iter().map(str::to_owned).collect() }
    }

    fn of(&self, class: &str) -> i64 {
        let place = self.names.binary_search_by(|name| name.as_str().cmp(class));
        place.ok().and_then(|place| i64::try_from(place).ok()).unwrap_or(NONE)
    }
}

impl Labels {
    /// The labels that the caller gives to all samples of `sources`, whatever labels they store.
    ///
    /// # Errors
    /// [`ReadError::List`] with [`ListDefect::LabelCount`] for labels in order that are more or fewer
    /// than the samples, and with [`ListDefect::Unlabelled`] for samples that have no label by name,
    /// unless [`GivenLabels::or_none`] allows them. Those of [`SampleSource::entry`].
    pub fn given<S: AsRef<dyn SampleSource>>(
        sources: &[S],
        given: &GivenLabels,
    ) -> Result<Self, ReadError> {
        let sources: Vec<&dyn SampleSource> = sources.iter().map(AsRef::as_ref).collect();
        let of_first = || sources.first().map(|source| source.location().clone());
        let location = given.location.clone().or_else(of_first).unwrap_or_default();
        let mut class_names = given.class_names.clone();
        let (labels, unused) = match &given.values {
            Values::InOrder(labels) => (in_order(&sources, labels, &location)?, None),
            Values::ByName(labels) => by_name(&sources, labels)?,
            Values::BySource => {
                let classes: Vec<String> = sources.iter().map(|source| class_of(*source)).collect();
                let numbers = Numbers::new(classes.iter().map(String::as_str));
                let label = |(source, class): (&&dyn SampleSource, &String)| {
                    let count = usize::try_from(source.sample_count()).unwrap_or(usize::MAX);
                    vec![numbers.of(class); count]
                };
                let labels = sources.iter().zip(&classes).map(label).collect();
                class_names = numbers.names;
                (labels, None)
            }
        };
        let samples: u64 = sources.iter().map(|source| source.sample_count()).sum();
        let labels = Self {
            labels,
            unreadable: Vec::new(),
            class_names,
            origin: if samples == 0 { LabelOrigin::None } else { LabelOrigin::Given },
            notes: unused.into_iter().collect(),
            boxes: BoxClasses::of(&sources),
        };
        labels.check_given(&sources, given, &location)
    }

    /// Fails for samples without a label, or notes them.
    fn check_given(
        mut self,
        sources: &[&dyn SampleSource],
        given: &GivenLabels,
        location: &Location,
    ) -> Result<Self, ReadError> {
        let unlabelled = |labels: &&Vec<i64>| labels.iter().filter(|&&label| label == NONE).count();
        let count: usize = self.labels.iter().map(|labels| unlabelled(&labels)).sum();
        let position = |labels: &Vec<i64>| labels.iter().position(|&label| label == NONE);
        let first = self.labels.iter().enumerate().find_map(|(n, list)| Some((n, position(list)?)));
        let Some((number, index)) = first else { return Ok(self) };
        let index = index as u64;
        let source = sources[number];
        let key = source.entry(index)?.key.map(Cow::into_owned);
        if !given.allows_none {
            let of = sources.iter().map(|source| source.sample_count()).sum();
            let first = key.unwrap_or_else(|| index.to_string().into_bytes());
            let defect = ListDefect::Unlabelled { count: count as u64, of, first };
            return Err(defect.at(location, ListPlace::default()));
        }
        let first = NotedSample { location: source.location().clone(), index, key };
        self.notes.push(Note::PartlyLabelled { samples: count as u64, first });
        Ok(self)
    }
}

/// The name of a source's file up to its first dot.
fn class_of(source: &dyn SampleSource) -> String {
    let name = source.location().as_os_str().to_string_lossy();
    let name = name.rsplit('/').next().unwrap_or_default();
    let name = name.split('?').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    // A message is one line, and class names are part of messages.
    Escaped(stem.as_bytes()).to_string()
}

fn in_order(
    sources: &[&dyn SampleSource],
    labels: &[i64],
    location: &Location,
) -> Result<Vec<Vec<i64>>, ReadError> {
    let expected: u64 = sources.iter().map(|source| source.sample_count()).sum();
    let found = labels.len() as u64;
    if found != expected {
        return Err(ListDefect::LabelCount { found, expected }.at(location, ListPlace::default()));
    }
    let mut rest = labels;
    let mut of_sources = Vec::with_capacity(sources.len());
    for source in sources {
        let count = usize::try_from(source.sample_count()).unwrap_or(usize::MAX);
        let (labels, after) = rest.split_at(count.min(rest.len()));
        of_sources.push(labels.to_vec());
        rest = after;
    }
    Ok(of_sources)
}

type ByName = (Vec<Vec<i64>>, Option<Note>);

fn by_name(
    sources: &[&dyn SampleSource],
    labels: &HashMap<Vec<u8>, i64>,
) -> Result<ByName, ReadError> {
    let mut used = HashSet::new();
    let mut of_sources = Vec::with_capacity(sources.len());
    for source in sources {
        let mut found = Vec::new();
        for index in 0..source.sample_count() {
            let key = source.entry(index)?.key.unwrap_or_default();
            let label = names(&key).find_map(|name| labels.get_key_value(name));
            if let Some((name, _)) = label {
                used.insert(name.as_slice());
            }
            found.push(label.map_or(NONE, |(_, &label)| label));
        }
        of_sources.push(found);
    }
    let unused = labels.keys().filter(|name| !used.contains(name.as_slice()));
    let first = unused.clone().min();
    let note = first
        .map(|first| Note::UnusedLabels { labels: unused.count() as u64, first: first.clone() });
    Ok((of_sources, note))
}

/// The names of a sample that a table may have: the whole name, the name without its last extension,
/// and the name up to the first dot of its base.
fn names(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let base = key.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let dots = |byte: &u8| *byte == b'.';
    let name = key.get(base..).unwrap_or_default();
    let last = name.iter().rposition(dots).filter(|&at| at > 0);
    let first = name.iter().skip(1).position(dots).map(|at| at + 1);
    let until = move |at: usize| key.get(..base + at).unwrap_or(key);
    [Some(key), last.map(until), first.map(until)].into_iter().flatten()
}
