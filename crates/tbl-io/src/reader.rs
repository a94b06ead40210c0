//! The TBL reader, versions 1 and 2.
//!
//! Opening checks the header and that index and metadata lie inside the file; it looks at no
//! sample. Every index entry is checked when it is used, because a file has room for offsets that
//! point anywhere and may change while it is open.

use std::borrow::Cow;
use std::path::Path;

use tbl_format::v2::{EntryFlags, FileFlags};
use tbl_format::{FormatError, SampleFormat, v1, v2};

use crate::error::ReadError;
use crate::sample::{Entry, Field, SampleSource, SourceKind};
use crate::source::Source;
use crate::writer::TblVersion;

mod metadata;
mod payload;
mod raw;
mod region;

pub use metadata::MetadataBlock;
pub use raw::RawView;

use metadata::Metadata;
use region::Region;

/// How a TBL file is read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// What is checked when a sample is read.
    pub verify: Verify,
    /// What to do with damage outside the samples.
    pub damage: Damage,
    /// The largest sample that is read, in bytes: a damaged index must not decide how much memory
    /// is asked for.
    pub max_sample_bytes: u64,
}

impl Default for ReadOptions {
    /// Checks the format's own checksums, refuses damage, reads samples of up to 1 GiB.
    fn default() -> Self {
        Self { verify: Verify::Stored, damage: Damage::Refuse, max_sample_bytes: 1 << 30 }
    }
}

/// Which checksums a read checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// None.
    Nothing,
    /// The index's CRC-16, where the file has checksums.
    Stored,
    /// Also the CRC-32C that our writers add, which misses far less.
    All,
}

/// What opening a damaged file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Refuses the file.
    Refuse,
    /// Leaves out what is damaged and lists it in [`TblFile::defects`]: a wrong header checksum is
    /// ignored, an index cut short ends early, unreadable metadata is as if it were not there.
    LeaveOut,
}

/// An open TBL file.
///
/// ```
/// use tbl_io::{NewSample, SampleSource, StreamWriter, TblFile, WriteOptions};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("one.tbl");
/// let mut writer = StreamWriter::create(&path, WriteOptions::default())?;
/// writer.write_sample(&NewSample { label: Some(7), ..NewSample::new(b"bytes") })?;
/// writer.finish()?;
///
/// let file = TblFile::open(&path)?;
/// let mut bytes = Vec::new();
/// file.read_into(0, &mut bytes)?;
/// assert_eq!((bytes.as_slice(), file.entry(0)?.label), (b"bytes".as_slice(), Some(7)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TblFile {
    source: Source,
    options: ReadOptions,
    header: Header,
    sample_count: u64,
    index: Region,
    index_end: u64,
    metadata: Metadata,
    defects: Vec<FormatError>,
}

/// The part of either header that is needed after opening.
#[derive(Clone, Copy, Debug)]
enum Header {
    V1 { custom: Option<v1::CustomMetadata> },
    V2 { flags: FileFlags },
}

/// An index entry of either version, as far as it is consistent in itself.
#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    offset: u64,
    stored_bytes: u32,
    bytes: u32,
    width: u16,
    height: u16,
    format: SampleFormat,
    flags: EntryFlags,
    /// `None` where the file has no checksums.
    checksum: Option<u16>,
}

impl TblFile {
    /// Opens a TBL file of either version.
    ///
    /// # Errors
    /// [`ReadError::Io`], or [`ReadError::Format`] when header, index or metadata are not as they
    /// should be.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::from_source(Source::open(path.as_ref())?, ReadOptions::default())
    }

    /// Opens a TBL file of either version with other than the default options.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_source(source: Source, options: ReadOptions) -> Result<Self, ReadError> {
        let mut front = [0; v2::FileHeader::SIZE];
        let have = usize::try_from(source.len()).map_or(front.len(), |len| len.min(front.len()));
        let front = &mut front[..have];
        source.read_exact_at(0, front)?;
        Self::with_front(source, front, options)
    }

    /// Opens a TBL file as if it started with `front`, which holds a header.
    pub(crate) fn with_front(
        source: Source,
        front: &[u8],
        options: ReadOptions,
    ) -> Result<Self, ReadError> {
        let mut defects = Vec::new();
        let version = tbl_format::sniff(front);
        let mut tolerate = |result: Result<(), FormatError>| match (result, options.damage) {
            (Err(defect), Damage::LeaveOut) => {
                defects.push(defect);
                Ok(())
            }
            (result, _) => result,
        };
        let mut open = || -> Result<_, FormatError> {
            let (header, sample_count, entry_bytes, metadata) = if version == Some(1) {
                let (header, _) = v1::FileHeader::parse(front)?;
                tolerate(header.index_range(source.len()).map(|_| ()))?;
                let custom = header.custom_metadata();
                (Header::V1 { custom }, header.sample_count(), v1::IndexEntry::SIZE, None)
            } else {
                let (header, _) = v2::FileHeader::parse_unverified(front)?;
                tolerate(header.verify())?;
                tolerate(header.index_range(source.len()).map(|_| ()))?;
                let metadata = header.metadata_range(source.len());
                tolerate(metadata.clone().map(|_| ()))?;
                let flags = header.flags();
                let metadata = metadata.ok().flatten();
                (Header::V2 { flags }, header.sample_count(), v2::IndexEntry::SIZE, metadata)
            };
            let header_bytes = header.size();
            // Only in a damaged file can the index have less room than the count asks for.
            let room = source.len().saturating_sub(header_bytes) / entry_bytes as u64;
            Ok((header, sample_count.min(room), entry_bytes as u64, metadata))
        };
        let (header, sample_count, entry_bytes, section) = open().map_err(|defect| {
            ReadError::Format { path: source.path().to_path_buf(), offset: 0, source: defect }
        })?;
        // Both fit into the file, so neither product nor sum overflows.
        let index_bytes = sample_count * entry_bytes;
        let index = Region::open(&source, header.size(), index_bytes)?;
        let metadata = match section {
            Some(section) => match Metadata::open(&source, section, sample_count) {
                Err(ReadError::Format { source: defect, .. })
                    if options.damage == Damage::LeaveOut =>
                {
                    defects.push(defect);
                    Metadata::none()
                }
                other => other?,
            },
            None => Metadata::none(),
        };
        let index_end = header.size() + index_bytes;
        Ok(Self { source, options, header, sample_count, index, index_end, metadata, defects })
    }

    /// The version of the format.
    pub fn version(&self) -> TblVersion {
        match self.header {
            Header::V1 { .. } => TblVersion::V1,
            Header::V2 { .. } => TblVersion::V2,
        }
    }

    /// The whole file's flags; version 1 has none.
    pub fn flags(&self) -> FileFlags {
        match self.header {
            Header::V1 { .. } => FileFlags::NONE,
            Header::V2 { flags } => flags,
        }
    }

    /// The application's own fields in a version 1 header.
    pub fn custom_metadata(&self) -> Option<v1::CustomMetadata> {
        match self.header {
            Header::V1 { custom } => custom,
            Header::V2 { .. } => None,
        }
    }

    /// The file's length in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.source.len()
    }

    /// What was left out of a file opened with [`Damage::LeaveOut`].
    pub fn defects(&self) -> &[FormatError] {
        &self.defects
    }

    /// All metadata blocks of sample `index`, in stored order; ours included.
    ///
    /// The first call walks the whole metadata section once.
    ///
    /// # Errors
    /// [`ReadError::SampleOutOfRange`], [`ReadError::Format`] for a damaged section.
    pub fn metadata(&self, index: u64) -> Result<Vec<MetadataBlock>, ReadError> {
        self.index_entry(index)?;
        let mut blocks = Vec::new();
        self.metadata.for_each_block(index, |kind, data| {
            blocks.push(MetadataBlock { kind, data: data.to_vec() });
            Ok(())
        })?;
        Ok(blocks)
    }

    /// Whether sample `index` is stored as an LZ4 block.
    ///
    /// # Errors
    /// As for [`entry`](SampleSource::entry).
    pub fn is_compressed(&self, index: u64) -> Result<bool, ReadError> {
        Ok(self.index_entry(index)?.flags.contains(EntryFlags::COMPRESSED))
    }

    /// Checks everything outside the samples that has a checksum: the index and the metadata of
    /// files that our writers made. The header was checked when the file was opened.
    ///
    /// # Errors
    /// [`ReadError::Format`] with the first part that does not match.
    pub fn verify_structure(&self) -> Result<(), ReadError> {
        self.verify_metadata()?;
        self.verify_index()
    }

    /// Checks the metadata of files that our writers made.
    pub(crate) fn verify_metadata(&self) -> Result<(), ReadError> {
        self.metadata.verify()
    }

    /// Checks the index of files that our writers made.
    pub(crate) fn verify_index(&self) -> Result<(), ReadError> {
        let Some(stored) = self.metadata.index_checksum() else { return Ok(()) };
        let computed = self.index.checksum()?;
        if stored == computed {
            return Ok(());
        }
        let source = FormatError::Crc32c { what: "index", stored, computed };
        Err(self.format_error(self.header.size(), source))
    }

    /// What the index alone says of sample `index`, when its name or label cannot be read.
    pub(crate) fn nameless_entry(&self, index: u64) -> Result<Entry<'static>, ReadError> {
        let entry = self.index_entry(index)?;
        Ok(Entry {
            key: None,
            label: None,
            format: entry.format,
            width: u32::from(entry.width),
            height: u32::from(entry.height),
            offset: entry.offset,
            stored_bytes: u64::from(entry.stored_bytes),
            bytes: u64::from(entry.bytes),
        })
    }

    /// Name and label of sample `index`, without a look at its index entry.
    pub(crate) fn key_and_label(
        &self,
        index: u64,
    ) -> Result<(Option<Vec<u8>>, Option<i64>), ReadError> {
        self.metadata.key_and_label(index)
    }

    /// CRC-32C of sample `index` as our writers store it.
    pub(crate) fn sample_checksum(&self, index: u64) -> Result<Option<u32>, ReadError> {
        self.metadata.sample_checksum(index)
    }

    /// The whole file as one array of raw images, without copying.
    ///
    /// Looks at every index entry once.
    ///
    /// # Errors
    /// [`ReadError::NotRaw`] naming the first sample that does not fit in.
    pub fn raw_view(&self) -> Result<RawView, ReadError> {
        raw::view(self)
    }

    /// Entry `index`, checked for consistency but not against the rest of the file.
    fn index_entry(&self, index: u64) -> Result<IndexEntry, ReadError> {
        if index >= self.sample_count {
            return Err(ReadError::SampleOutOfRange {
                path: self.source.path().to_path_buf(),
                index,
                sample_count: self.sample_count,
            });
        }
        // `index` is below the count, so the entry lies inside the index.
        let offset = self.header.size() + index * self.header.entry_bytes();
        self.index
            .with(offset, self.header.entry_bytes(), |bytes| self.header.parse_entry(bytes))?
            .map_err(|defect| self.format_error(offset, defect).for_sample(index, None))
    }

    fn format_error(&self, offset: u64, source: FormatError) -> ReadError {
        ReadError::Format { path: self.source.path().to_path_buf(), offset, source }
    }

    fn sample_error(&self, index: u64, offset: u64, source: FormatError) -> ReadError {
        let error = self.format_error(offset, source);
        error.for_sample(index, self.key_for_error(index).as_deref())
    }

    /// The sample's name for a message about something else; the message is still of use when the
    /// name cannot be read.
    fn key_for_error(&self, index: u64) -> Option<Vec<u8>> {
        self.metadata.key(index).unwrap_or(None)
    }
}

impl SampleSource for TblFile {
    fn path(&self) -> &Path {
        self.source.path()
    }

    fn kind(&self) -> SourceKind {
        match self.header {
            Header::V1 { .. } => SourceKind::Tbl1,
            Header::V2 { .. } => SourceKind::Tbl2,
        }
    }

    fn sample_count(&self) -> u64 {
        self.sample_count
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let entry = self.nameless_entry(index)?;
        let (key, label) = self.metadata.key_and_label(index)?;
        Ok(Entry { key: key.map(Cow::Owned), label, ..entry })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.read_sample(index, bytes, None).map(|_| ())
    }

    fn read_with_block(
        &self,
        index: u64,
        bytes: &mut Vec<u8>,
        block: &mut Vec<u8>,
    ) -> Result<bool, ReadError> {
        self.read_sample(index, bytes, Some(block))
    }

    fn will_need(&self, index: u64) {
        if let Ok(entry) = self.index_entry(index) {
            self.source.will_need(entry.offset, u64::from(entry.stored_bytes));
        }
    }

    fn read_fields(&self, index: u64, fields: &mut Vec<Field>) -> Result<(), ReadError> {
        self.index_entry(index)?;
        self.metadata.read_fields(index, fields)
    }

    fn class_names(&self) -> &[String] {
        self.metadata.class_names()
    }
}

impl Header {
    fn size(&self) -> u64 {
        match self {
            Self::V1 { .. } => v1::FileHeader::SIZE as u64,
            Self::V2 { .. } => v2::FileHeader::SIZE as u64,
        }
    }

    fn entry_bytes(&self) -> u64 {
        match self {
            Self::V1 { .. } => v1::IndexEntry::SIZE as u64,
            Self::V2 { .. } => v2::IndexEntry::SIZE as u64,
        }
    }

    fn parse_entry(&self, bytes: &[u8]) -> Result<IndexEntry, FormatError> {
        match self {
            Self::V1 { .. } => {
                let entry = v1::IndexEntry::parse(bytes)?;
                Ok(IndexEntry {
                    offset: entry.offset(),
                    stored_bytes: entry.stored_bytes(),
                    bytes: entry.stored_bytes(),
                    width: 0,
                    height: 0,
                    format: entry.format(),
                    flags: EntryFlags::NONE,
                    checksum: None,
                })
            }
            Self::V2 { flags } => {
                let entry = v2::IndexEntry::parse(bytes)?;
                Ok(IndexEntry {
                    offset: entry.offset(),
                    stored_bytes: entry.stored_bytes(),
                    bytes: entry.sample_bytes()?,
                    width: entry.width(),
                    height: entry.height(),
                    format: entry.format(),
                    flags: entry.flags(),
                    checksum: flags.contains(FileFlags::HAS_CHECKSUMS).then_some(entry.checksum()),
                })
            }
        }
    }
}
