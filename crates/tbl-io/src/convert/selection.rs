//! Several sources, or a part of them, as one sequence of samples.

use std::ops::Range;

use super::error::ConvertError;
use super::metadata::tbl_file;
use crate::error::ReadError;
use crate::labels::{LabelOrigin, Labels};
use crate::sample::{Facts, Field, MetadataBlock, SampleSource, SampleSourceExt};
use crate::starts::Starts;

/// Consecutive samples of a list of sources, numbered from zero.
#[derive(Clone, Debug)]
pub struct Selection<'a> {
    sources: Vec<&'a dyn SampleSource>,
    labels: &'a Labels,
    starts: Starts,
    range: Range<u64>,
    /// The numbers of the samples, counted over all sources, where they are not consecutive.
    chosen: Option<&'a [u64]>,
    file_metadata: &'a [MetadataBlock],
}

impl<'a> Selection<'a> {
    /// All samples of `sources`, one source after the other.
    ///
    /// # Errors
    /// [`ConvertError::Structure`] for a source with a damaged index or damaged metadata: a copy
    /// would have the damage and new checksums. [`ConvertError::TooManySamples`] past 64 bits.
    pub fn all<S: AsRef<dyn SampleSource>>(
        sources: &'a [S],
        labels: &'a Labels,
    ) -> Result<Self, ConvertError> {
        for source in sources {
            source.as_ref().verify_structure().map_err(ConvertError::of_structure)?;
        }
        let starts = Starts::new(sources)?;
        let range = 0..starts.sample_count;
        let sources = sources.iter().map(AsRef::as_ref).collect();
        Ok(Self { sources, labels, starts, range, chosen: None, file_metadata: &[] })
    }

    /// The same samples with these metadata blocks of the whole file, after those of the sources.
    #[must_use]
    pub fn with_file_metadata(self, file_metadata: &'a [MetadataBlock]) -> Self {
        Self { file_metadata, ..self }
    }

    /// The samples of this selection whose numbers are in `range`, as far as there are any.
    #[must_use]
    pub fn part(&self, range: Range<u64>) -> Self {
        let at = |number: u64| self.range.start.saturating_add(number).min(self.range.end);
        Self { range: at(range.start)..at(range.end), ..self.clone() }
    }

    /// The samples of all sources with these numbers, which are below the number of samples.
    #[must_use]
    pub fn choose(&self, numbers: &'a [u64]) -> Self {
        Self { range: 0..numbers.len() as u64, chosen: Some(numbers), ..self.clone() }
    }

    /// How many samples are selected.
    pub fn sample_count(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Whether there are samples that are not selected.
    pub(super) fn is_part(&self) -> bool {
        let all: u64 = self.sources.iter().map(|source| source.sample_count()).sum();
        self.chosen.is_some() || self.sample_count() < all
    }

    /// Whether a reader could take folders for the labels of samples that all have none. The folders
    /// of all samples count: a part is read with its siblings or without them.
    ///
    /// # Errors
    /// Labels that cannot be read.
    pub fn has_folders_for_no_labels(&self) -> Result<bool, ReadError> {
        let mut numbers = 0..self.sample_count();
        if numbers.any(|number| !matches!(self.try_label(number), Ok(None))) {
            return Ok(false);
        }
        let counts = self.sources.iter().map(|source| source.sample_count());
        let places = self.sources.iter().zip(counts);
        let samples = places.flat_map(|(&source, count)| (0..count).map(move |at| (source, at)));
        // A damaged entry will be reported when its turn comes.
        let keys = samples.map(|(source, at)| source.entry(at).ok().and_then(|entry| entry.key));
        let found = Labels::of_archive(keys.map(|key| (key, Ok(None))))?;
        Ok(found.origin() == LabelOrigin::ClassFolders)
    }

    /// The class names of all sources, indexed by label.
    pub fn class_names(&self) -> &'a [String] {
        self.labels.class_names()
    }

    /// The names of the classes of boxes in all sources, by their numbers in the annotations.
    pub fn box_class_names(&self) -> &'a [String] {
        self.labels.box_class_names()
    }

    /// The numbers of classes of boxes whose names no list has, because some of them are below 0 or
    /// above 65,535; most often none.
    pub fn unlisted_box_classes(&self) -> &'a [i64] {
        let is_listed = !self.box_class_names().is_empty();
        let sources = self.sources.iter().filter(|_| !is_listed);
        sources.map(|source| source.box_class_numbers()).find(|all| !all.is_empty()).unwrap_or(&[])
    }

    /// The data sets that the samples come from.
    pub(super) fn sources(&self) -> &[&'a dyn SampleSource] {
        &self.sources
    }

    /// Metadata blocks of the whole file that no source has.
    pub(super) fn file_metadata(&self) -> &'a [MetadataBlock] {
        self.file_metadata
    }

    /// The source and the position of sample `number` of the selection.
    pub(super) fn locate(&self, number: u64) -> Located<'a> {
        let (shard, index) = self.place(number);
        Located { source: self.sources[shard], index, label: self.labels.label(shard, index) }
    }

    /// The label of sample `number` of the selection in its class names.
    ///
    /// # Errors
    /// A label that cannot be read.
    pub fn try_label(&self, number: u64) -> Result<Option<i64>, ReadError> {
        let (shard, index) = self.place(number);
        self.labels.try_label_of(self.sources.get(shard).copied(), shard, index)
    }

    /// The properties of sample `number` of the selection.
    ///
    /// # Errors
    /// As for [`SampleSource::facts`].
    pub fn facts(&self, number: u64) -> Result<Facts, ReadError> {
        let Located { source, index, .. } = self.locate(number);
        source.facts(index)
    }

    /// Appends the fields of sample `number` of the selection that `is_wanted` selects to `fields`, with
    /// the numbers of its box classes.
    ///
    /// # Errors
    /// As for [`SampleSource::read_fields_where`].
    pub fn read_fields_where(
        &self,
        number: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        let (shard, index) = self.place(number);
        let source = self.sources[shard];
        self.labels.read_fields_of(source, shard, index, is_wanted, fields)
    }

    /// The number of sample `number` of the selection, counted over all sources.
    fn number_in_all(&self, number: u64) -> u64 {
        let global = self.range.start.saturating_add(number);
        let chosen = self.chosen.zip(usize::try_from(global).ok());
        chosen.and_then(|(numbers, at)| numbers.get(at).copied()).unwrap_or(global)
    }

    /// The number by which sample `number` gets a name: consecutive samples count from the first.
    pub(super) fn number_of(&self, number: u64) -> u64 {
        if self.chosen.is_some() { self.number_in_all(number) } else { number }
    }

    /// The source of sample `number` of the selection, and its number there.
    fn place(&self, number: u64) -> (usize, u64) {
        self.starts.place(self.number_in_all(number))
    }

    /// The bytes of memory that reading sample `number` takes, stored and unpacked. A damaged entry
    /// takes nothing:
    /// reading it will say what is wrong.
    pub(super) fn held_bytes(&self, number: u64) -> u64 {
        let Located { source, index, .. } = self.locate(number);
        let bytes =
            source.entry(index).map_or(0, |entry| entry.bytes.saturating_add(entry.stored_bytes));
        let metadata = tbl_file(source).and_then(|file| file.metadata_bytes(index).ok());
        bytes.saturating_add(metadata.unwrap_or(0))
    }
}

/// One sample of a [`Selection`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Located<'a> {
    pub(super) source: &'a dyn SampleSource,
    /// Its number in the source.
    pub(super) index: u64,
    /// Its label in the selection's class names; `None` also for one that cannot be read.
    pub(super) label: Option<i64>,
}
