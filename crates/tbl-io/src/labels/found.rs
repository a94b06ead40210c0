//! The labels found in one source, before class folders are known.

use std::collections::{BTreeSet, HashMap};

use super::folders::{Folders, NO_FOLDER};
use super::{NONE, SourceFacts};
use crate::error::ReadError;
use crate::grouping::split_base;
use crate::label::LabelField;
use crate::sample::{SampleSource, SampleSourceExt, SourceKind};

/// The reason why a sample's label is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// A `.cls` file, which is only there for a label, has none that can be read.
    Cls,
    /// A `.json` file, which may be there for something else, has none that can be read.
    Json,
    /// The `label` in JSON metadata of a TBL file is not an integer: it is the application's.
    Metadata,
    /// The index entry is damaged.
    Entry,
}

impl Problem {
    pub(super) fn of(field: LabelField) -> Self {
        match field {
            LabelField::Cls => Self::Cls,
            LabelField::Json => Self::Json,
        }
    }
}

/// The labels stored in a source, and the folders that could give them instead.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// By sample; [`NONE`] for none. Empty when no sample has one.
    stored: Vec<i64>,
    /// The folder of each sample; empty when folders do not count.
    folder_ids: Vec<u32>,
    /// Samples whose label cannot be read, ascending.
    problems: Vec<(u64, Problem)>,
}

impl Found {
    /// Looks at every sample, unless the source has all labels in one place and needs no folders.
    /// `parent` is the folder that the whole source counts as lying in.
    pub(super) fn read(
        source: &dyn SampleSource,
        facts: SourceFacts<'_>,
        parent: &[u8],
        folders: &mut Folders,
    ) -> Result<Self, ReadError> {
        // Windows of a terabyte are hundreds of millions of samples, which have no labels.
        if source.kind() == SourceKind::Tokens {
            return Ok(Self::default());
        }
        // Lists that cannot be read leave it to each sample what is wrong with it.
        let stored = unless_damaged(source.stored_labels())?.flatten();
        if let Some(stored) = stored {
            let labelled = stored.iter().filter(|&&label| label != NONE).count() as u64;
            if facts.states_all || counts(labelled, facts) {
                let mut problems = Vec::new();
                if !facts.has_label_files {
                    problems = other_labels_of_unlabelled(source, &stored)?;
                }
                let stored = if labelled == 0 { Vec::new() } else { stored };
                return Ok(Self { stored, problems, ..Self::default() });
            }
        }
        let mut found = Self::default();
        for index in 0..facts.sample_count {
            match source.entry(index) {
                Ok(entry) => {
                    let label = match entry.label {
                        Some(label) => Ok(Some(label)),
                        None => problem(source.check_label(index))?.map_or(Ok(None), Err),
                    };
                    let folder = match entry.key {
                        // Only archives without folders have a parent.
                        Some(_) if !parent.is_empty() => folders.id(parent),
                        Some(key) => folders.id(&key),
                        None => NO_FOLDER,
                    };
                    found.push(label, folder);
                }
                Err(error) if error.is_damage() => found.push(Err(Problem::Entry), NO_FOLDER),
                Err(error) => return Err(error),
            }
        }
        Ok(found.settle(facts))
    }

    pub(super) fn push(&mut self, label: Result<Option<i64>, Problem>, folder: u32) {
        if let Err(problem) = label {
            self.problems.push((self.stored.len() as u64, problem));
        }
        self.stored.push(label.ok().flatten().unwrap_or(NONE));
        self.folder_ids.push(folder);
    }

    /// Drops what does not count: folders next to stored labels, and a list of none.
    pub(super) fn settle(mut self, facts: SourceFacts<'_>) -> Self {
        let labelled = self.stored.iter().filter(|&&label| label != NONE).count();
        let bad = self.problems.iter().filter(|(_, problem)| *problem == Problem::Cls).count();
        if counts((labelled + bad) as u64, facts) {
            self.folder_ids = Vec::new();
        }
        if labelled == 0 {
            self.stored = Vec::new();
        }
        self
    }

    pub(super) fn sample_count(&self) -> u64 {
        self.stored.len() as u64
    }

    /// Whether stored labels count, whatever the folders are.
    pub(super) fn has_stored_only(&self) -> bool {
        self.folder_ids.is_empty() && !self.stored.is_empty()
    }

    /// The folders of all samples.
    pub(super) fn distinct_folders(&self) -> BTreeSet<u32> {
        let mut distinct = BTreeSet::new();
        let mut last = NO_FOLDER;
        for &id in &self.folder_ids {
            if id != last {
                distinct.insert(id);
                last = id;
            }
        }
        distinct.remove(&NO_FOLDER);
        distinct
    }

    /// Samples with a stored label, which may be unreadable, and their folders.
    pub(super) fn with_stored(&self) -> impl Iterator<Item = (u64, Option<i64>, u32)> {
        let label = |index: u64| {
            let at = usize::try_from(index).ok()?;
            self.stored.get(at).copied().filter(|&label| label != NONE)
        };
        (0..).zip(&self.folder_ids).filter_map(move |(index, &folder)| {
            let stored = label(index);
            let is_bad = || self.problems.binary_search_by_key(&index, |&(at, _)| at).is_ok();
            (stored.is_some() || is_bad()).then_some((index, stored, folder))
        })
    }

    /// The labels that class folders give, and the samples of which nothing is known.
    pub(super) fn by_folder(&self, class_of: &HashMap<u32, usize>) -> (Vec<i64>, Vec<u64>) {
        let label = |folder| class_of.get(folder).and_then(|&class| i64::try_from(class).ok());
        let labels = self.folder_ids.iter().map(|folder| label(folder).unwrap_or(NONE)).collect();
        let damaged = self.problems.iter().filter(|(_, problem)| *problem == Problem::Entry);
        (labels, damaged.map(|&(index, _)| index).collect())
    }

    /// The stored labels, and the samples whose label cannot be read.
    pub(super) fn take_stored(&mut self) -> (Vec<i64>, Vec<u64>) {
        let unreadable = self.problems.iter().filter(|(_, problem)| *problem != Problem::Metadata);
        let unreadable = unreadable.map(|&(index, _)| index).collect();
        (std::mem::take(&mut self.stored), unreadable)
    }

    /// The samples whose JSON metadata has a `label` that is not an integer.
    pub(super) fn with_other_label(&self) -> impl Iterator<Item = u64> {
        let other = self.problems.iter().filter(|(_, problem)| *problem == Problem::Metadata);
        other.map(|&(index, _)| index)
    }
}

/// Whether this many stored labels are those of the source: any of a TBL file, more than half where
/// labels are files.
fn counts(labelled: u64, facts: SourceFacts<'_>) -> bool {
    let least = if facts.has_label_files { facts.sample_count / 2 } else { 0 };
    labelled > least
}

/// The samples without a label in `stored` whose JSON metadata has one that is not an integer.
fn other_labels_of_unlabelled(
    source: &dyn SampleSource,
    stored: &[i64],
) -> Result<Vec<(u64, Problem)>, ReadError> {
    let mut other = Vec::new();
    for (index, _) in (0..).zip(stored).filter(|&(_, &label)| label == NONE) {
        let found = problem(source.check_label(index))?;
        other.extend(found.filter(|found| *found == Problem::Metadata).map(|found| (index, found)));
    }
    Ok(other)
}

fn problem(checked: Result<(), ReadError>) -> Result<Option<Problem>, ReadError> {
    let error = match checked {
        Ok(()) => return Ok(None),
        Err(error) if !error.is_damage() => return Err(error),
        Err(error) => error,
    };
    let cause = if let ReadError::Sample { source, .. } = &error { source } else { &error };
    let ReadError::Label { member, .. } = cause else { return Ok(Some(Problem::Entry)) };
    let base = member.rsplit(|&byte| byte == b'/').next().unwrap_or(member);
    let field = LabelField::of(split_base(base).1);
    Ok(Some(field.map_or(Problem::Metadata, Problem::of)))
}

fn unless_damaged<T>(result: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_damage() => Ok(None),
        Err(error) => Err(error),
    }
}
