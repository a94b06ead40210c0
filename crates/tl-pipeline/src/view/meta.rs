//! The properties of a sample that a filter may ask for.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use tbl_format::SampleFormat;
use tbl_io::Entry;
use tl_handoff::sync::{AtomicU64, Ordering};

use crate::dataset::Dataset;
use crate::error::{PipelineError, SampleFault, ViewError};
use crate::fields::Fields;

/// The most bytes of a sample's files that one property is read from: as for labels in JSON.
const MAX_FIELD_BYTES: u64 = 16 << 20;

/// A sample of a view as a filter sees it: its index entry, and on request what needs reading.
#[derive(Debug)]
pub(super) struct SampleMeta<'a> {
    dataset: &'a Dataset,
    index: u64,
    entry: Entry<'a>,
    reads: &'a Reads,
    /// Each is read once, however often a condition names it.
    size: OnceCell<(u32, u32)>,
    files: RefCell<HashMap<String, Option<Vec<u8>>>>,
    documents: RefCell<HashMap<String, serde_json::Value>>,
}

/// The reads of a pass over the samples.
#[derive(Debug, Default)]
pub(super) struct Reads {
    headers: AtomicU64,
    fields: AtomicU64,
}

impl Reads {
    /// The reads in words.
    pub(super) fn cost(&self) -> String {
        let headers = self.headers.load(Ordering::Relaxed);
        let fields = self.fields.load(Ordering::Relaxed);
        match (headers, fields) {
            (0, 0) => "reads the index".to_owned(),
            (headers, 0) => format!("read {headers} image headers"),
            (0, fields) => format!("read {fields} files of samples"),
            (headers, fields) => {
                format!("read {headers} image headers and {fields} files of samples")
            }
        }
    }
}

impl<'a> SampleMeta<'a> {
    pub(super) fn new(
        dataset: &'a Dataset,
        index: u64,
        reads: &'a Reads,
    ) -> Result<Self, PipelineError> {
        let entry = dataset.entry(index).map_err(|error| fault(dataset, index, error.into()))?;
        Ok(Self {
            dataset,
            index,
            entry,
            reads,
            size: OnceCell::new(),
            files: RefCell::default(),
            documents: RefCell::default(),
        })
    }

    /// Its number in the stored data set.
    #[must_use]
    pub(super) fn index(&self) -> u64 {
        self.index
    }

    /// Its name as stored, if it has one.
    #[must_use]
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.entry.key.as_deref()
    }

    /// The number of its bytes.
    #[must_use]
    pub(super) fn bytes(&self) -> u64 {
        self.entry.bytes
    }

    /// The format that the container states for it.
    #[must_use]
    pub(super) fn format(&self) -> SampleFormat {
        self.entry.format
    }

    /// Its label, if it has one.
    ///
    /// # Errors
    /// [`PipelineError::Sample`] if the label cannot be read.
    pub(super) fn label(&self) -> Result<Option<i64>, PipelineError> {
        self.dataset.try_label(self.index).map_err(|error| self.fault(error.into()))
    }

    /// The name of its class, if it has one.
    ///
    /// # Errors
    /// As for [`label`](Self::label).
    pub(super) fn class(&self) -> Result<Option<&'a str>, PipelineError> {
        let number = self.label()?.and_then(|label| usize::try_from(label).ok());
        let name = number.and_then(|number| self.dataset.class_names().get(number));
        Ok(name.map(String::as_str))
    }

    /// Width and height as stored, before the image is turned upright. They are those of the index;
    /// otherwise the image's header is read.
    ///
    /// # Errors
    /// [`PipelineError::Sample`] if the header cannot be read.
    pub(super) fn size(&self) -> Result<(u32, u32), PipelineError> {
        let Entry { width, height, .. } = self.entry;
        if width > 0 && height > 0 {
            return Ok((width, height));
        }
        if let Some(&size) = self.size.get() {
            return Ok(size);
        }
        self.reads.headers.fetch_add(1, Ordering::Relaxed);
        let mut bytes = Vec::new();
        let read = self.dataset.copy_into(self.index, &mut bytes);
        read.map_err(|error| self.fault(error.into()))?;
        let info = tl_decode::probe(&bytes).map_err(|error| self.fault(error.into()))?;
        Ok(*self.size.get_or_init(|| (info.width, info.height)))
    }

    /// The bytes of its file with this name, such as `json`; `None` if it has no such file.
    ///
    /// # Errors
    /// [`PipelineError::Sample`] if the file cannot be read, or has more than 16 MiB.
    pub(super) fn field(&self, name: &str) -> Result<Option<Vec<u8>>, PipelineError> {
        if let Some(bytes) = self.files.borrow().get(name) {
            return Ok(bytes.clone());
        }
        self.reads.fields.fetch_add(1, Ordering::Relaxed);
        let fields = Fields { bytes: vec![name.to_owned()], ..Fields::default() };
        let found = fields.read_bytes_within(self.dataset, self.index, MAX_FIELD_BYTES);
        let mut found = found.map_err(|found| self.fault(found))?;
        let bytes = found.pop().flatten();
        self.files.borrow_mut().insert(name.to_owned(), bytes.clone());
        Ok(bytes)
    }

    /// The result of `read` for the JSON in its file with this name; `None` if it has no such file.
    pub(super) fn with_json<T>(
        &self,
        name: &str,
        read: impl FnOnce(&serde_json::Value) -> T,
    ) -> Result<Option<T>, PipelineError> {
        if let Some(document) = self.documents.borrow().get(name) {
            return Ok(Some(read(document)));
        }
        let Some(bytes) = self.field(name)? else { return Ok(None) };
        let document = serde_json::from_slice(&bytes).map_err(|error| ViewError::Value {
            sample: self.index,
            name: name.to_owned(),
            defect: format!("is not JSON: {error}"),
        })?;
        let value = read(&document);
        self.documents.borrow_mut().insert(name.to_owned(), document);
        Ok(Some(value))
    }

    pub(super) fn text_key(&self) -> Option<Cow<'_, str>> {
        self.key().map(String::from_utf8_lossy)
    }

    fn fault(&self, found: SampleFault) -> PipelineError {
        fault(self.dataset, self.index, found)
    }
}

fn fault(dataset: &Dataset, index: u64, fault: SampleFault) -> PipelineError {
    PipelineError::Sample(dataset.sample_error(index, fault).into())
}
