//! One data set as the commands see it: a source with its labels resolved.

use std::path::Path;

use tbl_io::{LabelOrigin, Labels, SampleSource};

use crate::failure::Failure;

/// A source and its labels.
#[derive(Debug)]
pub(crate) struct DataSet {
    /// Labels are resolved over a list, for data sets of many shards; here it has one.
    source: [Box<dyn SampleSource>; 1],
    labels: Labels,
}

impl DataSet {
    /// Opens a TAR archive, a folder or a TBL file.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let source = [tbl_io::open(path)?];
        let labels = Labels::resolve(&source)?;
        Ok(Self { source, labels })
    }

    /// Where the samples come from.
    pub(crate) fn source(&self) -> &dyn SampleSource {
        self.source[0].as_ref()
    }

    /// The label of sample `index`: stored with it, or that of its class folder.
    pub(crate) fn label(&self, index: u64) -> Option<i64> {
        self.labels.label(0, index)
    }

    /// Where the labels come from.
    pub(crate) fn label_origin(&self) -> LabelOrigin {
        self.labels.origin()
    }

    /// The class names, indexed by label; empty when there are none.
    pub(crate) fn class_names(&self) -> &[String] {
        self.labels.class_names()
    }

    /// The name of the class with this label.
    pub(crate) fn class_name(&self, label: Option<i64>) -> Option<&str> {
        let label = usize::try_from(label?).ok()?;
        self.class_names().get(label).map(String::as_str)
    }
}
