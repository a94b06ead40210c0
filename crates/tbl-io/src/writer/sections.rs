//! The metadata section of a version 2 file while it grows: whole-file extension blocks first, so
//! that a reader finds them without walking the rest, then the samples' own blocks.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use tbl_format::FormatError;
use tbl_format::checksum::Crc32c;
use tbl_format::extension::{
    ExtensionHeader, ExtensionKind, Integrity, NO_LABEL, NameTableBuilder, RowIndexTableBuilder,
};
use tbl_format::metadata::{BlockHeader, MetadataType};

use super::encode::Encoded;
use super::spool::Spool;
use super::{COPY_BUFFER_BYTES, Incomplete};
use crate::draft::Draft;
use crate::reader::{max_blocks, max_file_blocks, max_late_blocks, max_late_runs};
use crate::write_error::MetadataDefect;

/// A block of sample names is closed at this many names or bytes: enough that a million names
/// make few blocks, little enough to be built in memory.
const NAMES_PER_BLOCK: usize = 1 << 16;
const NAME_BYTES_PER_BLOCK: usize = 2 << 20;

/// A block of row indexes is closed at this many samples or bytes: one block for ten thousand
/// photographs, of which opening a file reads the first few bytes.
const ROW_INDEXES_PER_BLOCK: usize = 1 << 16;
const ROW_INDEX_BYTES_PER_BLOCK: usize = 4 << 20;

/// The names of classes that the whole file has.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    /// By label.
    pub(super) classes: Vec<String>,
    /// By the number that annotations of boxes have.
    pub(super) box_classes: Vec<String>,
}

impl FileNames {
    pub(super) fn any(&self) -> bool {
        !self.classes.is_empty() || !self.box_classes.is_empty()
    }

    fn body(&self) -> Result<Vec<u8>, FormatError> {
        let mut body = table_of(&self.classes)?;
        if !self.box_classes.is_empty() {
            body.append(&mut table_of(&self.box_classes)?);
        }
        Ok(body)
    }
}

fn table_of(names: &[String]) -> Result<Vec<u8>, FormatError> {
    let mut table = NameTableBuilder::new();
    names.iter().try_for_each(|name| table.push(name.as_bytes()))?;
    table.class_names_body()
}

#[derive(Debug)]
pub(super) struct Sections {
    /// Finished blocks of sample names.
    name_blocks: Spool,
    names: NameTableBuilder,
    first_named: u64,
    /// Finished blocks of row indexes.
    row_index_blocks: Spool,
    row_indexes: RowIndexTableBuilder,
    first_indexed: u64,
    labels: List,
    /// The list of labels is written: some sample has one, or all are stated to have none.
    has_labels: bool,
    checksums: List,
    /// Blocks of the whole file that are not ours.
    file_blocks: Spool,
    file_block_count: u64,
    /// Blocks of samples that came after the sample. They stand in front of all other blocks of
    /// samples, since the original's reader returns the first.
    late_blocks: Spool,
    late_block_count: u64,
    /// Places in `late_blocks` where the sample changes.
    late_run_count: u64,
    last_late: Option<u64>,
    sample_blocks: Spool,
    /// Blocks in `sample_blocks`, and the sample that has the most of them with their number.
    sample_block_count: u64,
    most_blocks: (u64, u64),
}

/// The reason why a metadata block was not taken in.
pub(super) enum Refused {
    Metadata(MetadataDefect),
    Io(io::Error),
}

impl From<MetadataDefect> for Refused {
    fn from(defect: MetadataDefect) -> Self {
        Self::Metadata(defect)
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn check_count(count: u64, limit: u64) -> Result<(), MetadataDefect> {
    if count <= limit { Ok(()) } else { Err(MetadataDefect::TooMany { limit }) }
}

/// The body of an extension block that grows by one element per sample.
#[derive(Debug)]
struct List {
    kind: ExtensionKind,
    body: Spool,
    checksum: Crc32c,
}

impl List {
    fn new(kind: ExtensionKind, folder: &Path) -> Self {
        Self { kind, body: Spool::new(folder), checksum: ExtensionHeader::digest(kind) }
    }

    fn push(&mut self, element: &[u8]) -> io::Result<()> {
        self.checksum.update(element);
        self.body.push(element)
    }

    /// Writes the whole block.
    fn write(self, out: &mut impl Write) -> Result<(), Incomplete> {
        write_headers(self.kind, self.checksum.finish(), self.body.bytes(), out)?;
        Ok(self.body.copy_to(out)?)
    }
}

impl Sections {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            name_blocks: Spool::new(folder),
            names: NameTableBuilder::new(),
            first_named: 0,
            row_index_blocks: Spool::new(folder),
            row_indexes: RowIndexTableBuilder::new(),
            first_indexed: 0,
            labels: List::new(ExtensionKind::Labels, folder),
            has_labels: false,
            checksums: List::new(ExtensionKind::Checksums, folder),
            file_blocks: Spool::new(folder),
            file_block_count: 0,
            late_blocks: Spool::new(folder),
            late_block_count: 0,
            late_run_count: 0,
            last_late: None,
            sample_blocks: Spool::new(folder),
            sample_block_count: 0,
            most_blocks: (0, 0),
        }
    }

    /// Checks that readers accept the number of metadata blocks of this many samples.
    ///
    /// # Errors
    /// The sample with the most blocks, and the limit.
    pub(super) fn check_block_count(&self, sample_count: u64) -> Result<(), (u64, MetadataDefect)> {
        let count = self.sample_block_count + self.late_block_count + self.file_block_count;
        let checked = check_count(count, max_blocks(sample_count));
        checked.map_err(|defect| (self.most_blocks.0, defect))
    }

    /// Writes the list of labels even if no sample has one.
    pub(super) fn state_labels(&mut self) {
        self.has_labels = true;
    }

    /// Takes in sample `index`; samples come in order.
    pub(super) fn push(&mut self, index: u64, encoded: &Encoded) -> io::Result<()> {
        self.push_name(index, encoded.key.as_deref())?;
        self.push_row_index(index, encoded)?;
        self.has_labels |= encoded.label.is_some();
        self.labels.push(&encoded.label.unwrap_or(NO_LABEL).to_le_bytes())?;
        self.checksums.push(&encoded.crc32c.to_le_bytes())?;
        let count = encoded.block_count();
        self.sample_block_count += count;
        if count > self.most_blocks.1 {
            self.most_blocks = (index, count);
        }
        encoded.blocks().for_each_piece(index, |piece| self.sample_blocks.push(piece))
    }

    /// Takes in a metadata block of a sample that has been taken in, or of the whole file; of now
    /// `sample_count` samples.
    pub(super) fn push_metadata(
        &mut self,
        sample: Option<u64>,
        kind: MetadataType,
        data: &[u8],
        sample_count: u64,
    ) -> Result<(), Refused> {
        let header =
            BlockHeader::new(sample.unwrap_or(BlockHeader::WHOLE_FILE), kind, data.len() as u64)
                .map_err(MetadataDefect::Format)?;
        let blocks = match sample {
            None => {
                check_count(self.file_block_count + 1, max_file_blocks(sample_count))?;
                self.file_block_count += 1;
                &mut self.file_blocks
            }
            Some(sample) => {
                let runs = self.late_run_count + u64::from(self.last_late != Some(sample));
                check_count(self.late_block_count + 1, max_late_blocks(sample_count))?;
                check_count(runs, max_late_runs(sample_count))?;
                (self.late_run_count, self.last_late) = (runs, Some(sample));
                self.late_block_count += 1;
                &mut self.late_blocks
            }
        };
        blocks.push(&header.to_bytes())?;
        Ok(blocks.push(data)?)
    }

    /// Whether there is metadata of the whole file.
    pub(super) fn has_file_metadata(&self) -> bool {
        self.file_block_count > 0
    }

    /// A block names consecutive samples, so a sample without a key ends it.
    fn push_name(&mut self, index: u64, key: Option<&[u8]>) -> io::Result<()> {
        let Some(key) = key else { return self.close_names() };
        let bytes = self.names.name_bytes().saturating_add(key.len());
        if self.names.len() >= NAMES_PER_BLOCK || bytes > NAME_BYTES_PER_BLOCK {
            self.close_names()?;
        }
        if self.names.is_empty() {
            self.first_named = index;
        }
        self.names.push(key).map_err(io::Error::other)
    }

    fn close_names(&mut self) -> io::Result<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        let body = self.names.sample_names_body(self.first_named).map_err(io::Error::other)?;
        self.names.clear();
        Ok(write_block(ExtensionKind::SampleNames, &body, &mut self.name_blocks)?)
    }

    /// Samples without a row index do not start a block, but have their place in one.
    fn push_row_index(&mut self, index: u64, encoded: &Encoded) -> io::Result<()> {
        let row_index = &encoded.row_index;
        let bytes = self.row_indexes.row_index_bytes().saturating_add(row_index.len());
        if self.row_indexes.len() >= ROW_INDEXES_PER_BLOCK || bytes > ROW_INDEX_BYTES_PER_BLOCK {
            self.close_row_indexes()?;
        }
        if self.row_indexes.is_empty() {
            if row_index.is_empty() {
                return Ok(());
            }
            self.first_indexed = index;
        }
        self.row_indexes.push(row_index, encoded.crc32c).map_err(io::Error::other)
    }

    fn close_row_indexes(&mut self) -> io::Result<()> {
        if self.row_indexes.is_empty() {
            return Ok(());
        }
        let body = self.row_indexes.body(self.first_indexed).map_err(io::Error::other)?;
        self.row_indexes.clear();
        Ok(write_block(ExtensionKind::RowIndexes, &body, &mut self.row_index_blocks)?)
    }

    /// Writes the section to `file` from `start` on and returns its size.
    pub(super) fn write(
        self,
        names: &FileNames,
        dictionary: Option<&[u8]>,
        index_checksum: u32,
        target: &mut Draft,
        start: u64,
    ) -> Result<u64, Incomplete> {
        // The first block holds the checksum of all others, so it is written after them.
        target.skip_to(start + INTEGRITY_BLOCK_BYTES)?;
        let out = Checksumming::new(&mut *target);
        let mut out = BufWriter::with_capacity(COPY_BUFFER_BYTES, out);
        self.write_rest(names, dictionary, &mut out)?;
        let rest = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let Checksumming { checksum, bytes, .. } = rest;
        let integrity =
            Integrity { index: index_checksum, metadata: checksum.finish(), metadata_bytes: bytes };
        let mut block = Vec::new();
        write_block(ExtensionKind::Integrity, &integrity.to_bytes(), &mut block)?;
        target.write_all_at(&block, start)?;
        Ok(INTEGRITY_BLOCK_BYTES + bytes)
    }

    fn write_rest(
        mut self,
        names: &FileNames,
        dictionary: Option<&[u8]>,
        out: &mut impl Write,
    ) -> Result<(), Incomplete> {
        self.close_names()?;
        self.close_row_indexes()?;
        if names.any() {
            write_block(ExtensionKind::ClassNames, &names.body()?, out)?;
        }
        if self.has_labels {
            self.labels.write(out)?;
        }
        self.checksums.write(out)?;
        if let Some(dictionary) = dictionary {
            write_block(ExtensionKind::Dictionary, dictionary, out)?;
        }
        self.name_blocks.copy_to(out)?;
        self.row_index_blocks.copy_to(out)?;
        self.file_blocks.copy_to(out)?;
        self.late_blocks.copy_to(out)?;
        self.sample_blocks.copy_to(out)?;
        Ok(())
    }
}

/// The size of the first block, headers included.
const INTEGRITY_BLOCK_BYTES: u64 =
    (BlockHeader::SIZE + ExtensionHeader::SIZE + Integrity::SIZE) as u64;

/// Counts and checksums what passes through.
struct Checksumming<W> {
    out: W,
    checksum: Crc32c,
    bytes: u64,
}

impl<W> Checksumming<W> {
    fn new(out: W) -> Self {
        Self { out, checksum: Crc32c::new(), bytes: 0 }
    }
}

impl<W: Write> Write for Checksumming<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.checksum.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn write_block(kind: ExtensionKind, body: &[u8], out: &mut impl Write) -> Result<(), Incomplete> {
    let mut checksum = ExtensionHeader::digest(kind);
    checksum.update(body);
    write_headers(kind, checksum.finish(), body.len() as u64, out)?;
    Ok(out.write_all(body)?)
}

/// Writes both headers of a whole-file block.
fn write_headers(
    kind: ExtensionKind,
    checksum: u32,
    body_bytes: u64,
    out: &mut impl Write,
) -> Result<(), Incomplete> {
    let data_bytes = ExtensionHeader::SIZE as u64 + body_bytes;
    let header = BlockHeader::new(BlockHeader::WHOLE_FILE, MetadataType::Custom, data_bytes)?;
    out.write_all(&header.to_bytes())?;
    Ok(out.write_all(&ExtensionHeader::with_checksum(kind, checksum).to_bytes())?)
}
