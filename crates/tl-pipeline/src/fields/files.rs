//! The sidecar files of one sample, with the JSON in them parsed once.

use serde_json::Value;
use tbl_io::Field;

use super::names::{FieldReader, position};
use super::{Fields, TextFile, TextFormat};
use crate::dataset::Dataset;
use crate::error::{AnnotationFault, SampleFault};

/// U+FEFF in UTF-8, which some editors put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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

    /// Refuses a text that is not in its format; a sample may lack it.
    pub(super) fn check(&mut self, text: &TextFile) -> Result<(), AnnotationFault> {
        let TextFile { column, format } = text;
        if !self.has(column) {
            return Ok(());
        }
        match format {
            TextFormat::Json => self.document(column).map(|_| ()),
            TextFormat::Utf8 => {
                let checked = std::str::from_utf8(self.bytes(column)?).map(|_| ());
                let fault = |source| AnnotationFault::Text { column: column.clone(), source };
                checked.map_err(fault)
            }
        }
    }

    /// The JSON in the file that `column` names.
    pub(super) fn document(&mut self, column: &str) -> Result<&Value, AnnotationFault> {
        let known = self.documents.iter().position(|(name, _)| name == column);
        let place = match known {
            Some(place) => place,
            None => {
                let bytes = self.bytes(column)?;
                let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
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
