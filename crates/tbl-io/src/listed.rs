//! Listed files as a data set, each a sample with an optional label and named fields.

mod annotations;
mod column;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use tbl_format::SampleFormat;

use crate::error::ReadError;
use crate::files::Files;
use crate::identity::Told;
use crate::limits::ReadLimits;
use crate::location::Location;
use crate::names::Names;
use crate::note::Note;
use crate::sample::{
    BulkIndex, Entry, Facts, Field, SampleSource, SourceKind, StoredBytes, StoredSamples,
};
use crate::source::Source;

pub(crate) use annotations::{Annotations, Span, renumber};
pub(crate) use column::{Column, FileNumbers, Texts, Values};

/// Files in the order of a list, each a sample.
///
/// Lists are manifests, metadata files, annotations, or paths of images; the functions that read them
/// return this source. A sample has the label and the fields that the list gives it: texts, parts of
/// the list, and further files. Names of samples are paths below one folder.
#[derive(Debug)]
pub struct Listed {
    parts: Parts,
    files: Files,
    /// True if samples can be requested in the background, once that was asked.
    in_background: OnceLock<bool>,
    /// By sample, the first one with its file, once that was asked. Empty if no two have one.
    firsts: OnceLock<Vec<u32>>,
    box_class_names: Vec<String>,
    /// Their numbers, if they are not their places.
    box_class_numbers: Vec<i64>,
    /// Keypoints that change places in mirrored images.
    flip_pairs: Vec<[usize; 2]>,
}

/// The content of a list, besides its files.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) kind: SourceKind,
    pub(crate) location: Location,
    /// Names of all files: those of the samples in order, then those of fields.
    pub(crate) names: Names,
    pub(crate) samples: u32,
    /// By sample, [`i64::MIN`] for none. Empty when no sample has one.
    pub(crate) labels: Vec<i64>,
    pub(crate) class_names: Vec<String>,
    pub(crate) columns: Vec<Column>,
    pub(crate) limits: ReadLimits,
    pub(crate) notes: Vec<Note>,
}

const NO_LABEL: i64 = i64::MIN;

impl Listed {
    pub(crate) fn new(files: Files, mut parts: Parts) -> Self {
        parts.names.shrink_to_fit();
        if parts.labels.iter().all(|&label| label == NO_LABEL) {
            parts.labels = Vec::new();
        }
        // Readers and caches treat a source in a store differently from a local one.
        if parts.location.url().is_some() != files.are_in_store() {
            parts.location = files.root().clone();
        }
        let in_background = OnceLock::new();
        let firsts = OnceLock::new();
        let box_class_names = Vec::new();
        let box_class_numbers = Vec::new();
        let flip_pairs = Vec::new();
        Self { parts, files, in_background, firsts, box_class_names, box_class_numbers, flip_pairs }
    }

    pub(crate) fn with_flip_pairs(self, flip_pairs: Vec<[usize; 2]>) -> Self {
        Self { flip_pairs, ..self }
    }

    pub(crate) fn with_box_classes(
        self,
        box_class_names: Vec<String>,
        box_class_numbers: Vec<i64>,
    ) -> Self {
        Self { box_class_names, box_class_numbers, ..self }
    }

    fn file(&self, index: u64) -> Result<u32, ReadError> {
        let file = u32::try_from(index).ok().filter(|&file| file < self.parts.samples);
        file.ok_or_else(|| ReadError::SampleOutOfRange {
            location: self.parts.location.clone(),
            index,
            sample_count: self.sample_count(),
        })
    }

    fn open_file(&self, file: u32) -> Result<Source, ReadError> {
        self.files.open(file, &self.parts.names.path(file))
    }

    /// For each sample the first one with its file; none if all files differ.
    fn firsts(&self) -> Vec<u32> {
        let names = &self.parts.names;
        let hasher = RandomState::new();
        let mut seen: HashMap<u64, u32> = HashMap::new();
        let mut firsts = Vec::new();
        for sample in 0..self.parts.samples {
            let name = names.path(sample);
            let first = *seen.entry(hasher.hash_one(&*name)).or_insert(sample);
            // Other names with the same hash count as files of their own.
            let is_again = first < sample && names.path(first) == name;
            firsts.push(if is_again { first } else { sample });
        }
        let are_different = (0..self.parts.samples).zip(&firsts).all(|(one, first)| one == *first);
        if are_different { Vec::new() } else { firsts }
    }

    fn read_source(&self, source: &Source, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.parts.limits.read_whole(source, bytes)
    }

    /// The bytes of the field of `column`, if there is one and it is wanted.
    fn read_field(
        &self,
        column: &Column,
        file: u32,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        match &column.values {
            Values::Texts(texts) => {
                let text = texts.get(file).filter(|text| {
                    let bytes = text.len() as u64;
                    is_wanted(&column.name, bytes)
                });
                Ok(text.map(<[u8]>::to_vec))
            }
            Values::Annotations(annotations) => {
                let bytes = annotations.len(file);
                self.parts.limits.check_sample_bytes(&self.parts.location, bytes)?;
                let is_wanted = is_wanted(&column.name, bytes);
                is_wanted.then(|| annotations.read(file)).transpose()
            }
            Values::Files(files) => {
                let Some(file) = files.get(file) else { return Ok(None) };
                let name = self.parts.names.path(file);
                let wanted = |size| is_wanted(&column.name, size);
                let Some(source) = self.files.open_wanted(file, &name, wanted)? else {
                    return Ok(None);
                };
                let mut bytes = Vec::new();
                self.read_source(&source, &mut bytes)?;
                Ok(Some(bytes))
            }
        }
    }
}

impl SampleSource for Listed {
    fn location(&self) -> &Location {
        &self.parts.location
    }

    fn kind(&self) -> SourceKind {
        self.parts.kind
    }

    fn sample_count(&self) -> u64 {
        self.parts.samples.into()
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let file = self.file(index)?;
        let label = self.parts.labels.get(file as usize).copied();
        let label = label.filter(|&label| label != NO_LABEL);
        Ok(Entry::new(self.facts(index)?, Some(self.parts.names.path(file)), label))
    }

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let file = self.file(index)?;
        let name = self.parts.names.path(file);
        let bytes = self.files.len(file, &name).map_err(|e| e.for_sample(index, Some(&name)))?;
        Ok(Facts {
            format: SampleFormat::from_file_name(self.parts.names.base(file)),
            width: 0,
            height: 0,
            offset: 0,
            stored_bytes: bytes,
            bytes,
        })
    }

    fn content_id(&self, index: u64, id: &mut Vec<u8>) -> Result<bool, ReadError> {
        let file = self.file(index)?;
        let name = self.parts.names.path(file);
        self.parts.limits.push_id(id);
        let told = self.files.content_id(file, &name, id);
        Ok(told.map_err(|e| e.for_sample(index, Some(&name)))? == Some(Told::ByTimes))
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let file = self.file(index)?;
        let read = self.open_file(file).and_then(|source| self.read_source(&source, bytes));
        read.map_err(|error| error.for_sample(index, Some(&self.parts.names.path(file))))
    }

    fn first_of_file(&self, index: u64) -> u64 {
        let firsts = self.firsts.get_or_init(|| self.firsts());
        let first = usize::try_from(index).ok().and_then(|index| firsts.get(index));
        first.map_or(index, |first| u64::from(*first))
    }

    fn class_names(&self) -> &[String] {
        &self.parts.class_names
    }

    fn box_class_names(&self) -> &[String] {
        &self.box_class_names
    }

    fn box_class_numbers(&self) -> &[i64] {
        &self.box_class_numbers
    }

    fn flip_pairs(&self) -> &[[usize; 2]] {
        &self.flip_pairs
    }

    fn will_need(&self, index: u64) {
        let Ok(file) = self.file(index) else { return };
        self.files.will_need(file, &self.parts.names.path(file));
    }

    fn will_need_fields(&self, index: u64) {
        let Ok(sample) = self.file(index) else { return };
        // The system reads small files of a disk ahead by itself.
        if !self.files.are_in_store() {
            return;
        }
        for column in &self.parts.columns {
            if let Values::Files(files) = &column.values
                && let Some(file) = files.get(sample)
            {
                self.files.will_need(file, &self.parts.names.path(file));
            }
        }
    }

    fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        let sample = self.file(index)?;
        for column in &self.parts.columns {
            let read = self.read_field(column, sample, is_wanted);
            let read =
                read.map_err(|e| e.for_sample(index, Some(&self.parts.names.path(sample))))?;
            let extension = || column.name.clone();
            fields.extend(read.map(|bytes| Field { extension: extension(), bytes }));
        }
        Ok(())
    }

    fn notes(&self) -> Vec<Note> {
        let empty = (self.sample_count() == 0).then_some(Note::NoSamples);
        self.parts.notes.iter().cloned().chain(empty).collect()
    }

    fn stored_samples(&self) -> Option<&dyn StoredSamples> {
        Some(self)
    }

    fn bulk_index(&self) -> Option<&dyn BulkIndex> {
        Some(self)
    }
}

impl BulkIndex for Listed {
    fn stored_labels(&self) -> Result<Option<Vec<i64>>, ReadError> {
        Ok(Some(self.parts.labels.clone()))
    }
}

impl StoredSamples for Listed {
    fn in_background(&self) -> bool {
        *self.in_background.get_or_init(|| {
            let first = || self.stored(0).ok()?.map(|stored| stored.source);
            self.files.are_listed() && first().is_some_and(|source| source.background().is_some())
        })
    }

    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        let file = self.file(index)?;
        let open = || {
            let source = self.open_file(file)?;
            self.parts.limits.check_sample_bytes(source.location(), source.len())?;
            let len = source.len();
            Ok(Some(StoredBytes { source, offset: 0, len }))
        };
        let name = |error: ReadError| error.for_sample(index, Some(&self.parts.names.path(file)));
        open().map_err(name)
    }
}
