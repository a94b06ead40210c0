//! One data set as the commands see it: a source with its labels resolved.

use std::path::Path;

use tbl_io::{LabelOrigin, Labels, Note, ReadError, SampleSource};

use crate::failure::Failure;
use crate::output;
use crate::table;

/// Opens a data set and says on standard error what is to be said of it beside its samples.
pub(crate) fn open(path: &Path) -> Result<Box<dyn SampleSource>, Failure> {
    let source = tbl_io::open_in(&turboloader::stores(), path)
        .map_err(|error| table::or_no_samples(&[path], error))?;
    note(source.as_ref());
    Ok(source)
}

/// Prints the notes on a source, except for usual ones.
pub(crate) fn note(source: &dyn SampleSource) {
    note_if(source, |note| !note.is_usual());
}

/// Prints the usual notes on a source: counts of hidden files and of files without an
/// image.
pub(crate) fn note_usual(source: &dyn SampleSource) {
    note_if(source, Note::is_usual);
}

fn note_if(source: &dyn SampleSource, is_printed: impl Fn(&Note) -> bool) {
    // A line each, because long lines are shortened.
    for note in source.notes().iter().filter(|note| is_printed(note)) {
        output::note(&format_args!("{}: {note}", source.location()));
    }
}

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
        let source = [open(path)?];
        let labels = Labels::resolve(&source)?;
        Ok(Self { source, labels })
    }

    /// Where the samples come from.
    pub(crate) fn source(&self) -> &(dyn SampleSource + 'static) {
        self.source[0].as_ref()
    }

    /// The label of sample `index`: stored with it, or that of its class folder.
    ///
    /// # Errors
    /// For one that cannot be read.
    pub(crate) fn label(&self, index: u64) -> Result<Option<i64>, ReadError> {
        self.labels.try_label(&self.source, 0, index)
    }

    /// Oddities of the labels.
    pub(crate) fn label_notes(&self) -> &[Note] {
        self.labels.notes()
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

/// Resolves the labels of all sources and prints what is odd about them on standard error.
pub(crate) fn resolve(sources: &[Box<dyn SampleSource>]) -> Result<Labels, ReadError> {
    let labels = Labels::resolve(sources)?;
    labels.notes().iter().for_each(|note| output::note(note));
    Ok(labels)
}
