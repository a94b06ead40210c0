//! Samples on their way into a TBL file, and the code that the two kinds of target have in
//! common.

use std::path::Path;

use super::error::{ConvertError, PackError};
use super::{Compression, ConvertOptions, Prepared, Selection, metadata};
use crate::sample::{Field, MetadataBlock};
use crate::tbl_version::TblVersion;
use crate::writer::{Encoded, Encoder, NewSample, StreamWriter, Unstored, WriteOptions};

/// A sample between reading and packing.
pub(super) struct Sample<'a> {
    pub(super) bytes: &'a [u8],
    /// The LZ4 block that its source stores it as.
    pub(super) block: Option<Vec<u8>>,
    pub(super) prepared: Prepared,
    pub(super) key: Option<&'a [u8]>,
    pub(super) label: Option<i64>,
    pub(super) fields: Vec<Field>,
    pub(super) row_index: Option<&'a [u8]>,
    pub(super) metadata: Vec<MetadataBlock>,
}

/// The part of writing that needs no order: checksums, compression, metadata.
pub(super) trait Pack: Copy + Send + Sync {
    /// A sample as the target stores it, without its bytes.
    type Packed: Send;

    /// Whether samples come with the LZ4 blocks of their source.
    fn keeps_blocks(&self) -> bool;

    /// Whether there is a place for row indexes.
    fn keeps_row_indexes(&self) -> bool;

    fn pack(&self, sample: Sample<'_>) -> Result<Self::Packed, PackError>;

    /// The memory that a packed sample holds.
    fn held_bytes(packed: &Self::Packed) -> u64;
}

/// A file under construction.
pub(super) trait Sink {
    type Packer: Pack;

    fn packer(&self) -> Self::Packer;

    fn write(
        &mut self,
        number: u64,
        packed: &<Self::Packer as Pack>::Packed,
        bytes: &[u8],
    ) -> Result<(), ConvertError>;

    fn finish(self) -> Result<Written, ConvertError>;
}

/// A summary of the output of a [`Sink`].
pub(super) struct Written {
    pub(super) file_bytes: u64,
    pub(super) compressed_samples: u64,
    pub(super) row_indexes: u64,
    pub(super) unstored: Unstored,
}

/// A TBL file under construction.
pub(super) struct TblSink {
    writer: StreamWriter,
    keeps_blocks: bool,
}

impl TblSink {
    pub(super) fn create(
        selection: &Selection<'_>,
        path: &Path,
        version: TblVersion,
        compression: Compression,
        options: &ConvertOptions,
    ) -> Result<Self, ConvertError> {
        let options = WriteOptions {
            version,
            lz4: compression == Compression::Lz4,
            sync: options.sync,
            overwrite: options.overwrite,
            sample_count: Some(selection.sample_count()),
        };
        let mut writer = StreamWriter::create(path, options)?;
        writer.set_class_names(selection.class_names());
        metadata::of_files(selection, |kind, data| Ok(writer.add_metadata(None, kind, data)?))?;
        Ok(Self { writer, keeps_blocks: compression == Compression::AsStored })
    }
}

impl Sink for TblSink {
    type Packer = TblPacker;

    fn packer(&self) -> TblPacker {
        TblPacker { encoder: self.writer.encoder(), keeps_blocks: self.keeps_blocks }
    }

    fn write(&mut self, _: u64, packed: &Encoded, bytes: &[u8]) -> Result<(), ConvertError> {
        Ok(self.writer.write(packed, bytes)?)
    }

    fn finish(self) -> Result<Written, ConvertError> {
        let summary = self.writer.finish()?;
        Ok(Written {
            file_bytes: summary.bytes,
            compressed_samples: summary.compressed_samples,
            row_indexes: summary.row_indexes,
            unstored: summary.unstored,
        })
    }
}

#[derive(Clone, Copy)]
pub(super) struct TblPacker {
    encoder: Encoder,
    keeps_blocks: bool,
}

impl Pack for TblPacker {
    type Packed = Encoded;

    fn keeps_blocks(&self) -> bool {
        self.keeps_blocks
    }

    fn keeps_row_indexes(&self) -> bool {
        self.encoder.version() == TblVersion::V2
    }

    fn pack(&self, sample: Sample<'_>) -> Result<Encoded, PackError> {
        let Sample { bytes, block, prepared, key, label, ref fields, row_index, ref metadata } =
            sample;
        let Prepared { format, width, height, .. } = prepared;
        let sample =
            NewSample { bytes, format, width, height, key, label, fields, row_index, metadata };
        Ok(match block {
            Some(block) => self.encoder.encode_with_block(&sample, block)?,
            None => self.encoder.encode(&sample)?,
        })
    }

    fn held_bytes(packed: &Encoded) -> u64 {
        packed.held_bytes()
    }
}
