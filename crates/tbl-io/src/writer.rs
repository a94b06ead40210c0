//! The streaming TBL writer: payloads go to the disk as they come, everything else is spooled, and
//! the file takes its name only when it is complete.
//!
//! Memory does not grow with the number of samples. Dropping the writer discards the file; only
//! [`StreamWriter::finish`] makes one. What a sample becomes is decided by [`Encoder`], which is
//! pure and can run on other threads.

use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use tbl_format::{FormatError, v1, v2};

use crate::atomic_file::{AtomicFile, Placement};
use crate::write_error::WriteError;

mod encode;
mod sections;
mod spool;

pub use encode::{EncodeError, Encoded, Encoder, NewSample};

use sections::Sections;
use spool::Spool;

/// The version of TBL that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TblVersion {
    /// Version 1: no checksums, names, labels or dimensions.
    V1,
    /// Version 2.
    V2,
}

/// How a TBL file is written.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// The version to write; 2 unless told otherwise.
    pub version: TblVersion,
    /// Compress samples that become smaller by it. Photographs do not, so this is off by default.
    pub lz4: bool,
    /// Wait in [`StreamWriter::finish`] until the disk has the file. On by default: without it a
    /// power failure soon after can lose a file that was reported as written.
    pub sync: bool,
    /// Replace a file that already has the name.
    pub overwrite: bool,
    /// The most samples that will come, when known. Their index then has its room at the front
    /// and payloads are written once; otherwise they are written, and copied at the end.
    pub sample_count: Option<u64>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            version: TblVersion::V2,
            lz4: false,
            sync: true,
            overwrite: false,
            sample_count: None,
        }
    }
}

/// What [`StreamWriter::finish`] wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Samples in the file.
    pub samples: u64,
    /// The file's size.
    pub bytes: u64,
    /// The samples' own bytes together.
    pub sample_bytes: u64,
    /// The bytes they occupy.
    pub stored_bytes: u64,
    /// Samples stored as LZ4 blocks.
    pub compressed_samples: u64,
    /// What version 1 has no place for.
    pub unstored: Unstored,
}

/// Counts of what a version 1 file cannot hold, so that a caller can say what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unstored {
    /// Samples that had a key.
    pub keys: u64,
    /// Samples that had a label.
    pub labels: u64,
    /// Sidecar fields.
    pub fields: u64,
    /// Class names.
    pub class_names: u64,
}

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
    sync: bool,
    /// Where payloads go: the file itself, or a spool when the index's size is not known yet.
    payloads: Payloads,
    index: Spool,
    sections: Option<Sections>,
    class_names: Vec<String>,
    /// Where the next payload starts: in the file, or in the spool.
    position: u64,
    summary: WriteSummary,
    /// Set by the first I/O error, after which positions are not to be trusted.
    failed: bool,
}

#[derive(Debug)]
enum Payloads {
    /// Room for `capacity` index entries was left at the front.
    InPlace {
        out: BufWriter<Draft>,
        capacity: u64,
    },
    Spooled {
        out: BufWriter<std::fs::File>,
        target: AtomicFile,
    },
}

/// Payloads of at least this size are written without a copy; smaller ones are gathered. Larger
/// buffers made 110 KB samples slower by the copy they add.
const PAYLOAD_BUFFER_BYTES: usize = 64 << 10;

/// Buffer for copying spools into the file.
const COPY_BUFFER_BYTES: usize = 256 << 10;

impl StreamWriter {
    /// Starts a file that will be called `path`.
    ///
    /// # Errors
    /// [`WriteError::Io`] when the file exists and may not be replaced, or the folder refuses;
    /// [`WriteError::Format`] when the announced sample count is beyond the version's limit.
    pub fn create(path: &Path, options: WriteOptions) -> Result<Self, WriteError> {
        let WriteOptions { version, lz4, sync, overwrite, sample_count } = options;
        let io_error = |source| WriteError::Io { path: path.to_owned(), source };
        let format_error = |source| WriteError::Format { path: path.to_owned(), source };
        let reserved = sample_count
            .map(|count| index_end(version, count).map(|end| (count, end)))
            .transpose()
            .map_err(format_error)?;
        let target = AtomicFile::create(path, Placement { overwrite, sync }).map_err(io_error)?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let (payloads, position) = match reserved {
            Some((capacity, index_end)) => {
                target.file().seek(SeekFrom::Start(index_end)).map_err(io_error)?;
                let out = BufWriter::with_capacity(PAYLOAD_BUFFER_BYTES, Draft(target));
                (Payloads::InPlace { out, capacity }, index_end)
            }
            None => {
                let spool = tempfile::tempfile_in(folder).map_err(io_error)?;
                let out = BufWriter::with_capacity(PAYLOAD_BUFFER_BYTES, spool);
                (Payloads::Spooled { out, target }, 0)
            }
        };
        Ok(Self {
            encoder: Encoder::new(version, lz4),
            sync,
            payloads,
            index: Spool::new(folder),
            sections: (version == TblVersion::V2).then(|| Sections::new(folder)),
            class_names: Vec::new(),
            position,
            summary: WriteSummary::default(),
            failed: false,
        })
    }

    /// The name the file will have.
    pub fn path(&self) -> &Path {
        match &self.payloads {
            Payloads::InPlace { out, .. } => out.get_ref().0.target(),
            Payloads::Spooled { target, .. } => target.target(),
        }
    }

    /// What turns samples into what [`write`](Self::write) takes, for use on other threads.
    pub fn encoder(&self) -> Encoder {
        self.encoder
    }

    /// How many samples have been written.
    pub fn sample_count(&self) -> u64 {
        self.summary.samples
    }

    /// Stores the class names, indexed by label, with the data set.
    ///
    /// Names that are the same twice are stored twice.
    pub fn set_class_names(&mut self, names: &[String]) {
        names.clone_into(&mut self.class_names);
    }

    /// Encodes and writes the next sample.
    ///
    /// # Errors
    /// [`WriteError::Sample`] when the format cannot hold it; the writer can go on with another
    /// sample then. Otherwise as for [`write`](Self::write).
    pub fn write_sample(&mut self, sample: &NewSample<'_>) -> Result<(), WriteError> {
        let encoded = self.encoder.encode(sample).map_err(|source| WriteError::Sample {
            path: self.path().to_owned(),
            index: self.summary.samples,
            source,
        })?;
        self.write(&encoded, sample.bytes)
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
        let limit = match &self.payloads {
            Payloads::InPlace { capacity, .. } => *capacity,
            Payloads::Spooled { .. } => max_samples(self.encoder.version()),
        };
        if self.summary.samples >= limit {
            return Err(WriteError::TooManySamples { path: self.path().to_owned(), limit });
        }
        let payload = encoded.payload(bytes);
        let written = self.append(encoded, payload);
        self.check(written)?;
        let summary = &mut self.summary;
        summary.samples += 1;
        summary.sample_bytes += bytes.len() as u64;
        summary.stored_bytes += payload.len() as u64;
        summary.compressed_samples += u64::from(encoded.is_compressed());
        if self.sections.is_none() {
            summary.unstored.keys += u64::from(encoded.key.is_some());
            summary.unstored.labels += u64::from(encoded.label.is_some());
            summary.unstored.fields += encoded.field_count;
        }
        // A file's positions stay below 2^63, which the write just proved.
        self.position += payload.len() as u64;
        Ok(())
    }

    fn append(&mut self, encoded: &Encoded, payload: &[u8]) -> io::Result<()> {
        match &mut self.payloads {
            Payloads::InPlace { out, .. } => out.write_all(payload)?,
            Payloads::Spooled { out, .. } => out.write_all(payload)?,
        }
        encoded.push_entry(self.position, &mut self.index)?;
        match &mut self.sections {
            Some(sections) => sections.push(self.summary.samples, encoded),
            None => Ok(()),
        }
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// [`WriteError::Io`]; nothing has the final name then, unless syncing the folder failed.
    pub fn finish(self) -> Result<WriteSummary, WriteError> {
        self.refuse_after_failure()?;
        let path = self.path().to_owned();
        self.complete().map_err(|error| match error {
            Incomplete::Io(source) => WriteError::Io { path: path.clone(), source },
            Incomplete::Format(source) => WriteError::Format { path: path.clone(), source },
        })
    }

    fn complete(self) -> Result<WriteSummary, Incomplete> {
        let Self { encoder, sync, payloads, index, sections, class_names, mut summary, .. } = self;
        let version = encoder.version();
        let samples = summary.samples;
        let index_end = index_end(version, samples)?;
        let (target, shift, payload_end) = match payloads {
            Payloads::InPlace { out, .. } => {
                let Draft(target) = out.into_inner().map_err(io::IntoInnerError::into_error)?;
                // Without samples nothing keeps the room for their index open.
                let payload_end = if samples == 0 { index_end } else { self.position };
                target.file().seek(SeekFrom::Start(payload_end))?;
                (target, 0, payload_end)
            }
            Payloads::Spooled { out, target } => {
                let mut spool = out.into_inner().map_err(io::IntoInnerError::into_error)?;
                spool.rewind()?;
                target.file().seek(SeekFrom::Start(index_end))?;
                // Inside the kernel where the system can; see `std::io::copy`.
                io::copy(&mut spool, &mut target.file())?;
                (target, index_end, self.position + index_end)
            }
        };
        let index_checksum = write_index(&target, version, index, shift)?;
        let mut end = payload_end;
        if let Some(sections) = sections.filter(|_| samples > 0 || !class_names.is_empty()) {
            let mut out = BufWriter::with_capacity(COPY_BUFFER_BYTES, target.file());
            end += sections.write(&class_names, index_checksum, &mut out)?;
            out.flush()?;
        }
        if version == TblVersion::V1 {
            summary.unstored.class_names = class_names.len() as u64;
        }
        if sync {
            target.file().sync_data()?;
        }
        let header = encoder.header(samples, payload_end..end, summary.compressed_samples)?;
        target.file().write_all_at(&header, 0)?;
        target.commit()?;
        Ok(WriteSummary { bytes: end, ..summary })
    }

    fn check(&mut self, written: io::Result<()>) -> Result<(), WriteError> {
        written.map_err(|source| {
            self.failed = true;
            WriteError::Io { path: self.path().to_owned(), source }
        })
    }

    fn refuse_after_failure(&self) -> Result<(), WriteError> {
        if self.failed {
            return Err(WriteError::AfterFailure { path: self.path().to_owned() });
        }
        Ok(())
    }
}

/// The file under construction as a sink.
#[derive(Debug)]
struct Draft(AtomicFile);

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

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

/// Copies the index to its place behind the header, adding `shift` to every offset, and returns
/// its CRC-32C.
fn write_index(
    target: &AtomicFile,
    version: TblVersion,
    index: Spool,
    shift: u64,
) -> io::Result<u32> {
    let (mut position, entry_bytes) = match version {
        TblVersion::V1 => (v1::FileHeader::SIZE as u64, v1::IndexEntry::SIZE),
        TblVersion::V2 => (v2::FileHeader::SIZE as u64, v2::IndexEntry::SIZE),
    };
    let mut checksum = tbl_format::checksum::Crc32c::new();
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
        target.file().write_all_at(chunk, position)?;
        position += take as u64;
        left -= take as u64;
    }
    Ok(checksum.finish())
}

/// Where the index of `count` samples ends, if the version can hold so many.
fn index_end(version: TblVersion, count: u64) -> Result<u64, FormatError> {
    let (end, limit) = match version {
        TblVersion::V1 => (v1::index_end(count), v1::FileHeader::MAX_SAMPLES),
        TblVersion::V2 => (v2::index_end(count), v2::FileHeader::MAX_SAMPLES),
    };
    end.filter(|_| count <= limit).ok_or(FormatError::TooManySamples { sample_count: count, limit })
}

fn max_samples(version: TblVersion) -> u64 {
    match version {
        TblVersion::V1 => v1::FileHeader::MAX_SAMPLES,
        TblVersion::V2 => v2::FileHeader::MAX_SAMPLES,
    }
}
