//! One data set as the commands see it: a source with its labels resolved.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tbl_io::{Entry, Escaped, LabelOrigin, Labels, SampleSource};

use crate::failure::Failure;
use crate::output;
use crate::table;

/// Opens a data set and says on standard error what is to be said of it beside its samples.
pub(crate) fn open(path: &Path) -> Result<Box<dyn SampleSource>, Failure> {
    let source = tbl_io::open(path).map_err(|error| table::or_no_samples(&[path], error))?;
    note(source.as_ref());
    Ok(source)
}

/// Says in one line what is to be said of a source beside its samples.
pub(crate) fn note(source: &dyn SampleSource) {
    let notes: Vec<String> = source.notes().iter().map(ToString::to_string).collect();
    if !notes.is_empty() {
        let path = Escaped(source.path().as_os_str().as_bytes());
        output::note(&format_args!("{path}: {}", notes.join("; ")));
    }
}

/// A source and its labels.
#[derive(Debug)]
pub(crate) struct DataSet {
    /// Labels are resolved over a list, for data sets of many shards; here it has one.
    source: [Box<dyn SampleSource>; 1],
    /// `None` when the samples have labels of their own: then nothing has to be resolved, and a
    /// listing needs neither a pass before it nor memory for every sample.
    resolved: Option<Labels>,
}

impl DataSet {
    /// Opens a TAR archive, a folder or a TBL file.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let source = [open(path)?];
        let resolved =
            if has_own_labels(source[0].as_ref()) { None } else { Some(Labels::resolve(&source)?) };
        Ok(Self { source, resolved })
    }

    /// Where the samples come from.
    pub(crate) fn source(&self) -> &(dyn SampleSource + 'static) {
        self.source[0].as_ref()
    }

    /// The label of sample `index`, whose index entry is `entry`: stored with it, or that of its
    /// class folder.
    pub(crate) fn label(&self, index: u64, entry: &Entry<'_>) -> Option<i64> {
        self.resolved.as_ref().map_or(entry.label, |labels| labels.label(0, index))
    }

    /// Where the labels come from.
    pub(crate) fn label_origin(&self) -> LabelOrigin {
        self.resolved.as_ref().map_or(LabelOrigin::Explicit, Labels::origin)
    }

    /// The class names, indexed by label; empty when there are none.
    pub(crate) fn class_names(&self) -> &[String] {
        self.resolved.as_ref().map_or_else(|| self.source().class_names(), Labels::class_names)
    }

    /// The name of the class with this label.
    pub(crate) fn class_name(&self, label: Option<i64>) -> Option<&str> {
        let label = usize::try_from(label?).ok()?;
        self.class_names().get(label).map(String::as_str)
    }
}

/// Whether any sample has a label of its own, which rules out those of class folders. Most often
/// the first sample tells. A damaged entry has none here; whoever needs it meets the error.
fn has_own_labels(source: &dyn SampleSource) -> bool {
    let mut entries = (0..source.sample_count()).map(|index| source.entry(index));
    entries.any(|entry| entry.is_ok_and(|entry| entry.label.is_some()))
}
