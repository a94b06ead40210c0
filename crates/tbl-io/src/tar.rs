//! TAR archives, plain or WebDataset, read in place: one pass over the headers makes an index of
//! the regular members, and their bytes are read by position when they are asked for.
//!
//! Nothing is extracted, so member names are only names here: `..`, absolute paths and duplicates
//! are kept as they are stored. Compressed archives are not read.

pub(crate) mod header;
mod index;
pub(crate) mod pax;
pub(crate) mod window;

use std::fmt;
use std::path::Path;

use tbl_format::SampleFormat;

use self::index::{Extent, Index};
use crate::error::ReadError;
use crate::grouping::{Grouping, WithoutImage, push_field, split_base};
use crate::label::{LabelField, choose_label};
use crate::limits::ReadLimits;
use crate::names::Names;
use crate::sample::{Entry, Field, SampleSource, SourceKind};
use crate::source::Source;

/// An indexed TAR archive.
///
/// Understood are ustar, GNU (long names, base-256 numbers), PAX (local and global headers; path
/// and size), star and V7 headers, archives without an end marker, and archives one after the
/// other. Sparse members, multi-volume parts and unknown types are passed over and listed by
/// [`skipped`](Self::skipped). The index takes 28 bytes and the base name for each member.
///
/// ```
/// use tbl_io::{SampleSource, Source, TarArchive, TarOptions, TarWriter};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("photos.tar");
/// let mut writer = TarWriter::create(&path, TarOptions::default())?;
/// writer.append(b"cat.jpg", b"...")?;
/// writer.append(b"cat.cls", b"7")?;
/// writer.finish()?;
///
/// let archive = TarArchive::open(&path)?;
/// assert_eq!(archive.sample_count(), 1);
/// assert_eq!(archive.entry(0)?.label, Some(7));
/// let mut bytes = Vec::new();
/// archive.read_into(0, &mut bytes)?;
/// assert_eq!(bytes, b"...");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TarArchive {
    source: Source,
    limits: ReadLimits,
    names: Names,
    extents: Vec<Extent>,
    grouping: Grouping,
    /// By sample; [`NO_LABEL`] for none. Empty when no sample has one.
    labels: Vec<i64>,
    counts: MemberCounts,
    skipped: Vec<SkippedMember>,
    has_end_marker: bool,
    trailing_garbage: Option<u64>,
}

const NO_LABEL: i64 = i64::MIN;

impl TarArchive {
    /// Opens and indexes an archive.
    ///
    /// # Errors
    /// [`ReadError::Tar`] with the offset of the first damaged or truncated header, member or
    /// extended header; [`ReadError::Io`] and [`ReadError::NotAFile`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::new(Source::open(path.as_ref())?, ReadLimits::default())
    }

    /// Indexes the archive in `source`.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn new(source: Source, limits: ReadLimits) -> Result<Self, ReadError> {
        let index = Index::read(&source)?;
        let grouping = Grouping::new(&index.names, WithoutImage::Sample);
        let labels = sample_labels(&index, &grouping);
        let Index { names, extents, counts, skipped, has_end_marker, trailing_garbage, .. } = index;
        Ok(Self {
            source,
            limits,
            names,
            extents,
            grouping,
            labels,
            counts,
            skipped,
            has_end_marker,
            trailing_garbage,
        })
    }

    /// How many members of each type the archive has.
    pub fn member_counts(&self) -> MemberCounts {
        self.counts
    }

    /// Members that are no samples although they hold data: sparse files, parts of multi-volume
    /// files, hard links with contents of their own, unknown types. The first 1000; [`member_counts`](Self::member_counts) has the
    /// total.
    pub fn skipped(&self) -> &[SkippedMember] {
        &self.skipped
    }

    /// Whether the archive ends with two zero blocks. One without may have lost members at its
    /// end; those that are there are whole.
    pub fn has_end_marker(&self) -> bool {
        self.has_end_marker
    }

    /// Where bytes start behind the end marker that are no further archive.
    pub fn trailing_garbage(&self) -> Option<u64> {
        self.trailing_garbage
    }

    fn member(&self, index: u64) -> Result<u32, ReadError> {
        self.grouping.sample(index).ok_or_else(|| ReadError::SampleOutOfRange {
            path: self.source.path().to_path_buf(),
            index,
            sample_count: self.sample_count(),
        })
    }

    fn read_member(&self, member: u32, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let Extent { offset, size } = self.extents[member as usize];
        self.limits.check_sample_bytes(self.source.path(), size)?;
        self.source.read_range_into(offset, size, bytes)
    }
}

/// Brings the labels of members to the samples whose fields they are.
fn sample_labels(index: &Index, grouping: &Grouping) -> Vec<i64> {
    let label_of = |member: u32| {
        let extension = split_base(index.names.base(member)).1;
        let field = LabelField::of(extension)?;
        let found = index.labels.binary_search_by_key(&member, |&(member, _)| member).ok();
        Some((field, found.and_then(|at| index.labels[at].1)))
    };
    if index.labels.is_empty() {
        return Vec::new();
    }
    let labels: Vec<i64> = (0..grouping.sample_count() as u64)
        .map(|sample| {
            choose_label(grouping.fields(sample).filter_map(label_of)).unwrap_or(NO_LABEL)
        })
        .collect();
    if labels.iter().all(|&label| label == NO_LABEL) { Vec::new() } else { labels }
}

impl SampleSource for TarArchive {
    fn path(&self) -> &Path {
        self.source.path()
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Tar
    }

    fn sample_count(&self) -> u64 {
        self.grouping.sample_count() as u64
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let member = self.member(index)?;
        let Extent { offset, size } = self.extents[member as usize];
        let label = usize::try_from(index).ok().and_then(|index| self.labels.get(index)).copied();
        Ok(Entry {
            key: Some(self.names.path(member)),
            label: label.filter(|&label| label != NO_LABEL),
            format: SampleFormat::from_file_name(self.names.base(member)),
            width: 0,
            height: 0,
            offset,
            stored_bytes: size,
            bytes: size,
        })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let member = self.member(index)?;
        self.read_member(member, bytes)
            .map_err(|error| error.for_sample(index, Some(&self.names.path(member))))
    }

    fn will_need(&self, index: u64) {
        if let Some(member) = self.grouping.sample(index) {
            let Extent { offset, size } = self.extents[member as usize];
            self.source.will_need(offset, size);
        }
    }

    fn read_fields(&self, index: u64, fields: &mut Vec<Field>) -> Result<(), ReadError> {
        let sample = self.member(index)?;
        let first_new = fields.len();
        for member in self.grouping.fields(index) {
            let mut bytes = Vec::new();
            self.read_member(member, &mut bytes)
                .map_err(|error| error.for_sample(index, Some(&self.names.path(sample))))?;
            let extension = split_base(self.names.base(member)).1.to_vec();
            push_field(fields, first_new, Field { extension, bytes });
        }
        Ok(())
    }

    fn class_names(&self) -> &[String] {
        &[]
    }
}

/// The types of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberKind {
    /// A file: a sample or a field of one.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    SymbolicLink,
    /// A link to an earlier member.
    HardLink,
    /// A character or block device.
    Device,
    /// A FIFO.
    Fifo,
    /// A file stored without its holes (GNU, PAX).
    Sparse,
    /// The rest of a file that started in an earlier volume.
    MultiVolume,
    /// A type that this version does not know, with its type flag.
    Unknown(u8),
}

impl MemberKind {
    fn of(type_flag: u8, is_sparse: bool, path: &[u8]) -> Self {
        match type_flag {
            b'0' | b'\0' | b'7' if is_sparse => Self::Sparse,
            // V7 had no type for directories; GNU tar and others still read them so.
            b'0' | b'\0' if path.ends_with(b"/") => Self::Directory,
            b'0' | b'\0' | b'7' => Self::Regular,
            b'1' => Self::HardLink,
            b'2' => Self::SymbolicLink,
            b'3' | b'4' => Self::Device,
            b'5' | b'D' => Self::Directory,
            b'6' => Self::Fifo,
            b'S' => Self::Sparse,
            b'M' => Self::MultiVolume,
            other => Self::Unknown(other),
        }
    }
}

impl fmt::Display for MemberKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regular => "file",
            Self::Directory => "directory",
            Self::SymbolicLink => "symbolic link",
            Self::HardLink => "hard link",
            Self::Device => "device",
            Self::Fifo => "FIFO",
            Self::Sparse => "sparse file",
            Self::MultiVolume => "part of a multi-volume file",
            Self::Unknown(flag) => return write!(f, "unknown type '{}'", flag.escape_ascii()),
        })
    }
}

/// How many members of each type an archive has; PAX headers and long names are parts of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberCounts {
    /// Files.
    pub regular: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub symbolic_links: u64,
    /// Hard links.
    pub hard_links: u64,
    /// Character and block devices and FIFOs.
    pub devices: u64,
    /// Sparse files.
    pub sparse: u64,
    /// Multi-volume parts and unknown types.
    pub unknown: u64,
}

impl MemberCounts {
    fn add(&mut self, kind: MemberKind) {
        *match kind {
            MemberKind::Regular => &mut self.regular,
            MemberKind::Directory => &mut self.directories,
            MemberKind::SymbolicLink => &mut self.symbolic_links,
            MemberKind::HardLink => &mut self.hard_links,
            MemberKind::Device | MemberKind::Fifo => &mut self.devices,
            MemberKind::Sparse => &mut self.sparse,
            MemberKind::MultiVolume | MemberKind::Unknown(_) => &mut self.unknown,
        } += 1;
    }
}

/// A member that holds data but is no sample.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedMember {
    /// Its name as stored.
    pub path: Vec<u8>,
    /// Why it is none.
    pub kind: MemberKind,
    /// Where its header is.
    pub offset: u64,
}
