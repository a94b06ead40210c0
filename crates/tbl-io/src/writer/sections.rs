//! The metadata section of a version 2 file while it grows: whole-file extension blocks first, so
//! that a reader finds them without walking the rest, then the samples' own blocks.

use std::io::{self, Write};
use std::path::Path;

use tbl_format::FormatError;
use tbl_format::checksum::Crc32c;
use tbl_format::extension::{
    ExtensionHeader, ExtensionKind, Integrity, NO_LABEL, NameTableBuilder,
};
use tbl_format::metadata::{BlockHeader, MetadataType};

use super::Incomplete;
use super::encode::Encoded;
use super::spool::Spool;

/// A block of sample names is closed at this many names or bytes: enough that a million names
/// make few blocks, little enough to be built in memory.
const NAMES_PER_BLOCK: usize = 1 << 16;
const NAME_BYTES_PER_BLOCK: usize = 2 << 20;

#[derive(Debug)]
pub(super) struct Sections {
    /// Finished blocks of sample names.
    name_blocks: Spool,
    names: NameTableBuilder,
    first_named: u64,
    labels: List,
    any_label: bool,
    checksums: List,
    sample_blocks: Spool,
    sample_blocks_checksum: Crc32c,
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

    /// Writes the whole block and returns its size.
    fn write(self, out: &mut impl Write) -> Result<u64, Incomplete> {
        let bytes = write_headers(self.kind, self.checksum.finish(), self.body.bytes(), out)?;
        self.body.copy_to(out)?;
        Ok(bytes)
    }
}

impl Sections {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            name_blocks: Spool::new(folder),
            names: NameTableBuilder::new(),
            first_named: 0,
            labels: List::new(ExtensionKind::Labels, folder),
            any_label: false,
            checksums: List::new(ExtensionKind::Checksums, folder),
            sample_blocks: Spool::new(folder),
            sample_blocks_checksum: Crc32c::new(),
        }
    }

    /// Takes in sample `index`; samples come in order.
    pub(super) fn push(&mut self, index: u64, encoded: &Encoded) -> io::Result<()> {
        self.push_name(index, encoded.key.as_deref())?;
        self.any_label |= encoded.label.is_some();
        self.labels.push(&encoded.label.unwrap_or(NO_LABEL).to_le_bytes())?;
        self.checksums.push(&encoded.crc32c.to_le_bytes())?;
        let checksum = &mut self.sample_blocks_checksum;
        let blocks = &mut self.sample_blocks;
        encoded.for_each_block(index, |piece| {
            checksum.update(piece);
            blocks.push(piece)
        })
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
        let mut block = Vec::with_capacity(body.len() + 2 * BlockHeader::SIZE);
        write_block(ExtensionKind::SampleNames, &body, &mut block).map_err(
            |error| match error {
                Incomplete::Io(error) => error,
                Incomplete::Format(error) => io::Error::other(error),
            },
        )?;
        self.names.clear();
        self.name_blocks.push(&block)
    }

    /// Writes the section and returns its size.
    pub(super) fn write(
        mut self,
        class_names: &[String],
        index_checksum: u32,
        out: &mut impl Write,
    ) -> Result<u64, Incomplete> {
        self.close_names()?;
        let mut bytes = 0;
        if !class_names.is_empty() {
            let mut table = NameTableBuilder::new();
            class_names.iter().try_for_each(|name| table.push(name.as_bytes()))?;
            bytes += write_block(ExtensionKind::ClassNames, &table.class_names_body()?, out)?;
        }
        let integrity = Integrity {
            index: index_checksum,
            sample_metadata: self.sample_blocks_checksum.finish(),
            sample_metadata_bytes: self.sample_blocks.bytes(),
        };
        bytes += write_block(ExtensionKind::Integrity, &integrity.to_bytes(), out)?;
        if self.any_label {
            bytes += self.labels.write(out)?;
        }
        bytes += self.checksums.write(out)?;
        bytes += self.name_blocks.bytes() + self.sample_blocks.bytes();
        self.name_blocks.copy_to(out)?;
        self.sample_blocks.copy_to(out)?;
        Ok(bytes)
    }
}

fn write_block(kind: ExtensionKind, body: &[u8], out: &mut impl Write) -> Result<u64, Incomplete> {
    let mut checksum = ExtensionHeader::digest(kind);
    checksum.update(body);
    let bytes = write_headers(kind, checksum.finish(), body.len() as u64, out)?;
    out.write_all(body)?;
    Ok(bytes)
}

/// Writes both headers of a whole-file block and returns the size of the whole block.
fn write_headers(
    kind: ExtensionKind,
    checksum: u32,
    body_bytes: u64,
    out: &mut impl Write,
) -> Result<u64, Incomplete> {
    let payload_bytes = ExtensionHeader::SIZE as u64 + body_bytes;
    let header = block_header(payload_bytes)?;
    out.write_all(&header.to_bytes())?;
    out.write_all(&ExtensionHeader::with_checksum(kind, checksum).to_bytes())?;
    Ok(BlockHeader::SIZE as u64 + payload_bytes)
}

fn block_header(payload_bytes: u64) -> Result<BlockHeader, FormatError> {
    BlockHeader::new(BlockHeader::WHOLE_FILE, MetadataType::Custom, payload_bytes)
}
