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

    /// True if the sample has the file that `file` names.
    pub(super) fn has(&self, file: &str) -> bool {
        position(&self.stored, file).is_some()
    }

    /// The bytes of the file that `file` names.
    pub(crate) fn bytes(&self, file: &str) -> Result<&[u8], AnnotationFault> {
        let missing = || AnnotationFault::NoFile { file: file.to_owned() };
        let place = position(&self.stored, file);
        place.map(|place| &*self.stored[place].bytes).ok_or_else(missing)
    }

    /// The bytes of the file, if the sample has it.
    pub(super) fn copy(&self, file: &str) -> Option<Vec<u8>> {
        position(&self.stored, file).map(|place| self.stored[place].bytes.clone())
    }

    /// Refuses a text that is not in its format; a sample may lack it.
    pub(super) fn check(&mut self, text: &TextFile) -> Result<(), AnnotationFault> {
        let TextFile { file, format } = text;
        if !self.has(file) {
            return Ok(());
        }
        match format {
            TextFormat::Json => self.document(file).map(|_| ()),
            TextFormat::Utf8 => {
                let checked = std::str::from_utf8(self.bytes(file)?).map(|_| ());
                let fault = |source| AnnotationFault::Text { file: file.clone(), source };
                checked.map_err(fault)
            }
        }
    }

    /// The JSON in the file that `file` names.
    pub(super) fn document(&mut self, file: &str) -> Result<&Value, AnnotationFault> {
        let known = self.documents.iter().position(|(name, _)| name == file);
        let place = match known {
            Some(place) => place,
            None => {
                let bytes = self.bytes(file)?;
                let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
                let document = serde_json::from_slice(bytes)
                    .map_err(|source| AnnotationFault::Json { file: file.to_owned(), source })?;
                self.documents.push((file.to_owned(), document));
                self.documents.len() - 1
            }
        };
        Ok(&self.documents[place].1)
    }
}
