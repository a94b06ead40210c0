//! The TBL reader, versions 1 and 2.
//!
//! Opening checks the header and that index and metadata lie inside the file; it looks at no
//! sample. Every index entry is checked when it is used, because a file has room for offsets that
//! point anywhere and may change while it is open.

use std::borrow::Cow;
use std::iter;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::OnceLock;

use tbl_format::v2::{Codec, FileFlags};
use tbl_format::{FormatError, v1, v2};

use crate::codec::Dictionary;
use crate::error::ReadError;
use crate::identity::Told;
use crate::limits::ReadLimits;
use crate::location::Location;
use crate::sample::{
    BulkIndex, DamageChecks, Entry, Facts, Field, RowIndexes, SampleName, SampleSource, SourceKind,
    StoredBytes, StoredSamples,
};
use crate::source::Source;
use crate::tbl_version::TblVersion;
use crate::view::ViewMap;

mod block_limits;
mod block_map;
mod blocks;
mod entry;
mod metadata;
mod open;
mod order;
mod payload;
mod raw;
mod region;
mod scan;
mod section;

pub(crate) use block_limits::{max_blocks, max_file_blocks, max_late_blocks, max_late_runs};
pub use blocks::MetadataTotals;
pub use raw::RawView;

use entry::{Header, IndexEntry};
use metadata::Metadata;
use region::Region;

/// Options for reading a TBL file. By default the format's own checksums are checked and damage is
/// refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// The checks made when a sample is read.
    pub verify: Verify,
    /// The reaction to damage outside the samples.
    pub damage: Damage,
    /// Bounds on what a damaged index can make the reader allocate.
    pub limits: ReadLimits,
}

/// The checksums that a read checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// No checksums.
    Nothing,
    /// The index's CRC-16, where the file has checksums.
    #[default]
    Stored,
    /// Also the CRC-32C that our writers add. CRC-16 misses one damaged sample in 65 536, CRC-32C
    /// one in four thousand million.
    All,
}

/// The reaction to damage when a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// Refuses the file.
    #[default]
    Refuse,
    /// Leaves out what is damaged and lists it in [`TblFile::defects`]: a wrong header checksum is
    /// ignored, an index cut short ends early, unreadable metadata is as if it were not there.
    LeaveOut,
}

/// The row indexes of a file, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowIndexTotals {
    /// Samples that have one.
    pub samples: u64,
    /// Bytes of the file that are spent on them.
    pub bytes: u64,
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
    dictionary: OnceLock<Option<Dictionary>>,
    defects: Vec<FormatError>,
    views: ViewMap,
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
        open::open(source, options)
    }

    /// Opens a TBL file as if it started with `front`, which holds a header.
    pub(crate) fn with_front(
        source: Source,
        front: &[u8],
        options: ReadOptions,
    ) -> Result<Self, ReadError> {
        open::open_with_front(source, front, options)
    }

    /// The version of the format.
    pub fn version(&self) -> TblVersion {
        self.header.version()
    }

    /// The whole file's flags; version 1 has none.
    pub fn flags(&self) -> FileFlags {
        self.header.flags()
    }

    /// The application's own fields in a version 1 header. [`file_metadata`](Self::file_metadata)
    /// has them as JSON.
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

    /// The damage in a file opened with [`Damage::LeaveOut`].
    pub fn defects(&self) -> &[FormatError] {
        &self.defects
    }

    /// The parts of the file that opening it reads: header and index, and metadata.
    pub(crate) fn front(&self) -> Vec<Range<u64>> {
        // A short file of version 1 is read beyond its index.
        let end = self.index_end.max(self.source.len().min(v2::FileHeader::SIZE as u64));
        let metadata = self.metadata.range();
        iter::once(0..end).chain(metadata).collect()
    }

    /// The compression of sample `index`; `None` if it is stored as it is.
    ///
    /// # Errors
    /// As for [`entry`](SampleSource::entry).
    pub fn codec(&self, index: u64) -> Result<Option<Codec>, ReadError> {
        Ok(self.index_entry(index)?.codec)
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
        Err(self.format_error(self.version().header_bytes(), source))
    }

    /// The name of sample `index` as far as it can be saved, without a look at its index entry.
    pub(crate) fn saved_key(&self, index: u64) -> Result<Option<Vec<u8>>, ReadError> {
        self.metadata.saved_key(index)
    }

    /// The label of sample `index` if a checksum covers it, without a look at its index entry.
    pub(crate) fn saved_label(&self, index: u64) -> Result<Option<i64>, ReadError> {
        self.metadata.saved_label(index)
    }

    /// Fields of sample `index`, without a look at its index entry.
    pub(crate) fn fields(&self, index: u64, fields: &mut Vec<Field>) -> Result<(), ReadError> {
        self.metadata.read_fields_where(index, &mut |_, _| true, fields)
    }

    /// CRC-32C of sample `index` as our writers store it.
    pub(crate) fn sample_checksum(&self, index: u64) -> Result<Option<u32>, ReadError> {
        self.metadata.sample_checksum(index)
    }

    /// Row index of sample `index`, which is refused unless it belongs to bytes with this CRC-32C.
    pub(crate) fn row_index_of(
        &self,
        index: u64,
        sample_crc32c: u32,
        out: &mut Vec<u8>,
    ) -> Result<bool, ReadError> {
        self.metadata.row_index_into(index, Some(sample_crc32c), out)
    }

    /// How many samples have a row index, and what that costs. Looks at the tables in front of
    /// them, not at the row indexes themselves.
    ///
    /// # Errors
    /// [`ReadError::Format`] for a damaged table.
    pub fn row_index_totals(&self) -> Result<RowIndexTotals, ReadError> {
        let (samples, bytes) = self.metadata.row_index_totals()?;
        Ok(RowIndexTotals { samples, bytes })
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
                location: self.source.location().clone(),
                index,
                sample_count: self.sample_count,
            });
        }
        let offset = self.entry_offset(index);
        let len = self.version().entry_bytes() as u64;
        self.index
            .with(offset, len, |bytes| self.header.parse_entry(bytes))?
            .map_err(|defect| self.of_sample(index, self.format_error(offset, defect)))
    }

    /// The offset in the file of entry `index`, which is below the sample count.
    fn entry_offset(&self, index: u64) -> u64 {
        self.version().header_bytes() + index * self.version().entry_bytes() as u64
    }

    fn format_error(&self, offset: u64, source: FormatError) -> ReadError {
        ReadError::Format { location: self.source.location().clone(), offset, source }
    }
}

impl SampleSource for TblFile {
    fn location(&self) -> &Location {
        self.source.location()
    }

    fn kind(&self) -> SourceKind {
        match self.version() {
            TblVersion::V1 => SourceKind::Tbl1,
            TblVersion::V2 => SourceKind::Tbl2,
        }
    }

    fn sample_count(&self) -> u64 {
        self.sample_count
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let facts = self.facts(index)?;
        let has_blocks = self.index_entry(index)?.has_metadata();
        let named = self.metadata.key_and_label(index, has_blocks);
        let (key, label) = named.map_err(|error| error.for_sample(index, None))?;
        Ok(Entry::new(facts, key.map(Cow::Owned), label))
    }

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let entry = self.index_entry(index)?;
        self.check_extent(index, &entry).map_err(|error| self.of_sample(index, error))?;
        Ok(Facts {
            format: entry.format,
            width: u32::from(entry.width),
            height: u32::from(entry.height),
            offset: entry.offset,
            stored_bytes: u64::from(entry.stored_bytes),
            bytes: u64::from(entry.bytes),
        })
    }

    fn content_id(&self, index: u64, id: &mut Vec<u8>) -> Result<bool, ReadError> {
        let entry = self.index_entry(index)?;
        id.extend_from_slice(&entry.checksum.unwrap_or_default().to_le_bytes());
        id.push(match self.options.verify {
            Verify::Nothing => 0,
            Verify::Stored => 1,
            Verify::All => 2,
        });
        self.options.limits.push_id(id);
        // The index has 16 bits of checksum, which are too few to go by.
        let checksum = self.sample_checksum(index)?;
        id.extend_from_slice(&checksum.unwrap_or_default().to_le_bytes());
        let told = self.source.content_id(id);
        Ok(told.is_some_and(|told| checksum.is_some() || told == Told::ByTimes))
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.read_sample(index, bytes, None).map(|_| ())
    }

    fn will_need(&self, index: u64) {
        if let Ok(entry) = self.index_entry(index) {
            self.source.will_need(entry.offset, u64::from(entry.stored_bytes));
        }
    }

    fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        let has_blocks = self.index_entry(index)?.has_metadata();
        let read = self.metadata.check_blocks(index, has_blocks);
        let read = read.and_then(|()| self.metadata.read_fields_where(index, is_wanted, fields));
        read.map_err(|error| error.for_sample(index, None))
    }

    fn class_names(&self) -> &[String] {
        self.metadata.names(|directory| &directory.class_names)
    }

    fn box_class_names(&self) -> &[String] {
        self.metadata.names(|directory| &directory.box_class_names)
    }

    fn stored_samples(&self) -> Option<&dyn StoredSamples> {
        Some(self)
    }

    fn bulk_index(&self) -> Option<&dyn BulkIndex> {
        Some(self)
    }

    fn damage_checks(&self) -> Option<&dyn DamageChecks> {
        Some(self)
    }

    fn row_indexes(&self) -> Option<&dyn RowIndexes> {
        Some(self)
    }
}

impl StoredSamples for TblFile {
    fn source(&self) -> Option<&Source> {
        Some(&self.source)
    }

    fn read_block(
        &self,
        index: u64,
        bytes: &mut Vec<u8>,
        block: &mut Vec<u8>,
    ) -> Result<Option<Codec>, ReadError> {
        match self.codec(index)? {
            Some(_) => self.read_sample(index, bytes, Some(block)),
            None => Ok(None),
        }
    }

    fn view(&self, index: u64) -> Result<Option<&[u8]>, ReadError> {
        self.view_sample(index)
    }

    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        let entry = self.payload_entry(index).map_err(|error| self.of_sample(index, error))?;
        let offset = entry.offset;
        let len = u64::from(entry.stored_bytes);
        Ok(Some(StoredBytes { source: self.source.clone(), offset, len }))
    }

    fn unpack(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.unpack_sample(index, bytes)
    }
}

impl BulkIndex for TblFile {
    fn stored_labels(&self) -> Result<Option<Vec<i64>>, ReadError> {
        self.metadata.labels()
    }

    fn scan(
        &self,
        samples: Range<u64>,
        take: &mut dyn FnMut(Result<SampleName<'_>, ReadError>) -> ControlFlow<()>,
    ) -> Result<bool, ReadError> {
        scan::scan(self, samples, take)
    }
}

impl DamageChecks for TblFile {
    fn check_label(&self, index: u64) -> Result<(), ReadError> {
        let has_blocks = self.index_entry(index)?.has_metadata();
        self.metadata.check_label(index, has_blocks)?.map_err(|source| {
            let location = self.source.location().clone();
            let member = b"JSON metadata".to_vec();
            ReadError::Label { location, member, source }.for_sample(index, None)
        })
    }

    fn verify_structure(&self) -> Result<(), ReadError> {
        self.verify_metadata()?;
        self.verify_index()
    }

    fn check_fields(&self, index: u64) -> Result<(), ReadError> {
        self.index_entry(index)?;
        self.metadata.check_fields(index).map_err(|error| error.for_sample(index, None))
    }
}

impl RowIndexes for TblFile {
    fn row_index_into(&self, index: u64, row_index: &mut Vec<u8>) -> Result<bool, ReadError> {
        self.index_entry(index)?;
        self.metadata.row_index_into(index, None, row_index)
    }
}
