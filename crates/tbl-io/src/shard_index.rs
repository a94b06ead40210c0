//! Shard indexes: one file from which many shards open without being read.
//!
//! The part of each shard is what its reader needs: of a TAR archive the result of the pass over
//! its headers, of a TBL file its header, index and metadata, of a folder the listing, of a file of
//! another format what that needs. The bytes of samples are read from the shards, in the version that was indexed.

mod indexed;
mod write;

use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use tbl_format::FormatError;
use tbl_format::checksum::crc32c;
use tbl_format::path::{PathDefect, check_name, check_web_name};
use tbl_format::shard_index::{
    Header, PartReader, Shard, ShardKind, VersionKind, is_shard_index, push_number,
};

use crate::error::ReadError;
use crate::escape::Escaped;
use crate::folder::Folder;
use crate::location::{Location, OWN_INDEX, without_query};
use crate::open::allow_open_files;
use crate::ranges::{Pin, RangeFault};
use crate::reader::{ReadOptions, TblFile};
use crate::sample::SampleSource;
use crate::source::Source;
use crate::storage::{ContainerFormat, Object, Opened, Stores};
use crate::tar::TarArchive;
use indexed::{Indexed, Others};
pub use write::{IndexError, IndexOptions, IndexSummary, index_shards};

/// An open shard index.
#[derive(Debug)]
pub(crate) struct ShardIndex {
    /// All of it, in memory or in a local file.
    source: Source,
    /// The folder that names of shards start from.
    folder: Location,
    shards: Vec<OwnedShard>,
}

/// A shard as the directory describes it, without the directory.
#[derive(Debug)]
struct OwnedShard {
    location: Location,
    kind: ShardKind,
    bytes: u64,
    pin: Pin,
    /// Whether the version is that of a local file.
    is_local: bool,
    samples: u64,
    part: Range<u64>,
    unpacked_bytes: u32,
    part_crc32c: u32,
}

impl ShardIndex {
    /// Whether a file is a shard index, by its first bytes.
    pub(crate) fn is(source: &Source) -> Result<bool, ReadError> {
        let mut magic = [0; 5];
        if source.len() < magic.len() as u64 {
            return Ok(false);
        }
        source.read_exact_at(0, &mut magic)?;
        Ok(is_shard_index(&magic))
    }

    /// Reads the directory of a shard index. An object of a store is copied into memory.
    pub(crate) fn read(source: &Source) -> Result<Self, ReadError> {
        let source = source.to_mappable()?.into_owned();
        let defect = |offset: u64| {
            let location = source.location().clone();
            move |source| ReadError::Format { location, offset, source }
        };
        let len = usize::try_from(source.len()).map_or(Header::SIZE, |len| len.min(Header::SIZE));
        let mut front = vec![0; len];
        source.read_exact_at(0, &mut front)?;
        let header = Header::parse(&front).map_err(defect(0))?;
        let range = header.directory_range(source.len()).map_err(defect(0))?;
        let mut directory = Vec::new();
        source.read_range_into(range.start, range.end - range.start, &mut directory)?;
        let shards = header.shards(&directory, source.len()).map_err(defect(range.start))?;
        let folder = source.location().folder();
        let own = |shard: &Shard<'_>| OwnedShard::new(shard, &folder);
        let own = shards.iter().map(own).collect::<Result<Vec<_>, _>>();
        let shards = own.map_err(defect(range.start))?;
        Ok(Self { source, folder, shards })
    }

    /// How many shards there are.
    pub(crate) fn len(&self) -> usize {
        self.shards.len()
    }

    /// Whether all shards are files that are opened one after the other.
    pub(crate) fn is_local(&self) -> bool {
        self.folder.url().is_none()
    }

    /// Opens shard number `number`. Of an object in a store nothing is read.
    pub(crate) fn open(
        &self,
        stores: &Stores,
        number: usize,
    ) -> Result<Box<dyn SampleSource>, ReadError> {
        let shard = &self.shards[number];
        let defect = |source| self.defect(shard, source);
        let opened: Box<dyn SampleSource> = match shard.kind {
            ShardKind::Folder => Box::new(self.folder_of(shard, stores)?),
            ShardKind::Tar => {
                let part = self.part(shard)?;
                let source = self.source_of(shard, stores, None, Others::Refused)?;
                Box::new(TarArchive::of_part(source, &part).map_err(defect)?)
            }
            ShardKind::Tbl => {
                let part = self.part(shard)?;
                let kept = kept_ranges(&part, shard.bytes).map_err(defect)?;
                let source = self.source_of(shard, stores, Some(kept), Others::Refused)?;
                let file = TblFile::from_source(source.clone(), ReadOptions::default());
                let file = file.map_err(|error| {
                    // Nothing was asked of the store.
                    if matches!(error, ReadError::Remote { .. }) {
                        defect(FormatError::Unreadable { what: "front of a TBL file" })
                    } else {
                        error
                    }
                })?;
                source.release_front();
                Box::new(file)
            }
            ShardKind::Format => self.open_format(shard, stores)?,
        };
        self.check_count(number, opened.sample_count())?;
        Ok(opened)
    }

    /// Opens shard number `number` for a reader that takes nothing from the index, in the version
    /// that was indexed. A folder has the files that were listed.
    pub(crate) fn open_whole(&self, stores: &Stores, number: usize) -> Result<Opened, ReadError> {
        let shard = &self.shards[number];
        if shard.kind != ShardKind::Folder {
            let source = self.source_of(shard, stores, None, Others::Refused);
            return source.map(Opened::File);
        }
        self.folder_of(shard, stores).map(|folder| Opened::Folder(Box::new(folder)))
    }

    /// Opens a file of a format that another crate reads.
    fn open_format(
        &self,
        shard: &OwnedShard,
        stores: &Stores,
    ) -> Result<Box<dyn SampleSource>, ReadError> {
        let part = self.part(shard)?;
        let defect = |source| self.defect(shard, source);
        let FormatPart { format, kept, own } =
            FormatPart::parse(&part, shard.bytes).map_err(defect)?;
        let is_it = |other: &&Arc<dyn ContainerFormat>| other.extension().as_bytes() == format;
        let Some(format) = stores.formats().iter().find(is_it) else {
            let text = match format {
                b"jsonl" => {
                    "has texts, which are read with `--tokens auto --tokenizer FILE`, in Python \
                             by `turboloader.tokens(path, tokenizer=file)`"
                        .to_owned()
                }
                _ => format!("no reader of {} files is in this build", Escaped(format)),
            };
            let error = io::Error::new(io::ErrorKind::Unsupported, text);
            return Err(ReadError::io(&shard.location, error));
        };
        let source = self.source_of(shard, stores, Some(kept), Others::Read)?;
        let opened = format.open_part(stores, &source, own).map_err(|error| {
            // Of the part; the file has defects of its own kind.
            if let ReadError::Format { source, .. } = error { defect(source) } else { error }
        })?;
        source.release_front();
        Ok(opened)
    }

    fn folder_of(&self, shard: &OwnedShard, stores: &Stores) -> Result<Folder, ReadError> {
        let part = self.part(shard)?;
        let defect = |source| self.defect(shard, source);
        let store = stores.of_folder(&shard.location)?;
        Folder::of_part(store, shard.location.clone(), &part, defect)
    }

    /// Fails if shard number `number` has another number of samples than the index says.
    pub(crate) fn check_count(&self, number: usize, found: u64) -> Result<(), ReadError> {
        let shard = &self.shards[number];
        if found == shard.samples {
            return Ok(());
        }
        let what = "index of the shard";
        Err(self.defect(shard, FormatError::Count { what, expected: shard.samples, found }))
    }

    /// The error of a shard's part.
    fn defect(&self, shard: &OwnedShard, source: FormatError) -> ReadError {
        let location = self.source.location().clone();
        ReadError::Format { location, offset: shard.part.start, source }
    }

    /// The part of a shard, unpacked.
    fn part(&self, shard: &OwnedShard) -> Result<Vec<u8>, ReadError> {
        let mut stored = Vec::new();
        let Range { start, end } = shard.part;
        self.source.read_range_into(start, end - start, &mut stored)?;
        let unpacked = unpack(stored, shard.unpacked_bytes, shard.part_crc32c);
        let location = self.source.location().clone();
        unpacked.map_err(|source| ReadError::Format { location, offset: start, source })
    }

    /// The bytes of a shard, in the version that was indexed. `kept` are those that opening an
    /// object reads, if they are at hand.
    fn source_of(
        &self,
        shard: &OwnedShard,
        stores: &Stores,
        kept: Option<Vec<Kept>>,
        others: Others,
    ) -> Result<Source, ReadError> {
        let changed = |found| ReadError::ObjectChanged {
            location: shard.location.clone(),
            expected: shard.pin.clone(),
            found,
            index: Some(self.source.location().clone()),
        };
        // Versions of the two have nothing in common.
        if shard.is_local != shard.location.url().is_none() {
            let text = "was made where its shards were, and they are elsewhere now: write it again \
                        with tl index";
            let error = io::Error::new(io::ErrorKind::InvalidInput, text);
            return Err(ReadError::io(self.source.location(), error));
        }
        let source = stores.open_indexed(&shard.location, shard.bytes, &shard.pin)?;
        let Some(ranges) = source.ranges() else {
            let found = source.version()?;
            let is_same = source.len() == shard.bytes && found == shard.pin;
            return if is_same { Ok(source) } else { Err(changed(found)) };
        };
        // One without a version was opened as it is now.
        if ranges.len() != shard.bytes {
            return Err(changed(ranges.pin().clone()));
        }
        let index = self.source.location().clone();
        let indexed = Indexed::new(Arc::clone(ranges), index, kept, others);
        Ok(Source::from_ranges(source.location(), Arc::new(indexed)))
    }
}

impl OwnedShard {
    fn new(shard: &Shard<'_>, folder: &Location) -> Result<Self, FormatError> {
        let Shard { kind, bytes, version_kind, samples, unpacked_bytes, part_crc32c, .. } = *shard;
        let unreadable = |what| move || FormatError::Unreadable { what };
        let pin = pin_of(version_kind as u64, shard.version);
        let pin = pin.ok_or_else(unreadable("version of a shard"))?;
        check_shard(folder, shard.name)?;
        // Web servers list nothing.
        if kind == ShardKind::Folder && is_web(folder) {
            return Err(unreadable("kind of a shard")());
        }
        let mut location = folder.join(shard.name);
        if kind == ShardKind::Folder && !shard.name.is_empty() {
            location = location.join(b"");
        }
        Ok(Self {
            location,
            kind,
            bytes,
            pin,
            is_local: version_kind == VersionKind::Modified,
            samples,
            part: shard.part.clone(),
            unpacked_bytes,
            part_crc32c,
        })
    }
}

/// Opens a file by the index next to it, which is called as the file and ends with `.tlidx`; `None`
/// without such an index.
///
/// # Errors
/// [`ReadError::Io`] for an index that does not list the file, [`ReadError::ObjectChanged`] for a file
/// that was changed since it was indexed, and those of reading.
pub fn open_indexed(
    stores: &Stores,
    location: &Location,
) -> Result<Option<Box<dyn SampleSource>>, ReadError> {
    // The signature of a URL is that of one object.
    if location.url().is_some_and(|url| without_query(url) != url) {
        return Ok(None);
    }
    let name = location.as_os_str().as_bytes();
    let name = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let beside = location.folder().join(&[name, OWN_INDEX].concat());
    let Some(source) = existing(stores, &beside)? else { return Ok(None) };
    let index = ShardIndex::read(&source)?;
    let wanted = index.folder.join(name);
    let number = index.shards.iter().position(|shard| shard.location == wanted);
    let number = number.ok_or_else(|| {
        let text = format!("does not list {}: write it again with tl index", Escaped(name));
        ReadError::io(source.location(), io::Error::new(io::ErrorKind::InvalidInput, text))
    })?;
    index.open(stores, number).map(Some)
}

/// A file, if it exists.
fn existing(stores: &Stores, location: &Location) -> Result<Option<Source>, ReadError> {
    match stores.open_existing(location) {
        // Buckets say so of objects that do not exist to callers that may not list them.
        Err(ReadError::Store { source: RangeFault::Refused { status: 403, .. }, .. }) => Ok(None),
        opened => opened,
    }
}

/// The shards of a shard index; `None` for another file.
///
/// # Errors
/// Of the first shard that does not open.
pub fn open_shards(
    stores: &Stores,
    source: &Source,
) -> Result<Option<Vec<Box<dyn SampleSource>>>, ReadError> {
    if !ShardIndex::is(source)? {
        return Ok(None);
    }
    let index = ShardIndex::read(source)?;
    allow_open_files(index.len());
    let open = |number| index.open(stores, number);
    (0..index.len()).map(open).collect::<Result<_, _>>().map(Some)
}

/// Checks that the name of a shard means an object or a file below `folder`.
///
/// # Errors
/// [`FormatError::UnsafeName`].
fn check_shard(folder: &Location, name: &[u8]) -> Result<(), FormatError> {
    let checked = match folder.url() {
        Some(_) if str::from_utf8(name).is_err() => Err(PathDefect::NotUtf8),
        Some(_) if is_web(folder) => check_web_name(name),
        _ => check_name(name),
    };
    let expected = "a relative path without `..`";
    let what = "name of a shard";
    checked.map_err(|defect| FormatError::UnsafeName { what, expected, defect })
}

/// Whether a location is on a web server, whose URLs have escapes.
fn is_web(location: &Location) -> bool {
    matches!(location.scheme(), Some("http" | "https"))
}

/// Bytes of an object that are at hand, and their offset.
#[derive(Debug)]
struct Kept {
    offset: u64,
    bytes: Vec<u8>,
}

/// Unpacks a part, once its checksum is right.
fn unpack(stored: Vec<u8>, unpacked_bytes: u32, expected: u32) -> Result<Vec<u8>, FormatError> {
    let computed = crc32c(&stored);
    if expected != computed {
        let what = "part of a shard";
        return Err(FormatError::Crc32c { what, stored: expected, computed });
    }
    let stored_bytes = u32::try_from(stored.len()).unwrap_or(u32::MAX);
    if stored_bytes == unpacked_bytes {
        return Ok(stored);
    }
    // LZ4 counts in `i32`. The directory has checked the ratio of the two lengths.
    let size = i32::try_from(unpacked_bytes)
        .map_err(|_| FormatError::Lz4Size { stored_bytes, bytes: unpacked_bytes })?;
    let unpacked = lz4::block::decompress(&stored, Some(size))
        .map_err(|_| FormatError::Lz4Damaged { stored_bytes })?;
    let found = unpacked.len() as u64;
    if found != u64::from(unpacked_bytes) {
        return Err(FormatError::Lz4Short { expected: unpacked_bytes, found });
    }
    Ok(unpacked)
}

/// The part of a file of another format: what the format has, and the bytes of a file in a store that
/// opening it reads.
struct FormatPart<'p> {
    /// The extension that stands for the format.
    format: &'p [u8],
    kept: Vec<Kept>,
    own: &'p [u8],
}

impl<'p> FormatPart<'p> {
    fn parse(part: &'p [u8], file_bytes: u64) -> Result<Self, FormatError> {
        let mut part = PartReader::new(part, "part of a file");
        let len = part.count()?;
        let format = part.bytes(len)?;
        let kept = read_kept(&mut part, file_bytes)?;
        let len = part.count()?;
        let own = part.bytes(len)?;
        part.finish()?;
        Ok(Self { format, kept, own })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut part = Vec::new();
        push_number(&mut part, self.format.len() as u64);
        part.extend_from_slice(self.format);
        push_kept(&mut part, &self.kept);
        push_number(&mut part, self.own.len() as u64);
        part.extend_from_slice(self.own);
        part
    }
}

/// The part of a TBL file: ranges of it, and their bytes.
fn kept_ranges(part: &[u8], file_bytes: u64) -> Result<Vec<Kept>, FormatError> {
    let mut part = PartReader::new(part, "front of a TBL file");
    let kept = read_kept(&mut part, file_bytes)?;
    part.finish()?;
    Ok(kept)
}

fn push_kept(part: &mut Vec<u8>, kept: &[Kept]) {
    push_number(part, kept.len() as u64);
    for Kept { offset, bytes } in kept {
        push_number(part, *offset);
        push_number(part, bytes.len() as u64);
        part.extend_from_slice(bytes);
    }
}

fn read_kept(part: &mut PartReader<'_>, file_bytes: u64) -> Result<Vec<Kept>, FormatError> {
    let mut kept = Vec::new();
    for _ in 0..part.count()? {
        let offset = part.number()?;
        let len = part.count()?;
        if offset.checked_add(len as u64).is_none_or(|end| end > file_bytes) {
            return Err(part.unreadable());
        }
        kept.push(Kept { offset, bytes: part.bytes(len)?.to_vec() });
    }
    Ok(kept)
}

/// A version as a shard index has it.
pub(crate) fn version_of(pin: &Pin) -> (VersionKind, &[u8]) {
    match pin {
        Pin::Version(name) => (VersionKind::Strong, name.as_bytes()),
        Pin::Weak(name) => (VersionKind::Weak, name.as_bytes()),
        Pin::Unknown => (VersionKind::Unknown, b""),
    }
}

/// The version that a shard index has, if that is one.
pub(crate) fn pin_of(kind: u64, version: &[u8]) -> Option<Pin> {
    let name = || str::from_utf8(version).ok().map(Arc::from);
    match kind {
        0 => Some(Pin::Unknown),
        1 => name().map(Pin::Version),
        2 | 3 => name().map(Pin::Weak),
        _ => None,
    }
}

impl Stores {
    /// Opens a shard that was indexed in this version: a file as it is, an object without a
    /// request.
    fn open_indexed(&self, location: &Location, len: u64, pin: &Pin) -> Result<Source, ReadError> {
        let Some(store) = self.store(location)? else {
            return Source::open(location.as_os_str());
        };
        let object = Object { name: Vec::new(), len, pin: pin.clone() };
        // What has no version is opened as what it is now, if the store allows that.
        store.open(location, Some(&object).filter(|object| object.pin != Pin::Unknown))
    }
}
