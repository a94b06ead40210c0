//! Making a shard index.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lz4::block::CompressionMode;
use tbl_format::checksum::crc32c;
use tbl_format::shard_index::{Header, Shard, ShardKind, VersionKind};

use super::indexed::Noted;
use super::{FormatPart, Kept, OwnedShard, ShardIndex, check_shard, push_kept, version_of};
use crate::at_once::{AT_ONCE, at_once};
use crate::atomic_file::Placement;
use crate::error::ReadError;
use crate::kind::{ErrorKind, ErrorPlace};
use crate::location::{Location, without_query};
use crate::open::{allow_open_files, is_tbl};
use crate::ranges::Pin;
use crate::reader::{ReadOptions, TblFile};
use crate::sample::SampleSource;
use crate::source::Source;
use crate::storage::{FilePart, Opened, Stores};
use crate::tar::TarArchive;
use crate::write_error::WriteError;

/// Options of [`index_shards`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Wait until the index is on the disk before it gets its name.
    pub sync: bool,
    /// Replace a file of that name.
    pub overwrite: bool,
    /// Take the parts of shards that have not changed from the index that already has the name.
    pub update: bool,
}

impl Default for IndexOptions {
    /// Durable, and never replaces anything.
    fn default() -> Self {
        Self { sync: true, overwrite: false, update: false }
    }
}

/// A summary of the index that [`index_shards`] wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexSummary {
    /// Shards.
    pub shards: u64,
    /// Shards whose part was taken from the earlier index.
    pub unchanged: u64,
    /// Samples in all shards.
    pub samples: u64,
    /// Bytes of the index.
    pub bytes: u64,
    /// The folder of a store that the index belongs in; `None` where it is in its place.
    pub folder: Option<Location>,
}

/// The reason why no index was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// A shard cannot be opened.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The index cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Names of shards are paths from the folder of the index.
    #[error(
        "{location}: lies outside of {folder}, expected shards in the folder of their index or below it"
    )]
    Outside {
        /// The shard.
        location: Location,
        /// The folder of the index.
        folder: Location,
    },
    /// A local folder, which opens without an index.
    #[error("{location}: is a local folder, expected a file or a folder of a store")]
    LocalFolder {
        /// The folder.
        location: Location,
    },
    /// The index would have no shard.
    #[error("no shards to index")]
    Empty,
}

impl IndexError {
    /// The party at fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Write(error) => error.kind(),
            Self::Outside { .. } | Self::LocalFolder { .. } | Self::Empty => ErrorKind::Setting,
        }
    }

    /// The place that the error is about.
    pub fn place(&self) -> ErrorPlace {
        match self {
            Self::Read(error) => error.place(),
            Self::Write(error) => error.place(),
            Self::Outside { location, .. } | Self::LocalFolder { location } => {
                ErrorPlace::at(location)
            }
            Self::Empty => ErrorPlace::default(),
        }
    }
}

/// A shard with its part as it will be stored.
struct Entry {
    kind: ShardKind,
    bytes: u64,
    version_kind: VersionKind,
    pin: Pin,
    samples: u64,
    part: Vec<u8>,
    unpacked_bytes: u32,
    is_unchanged: bool,
}

/// Writes the index of shards to `target`, complete or not at all. It may be in one of the stores.
///
/// Each location [stands for](Stores::expand) TAR archives, TBL files, files of further formats, such
/// as Parquet, or folders of a store. An
/// index names its shards by their path from its own folder. That is the folder of `target`, except for
/// a local index of objects of a store: there it is the deepest one that holds all of them
/// ([`IndexSummary::folder`]), to which the caller copies the file.
///
/// Archives and Parquet files in stores are read to their end, 64 at once; of TBL files only the front
/// is read.
///
/// # Errors
/// [`IndexError`]; the target is then as it was before.
pub fn index_shards<L: AsRef<OsStr>>(
    stores: &Stores,
    locations: &[L],
    target: impl AsRef<OsStr>,
    options: IndexOptions,
) -> Result<IndexSummary, IndexError> {
    let target = &Location::new(target);
    let IndexOptions { sync, overwrite, update } = options;
    let mut shards = Vec::new();
    for location in locations {
        for location in stores.expand(location)? {
            let is_folder = match stores.store(&location)? {
                Some(store) => store.is_folder(&location)?,
                None => false,
            };
            // A bucket or a repository may lack its final slash.
            shards.push(if is_folder { location.join(b"") } else { location });
        }
    }
    let folder = folder_of(stores, &shards, target)?;
    let named = shards.into_iter().map(|location| Named::new(stores, location, &folder, target));
    let named = named.collect::<Result<Vec<_>, _>>()?;
    let earlier = if update { stores.open_existing(target)? } else { None };
    let earlier = earlier.map(|earlier| ShardIndex::read(&earlier)).transpose()?;
    let earlier = earlier.as_ref().map(Earlier::new);
    let placement = Placement { overwrite: overwrite || update, sync };
    // It fails before hours of reading, not after them.
    let draft = stores.create(target, placement)?;
    let path = draft.target().to_owned();
    let io_error = |source| WriteError::Io { path: path.clone(), source };
    allow_open_files(named.len());
    let threads = if folder.url().is_some() { AT_ONCE } else { 1 };
    let entry = |shard: &Named| Entry::new(stores, shard, earlier.as_ref());
    let entries = at_once(&named, threads, entry)?;

    let format_error = |source| WriteError::Format { path: path.clone(), source };
    let directory = |first: u64| {
        let mut directory = Vec::new();
        let mut start = first;
        for (Named { name, .. }, entry) in named.iter().zip(&entries) {
            let end = start + entry.part.len() as u64;
            entry.shard(name, start..end).push_to(&mut directory)?;
            start = end;
        }
        Ok(directory)
    };
    // Its length does not depend on where the parts are.
    let front = Header::SIZE + directory(0).map_err(format_error)?.len();
    let directory = directory(front as u64).map_err(format_error)?;
    let samples = entries.iter().map(|entry| entry.samples).sum();
    let header = Header::new(entries.len() as u64, samples, &directory);
    let write = || {
        let mut out = BufWriter::new(draft);
        out.write_all(&header.to_bytes())?;
        out.write_all(&directory)?;
        entries.iter().try_for_each(|entry| out.write_all(&entry.part))?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.commit()
    };
    write().map_err(io_error)?;
    let part_bytes: usize = entries.iter().map(|entry| entry.part.len()).sum();
    Ok(IndexSummary {
        shards: entries.len() as u64,
        unchanged: entries.iter().filter(|entry| entry.is_unchanged).count() as u64,
        samples,
        bytes: (front + part_bytes) as u64,
        folder: Some(folder).filter(|folder| folder.url().is_some() && target.url().is_none()),
    })
}

/// A shard with its path from the folder of the index.
struct Named {
    location: Location,
    name: Vec<u8>,
}

impl Named {
    fn new(
        stores: &Stores,
        location: Location,
        folder: &Location,
        target: &Location,
    ) -> Result<Self, IndexError> {
        let outside = || outside(stores, &location, folder);
        let name = match (location.url(), folder.url(), location.path()) {
            (Some(url), Some(folder), _) => {
                let name = without_query(url).strip_prefix(folder).ok_or_else(outside)?;
                name.trim_end_matches('/').as_bytes().to_vec()
            }
            (None, None, Some(path)) => {
                let path = resolved(path)?;
                let folder = resolved(Path::new(target.as_os_str()))?;
                let folder = folder.parent().unwrap_or(Path::new("/"));
                let name = path.strip_prefix(folder).map_err(|_| outside())?;
                name.as_os_str().as_bytes().to_vec()
            }
            (_, _, _) => return Err(outside()),
        };
        check_shard(folder, &name).map_err(|_| outside())?;
        Ok(Self { location, name })
    }
}

/// The path without links and `..` in its folders. Its last name stays, which may be a link.
fn resolved(path: &Path) -> Result<PathBuf, ReadError> {
    let folder = crate::atomic_file::folder_of(path);
    let resolved = folder.canonicalize().map_err(|error| ReadError::io(folder, error))?;
    Ok(resolved.join(path.file_name().unwrap_or_default()))
}

fn outside(stores: &Stores, location: &Location, folder: &Location) -> IndexError {
    let location = stores.printable(location);
    IndexError::Outside { location, folder: stores.printable(folder) }
}

/// The folder that names of shards start from.
fn folder_of(
    stores: &Stores,
    shards: &[Location],
    target: &Location,
) -> Result<Location, IndexError> {
    let first = shards.first().ok_or(IndexError::Empty)?;
    let Some(url) = first.url().filter(|_| target.url().is_none()) else {
        return Ok(target.folder());
    };
    let mut folder = parent(url);
    for other in shards.iter().filter_map(Location::url) {
        while !without_query(other).starts_with(folder) {
            let shorter = parent(folder.trim_end_matches('/'));
            // A store knows no folder above a bucket, a repository or a server.
            let is_folder = match stores.store(&Location::new(shorter))? {
                Some(store) => store.is_folder(&Location::new(shorter)).unwrap_or(false),
                None => false,
            };
            if !is_folder || shorter.ends_with("://") || shorter.len() >= folder.len() {
                return Err(outside(stores, &Location::new(other), &Location::new(folder)));
            }
            folder = shorter;
        }
    }
    Ok(Location::new(folder))
}

/// The URL up to its last slash.
fn parent(url: &str) -> &str {
    let url = without_query(url);
    url.rfind('/').map_or(url, |slash| &url[..=slash])
}

impl Entry {
    /// Opens a shard, or takes what an earlier index has of it.
    fn new(
        stores: &Stores,
        shard: &Named,
        earlier: Option<&Earlier<'_>>,
    ) -> Result<Self, IndexError> {
        let source = match stores.open(&shard.location)? {
            Opened::Folder(folder) => {
                let location = &shard.location;
                let Some(part) = folder.part()? else {
                    return Err(IndexError::LocalFolder { location: location.clone() });
                };
                let samples = folder.sample_count();
                return Self::pack(ShardKind::Folder, samples, part, None, location);
            }
            Opened::File(source) => source,
        };
        let unchanged = earlier.map_or(Ok(None), |index| index.unchanged(shard, &source))?;
        if let Some(unchanged) = unchanged {
            return Ok(unchanged);
        }
        let (kind, samples, part) = if is_tbl(&source)? {
            let file = TblFile::from_source(source.clone(), ReadOptions::default())?;
            (ShardKind::Tbl, file.sample_count(), front_of(&file, &source)?)
        } else if let Some(FilePart { samples, bytes }) = part_of_format(stores, &source)? {
            (ShardKind::Format, samples, bytes)
        } else {
            let (archive, part) = TarArchive::with_part(source.clone())?;
            (ShardKind::Tar, archive.sample_count(), part)
        };
        Self::pack(kind, samples, part, Some(&source), source.location())
    }

    /// Compresses a part. `source` is what it is of, unless that is a folder.
    fn pack(
        kind: ShardKind,
        samples: u64,
        part: Vec<u8>,
        source: Option<&Source>,
        location: &Location,
    ) -> Result<Self, IndexError> {
        let too_large = |_| ReadError::Limit {
            location: location.clone(),
            what: "bytes of its index",
            // LZ4 counts in `i32`.
            limit: i32::MAX as u64,
            need: part.len() as u64,
        };
        let unpacked = i32::try_from(part.len()).map_err(too_large)?;
        let packed = lz4::block::compress(&part, Some(CompressionMode::HIGHCOMPRESSION(9)), false);
        let packed = packed.ok().filter(|packed| packed.len() < part.len());
        let (version_kind, pin) = match source {
            None => (VersionKind::Unknown, Pin::Unknown),
            Some(source) => {
                let pin = source.version()?;
                let is_local = source.ranges().is_none();
                (if is_local { VersionKind::Modified } else { version_of(&pin).0 }, pin)
            }
        };
        Ok(Self {
            kind,
            bytes: source.map_or(0, Source::len),
            version_kind,
            pin,
            samples,
            part: packed.unwrap_or(part),
            unpacked_bytes: unpacked.cast_unsigned(),
            is_unchanged: false,
        })
    }

    fn shard<'a>(&'a self, name: &'a [u8], part: Range<u64>) -> Shard<'a> {
        Shard {
            kind: self.kind,
            name,
            bytes: self.bytes,
            version_kind: self.version_kind,
            version: version_of(&self.pin).1,
            samples: self.samples,
            part,
            unpacked_bytes: self.unpacked_bytes,
            part_crc32c: crc32c(&self.part),
        }
    }
}

/// The index that is brought up to date.
struct Earlier<'a> {
    index: &'a ShardIndex,
    shards: HashMap<&'a Location, &'a OwnedShard>,
}

impl<'a> Earlier<'a> {
    fn new(index: &'a ShardIndex) -> Self {
        let shards = index.shards.iter().map(|shard| (&shard.location, shard)).collect();
        Self { index, shards }
    }

    /// The shard as the index has it, if `source` is the file or object that was indexed.
    fn unchanged(&self, shard: &Named, source: &Source) -> Result<Option<Entry>, ReadError> {
        let version = source.version()?;
        let is_same = |shard: &&&OwnedShard| {
            shard.kind != ShardKind::Folder
                && shard.bytes == source.len()
                && shard.is_local == source.ranges().is_none()
                && shard.pin == version
                && version != Pin::Unknown
        };
        let location = self.index.folder.join(&shard.name);
        let shard = self.shards.get(&location).filter(is_same);
        let Some(shard) = shard else { return Ok(None) };
        let mut part = Vec::new();
        self.index.source.read_range_into(
            shard.part.start,
            shard.part.end - shard.part.start,
            &mut part,
        )?;
        // A damaged part is replaced.
        if crc32c(&part) != shard.part_crc32c {
            return Ok(None);
        }
        let version_kind =
            if shard.is_local { VersionKind::Modified } else { version_of(&shard.pin).0 };
        Ok(Some(Entry {
            kind: shard.kind,
            bytes: shard.bytes,
            version_kind,
            pin: version,
            samples: shard.samples,
            part,
            unpacked_bytes: shard.unpacked_bytes,
            is_unchanged: true,
        }))
    }
}

/// The part of a file that one of the formats reads, with the bytes of an object that opening it reads.
fn part_of_format(stores: &Stores, source: &Source) -> Result<Option<FilePart>, ReadError> {
    for format in stores.formats() {
        let Some(FilePart { samples, bytes }) = format.index(stores, source)? else { continue };
        let mut kept = Vec::new();
        if let Some(object) = source.ranges() {
            let noted = Arc::new(Noted::new(Arc::clone(object)));
            let object = Source::from_ranges(source.location(), noted.clone());
            drop(format.open_part(stores, &object, &bytes)?);
            kept = noted.take();
        }
        let part = FormatPart { format: format.extension().as_bytes(), kept, own: &bytes };
        return Ok(Some(FilePart { samples, bytes: part.to_bytes() }));
    }
    Ok(None)
}

/// The part of a TBL file: header, index and metadata, as they stand.
fn front_of(file: &TblFile, source: &Source) -> Result<Vec<u8>, ReadError> {
    let mut kept = Vec::new();
    for range in file.front() {
        let mut bytes = Vec::new();
        source.read_range_into(range.start, range.end - range.start, &mut bytes)?;
        kept.push(Kept { offset: range.start, bytes });
    }
    let mut part = Vec::new();
    push_kept(&mut part, &kept);
    Ok(part)
}
