//! Segments that are read: mapped files.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tbf_format::{FormatError, Key, Region, Segment, UnpackOptions};
use tbl_io::{Location, Mapped, ReadError, Source};

use super::error::SegmentError;

/// A segment that is read several times, and has to be the same file each time.
#[derive(Clone, Debug)]
pub(super) struct MergeSource {
    path: PathBuf,
    version: Version,
}

/// Properties that differ if a file is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: i64,
    modified_nanoseconds: i64,
}

impl MergeSource {
    /// The file that is at `path` now.
    pub(super) fn new(path: &Path) -> Result<Self, SegmentError> {
        let version = Version::of(path).map_err(|source| {
            SegmentError::Read(ReadError::Io { location: Location::new(path), source })
        })?;
        Ok(Self { path: path.to_owned(), version })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Maps the file.
    pub(super) fn open(&self) -> Result<SegmentInput, SegmentError> {
        let input = SegmentInput::open(&self.path)?;
        self.check()?;
        Ok(input)
    }

    /// Refuses a path that has another file by now, or none.
    pub(super) fn check(&self) -> Result<(), SegmentError> {
        let location = || Location::new(&self.path);
        match Version::of(&self.path) {
            Ok(found) if found == self.version => Ok(()),
            Ok(_) => Err(SegmentError::Changed { location: location() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SegmentError::Changed { location: location() })
            }
            Err(source) => Err(ReadError::Io { location: location(), source }.into()),
        }
    }
}

impl Version {
    fn of(path: &Path) -> io::Result<Self> {
        let found: Metadata = fs::metadata(path)?;
        Ok(Self {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            modified: found.mtime(),
            modified_nanoseconds: found.mtime_nsec(),
        })
    }
}

/// The properties of a segment that a conversion keeps.
#[cfg(feature = "parquet")]
#[derive(Clone, Debug)]
pub(crate) struct SegmentTraits {
    /// The type of vector components, if there are vectors.
    pub(crate) dtype: Option<tbf_format::Dtype>,
    pub(crate) compression: tbf_format::Compression,
    pub(crate) key_id: Option<[u8; 16]>,
    pub(crate) index: bool,
    pub(crate) reverse: bool,
    pub(crate) segment_id: u64,
    pub(crate) is_compacted: bool,
}

/// Those of segments that are made of tables.
#[cfg(feature = "parquet")]
impl Default for SegmentTraits {
    fn default() -> Self {
        Self {
            dtype: None,
            compression: tbf_format::Compression::None,
            key_id: None,
            index: true,
            reverse: false,
            segment_id: 0,
            is_compacted: false,
        }
    }
}

#[cfg(feature = "parquet")]
impl SegmentTraits {
    /// Those of the segment at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, SegmentError> {
        let input = SegmentInput::open(path)?;
        let segment = input.segment(&[], None)?;
        let header = segment.header();
        let traits = Self {
            dtype: header.has_embeddings().then(|| header.embedding_dtype()),
            compression: header.compression(),
            key_id: segment.key_id(),
            index: segment.has(Region::Index),
            reverse: header.has_reverse(),
            segment_id: header.segment_id(),
            is_compacted: header.flags().contains(tbf_format::Flags::IS_COMPACTED),
        };
        input.check()?;
        Ok(traits)
    }
}

/// A mapped file that holds a segment.
#[derive(Debug)]
pub(crate) struct SegmentInput {
    mapped: Mapped,
}

impl SegmentInput {
    /// Maps the file at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, SegmentError> {
        let source = Source::open(path)?;
        Ok(Self { mapped: Mapped::new(&source, 0, source.len())? })
    }

    /// The file.
    pub(crate) fn location(&self) -> &Location {
        self.mapped.location()
    }

    /// The segment with these regions unpacked, where it has them.
    pub(crate) fn segment(
        &self,
        regions: &[Region],
        key: Option<&Key>,
    ) -> Result<Segment<'_>, SegmentError> {
        let bytes = self.mapped.slice(0, self.mapped.len())?;
        let mut segment = Segment::open(bytes).map_err(|error| self.fault(error))?;
        let options = UnpackOptions { key, ..UnpackOptions::default() };
        for &region in regions {
            if segment.has(region) {
                segment.unpack(region, &options).map_err(|error| self.fault(error))?;
            }
        }
        Ok(segment)
    }

    /// The error of reading the segment.
    pub(crate) fn fault(&self, source: FormatError) -> SegmentError {
        SegmentError::Format { location: self.location().clone(), source }
    }

    /// Refuses what was read if the file was cut short meanwhile.
    pub(crate) fn check(&self) -> Result<(), SegmentError> {
        Ok(self.mapped.check()?)
    }
}
