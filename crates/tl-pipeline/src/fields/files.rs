//! The sidecar files of one sample, with the JSON in them parsed once.

use serde_json::Value;
use tbl_io::Field;

use super::Fields;
use super::names::{FieldReader, position};
use crate::dataset::Dataset;
use crate::error::{AnnotationFault, SampleFault};

/// The sidecar files of one sample.
#[derive(Debug, Default)]
pub(crate) struct Files {
    stored: Vec<Field>,
    /// By name, the JSON that was asked for.
    documents: Vec<(String, Value)>,
}

impl Files {
    /// Reads those of sample `index` that `fields` needs, if they have no more than `limit` bytes
    /// together. Returns how many bytes were read.
    pub(crate) fn read(
        &mut self,
        fields: &Fields,
        dataset: &Dataset,
        index: u64,
        limit: u64,
    ) -> Result<usize, SampleFault> {
        self.clear();
        FieldReader { dataset, index, limit }.read(fields, &mut self.stored)?;
        Ok(self.stored.iter().map(|field| field.bytes.len()).sum())
    }

    /// Forgets the files.
    pub(crate) fn clear(&mut self) {
        self.stored.clear();
        self.documents.clear();
    }

    /// True if the sample has the file that `column` names.
    pub(super) fn has(&self, column: &str) -> bool {
        position(&self.stored, column).is_some()
    }

    /// The bytes of the file that `column` names.
    pub(crate) fn bytes(&self, column: &str) -> Result<&[u8], AnnotationFault> {
        let missing = || AnnotationFault::NoColumn { column: column.to_owned() };
        let place = position(&self.stored, column);
        place.map(|place| &*self.stored[place].bytes).ok_or_else(missing)
    }

    /// The bytes of the file, if the sample has it.
    pub(super) fn copy(&self, column: &str) -> Option<Vec<u8>> {
        position(&self.stored, column).map(|place| self.stored[place].bytes.clone())
    }

    /// The JSON in the file that `column` names.
    pub(super) fn document(&mut self, column: &str) -> Result<&Value, AnnotationFault> {
        let known = self.documents.iter().position(|(name, _)| name == column);
        let place = match known {
            Some(place) => place,
            None => {
                let bytes = self.bytes(column)?;
                let document = serde_json::from_slice(bytes).map_err(|source| {
                    AnnotationFault::Json { column: column.to_owned(), source }
                })?;
                self.documents.push((column.to_owned(), document));
                self.documents.len() - 1
            }
        };
        Ok(&self.documents[place].1)
    }
}
