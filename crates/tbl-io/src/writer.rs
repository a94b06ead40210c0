//! The streaming TBL writer: payloads go to the disk as they come, everything else is spooled, and
//! the file takes its name only when it is complete.
//!
//! Memory does not grow with the number of samples. Dropping the writer discards the file; only
//! [`StreamWriter::finish`] makes one. What a sample becomes is decided by [`Encoder`], which is
//! pure and can run on other threads.

use std::io::{self, Read};
use std::path::Path;

use tbl_format::FormatError;
use tbl_format::checksum::Crc32c;
use tbl_format::metadata::MetadataType;
use tbl_format::path::{PathDefect, check_new_name};
use tbl_format::v1::CustomMetadata;
use tbl_format::v2::{Codec, EntryFlags, IndexEntry};

use crate::atomic_file::Placement;
use crate::draft::Draft;
use crate::location::Location;
use crate::metadata_json::custom_of_json;
use crate::sample::is_extension;
use crate::storage::Stores;
use crate::tbl_version::TblVersion;
use crate::write_error::{MetadataDefect, WriteError};

mod blocks;
mod encode;
mod options;
mod payloads;
mod sections;
mod spool;

pub use encode::{Compressed, EncodeError, Encoded, Encoder, NewSample};
pub(crate) use options::count_named;
pub use options::{Compression, CompressionError, Unstored, WriteOptions, WriteSummary, ZstdLevel};

use blocks::check_block;
use payloads::Payloads;
use sections::{FileNames, Refused, Sections};
use spool::Spool;

/// Buffer for copying spools into the file.
const COPY_BUFFER_BYTES: usize = 256 << 10;

/// Writes a TBL file sample by sample.
///
/// ```
/// use tbl_io::{NewSample, StreamWriter, WriteOptions};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("train.tbl");
/// let mut writer = StreamWriter::create(&path, WriteOptions::default())?;
/// let sample = NewSample { key: Some(b"a.jpg"), label: Some(3), ..NewSample::new(b"bytes") };
/// writer.write_sample(&sample)?;
/// let summary = writer.finish()?;
/// assert_eq!((summary.samples, summary.sample_bytes), (1, 5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StreamWriter {
    encoder: Encoder,
    /// The dictionary of Zstandard frames.
    dictionary: Option<Vec<u8>>,
    /// Whether there are LZ4 blocks.
    has_blocks: bool,
    /// Whether there are Zstandard frames.
    has_frames: bool,
    sync: bool,
    max_samples: u64,
    payloads: Payloads,
    index: Spool,
    /// `None` in version 1, which has no metadata.
    sections: Option<Sections>,
    names: FileNames,
    /// The first sample with the largest label, and that label, of those whose label has to be
    /// below the number of class names.
    largest_label: Option<(u64, i64)>,
    /// The application's fields in a version 1 header.
    custom: Option<CustomMetadata>,
    /// The offset of the next payload: in the file, or in the spool.
    position: u64,
    summary: WriteSummary,
    /// Set by the first I/O error, after which positions are not to be trusted.
    failed: bool,
}

impl StreamWriter {
    /// Starts a file that will be called `path`.
    ///
    /// # Errors
    /// [`WriteError::Io`] when the file exists and may not be replaced, or the folder refuses;
    /// [`WriteError::Format`] when the announced sample count is beyond the version's limit.
    pub fn create(path: &Path, options: WriteOptions) -> Result<Self, WriteError> {
        Self::create_in(&Stores::new(), &Location::new(path), options)
    }

    /// As [`create`](Self::create), also for the URL of an object in one of the stores. The samples of an
    /// object whose count is not announced wait in a temporary file of the system.
    ///
    /// # Errors
    /// As for [`create`](Self::create), and the fault of the store.
    pub fn create_in(
        stores: &Stores,
        location: &Location,
        options: WriteOptions,
    ) -> Result<Self, WriteError> {
        let WriteOptions { version, compression, sync, overwrite, sample_count } = options;
        let name = stores.printable(location);
        let path = Path::new(name.as_os_str());
        let io_error = |source| WriteError::Io { path: path.to_owned(), source };
        let index_end = sample_count
            .map(|count| version.index_end(count))
            .transpose()
            .map_err(|source| WriteError::Format { path: path.to_owned(), source })?;
        let encoder = Encoder::new(version, compression, None).ok_or_else(|| no_memory(path))?;
        let target = stores.create(location, Placement { overwrite, sync })?;
        let folder = &target.spool_folder();
        Ok(Self {
            encoder,
            dictionary: None,
            has_blocks: false,
            has_frames: false,
            sync,
            max_samples: sample_count.unwrap_or(version.max_samples()),
            index: Spool::new(folder),
            sections: (version == TblVersion::V2).then(|| Sections::new(folder)),
            payloads: Payloads::new(target, index_end).map_err(io_error)?,
            names: FileNames::default(),
            largest_label: None,
            custom: None,
            position: index_end.unwrap_or(0),
            summary: WriteSummary::default(),
            failed: false,
        })
    }

    /// Announces about how many bytes the file will have, before the first sample.
    pub(crate) fn expect(&mut self, bytes: u64) {
        self.payloads.expect(bytes);
    }

    /// The name the file will have.
    pub fn path(&self) -> &Path {
        self.payloads.target().target()
    }

    /// A converter of samples into the input of [`write`](Self::write), for use on other threads.
    pub fn encoder(&self) -> Encoder {
        self.encoder.clone()
    }

    /// Stores a dictionary of Zstandard, which samples are compressed with from now on if the
    /// compression is Zstandard. A file without samples that need it does not store it.
    pub(crate) fn set_dictionary(&mut self, dictionary: &[u8]) -> Result<(), WriteError> {
        let version = self.encoder.version();
        let compression = self.encoder.compression();
        let encoder = Encoder::new(version, compression, Some(dictionary));
        self.encoder = encoder.ok_or_else(|| no_memory(self.path()))?;
        self.dictionary = Some(dictionary.to_vec());
        Ok(())
    }

    /// How many samples have been written.
    pub fn sample_count(&self) -> u64 {
        self.summary.samples
    }

    /// Stores the class names, indexed by label, with the data set.
    ///
    /// Names that are the same twice are stored twice.
    pub fn set_class_names(&mut self, names: &[String]) {
        names.clone_into(&mut self.names.classes);
    }

    /// Stores the names of the classes of boxes, indexed by their numbers in the samples' annotations;
    /// numbers without a class have an empty name.
    pub fn set_box_class_names(&mut self, names: &[String]) {
        names.clone_into(&mut self.names.box_classes);
    }

    /// Writes the list of labels even if no sample has one, which tells readers that the folders of
    /// the samples are not their classes. Version 1 has neither.
    pub(crate) fn state_labels(&mut self) {
        if let Some(sections) = &mut self.sections {
            sections.state_labels();
        }
    }

    /// Adds a metadata block to sample `sample`, which has been written, or with `None` to the
    /// whole file. Blocks of a sample stay in the order in which they are added; they come before
    /// those that it was written with.
    ///
    /// A version 1 file has room for one: [`TblFile::file_metadata`](crate::TblFile::file_metadata)
    /// says what it holds. Others are counted as [`Unstored::metadata_blocks`].
    ///
    /// # Errors
    /// [`WriteError::Metadata`] for a sample that does not exist, or a block that cannot be stored;
    /// [`WriteError::Io`], after which the file cannot be finished.
    pub fn add_metadata(
        &mut self,
        sample: Option<u64>,
        kind: MetadataType,
        data: &[u8],
    ) -> Result<(), WriteError> {
        self.refuse_after_failure()?;
        self.push_metadata(sample, kind, data).map_err(|refused| match refused {
            Refused::Metadata(source) => {
                WriteError::Metadata { path: self.path().to_owned(), sample, source }
            }
            Refused::Io(source) => {
                self.failed = true;
                WriteError::Io { path: self.path().to_owned(), source }
            }
        })
    }

    fn push_metadata(
        &mut self,
        sample: Option<u64>,
        kind: MetadataType,
        data: &[u8],
    ) -> Result<(), Refused> {
        let sample_count = self.summary.samples;
        if sample.is_some_and(|sample| sample >= sample_count) {
            return Err(MetadataDefect::NoSample { sample_count }.into());
        }
        let Some(sections) = &mut self.sections else {
            let custom = if sample.is_none() && kind == MetadataType::Json {
                custom_of_json(data)
            } else {
                None
            };
            if custom.is_some() && self.custom.is_none() {
                self.custom = custom;
            } else {
                self.summary.unstored.metadata_blocks += 1;
            }
            return Ok(());
        };
        match sample {
            Some(_) => check_block(kind, data)?,
            None if is_extension(kind, data) => return Err(MetadataDefect::Reserved.into()),
            None => {}
        }
        sections.push_metadata(sample, kind, data, sample_count)?;
        let Some(sample) = sample else { return Ok(()) };
        // Entries are pushed whole, so this one lies inside the index.
        let flags = sample * IndexEntry::SIZE as u64 + IndexEntry::FLAGS_OFFSET as u64;
        Ok(self.index.set_bits(flags, EntryFlags::HAS_METADATA.bits())?)
    }

    /// Encodes and writes the next sample.
    ///
    /// Unlike [`write`](Self::write), which copies what existing data sets have, it refuses a name
    /// that is not that of a file, and a label beyond the class names. Negative labels, which many
    /// tools mean as none, are stored.
    ///
    /// # Errors
    /// [`WriteError::Sample`] when the format cannot hold it, or it has such a name or label; the
    /// writer accepts other samples then. Otherwise as for [`write`](Self::write).
    pub fn write_sample(&mut self, sample: &NewSample<'_>) -> Result<(), WriteError> {
        let index = self.summary.samples;
        let encoded = check_key(sample.key)
            .and_then(|()| sample.label.map_or(Ok(()), |label| self.check_label(label)))
            .and_then(|()| self.encoder.encode(sample))
            .map_err(|source| self.refused(index, source))?;
        self.write(&encoded, sample.bytes)?;
        if let Some(label) = sample.label
            && self.largest_label.is_none_or(|(_, largest)| largest < label)
        {
            self.largest_label = Some((index, label));
        }
        Ok(())
    }

    /// Checks that a label has a class name, where the file has class names.
    fn check_label(&self, label: i64) -> Result<(), EncodeError> {
        let class_count = self.names.classes.len();
        match usize::try_from(label) {
            Ok(class) if class_count > 0 && class >= class_count => {
                Err(EncodeError::LabelWithoutClass { label, class_count })
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn refused(&self, index: u64, source: EncodeError) -> WriteError {
        WriteError::Sample { path: self.path().to_owned(), index, source }
    }

    /// Writes the next sample, which an [`Encoder`] has encoded from `bytes`.
    ///
    /// # Errors
    /// [`WriteError::Io`], after which the file cannot be finished;
    /// [`WriteError::TooManySamples`] beyond the announced count or the version's limit.
    ///
    /// # Panics
    /// When `bytes` has another length than the sample had.
    pub fn write(&mut self, encoded: &Encoded, bytes: &[u8]) -> Result<(), WriteError> {
        assert_eq!(bytes.len() as u64, encoded.sample_bytes(), "the bytes that were encoded");
        self.refuse_after_failure()?;
        if self.summary.samples >= self.max_samples {
            let path = self.path().to_owned();
            let limit = self.max_samples;
            return Err(WriteError::TooManySamples { path, limit });
        }
        let payload = encoded.payload(bytes);
        self.append(encoded, payload).map_err(|source| {
            self.failed = true;
            WriteError::Io { path: self.path().to_owned(), source }
        })?;
        let summary = &mut self.summary;
        summary.samples += 1;
        summary.sample_bytes += bytes.len() as u64;
        summary.stored_bytes += payload.len() as u64;
        summary.compressed_samples += u64::from(encoded.codec().is_some());
        self.has_blocks |= encoded.codec() == Some(Codec::Lz4);
        self.has_frames |= encoded.codec() == Some(Codec::Zstd);
        if self.sections.is_some() {
            summary.row_indexes += u64::from(!encoded.row_index.is_empty());
        } else {
            summary.unstored.keys += u64::from(encoded.key.is_some());
            summary.unstored.labels += u64::from(encoded.label.is_some());
            summary.unstored.fields += encoded.field_count;
            summary.unstored.metadata_blocks += encoded.metadata_count;
        }
        // A file's positions stay below 2^63, which the write just proved.
        self.position += payload.len() as u64;
        Ok(())
    }

    fn append(&mut self, encoded: &Encoded, payload: &[u8]) -> io::Result<()> {
        self.payloads.push(payload)?;
        encoded.push_entry(self.position, &mut self.index)?;
        match &mut self.sections {
            Some(sections) => sections.push(self.summary.samples, encoded),
            None => Ok(()),
        }
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// [`WriteError::Sample`] if a label is beyond class names that were set later;
    /// [`WriteError::Metadata`] if the samples have more fields than readers accept, which is 256
    /// for each sample on average; [`WriteError::Io`]. Nothing has the final name then, unless syncing the folder failed.
    pub fn finish(self) -> Result<WriteSummary, WriteError> {
        self.refuse_after_failure()?;
        if let Some((index, label)) = self.largest_label {
            self.check_label(label).map_err(|source| self.refused(index, source))?;
        }
        let path = self.path().to_owned();
        let sections = self.sections.as_ref();
        let checked = sections.map_or(Ok(()), |all| all.check_block_count(self.summary.samples));
        if let Err((sample, source)) = checked {
            return Err(WriteError::Metadata { path, sample: Some(sample), source });
        }
        self.complete().map_err(|error| match error {
            Incomplete::Io(source) => WriteError::Io { path, source },
            Incomplete::Format(source) => WriteError::Format { path, source },
        })
    }

    fn complete(self) -> Result<WriteSummary, Incomplete> {
        let Self { encoder, sync, payloads, index, sections, names, custom, mut summary, .. } =
            self;
        let dictionary = self.dictionary.filter(|_| self.has_frames);
        let dictionary = dictionary.as_deref();
        let version = encoder.version();
        let index_end = version.index_end(summary.samples)?;
        let (mut target, shift) = payloads.settle(index_end)?;
        // Without samples nothing keeps the room for their index open.
        let payload_end = if summary.samples == 0 { index_end } else { self.position + shift };
        let index_checksum = write_index(&mut target, version, index, shift)?;
        let mut end = payload_end;
        match sections {
            Some(sections)
                if summary.samples > 0 || names.any() || sections.has_file_metadata() =>
            {
                let target = &mut target;
                end += sections.write(&names, dictionary, index_checksum, target, payload_end)?;
            }
            Some(_) => {}
            None => {
                summary.unstored.class_names = names.classes.len() as u64;
                summary.unstored.box_class_names = count_named(&names.box_classes);
            }
        }
        if let Some(file) = target.file() {
            // Also releases the room that was reserved ahead of time.
            file.set_len(end)?;
            if sync {
                file.sync_data()?;
            }
        }
        let has_codec = |codec| match codec {
            Codec::Lz4 => self.has_blocks,
            Codec::Zstd => self.has_frames,
        };
        let header = encoder.header(summary.samples, payload_end..end, has_codec, custom)?;
        target.write_all_at(&header, 0)?;
        target.commit()?;
        Ok(WriteSummary { bytes: end, ..summary })
    }

    fn refuse_after_failure(&self) -> Result<(), WriteError> {
        if self.failed {
            return Err(WriteError::AfterFailure { path: self.path().to_owned() });
        }
        Ok(())
    }
}

/// The error for a dictionary or a compressor if memory for it is not available.
fn no_memory(path: &Path) -> WriteError {
    WriteError::Io { path: path.to_owned(), source: io::ErrorKind::OutOfMemory.into() }
}

/// Checks that a new sample's name, if it has one, is that of a file.
fn check_key(key: Option<&[u8]>) -> Result<(), EncodeError> {
    match key.map(|key| (key, check_new_name(key))) {
        // The encoder has a separate error for names that leave their folder.
        Some((key, Err(defect @ PathDefect::EmptyComponent))) => {
            Err(EncodeError::Key { key: key.to_vec(), defect })
        }
        Some(_) | None => Ok(()),
    }
}

/// The reason why a file could not be completed; [`StreamWriter::finish`] adds its name.
enum Incomplete {
    Io(io::Error),
    Format(FormatError),
}

impl From<io::Error> for Incomplete {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FormatError> for Incomplete {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

impl From<Incomplete> for io::Error {
    /// For the spools, where nothing but a bug makes a structure too large.
    fn from(error: Incomplete) -> Self {
        match error {
            Incomplete::Io(error) => error,
            Incomplete::Format(error) => Self::other(error),
        }
    }
}

/// Copies the index to its place after the header, adding `shift` to every offset, and returns
/// its CRC-32C.
fn write_index(
    target: &mut Draft,
    version: TblVersion,
    index: Spool,
    shift: u64,
) -> io::Result<u32> {
    let entry_bytes = version.entry_bytes();
    let mut position = version.header_bytes();
    let mut checksum = Crc32c::new();
    let mut left = index.bytes();
    let mut entries = index.into_reader()?;
    let mut chunk = vec![0; COPY_BUFFER_BYTES - COPY_BUFFER_BYTES % entry_bytes];
    while left > 0 {
        let take = usize::try_from(left).map_or(chunk.len(), |left| left.min(chunk.len()));
        let chunk = &mut chunk[..take];
        entries.read_exact(chunk)?;
        for entry in chunk.chunks_exact_mut(entry_bytes) {
            // Every entry of both versions starts with its offset.
            if let Some(offset) = entry.first_chunk_mut::<8>() {
                *offset = (u64::from_le_bytes(*offset) + shift).to_le_bytes();
            }
        }
        checksum.update(chunk);
        target.write_all_at(chunk, position)?;
        position += take as u64;
        left -= take as u64;
    }
    Ok(checksum.finish())
}
