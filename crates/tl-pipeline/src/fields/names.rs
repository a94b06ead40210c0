//! The files of a sample that names of fields stand for.
//!
//! A name is what follows the first dot of a file's base name: `json`, `right.jpg`. Upper and lower
//! case are equal, as for WebDataset. The sample's own file has a name too. Numbered samples such
//! as `cat.0.jpg` go by the names `json` and `jpg` as well, for `cat.0.json` and `cat.0.jpg`.

use std::collections::BTreeSet;

use tbl_io::{Entry, Field};

use super::{Fields, ImageField};
use crate::dataset::Dataset;
use crate::error::{PipelineError, SampleFault};

/// Names that a message lists.
const MAX_LISTED: usize = 32;

/// Reads the fields of one sample.
pub(super) struct FieldReader<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) index: u64,
    /// The most bytes that all of them may have.
    pub(super) limit: u64,
}

impl FieldReader<'_> {
    /// Appends the files that `fields` needs to `stored`, by the names they are asked for.
    pub(super) fn read(&self, fields: &Fields, stored: &mut Vec<Field>) -> Result<(), SampleFault> {
        let Self { dataset, index, limit } = *self;
        let mut bytes = 0_u64;
        let mut entry = None;
        let mut is_wanted = |extension: &[u8], size| {
            let is_needed = fields.needs(extension)
                || (fields.may_need_own(extension) && {
                    // An entry that cannot be read is found again below.
                    let entry = entry.get_or_insert_with(|| dataset.entry(index).ok());
                    let own = entry.as_ref().and_then(|entry| entry.own_field_name(extension));
                    own.is_some_and(|name| fields.needs(name))
                });
            bytes = bytes.saturating_add(if is_needed { size } else { 0 });
            is_needed && bytes <= limit
        };
        dataset.read_fields_where(index, &mut is_wanted, stored)?;
        if bytes <= limit && fields.names().any(|name| position(stored, name).is_none()) {
            let entry = dataset.entry(index)?;
            for name in fields.names() {
                bytes = bytes.saturating_add(self.add_alias(&entry, name, stored)?);
            }
            if fields.names().any(|name| position(stored, name).is_none()) {
                dataset.check_fields(index)?;
            }
        }
        if bytes > limit {
            return Err(SampleFault::StoredSize { bytes, limit });
        }
        Ok(())
    }

    /// Finds the file that `name` stands for if no field is called so. Returns how many bytes have
    /// to be read for it.
    fn add_alias(
        &self,
        entry: &Entry<'_>,
        name: &str,
        stored: &mut Vec<Field>,
    ) -> Result<u64, SampleFault> {
        if position(stored, name).is_some() {
            return Ok(0);
        }
        let own = |extension| entry.own_field_name(extension).is_some_and(|own| is(own, name));
        let is_sample = is(entry.extension(), name);
        let extension = name.as_bytes().to_vec();
        if let Some(field) = stored.iter().find(|field| !is_sample && own(&field.extension)) {
            let bytes = field.bytes.clone();
            stored.push(Field { extension, bytes });
            return Ok(0);
        }
        if !is_sample && !own(entry.extension()) {
            return Ok(0);
        }
        let mut bytes = Vec::new();
        if entry.bytes <= self.limit {
            self.dataset.read_into(self.index, &mut bytes)?;
            stored.push(Field { extension, bytes });
        }
        Ok(entry.bytes)
    }
}

/// The position of the field called `name`.
pub(super) fn position(stored: &[Field], name: &str) -> Option<usize> {
    let exact = stored.iter().position(|field| field.extension == name.as_bytes());
    exact.or_else(|| stored.iter().position(|field| is(&field.extension, name)))
}

fn is(extension: &[u8], name: &str) -> bool {
    extension.eq_ignore_ascii_case(name.as_bytes())
}

impl Fields {
    /// The bytes of each of `bytes` of sample `index`; `None` for a file that the sample lacks.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read_bytes(
        &self,
        dataset: &Dataset,
        index: u64,
    ) -> Result<Vec<Option<Vec<u8>>>, SampleFault> {
        self.read_bytes_within(dataset, index, u64::MAX)
    }

    /// As [`read_bytes`](Self::read_bytes), for files of at most `limit` bytes in all.
    pub(crate) fn read_bytes_within(
        &self,
        dataset: &Dataset,
        index: u64,
        limit: u64,
    ) -> Result<Vec<Option<Vec<u8>>>, SampleFault> {
        let mut stored = Vec::new();
        FieldReader { dataset, index, limit }.read(self, &mut stored)?;
        let bytes = |name: &String| position(&stored, name).map(|at| stored[at].bytes.clone());
        Ok(self.bytes.iter().map(bytes).collect())
    }

    /// The names of the files that have to be read.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let of_boxes = self.boxes.as_ref().map(|field| &field.file);
        let of_keypoints = self.keypoints.iter().map(|field| &field.file);
        let of_objects = self.instance_masks.as_ref().map(|field| &field.file);
        let of_mask = self.mask.as_ref().map(|field| &field.file);
        let of_images = self.images.iter().filter_map(ImageField::file);
        let of_values = self.values.iter().map(|value| &value.file);
        let texts = self.texts.iter().map(|text| &text.file);
        let names = self.bytes.iter().chain(texts).chain(of_boxes).chain(of_keypoints);
        let names = names.chain(of_objects).chain(of_mask);
        let names = names.chain(of_images).chain(of_values);
        names.map(String::as_str)
    }

    /// True if the file with this extension must be read for them.
    fn needs(&self, extension: &[u8]) -> bool {
        self.names().any(|name| is(extension, name))
    }

    /// True if the file with this extension may belong to a numbered sample and must be read.
    fn may_need_own(&self, extension: &[u8]) -> bool {
        self.names().any(|name| {
            let dot = extension.len().checked_sub(name.len() + 1);
            dot.is_some_and(|dot| extension[dot] == b'.' && is(&extension[dot + 1..], name))
        })
    }

    /// Checks that some sample has each of the files that are asked for. Most often the first
    /// sample has all of them, and no other is looked at.
    ///
    /// # Errors
    /// [`PipelineError::UnknownField`].
    pub fn check_names(&self, dataset: &Dataset) -> Result<(), PipelineError> {
        let mut missing: Vec<&str> = self.names().collect();
        let mut found = BTreeSet::new();
        let mut is_damaged = false;
        for index in 0..dataset.len() {
            if missing.is_empty() {
                return Ok(());
            }
            // A damaged sample is reported when it is read, and may have the file.
            let Ok(entry) = dataset.entry(index) else {
                is_damaged = true;
                continue;
            };
            let mut see = |extension: &[u8]| {
                let own = entry.own_field_name(extension).unwrap_or(extension);
                missing.retain(|name| !is(extension, name) && !is(own, name));
                if found.len() < MAX_LISTED && !own.is_empty() {
                    found.insert(String::from_utf8_lossy(own).into_owned());
                }
            };
            see(entry.extension());
            let mut look = |extension: &[u8], _| {
                see(extension);
                false
            };
            is_damaged |= dataset.read_fields_where(index, &mut look, &mut Vec::new()).is_err();
        }
        match missing.first() {
            Some(name) if !is_damaged || !found.is_empty() => Err(PipelineError::UnknownField {
                name: (*name).to_owned(),
                found: found.into_iter().collect(),
            }),
            _ => Ok(()),
        }
    }
}
