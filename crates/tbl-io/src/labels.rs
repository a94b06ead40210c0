//! One label per sample over all the sources of a data set, and what the classes are called.

mod archives;
mod boxes;
mod folder_notes;
mod folders;
mod found;
mod given;
mod joined;
mod merge;
mod renamed;

use std::borrow::Cow;

use crate::error::{ClassPair, ReadError};
use crate::label::{LabelDefect, LabelField};
use crate::location::Location;
use crate::note::{Note, NotedSample};
use crate::sample::{SampleSource, SampleSourceExt, SourceKind};
use boxes::BoxClasses;
use folders::{Classes, Folders};
use found::{Found, Problem};

pub use given::GivenLabels;

/// The labels of a data set that consists of one or more sources.
///
/// Each source has labels of one kind. Stored labels (`.cls`, `.json`, TBL) count in a TBL file that
/// has a list of them or any, and in a TAR archive or folder where more than half of the samples have one. Otherwise
/// class folders give the labels of the source, if it has at least two: the first folder below the
/// one that all its samples share, the classes sorted by name and numbered from 0. If neither
/// applies, the few stored labels count. An archive named by a number of `WordNet` with samples that
/// start with it, such as `n01440764.tar` with `n01440764_36.JPEG`, counts as a class folder.
/// A manifest has the labels that it states, and no class folders.
///
/// Sources are joined by class name: equal lists of names keep their numbers, different ones are
/// renumbered by the sorted union of their names. Numbers without names cannot be joined with names.
/// The [classes of boxes](Self::box_class_names) are joined by name too.
///
/// ```
/// use tbl_io::{Folder, LabelOrigin, Labels, SampleSource};
///
/// let root = tempfile::tempdir()?;
/// for class in ["dogs", "cats"] {
///     std::fs::create_dir(root.path().join(class))?;
///     std::fs::write(root.path().join(class).join("1.jpg"), b"...")?;
/// }
/// let sources: [Box<dyn SampleSource>; 1] = [Box::new(Folder::open(root.path())?)];
/// let labels = Labels::resolve(&sources)?;
/// assert_eq!(labels.origin(), LabelOrigin::ClassFolders);
/// assert_eq!(labels.class_names(), ["cats", "dogs"]);
/// assert_eq!(labels.label(0, 1), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// By source and sample; [`NONE`] for a sample without one. Empty for a source without any.
    labels: Vec<Vec<i64>>,
    /// Samples whose label cannot be read, as source and sample, ascending.
    unreadable: Vec<(usize, u64)>,
    class_names: Vec<String>,
    origin: LabelOrigin,
    notes: Vec<Note>,
    boxes: BoxClasses,
}

/// The source of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelOrigin {
    /// The samples have no labels.
    None,
    /// They are stored with the samples.
    Explicit,
    /// They follow from the folders that the samples lie in.
    ClassFolders,
    /// Some sources store them, others have class folders.
    Mixed,
    /// The caller gives them.
    Given,
}

const NONE: i64 = i64::MIN;

/// A source, as far as its labels depend on it.
#[derive(Clone, Copy)]
struct SourceFacts<'a> {
    location: &'a Location,
    class_names: &'a [String],
    sample_count: u64,
    /// A TAR archive or a folder: labels are separate files, and a stray one does not
    /// decide for the others.
    has_label_files: bool,
    /// A manifest, a Parquet or an Arrow file, or a TBL file if it has a list of labels: the list states
    /// all of them, and may have none.
    states_all: bool,
}

impl Labels {
    /// Finds the labels of all samples of `sources`: 8 bytes for each.
    ///
    /// A label that cannot be read is `None` here; [`try_label`](Self::try_label) fails for it.
    /// Sources may be boxed or shared.
    ///
    /// # Errors
    /// [`ReadError::Io`] when an entry or a label cannot be read, [`ReadError::UnnamedLabels`] and
    /// [`ReadError::ClassFolderDepths`] for sources that cannot be joined by class name, and
    /// [`ReadError::LabelWithoutClass`] when a label to be renumbered is beyond the names of its
    /// source, and [`ReadError::OtherClasses`] for files that declare different classes.
    pub fn resolve<S: AsRef<dyn SampleSource>>(sources: &[S]) -> Result<Self, ReadError> {
        let mut folders = Folders::default();
        let mut facts = Vec::new();
        let mut found = Vec::new();
        let sources: Vec<&dyn SampleSource> = sources.iter().map(AsRef::as_ref).collect();
        check_declared(&sources)?;
        let archive_folders = archives::class_folders(&sources)?;
        for (number, &source) in sources.iter().enumerate() {
            let of_source = SourceFacts {
                location: source.location(),
                class_names: source.class_names(),
                sample_count: source.sample_count(),
                has_label_files: matches!(source.kind(), SourceKind::Folder | SourceKind::Tar),
                states_all: matches!(
                    source.kind(),
                    SourceKind::Manifest
                        | SourceKind::Parquet
                        | SourceKind::Arrow
                        | SourceKind::Tbl2
                ),
            };
            let parent = archive_folders.as_ref().map_or(&[][..], |folders| &folders[number]);
            found.push(Found::read(source, of_source, parent, &mut folders)?);
            facts.push(of_source);
        }
        let other = found
            .iter()
            .enumerate()
            .flat_map(|(number, found)| found.with_other_label().map(move |index| (number, index)));
        let other: Vec<(usize, u64)> = other.collect();
        let (mut labels, conflict) = Self::of_found(&facts, &folders, found)?;
        labels.boxes = BoxClasses::of(&sources);
        let note_sample = |(number, index): (usize, u64)| noted(sources[number], index);
        if let Some(&first) = other.first() {
            let samples = other.len() as u64;
            let first = note_sample(first);
            labels.notes.push(Note::OtherLabel { samples, first });
        }
        if let Some(Conflict { samples, first, stored, class }) = conflict {
            let first = note_sample(first);
            labels.notes.push(Note::LabelConflict { samples, first, stored, class });
        }
        if let Some((samples, first)) = labels.unlabelled(&sources) {
            labels.notes.push(Note::PartlyLabelled { samples, first: note_sample(first) });
        }
        let is_unlabelled = |number: usize| {
            let has_unreadable = labels.unreadable.iter().any(|&(source, _)| source == number);
            labels.labels[number].is_empty() && !has_unreadable
        };
        labels.notes.extend(folder_notes::separate_folders(&sources, is_unlabelled));
        if archive_folders.is_some() && labels.origin == LabelOrigin::ClassFolders {
            let archives = sources.len() as u64;
            let first = sources[0].location().clone();
            labels.notes.push(Note::ArchiveClasses { archives, first });
        }
        Ok(labels)
    }

    /// The labels that a TAR archive of these samples has as source 0. Each has a name, which is none
    /// in a folder if it is not known, and the label in its fields or the field that has none that
    /// can be read.
    pub(crate) fn of_archive<'a>(
        samples: impl Iterator<Item = (Option<Cow<'a, [u8]>>, Result<Option<i64>, LabelField>)>,
    ) -> Result<Self, ReadError> {
        let location = Location::default();
        let mut folders = Folders::default();
        let mut found = Found::default();
        for (key, label) in samples {
            found.push(label.map_err(Problem::of), folders.id(&key.unwrap_or_default()));
        }
        let sample_count = found.sample_count();
        let facts = SourceFacts {
            location: &location,
            class_names: &[],
            sample_count,
            has_label_files: true,
            states_all: false,
        };
        let found = found.settle(facts);
        Ok(Self::of_found(&[facts], &folders, vec![found])?.0)
    }

    fn of_found(
        facts: &[SourceFacts<'_>],
        folders: &Folders,
        mut found: Vec<Found>,
    ) -> Result<(Self, Option<Conflict>), ReadError> {
        let named = facts.iter().zip(&found).filter(|(_, found)| found.has_stored_only());
        let named = named.flat_map(|(facts, _)| facts.class_names).map(String::as_str).collect();
        let ids = facts.iter().zip(&found);
        let ids: Vec<_> =
            ids.map(|(facts, found)| (facts.location, found.distinct_folders())).collect();
        let classes = folders.classes(&ids, &named)?;
        let mut conflict = None;
        let mut unreadable = Vec::new();
        let has_classes = |number: usize| !classes.of_source[number].is_empty();
        let mut labels = Vec::with_capacity(found.len());
        for (number, found) in found.iter_mut().enumerate() {
            let (of_source, problems) = if has_classes(number) {
                Conflict::add(&mut conflict, number, found, &classes);
                found.by_folder(&classes.of_source[number])
            } else {
                found.take_stored()
            };
            labels.push(of_source);
            unreadable.extend(problems.into_iter().map(|index| (number, index)));
        }
        let named = facts.iter().zip(&classes.of_source).map(|(facts, folders)| merge::Named {
            location: facts.location,
            names: if folders.is_empty() { facts.class_names } else { &classes.names },
        });
        let class_names = merge::by_name(&named.collect::<Vec<_>>(), &mut labels)?;
        let labelled = |number: &usize| !labels[*number].is_empty();
        let mut from_folders = (0..facts.len()).filter(labelled).map(has_classes);
        let origin = match from_folders.next() {
            None => LabelOrigin::None,
            Some(first) if from_folders.any(|other| other != first) => LabelOrigin::Mixed,
            Some(true) => LabelOrigin::ClassFolders,
            Some(false) => LabelOrigin::Explicit,
        };
        let notes = folder_notes::like_splits(&classes).into_iter().collect();
        let boxes = BoxClasses::default();
        Ok((Self { labels, unreadable, class_names, origin, notes, boxes }, conflict))
    }

    /// How many samples have no label although others have one, and the first of them.
    fn unlabelled(&self, sources: &[&dyn SampleSource]) -> Option<(u64, (usize, u64))> {
        if self.labels.iter().all(Vec::is_empty) {
            return None;
        }
        let mut labelled = 0_u64;
        let mut unlabelled = 0_u64;
        let mut first = None;
        for (number, source) in sources.iter().enumerate() {
            let labels = &self.labels[number];
            for index in 0..source.sample_count() {
                let at = usize::try_from(index).unwrap_or(usize::MAX);
                if labels.get(at).is_some_and(|&label| label != NONE) {
                    labelled += 1;
                } else if !self.is_unreadable(number, index) {
                    unlabelled += 1;
                    first = first.or(Some((number, index)));
                }
            }
        }
        first.filter(|_| labelled > 0).map(|first| (unlabelled, first))
    }

    /// The label of sample `index` of source number `source`; `None` also for one that cannot be
    /// read.
    pub fn label(&self, source: usize, index: u64) -> Option<i64> {
        let index = usize::try_from(index).ok()?;
        self.labels.get(source)?.get(index).copied().filter(|&label| label != NONE)
    }

    /// As [`label`](Self::label), but fails where the label cannot be read. `sources` are those that
    /// the labels were resolved for.
    ///
    /// # Errors
    /// [`ReadError::Label`], or the damage that hides the label.
    pub fn try_label<S: AsRef<dyn SampleSource>>(
        &self,
        sources: &[S],
        source: usize,
        index: u64,
    ) -> Result<Option<i64>, ReadError> {
        self.try_label_of(sources.get(source).map(AsRef::as_ref), source, index)
    }

    /// As [`try_label`](Self::try_label), for source number `number`.
    pub(crate) fn try_label_of(
        &self,
        source: Option<&dyn SampleSource>,
        number: usize,
        index: u64,
    ) -> Result<Option<i64>, ReadError> {
        if !self.is_unreadable(number, index) {
            return Ok(self.label(number, index));
        }
        let Some(source) = source else { return Ok(None) };
        let key = source.entry(index)?.key;
        source.check_label(index)?;
        let location = source.location().clone();
        let member = key.unwrap_or_default().into_owned();
        let changed = ReadError::Label { location, member, source: LabelDefect::Changed };
        Err(changed.for_sample(index, None))
    }

    pub(crate) fn is_unreadable(&self, source: usize, index: u64) -> bool {
        self.unreadable.binary_search(&(source, index)).is_ok()
    }

    /// The classes' names by label; empty when they have none. Names that are not UTF-8 are
    /// escaped.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// The source of the labels.
    pub fn origin(&self) -> LabelOrigin {
        self.origin
    }

    /// Oddities of the labels that are not errors: samples without a label among others, labels in
    /// files that differ from the class folders, folders that may be classes or splits. Most often
    /// none.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

/// Fails for two sources that declare their classes and declare different ones.
fn check_declared(sources: &[&dyn SampleSource]) -> Result<(), ReadError> {
    let mut declared = sources.iter().filter(|source| source.declares_classes());
    let Some(first) = declared.next() else { return Ok(()) };
    for source in declared {
        let expected = first.class_names();
        let found = source.class_names();
        let count = found.len().max(expected.len());
        if let Some(label) = (0..count).find(|&label| found.get(label) != expected.get(label)) {
            return Err(ReadError::OtherClasses {
                location: source.location().clone(),
                other: first.location().clone(),
                label,
                classes: Box::new(ClassPair {
                    found: found.get(label).cloned(),
                    expected: expected.get(label).cloned(),
                }),
            });
        }
    }
    Ok(())
}

/// A sample of a source for a note.
fn noted(source: &dyn SampleSource, index: u64) -> NotedSample {
    let key = source.entry(index).ok().and_then(|entry| entry.key).map(Cow::into_owned);
    NotedSample { location: source.location().clone(), index, key }
}

/// Samples whose stored label is not that of their class folder.
struct Conflict {
    samples: u64,
    /// Source and sample of the first.
    first: (usize, u64),
    /// Its stored label; `None` for one that cannot be read.
    stored: Option<i64>,
    /// The class of its folder.
    class: String,
}

impl Conflict {
    fn add(conflict: &mut Option<Self>, number: usize, found: &Found, classes: &Classes) {
        for (index, stored, folder) in found.with_stored() {
            let Some(&class) = classes.of_source[number].get(&folder) else { continue };
            if stored.is_some_and(|label| usize::try_from(label) == Ok(class)) {
                continue;
            }
            let class = || classes.names.get(class).cloned().unwrap_or_default();
            let first = || Self { samples: 0, first: (number, index), stored, class: class() };
            conflict.get_or_insert_with(first).samples += 1;
        }
    }
}
