//! One data set as the commands see it: a source with its labels resolved.

use std::path::Path;

use tbl_io::{LabelOrigin, Labels, Location, Note, ReadError, SampleSource, Source};
use tl_pipeline::TableKind;

use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::output;

/// Opens a data set and prints its notes on standard error.
pub(crate) fn open(global: &GlobalArgs, path: &Path) -> Result<Box<dyn SampleSource>, Failure> {
    let source = tbl_io::open_in(&global.stores(), path)
        .map_err(|error| or_no_samples(global, &[path], error))?;
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
    pub(crate) fn open(global: &GlobalArgs, path: &Path) -> Result<Self, Failure> {
        let source = [open(global, path)?];
        let labels = Labels::resolve(&source)?;
        Ok(Self { source, labels })
    }

    /// The source of the samples.
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

    /// The source of the labels.
    pub(crate) fn label_origin(&self) -> LabelOrigin {
        self.labels.origin()
    }

    /// The class names, indexed by label; empty when none are known.
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

/// Whether a path is a table, and which. Where it is not, or stands for several files, the reader
/// of data sets says what is wrong with it.
pub(crate) fn table_kind(
    global: &GlobalArgs,
    path: &Path,
) -> Result<Option<(TableKind, Source)>, Failure> {
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Ok(None);
    }
    let stores = global.stores();
    let found = stores.expand(path)?;
    let [location] = &*found else { return Ok(None) };
    let Some(source) = stores.open_file(location)? else { return Ok(None) };
    let kind = TableKind::of(&source)?;
    Ok(kind.map(|kind| (kind, source)))
}

/// The message if a command needs samples and opening `paths` failed: it names the table, if one
/// is.
pub(crate) fn or_no_samples<P: AsRef<Path>>(
    global: &GlobalArgs,
    paths: &[P],
    failure: impl Into<Failure>,
) -> Failure {
    let refused = paths.iter().find_map(|path| refuse(global, path.as_ref()).err());
    refused.unwrap_or_else(|| failure.into())
}

/// Refuses a table where only a data set of samples will do.
pub(crate) fn refuse(global: &GlobalArgs, path: &Path) -> Result<(), Failure> {
    // Opening the data set reports other defects.
    let Ok(Some((kind, _))) = table_kind(global, path) else { return Ok(()) };
    let file = global.stores().printable(&Location::new(path));
    let kind = kind.name().to_uppercase();
    let why = if cfg!(feature = "tables") {
        "have rows, not samples"
    } else {
        "need the feature `tables`, which this program was built without"
    };
    Err(Failure::setting(format_args!("{file}: {kind} files {why}")))
}
