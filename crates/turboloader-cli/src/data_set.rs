//! Data sets as the commands see them: one or several sources with their labels, and samples by
//! their numbers.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::Path;

use tbl_io::{Entry, Location, Note, ReadError, SampleSource, Source, Stores};
use tl_pipeline::{Dataset, TableKind};

use crate::args::GlobalArgs;
use crate::failure::{Failure, Subject};
use crate::output;

/// Opens what `paths` stand for as one data set, and prints the notes on its sources on standard
/// error.
pub(crate) fn open<P: AsRef<OsStr>>(global: &GlobalArgs, paths: &[P]) -> Result<Dataset, Failure> {
    join(global, open_sources(global, paths)?)
}

/// Opens what `paths` stand for.
pub(crate) fn open_sources<P: AsRef<OsStr>>(
    global: &GlobalArgs,
    paths: &[P],
) -> Result<Vec<Box<dyn SampleSource>>, Failure> {
    open_sources_in(&global.stores(), global, paths)
}

/// Opens what `paths` stand for in these stores.
pub(crate) fn open_sources_in<P: AsRef<OsStr>>(
    stores: &Stores,
    global: &GlobalArgs,
    paths: &[P],
) -> Result<Vec<Box<dyn SampleSource>>, Failure> {
    let sources = global.open_sources(stores, paths);
    sources.map_err(|error| or_no_samples(global, paths, error))
}

/// Joins open sources to one data set, and prints the notes on them on standard error.
pub(crate) fn join(
    global: &GlobalArgs,
    sources: Vec<Box<dyn SampleSource>>,
) -> Result<Dataset, Failure> {
    let mut noted = HashSet::new();
    for source in sources.iter().filter(|source| noted.insert(source.location())) {
        note(source.as_ref());
    }
    global.labelled(Dataset::from_sources(sources)?)
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

/// The name of the class with this label.
pub(crate) fn class_name(dataset: &Dataset, label: Option<i64>) -> Option<&str> {
    let label = usize::try_from(label?).ok()?;
    dataset.class_names().get(label).map(String::as_str)
}

/// The name of the data set at `paths` in a message.
pub(crate) fn name<P: AsRef<OsStr>>(global: &GlobalArgs, paths: &[P]) -> String {
    let first = paths.first().map(|path| global.stores().printable(&Location::new(path)));
    let first = first.unwrap_or_default();
    match paths.len() {
        0 | 1 => first.to_string(),
        count => format!("{first} and {} more", count - 1),
    }
}

/// A sample. Errors have its number in the data set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'a> {
    pub(crate) source: &'a dyn SampleSource,
    /// Its number in the source.
    pub(crate) local: u64,
    /// Its number in the data set.
    pub(crate) index: u64,
}

impl<'a> Sample<'a> {
    /// Sample `index` of a data set that has it.
    pub(crate) fn of(dataset: &'a Dataset, index: u64) -> Result<Self, ReadError> {
        let (source, local) = dataset.locate(index)?;
        Ok(Self { source, local, index })
    }

    /// Its index entry.
    pub(crate) fn entry(&self) -> Result<Entry<'a>, ReadError> {
        self.source.entry(self.local).map_err(|error| error.in_data_set(self.index))
    }

    /// Replaces `bytes` with its own.
    pub(crate) fn read_into(&self, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let read = self.source.read_into(self.local, bytes);
        read.map_err(|error| error.in_data_set(self.index))
    }

    /// Its name in messages.
    pub(crate) fn subject(&self, entry: &Entry<'_>) -> Subject {
        Subject::sample(self.source, self.index, entry)
    }
}

/// Opens the source of sample `index` of the data set at `path` and returns it with the sample's
/// number there. Sources after it are not opened, and labels are not looked for.
pub(crate) fn open_sample(
    global: &GlobalArgs,
    path: &Path,
    index: u64,
) -> Result<(Box<dyn SampleSource>, u64), Failure> {
    let stores = global.stores();
    let mut start = 0_u64;
    let locations = if stores.list_options().has_pairs() {
        vec![Location::new(path)]
    } else {
        stores.expand(path)?
    };
    for location in locations {
        let sources = global.open_sources(&stores, &[&location]);
        for source in sources.map_err(|error| or_no_samples(global, &[path], error))? {
            let local = index - start;
            if local < source.sample_count() {
                note(source.as_ref());
                return Ok((source, local));
            }
            start += source.sample_count();
        }
    }
    Err(out_of_range(global, path, index, start).into())
}

/// Fails unless the data set at `path` has a sample `index`.
pub(crate) fn require(
    global: &GlobalArgs,
    path: &Path,
    dataset: &Dataset,
    index: u64,
) -> Result<(), Failure> {
    if index < dataset.len() {
        return Ok(());
    }
    Err(out_of_range(global, path, index, dataset.len()).into())
}

fn out_of_range(global: &GlobalArgs, path: &Path, index: u64, sample_count: u64) -> ReadError {
    let location = global.stores().printable(&Location::new(path));
    ReadError::SampleOutOfRange { location, index, sample_count }
}

/// Whether a path is a table, and which. Where it is not, or stands for several files, the reader
/// of data sets says what is wrong with it.
pub(crate) fn table_kind(
    global: &GlobalArgs,
    path: &Path,
) -> Result<Option<(TableKind, Source)>, Failure> {
    let Some(source) = single_file(global, path)? else { return Ok(None) };
    let kind = TableKind::of(&source)?;
    Ok(kind.map(|kind| (kind, source)))
}

/// The file that a path stands for, if it is one that may be a table: also the metadata of a folder with
/// Zarr arrays.
pub(crate) fn single_file(global: &GlobalArgs, path: &Path) -> Result<Option<Source>, Failure> {
    let is_special = |found: Metadata| !found.is_file() && !found.is_dir();
    if global.has_tokens() || path.metadata().is_ok_and(is_special) {
        return Ok(None);
    }
    let stores = global.stores();
    if stores.list_options().has_pairs() {
        return Ok(None);
    }
    let found = stores.expand(path)?;
    let [location] = &*found else { return Ok(None) };
    match stores.open_file(location)? {
        Some(file) => Ok(Some(file)),
        None => Ok(stores.open_zarr(location)?),
    }
}

/// The message if a command needs samples and opening `paths` failed: it names the table, if one
/// is.
fn or_no_samples<P: AsRef<OsStr>>(global: &GlobalArgs, paths: &[P], error: ReadError) -> Failure {
    // A store that does not answer is not asked again.
    if !error.is_damage() {
        return error.into();
    }
    refuse_tables(global, paths).err().unwrap_or_else(|| error.into())
}

/// Refuses tables where only data sets of samples will do: of what a path stands for the first one is
/// looked at.
pub(crate) fn refuse_tables<P: AsRef<OsStr>>(
    global: &GlobalArgs,
    paths: &[P],
) -> Result<(), Failure> {
    for path in paths {
        // Opening the data set reports other defects.
        let Ok(locations) = global.stores().expand(path) else { continue };
        let Some(first) = locations.first() else { continue };
        let Ok(Some((kind, _))) = table_kind(global, Path::new(first.as_os_str())) else {
            continue;
        };
        let file = global.stores().printable(first);
        let kind = kind.name().to_uppercase();
        let is_one = paths.len() == 1 && locations.len() == 1;
        let why = match (cfg!(feature = "tables"), is_one) {
            (true, true) => "have rows, not samples",
            (true, false) => "have rows, not samples; commands that read rows take one file",
            (false, _) => "need the feature `tables`, which this program was built without",
        };
        return Err(Failure::setting(format_args!("{file}: {kind} files {why}")));
    }
    Ok(())
}
