//! The choice of the reader for a path.

use std::ffi::OsStr;
use std::io;

use crate::at_once::{AT_ONCE, at_once};
use crate::error::{ReadError, TarDefect};
use crate::folder::Folder;
use crate::folder_shards;
use crate::foreign;
use crate::images::ImageFile;
use crate::limits::ReadLimits;
use crate::lists::{self, Pairs, open_pairs};
use crate::location::Location;
use crate::reader::{ReadOptions, TblFile};
use crate::sample::SampleSource;
use crate::shard_index::ShardIndex;
use crate::source::Source;
use crate::storage::{Opened, Stores, not_one};
use crate::tar::TarArchive;
use crate::tar::index::compressor_of;

/// Opens a data set by what it is: a folder, a TBL file or MNIST's by their magic, one of CIFAR by the
/// class names next to it, a file of a [further format](Stores::with_format), otherwise a TAR archive. Only text and images are told by the extension of
/// the file's name: a manifest (`csv`, `tsv`, `jsonl`), and an image, which is a sample. A folder with
/// `metadata.csv` or `metadata.jsonl` has the samples that these files list.
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
    let mut sources = open_all_in(stores, &[&location])?;
    let count = sources.len();
    match sources.pop() {
        Some(source) if count == 1 => Ok(source),
        _ => Err(not_one(stores.printable(&Location::new(location)), count)),
    }
}

/// A file by its first bytes: TBL and MNIST by their magic, otherwise a TAR archive.
///
/// # Errors
/// The reader's, for a damaged or foreign file.
pub fn open_source(source: Source) -> Result<Box<dyn SampleSource>, ReadError> {
    open_source_in(&Stores::new(), source)
}

/// As [`open_source`], where the files next to an object, such as the labels of MNIST, are opened in
/// `stores`.
///
/// # Errors
/// As for [`open_source`], and those of [`Stores::open_file`].
pub fn open_source_in(stores: &Stores, source: Source) -> Result<Box<dyn SampleSource>, ReadError> {
    Container::of_file(stores, source, ReadOptions::default()).map(Container::boxed)
}

/// Opens data sets one after the other, each as [`open`] does.
///
/// # Errors
/// As for [`open_all_in`].
pub fn open_all<L: AsRef<OsStr>>(locations: &[L]) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    open_all_in(&Stores::new(), locations)
}

/// Opens data sets, each as [`open_in`] does: one after the other, or 64 at once if one of them is
/// in a store.
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
    let open =
        |opened| Container::open(stores, opened, ReadOptions::default()).map(Container::boxed);
    open_each(stores, locations, open)
}

/// Opens each data set that a location [stands for](Stores::expand), and each shard of a [shard
/// index](crate::index_shards), and returns them in order. Images in sequence are one source. `open` makes sources of what is in no
/// index, for callers that open more than sets of samples. One follows the other, or 64 threads
/// open them at once if they are in a store. The limit of open files is raised as by
/// [`open_all_in`].
///
/// # Errors
/// Those of [`Stores::expand`]. Of the locations that do not open, the error of the first one;
/// those after it may not be tried.
pub fn open_each<L: AsRef<OsStr>, E: Send + From<ReadError>>(
    stores: &Stores,
    locations: &[L],
    open: impl Fn(Opened) -> Result<Box<dyn SampleSource>, E> + Sync,
) -> Result<Vec<Box<dyn SampleSource>>, E> {
    let open_shard = |index: &ShardIndex, number| Ok(index.open(stores, number)?);
    open_each_shard(stores, locations, open, Ok, open_shard)
}

/// As [`open_each`], with `of_list` for lists of samples and `open_shard` for the shards of an index.
pub(crate) fn open_each_shard<L: AsRef<OsStr>, T: Send, E: Send + From<ReadError>>(
    stores: &Stores,
    locations: &[L],
    open: impl Fn(Opened) -> Result<T, E> + Sync,
    of_list: impl Fn(Box<dyn SampleSource>) -> Result<T, E> + Sync,
    open_shard: impl Fn(&ShardIndex, usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let open = |opened| match lists::find(stores, opened)? {
        lists::Found::List(list) => of_list(list),
        lists::Found::Other(opened) => open(opened),
    };
    let mut sources = Vec::new();
    if stores.list_options().has_pairs() {
        for location in locations {
            let image = Location::new(location).to_string();
            let pairs = Pairs { image, ..stores.list_options().pairs.clone() };
            sources.push(of_list(Box::new(open_pairs(stores, &pairs)?))?);
        }
        return Ok(sources);
    }
    for piece in lists::pieces(stores.expand_all(locations)?) {
        match piece {
            lists::Piece::Images(images) => {
                for listed in images.open(stores)? {
                    sources.push(of_list(Box::new(listed))?);
                }
            }
            lists::Piece::Others(others) => {
                sources.extend(open_each_expanded(stores, &others, open, &open_shard)?);
            }
        }
    }
    Ok(sources)
}

fn open_each_expanded<T: Send, E: Send + From<ReadError>>(
    stores: &Stores,
    expanded: &[Location],
    open: impl Fn(Opened) -> Result<T, E> + Sync,
    open_shard: impl Fn(&ShardIndex, usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    allow_open_files(expanded.len());
    let threads =
        if expanded.iter().any(|location| location.url().is_some()) { AT_ONCE } else { 1 };
    let found = at_once(expanded, threads, |location| {
        let opened = stores.open(location)?;
        if let Opened::File(source) = &opened
            && ShardIndex::is(source)?
        {
            return Ok::<_, E>(Found::Shards(ShardIndex::read(source)?));
        }
        if let Opened::Folder(folder) = &opened
            && let Some(files) = folder_shards::files_of(stores, location, folder)?
        {
            return Ok(Found::Files(files));
        }
        open(opened).map(Found::Source)
    })?;
    let mut sources = Vec::with_capacity(found.len());
    for found in found {
        match found {
            Found::Source(source) => sources.push(source),
            Found::Files(files) => {
                allow_open_files(sources.len() + files.len());
                sources.extend(at_once(&files, threads, |file| open(stores.open(file)?))?);
            }
            Found::Shards(index) => {
                let numbers: Vec<usize> = (0..index.len()).collect();
                allow_open_files(sources.len() + numbers.len());
                let threads = if index.is_local() { 1 } else { AT_ONCE };
                sources.extend(at_once(&numbers, threads, |&number| open_shard(&index, number))?);
            }
        }
    }
    Ok(sources)
}

/// A location, by what it turned out to be.
enum Found<T> {
    Source(T),
    /// A folder that stands for its files.
    Files(Vec<Location>),
    Shards(ShardIndex),
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
    Images(ImageFile),
    /// Of a registered format.
    Other(Box<dyn SampleSource>),
}

impl Container {
    fn boxed(self) -> Box<dyn SampleSource> {
        match self {
            Self::Folder(folder) => folder,
            Self::Tar(archive) => Box::new(archive),
            Self::Tbl(file) => Box::new(file),
            Self::Images(file) => Box::new(file),
            Self::Other(source) => source,
        }
    }

    /// Opens a data set by its content, a TBL file with these options. Files that belong to it are
    /// opened in `stores`.
    pub(crate) fn open(
        stores: &Stores,
        opened: Opened,
        options: ReadOptions,
    ) -> Result<Self, ReadError> {
        match opened {
            Opened::Folder(folder) => Ok(Self::Folder(folder)),
            Opened::File(source) => Self::of_file(stores, source, options),
        }
    }

    /// As [`open`](Self::open) for a file that is open already.
    pub(crate) fn of_file(
        stores: &Stores,
        source: Source,
        options: ReadOptions,
    ) -> Result<Self, ReadError> {
        if ShardIndex::is(&source)? {
            let text = "is a shard index, expected a file with samples, such as one of its shards";
            let error = io::Error::new(io::ErrorKind::InvalidInput, text);
            return Err(ReadError::io(source.location(), error));
        }
        let opened = source.clone();
        let container = if is_tbl(&source)? {
            TblFile::from_source(source, options).map(Self::Tbl)
        } else if let Some(source) = of_formats(stores, &source)? {
            Ok(Self::Other(source))
        } else if let Some(file) = ImageFile::open(stores, &source)? {
            Ok(Self::Images(file))
        } else {
            TarArchive::new(source, ReadLimits::default())
                .map(Self::Tar)
                .map_err(|error| named(error, &opened))
        }?;
        opened.release_front();
        Ok(container)
    }
}

/// A file of one of the formats that other crates read.
fn of_formats(
    stores: &Stores,
    source: &Source,
) -> Result<Option<Box<dyn SampleSource>>, ReadError> {
    for format in stores.formats() {
        if let Some(found) = format.open(stores, source)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The error of a file that is not an archive, with the kind of the file.
fn named(error: ReadError, file: &Source) -> ReadError {
    let ReadError::Tar { location, offset: 0, source } = error else { return error };
    let mut head = [0; foreign::HEAD_BYTES];
    let bytes = usize::try_from(file.len()).map_or(head.len(), |len| len.min(head.len()));
    let head = &mut head[..bytes];
    // The header was read before; a file that cannot be read again keeps its error.
    let is_read = source.is_about_a_header() && file.read_exact_at(0, head).is_ok();
    let is_bin = file.location().extension().is_some_and(|name| name.eq_ignore_ascii_case("bin"));
    let kind = foreign::kind_of(head).or(is_bin.then_some(foreign::RAW));
    let source = match (is_read, compressor_of(head), kind) {
        (true, Some(by), _) => TarDefect::Compressed { by },
        (true, None, Some((kind, advice))) => TarDefect::Foreign { kind, advice },
        _ => source,
    };
    ReadError::Tar { location, offset: 0, source }
}

/// Whether a file is a TBL file of any version, which is the reader's to judge.
pub(crate) fn is_tbl(source: &Source) -> Result<bool, ReadError> {
    let mut magic = *b"???";
    if source.len() >= magic.len() as u64 {
        source.read_exact_at(0, &mut magic)?;
    }
    Ok(&magic == b"TBL")
}
