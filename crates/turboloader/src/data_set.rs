//! One data set as the commands see it: a source with its labels resolved.

use std::path::Path;

use tbl_io::{Entry, ReadError, SampleSource, Source, TarArchive, TblFile};

use crate::failure::Failure;

/// A source and its labels.
#[derive(Debug)]
pub(crate) struct DataSet {
    source: Box<dyn SampleSource>,
}

impl DataSet {
    /// Opens a TAR archive, a folder or a TBL file.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self { source: open(path)? })
    }

    /// Where the samples come from.
    pub(crate) fn source(&self) -> &dyn SampleSource {
        self.source.as_ref()
    }

    /// The label of sample `index`, whose index entry is `entry`.
    pub(crate) fn label(&self, _index: u64, entry: &Entry<'_>) -> Option<i64> {
        entry.label
    }

    /// The class names, indexed by label; empty when there are none.
    pub(crate) fn class_names(&self) -> &[String] {
        self.source.class_names()
    }

    /// The name of the class with this label.
    pub(crate) fn class_name(&self, label: Option<i64>) -> Option<&str> {
        let label = usize::try_from(label?).ok()?;
        self.source.class_names().get(label).map(String::as_str)
    }
}

/// Opens a TAR archive or a TBL file, whichever `path` is.
pub(crate) fn open(path: &Path) -> Result<Box<dyn SampleSource>, ReadError> {
    let mut magic = Vec::new();
    let source = Source::open(path)?;
    source.read_range_into(0, source.len().min(3), &mut magic)?;
    Ok(if magic == b"TBL" {
        Box::new(TblFile::open(path)?)
    } else {
        Box::new(TarArchive::open(path)?)
    })
}
