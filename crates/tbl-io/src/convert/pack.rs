//! Samples on their way into a TBL file, and the code that the two kinds of target have in
//! common.

use tbl_format::v2::Codec;

use super::dictionary;
use super::error::{ConvertError, PackError};
use super::{ConvertOptions, Destination, Prepare, Prepared, Selection, metadata};
use crate::codec::{ZstdEncoding, dictionary_of};
use crate::sample::{Field, MetadataBlock};
use crate::tbl_version::TblVersion;
use crate::write_error::WriteError;
use crate::writer::{
    Compressed, Compression, Encoded, Encoder, NewSample, StreamWriter, Unstored, WriteOptions,
    ZstdLevel,
};

/// A sample between reading and packing.
pub(super) struct Sample<'a> {
    pub(super) bytes: &'a [u8],
    /// The compressed bytes that its source stores it as.
    pub(super) compressed: Option<Compressed>,
    pub(super) prepared: Prepared,
    pub(super) key: Option<&'a [u8]>,
    pub(super) label: Option<i64>,
    pub(super) fields: Vec<Field>,
    pub(super) row_index: Option<&'a [u8]>,
    pub(super) metadata: Vec<MetadataBlock>,
}

/// The part of writing that needs no order: checksums, compression, metadata.
pub(super) trait Pack: Clone + Send + Sync {
    /// A sample as the target stores it, without its bytes.
    type Packed: Send;

    /// Whether samples come with the compressed bytes of their source.
    fn keeps_compressed(&self) -> bool;

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
    keeps: Keeps,
}

/// The compressed bytes of the sources that are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    None,
    /// All but Zstandard frames with a dictionary, since the sources have several.
    WithoutDictionary,
    All,
}

impl TblSink {
    pub(super) fn create<P: Prepare>(
        selection: &Selection<'_>,
        destination: Destination<'_>,
        version: TblVersion,
        compression: Compression,
        options: &ConvertOptions,
        new_prepare: impl Fn() -> P,
    ) -> Result<Self, ConvertError> {
        let options = WriteOptions {
            version,
            compression,
            sync: options.sync,
            overwrite: options.overwrite,
            sample_count: Some(selection.sample_count()),
        };
        let mut unlisted = selection.unlisted_box_classes().iter();
        if let Some(&number) = unlisted.find(|number| u16::try_from(**number).is_err()) {
            let path = destination.name();
            return Err(WriteError::UnlistedCategory { path, number }.into());
        }
        let Destination { stores, location } = destination;
        let mut writer = StreamWriter::create_in(stores, location, options)?;
        writer.expect(destination.expected_bytes(selection));
        writer.set_class_names(selection.class_names());
        writer.set_box_class_names(selection.box_class_names());
        if selection.has_folders_for_no_labels()? {
            writer.state_labels();
        }
        let mut keeps = Keeps::None;
        match compression {
            Compression::Zstd(level) => {
                if let Some(dictionary) = dictionary::train(selection, new_prepare, level) {
                    writer.set_dictionary(&dictionary)?;
                }
            }
            Compression::AsStored => {
                let dictionary = dictionary::of_sources(selection)?;
                keeps = if dictionary.is_some() { Keeps::All } else { Keeps::WithoutDictionary };
                if let Some(dictionary) = dictionary {
                    writer.set_dictionary(dictionary)?;
                }
            }
            Compression::None | Compression::Lz4 => {}
        }
        metadata::of_files(selection, |kind, data| Ok(writer.add_metadata(None, kind, data)?))?;
        Ok(Self { writer, keeps })
    }
}

impl Sink for TblSink {
    type Packer = TblPacker;

    fn packer(&self) -> TblPacker {
        TblPacker { encoder: self.writer.encoder(), keeps: self.keeps }
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

#[derive(Clone)]
pub(super) struct TblPacker {
    encoder: Encoder,
    keeps: Keeps,
}

impl Pack for TblPacker {
    type Packed = Encoded;

    fn keeps_compressed(&self) -> bool {
        self.keeps != Keeps::None
    }

    fn keeps_row_indexes(&self) -> bool {
        self.encoder.version() == TblVersion::V2
    }

    fn pack(&self, sample: Sample<'_>) -> Result<Encoded, PackError> {
        let Sample { bytes, compressed, prepared, key, label, ref fields, row_index, ref metadata } =
            sample;
        let Prepared { format, width, height, .. } = prepared;
        let sample =
            NewSample { bytes, format, width, height, key, label, fields, row_index, metadata };
        let needs_dictionary = |compressed: &Compressed| {
            compressed.codec == Codec::Zstd && dictionary_of(&compressed.bytes).is_some()
        };
        let compressed = match compressed {
            Some(found) if self.keeps == Keeps::WithoutDictionary && needs_dictionary(&found) => {
                let encoding = ZstdEncoding::new(ZstdLevel::default(), None);
                let frame = encoding.and_then(|encoding| encoding.compress(bytes));
                frame.map(|bytes| Compressed { codec: Codec::Zstd, bytes })
            }
            compressed => compressed,
        };
        Ok(match compressed {
            Some(compressed) => self.encoder.encode_compressed(&sample, compressed)?,
            None => self.encoder.encode(&sample)?,
        })
    }

    fn held_bytes(packed: &Encoded) -> u64 {
        packed.held_bytes()
    }
}
