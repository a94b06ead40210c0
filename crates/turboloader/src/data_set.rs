//! One data set as the commands see it: a source with its labels resolved.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tbl_io::{Entry, Escaped, LabelOrigin, Labels, Note, ReadError, SampleSource};

use crate::failure::Failure;
use crate::output;
use crate::table;

/// Opens a data set and says on standard error what is to be said of it beside its samples.
pub(crate) fn open(path: &Path) -> Result<Box<dyn SampleSource>, Failure> {
    let source = tbl_io::open(path).map_err(|error| table::or_no_samples(&[path], error))?;
    note(source.as_ref());
    Ok(source)
}

/// Prints the notes on a source in one line, except for usual ones.
pub(crate) fn note(source: &dyn SampleSource) {
    note_if(source, |note| !note.is_usual());
}

/// Prints the usual notes on a source in one line: counts of hidden files and of files without an
/// image.
pub(crate) fn note_usual(source: &dyn SampleSource) {
    note_if(source, Note::is_usual);
}

fn note_if(source: &dyn SampleSource, is_printed: impl Fn(&Note) -> bool) {
    let notes = source.notes().into_iter().filter(is_printed);
    let notes: Vec<String> = notes.map(|note| note.to_string()).collect();
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
    /// `None` when the samples have labels and the file has class names: then nothing has to be
    /// resolved, and a listing needs neither a pass before it nor memory for every sample.
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
    ///
    /// # Errors
    /// For one that cannot be read.
    pub(crate) fn label(&self, index: u64, entry: &Entry<'_>) -> Result<Option<i64>, ReadError> {
        match &self.resolved {
            None => Ok(entry.label),
            Some(labels) => labels.try_label(&self.source, 0, index),
        }
    }

    /// Oddities of the labels, as far as they had to be resolved.
    pub(crate) fn label_notes(&self) -> &[Note] {
        self.resolved.as_ref().map_or(&[], Labels::notes)
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

/// Resolves the labels of all sources and prints what is odd about them on standard error.
pub(crate) fn resolve(sources: &[Box<dyn SampleSource>]) -> Result<Labels, ReadError> {
    let labels = Labels::resolve(sources)?;
    labels.notes().iter().for_each(|note| output::note(note));
    Ok(labels)
}

/// Whether a file with class names has any label, which rules out those of class folders. Most often
/// the first sample tells. A damaged entry has none here; its error comes with the sample.
fn has_own_labels(source: &dyn SampleSource) -> bool {
    if source.class_names().is_empty() {
        return false;
    }
    let mut entries = (0..source.sample_count()).map(|index| source.entry(index));
    entries.any(|entry| entry.is_ok_and(|entry| entry.label.is_some()))
}
