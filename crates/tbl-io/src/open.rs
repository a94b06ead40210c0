//! The choice of the reader for a path.

use std::ffi::OsStr;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::error::ReadError;
use crate::folder::Folder;
use crate::limits::ReadLimits;
use crate::reader::{ReadOptions, TblFile};
use crate::sample::SampleSource;
use crate::source::Source;
use crate::storage::{Opened, Stores};
use crate::tar::TarArchive;

/// Opens a data set by what it is: a folder, a TBL file by its magic, otherwise a TAR archive.
/// File names do not matter.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let samples = tbl_io::open(folder.path())?;
/// assert_eq!(samples.kind(), tbl_io::SourceKind::Folder);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ReadError::Io`], and what the reader says of a damaged or foreign file.
pub fn open(location: impl AsRef<OsStr>) -> Result<Box<dyn SampleSource>, ReadError> {
    open_in(&Stores::new(), location)
}

/// As [`open`], where URLs name data sets in `stores`.
///
/// # Errors
/// As for [`open`], and those of [`Stores::open`].
pub fn open_in(
    stores: &Stores,
    location: impl AsRef<OsStr>,
) -> Result<Box<dyn SampleSource>, ReadError> {
    Container::open(stores.open(location)?, ReadOptions::default()).map(Container::boxed)
}

/// A file by its first bytes: TBL by its magic, otherwise a TAR archive.
///
/// # Errors
/// The reader's, for a damaged or foreign file.
pub fn open_source(source: Source) -> Result<Box<dyn SampleSource>, ReadError> {
    Container::of_file(source, ReadOptions::default()).map(Container::boxed)
}

/// Opens data sets one after the other, each as [`open`] does.
///
/// # Errors
/// As for [`open_all_in`].
pub fn open_all<L: AsRef<OsStr>>(locations: &[L]) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    open_all_in(&Stores::new(), locations)
}

/// Opens data sets, each as [`open_in`] does: one after the other, or 64 at once if one of them is in
/// a store.
///
/// Shards stay open, one descriptor each. Where there are more than the process may have open by
/// default (1024 on most systems), the process's soft limit is raised to its hard one.
///
/// # Errors
/// As for [`open_in`], of the first that does not open.
pub fn open_all_in<L: AsRef<OsStr>>(
    stores: &Stores,
    locations: &[L],
) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    open_each(stores, locations, |location| open_in(stores, location))
}

/// Objects that are opened at once: each takes one or two round trips.
const OPENED_AT_ONCE: usize = 64;

/// Calls `open` with each location, or with each object that a [pattern](Stores::expand) means, and returns the results in order, for callers that open more than
/// sets of samples. One call follows the other, or 64 threads call it at once if a location is a URL.
/// The limit of open files is raised as by [`open_all_in`].
///
/// # Errors
/// Those of [`Stores::expand`]. Of the locations that do not open, the error of the first one; those
/// after it may not be tried.
pub fn open_each<L: AsRef<OsStr>, T: Send, E: Send + From<ReadError>>(
    stores: &Stores,
    locations: &[L],
    open: impl Fn(&OsStr) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let mut expanded = Vec::with_capacity(locations.len());
    for location in locations {
        expanded.extend(stores.expand(location)?);
    }
    let locations = expanded;
    allow_open_files(locations.len());
    if !locations.iter().any(|location| location.url().is_some()) {
        return locations.iter().map(|location| open(location.as_os_str())).collect();
    }
    let next = AtomicUsize::new(0);
    let open_some = || {
        let mut opened = Vec::new();
        loop {
            // All locations before one that fails have been begun.
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(location) = locations.get(number) else { return opened };
            let result = open(location.as_os_str());
            if result.is_err() {
                next.store(locations.len(), Ordering::Relaxed);
            }
            opened.push((number, result));
        }
    };
    let mut opened = thread::scope(|scope| {
        // Without a thread fewer do the work.
        let start = |_| thread::Builder::new().spawn_scoped(scope, open_some).ok();
        let threads = 1..OPENED_AT_ONCE.min(locations.len());
        let started: Vec<_> = threads.map_while(start).collect();
        let mut opened = open_some();
        for thread in started {
            opened.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        opened
    });
    opened.sort_unstable_by_key(|(number, _)| *number);
    opened.into_iter().map(|(_, result)| result).collect()
}

/// Descriptors for everything but shards: standard streams, sockets of the program around us.
#[cfg(target_os = "linux")]
const SPARE_DESCRIPTORS: u64 = 256;

/// Raises the process's soft limit of open files to its hard one if the number of shards needs it.
#[cfg(target_os = "linux")]
pub fn allow_open_files(shards: usize) {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    let need = (shards as u64).saturating_add(SPARE_DESCRIPTORS);
    if limit.current.is_some_and(|current| current < need) {
        limit.current = limit.maximum;
        // A refusal shows as soon as a shard does not open.
        setrlimit(Resource::Nofile, limit).unwrap_or(());
    }
}

/// Raises the process's soft limit of open files to its hard one if the number of shards needs it.
#[cfg(not(target_os = "linux"))]
pub fn allow_open_files(_: usize) {}

/// A data set whose kind still shows.
pub(crate) enum Container {
    Folder(Box<Folder>),
    Tar(TarArchive),
    Tbl(TblFile),
}

impl Container {
    fn boxed(self) -> Box<dyn SampleSource> {
        match self {
            Self::Folder(folder) => folder,
            Self::Tar(archive) => Box::new(archive),
            Self::Tbl(file) => Box::new(file),
        }
    }

    /// Opens a data set by its content, a TBL file with these options.
    pub(crate) fn open(opened: Opened, options: ReadOptions) -> Result<Self, ReadError> {
        match opened {
            Opened::Folder(folder) => Ok(Self::Folder(folder)),
            Opened::File(source) => Self::of_file(source, options),
        }
    }

    /// As [`open`](Self::open) for a file that is open already.
    pub(crate) fn of_file(source: Source, options: ReadOptions) -> Result<Self, ReadError> {
        // The version after these letters is the reader's to judge.
        let mut magic = *b"???";
        if source.len() >= magic.len() as u64 {
            source.read_exact_at(0, &mut magic)?;
        }
        let opened = source.clone();
        let container = if &magic == b"TBL" {
            TblFile::from_source(source, options).map(Self::Tbl)
        } else {
            TarArchive::new(source, ReadLimits::default()).map(Self::Tar)
        }?;
        opened.release_front();
        Ok(container)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_location_that_does_not_open_is_the_error() {
        let stores = Stores::new();
        for scheme in ["mem://", ""] {
            let locations: Vec<String> = (0..300).map(|n| format!("{scheme}{n}")).collect();
            let open = |bad: &'static [&'static str]| {
                open_each(&stores, &locations, |location| {
                    let name = location.to_str().unwrap().trim_start_matches(scheme).to_owned();
                    // Later ones fail sooner.
                    thread::sleep(Duration::from_millis(u64::from(name == "70")));
                    if bad.contains(&name.as_str()) {
                        Err(ReadError::io(location, io::ErrorKind::Other.into()))
                    } else {
                        Ok(name)
                    }
                })
            };
            let all: Vec<String> = (0..300).map(|n| n.to_string()).collect();
            assert_eq!(open(&[]).unwrap(), all);
            let error = open(&["71", "70", "299"]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{scheme}70: ")), "{error}");
        }
        let none = open_each(&stores, &["mem://a"; 0], |_| Ok::<(), ReadError>(()));
        assert_eq!(none.unwrap(), []);
    }
}
