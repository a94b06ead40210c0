//! The encoding of one sample in a TBL file: its stored bytes, its index entry and its metadata
//! blocks. Pure, so that it can run on any thread.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use tbl_format::checksum::{crc32c, payload_crc16};
use tbl_format::extension::{NO_LABEL, RowIndexes};
use tbl_format::path::PathDefect;
use tbl_format::v2::Codec;
use tbl_format::{FormatError, SampleFormat, v1, v2};

use super::blocks::SampleBlocks;
use super::options::Compression;
use super::spool::Spool;
use crate::codec::{ZstdEncoding, compress_lz4};
use crate::escape::Escaped;
use crate::metadata_json::count_own;
use crate::sample::{Field, MetadataBlock};
use crate::tbl_version::TblVersion;
use crate::write_error::MetadataDefect;

/// A sample to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewSample<'a> {
    /// The sample's bytes.
    pub bytes: &'a [u8],
    /// The format of the bytes.
    pub format: SampleFormat,
    /// Width in pixels, 0 when unknown.
    pub width: u32,
    /// Height in pixels, 0 when unknown.
    pub height: u32,
    /// The sample's name: a relative path. [`StreamWriter::write_sample`] refuses one with an empty
    /// component or `.`, which [`Encoder::encode`] keeps.
    ///
    /// [`StreamWriter::write_sample`]: super::StreamWriter::write_sample
    pub key: Option<&'a [u8]>,
    /// Its label.
    pub label: Option<i64>,
    /// Its sidecar fields.
    pub fields: &'a [Field],
    /// The offsets of its MCU rows, if it is a JPEG for which they are known: `tl_decode`'s row
    /// index.
    /// Version 1 cannot store it.
    pub row_index: Option<&'a [u8]>,
    /// Its own metadata blocks, which are stored instead of the JSON block with key and label
    /// that is made for samples without any. Version 1 cannot store them.
    pub metadata: &'a [MetadataBlock],
}

impl<'a> NewSample<'a> {
    /// A sample of which only the bytes are known.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            format: SampleFormat::Unknown,
            width: 0,
            height: 0,
            key: None,
            label: None,
            fields: &[],
            row_index: None,
            metadata: &[],
        }
    }
}

/// The reason why the format cannot hold a sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum EncodeError {
    /// The index has 32 bits for a sample's size.
    #[error("sample of {bytes} bytes is over the format's limit of {limit}")]
    TooLarge { bytes: u64, limit: u64 },
    /// The index has 16 bits for each dimension. Zeros, which mean unknown, are always possible.
    #[error("image of {width}x{height} pixels is over the format's limit of {limit}")]
    Dimensions {
        width: u32,
        height: u32,
        /// The largest possible of each.
        limit: u32,
    },
    /// A `RAW_U8` sample is not `width * height * 3` bytes long.
    #[error("raw image of {width}x{height} pixels has {bytes} bytes instead of {expected}")]
    RawSize {
        width: u32,
        height: u32,
        bytes: u64,
        /// The size that its dimensions ask for.
        expected: u64,
    },
    /// A `RAW_U8` sample has no pixels.
    #[error("raw image of {width}x{height} pixels is empty, expected at least one pixel")]
    EmptyRaw { width: u32, height: u32 },
    /// The label is the number that stands for none.
    #[error("label {label} is reserved for samples without a label; leave the label out instead")]
    Label { label: i64 },
    /// The name is not that of a file.
    #[error("name `{}`: {defect}, expected a relative path such as cats/1.jpg", Escaped(key))]
    Key { key: Vec<u8>, defect: PathDefect },
    /// The label is beyond the class names of the file.
    #[error("label {label} has no class name, expected a label below {class_count}")]
    LabelWithoutClass { label: i64, class_count: usize },
    /// A field is larger than the format can say.
    #[error("field {field} of {bytes} bytes is over the format's limit of {limit}")]
    FieldTooLarge { field: String, bytes: u64, limit: u64 },
    /// A field that was a number when the columns were chosen.
    #[error(
        "field {field} was a number in all samples before and is not one now: the source changed"
    )]
    FieldChanged { field: String },
    /// Version 1 has no code for the format.
    #[error("format {format} does not exist in TBL version 1")]
    Format { format: SampleFormat },
    /// A metadata block cannot be stored.
    #[error(transparent)]
    Metadata(#[from] MetadataDefect),
    /// A row index would be too large, or a name or an extension is unsafe.
    #[error(transparent)]
    Refused(#[from] FormatError),
}

/// Turns samples into [`Encoded`] ones.
#[derive(Clone, Debug)]
pub struct Encoder {
    version: TblVersion,
    compression: Compression,
    /// For [`Compression::Zstd`].
    zstd: Option<Arc<ZstdEncoding>>,
}

/// A sample ready to be written: everything but its bytes, which [`StreamWriter::write`] wants
/// again so that they need not be copied.
///
/// [`StreamWriter::write`]: super::StreamWriter::write
#[derive(Clone, Debug)]
pub struct Encoded {
    version: TblVersion,
    sample_bytes: u32,
    /// The compressed bytes, where they are fewer than those of the sample.
    compressed: Option<Compressed>,
    format: SampleFormat,
    dimensions: (u16, u16),
    crc16: u16,
    pub(super) crc32c: u32,
    pub(super) key: Option<Vec<u8>>,
    pub(super) label: Option<i64>,
    pub(super) field_count: u64,
    /// Metadata blocks that version 1 cannot store.
    pub(super) metadata_count: u64,
    /// Empty for none.
    pub(super) row_index: Vec<u8>,
    blocks: SampleBlocks,
}

/// The compressed bytes of a sample.
#[derive(Clone, Debug)]
pub struct Compressed {
    /// Their compression.
    pub codec: Codec,
    /// The LZ4 block or the Zstandard frame.
    pub bytes: Vec<u8>,
}

impl Encoder {
    /// `None` if memory for the dictionary is not available.
    pub(super) fn new(
        version: TblVersion,
        compression: Compression,
        dictionary: Option<&[u8]>,
    ) -> Option<Self> {
        let zstd = match compression {
            Compression::Zstd(level) => Some(Arc::new(ZstdEncoding::new(level, dictionary)?)),
            Compression::None | Compression::Lz4 | Compression::AsStored => None,
        };
        Some(Self { version, compression, zstd })
    }

    /// The version that samples are encoded for.
    pub fn version(&self) -> TblVersion {
        self.version
    }

    pub(super) fn compression(&self) -> Compression {
        self.compression
    }

    /// Encodes one sample: checksums, compression if that is on, metadata.
    ///
    /// # Errors
    /// What the format cannot hold; see [`EncodeError`].
    pub fn encode(&self, sample: &NewSample<'_>) -> Result<Encoded, EncodeError> {
        let compressed = match &self.zstd {
            _ if self.version == TblVersion::V1 => None,
            Some(zstd) => {
                zstd.compress(sample.bytes).map(|bytes| Compressed { codec: Codec::Zstd, bytes })
            }
            None if self.compression == Compression::Lz4 => {
                compress_lz4(sample.bytes).map(|bytes| Compressed { codec: Codec::Lz4, bytes })
            }
            None => None,
        };
        self.encode_as(sample, compressed)
    }

    /// Encodes a sample that comes with its compressed bytes, which are stored as they are. They
    /// are not checked. Version 1 has no compression and stores the sample's bytes.
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    pub fn encode_compressed(
        &self,
        sample: &NewSample<'_>,
        compressed: Compressed,
    ) -> Result<Encoded, EncodeError> {
        stored_size(compressed.bytes.len())?;
        self.encode_as(sample, Some(compressed))
    }

    fn encode_as(
        &self,
        sample: &NewSample<'_>,
        compressed: Option<Compressed>,
    ) -> Result<Encoded, EncodeError> {
        let sample_bytes = stored_size(sample.bytes.len())?;
        if sample.label == Some(NO_LABEL) {
            return Err(EncodeError::Label { label: NO_LABEL });
        }
        // Readers refuse such a name.
        sample.key.map_or(Ok(()), FormatError::check_sample_name)?;
        let row_index = sample.row_index.unwrap_or_default();
        if row_index.len() > RowIndexes::MAX_ROW_INDEX_BYTES {
            let bytes = row_index.len();
            let limit = RowIndexes::MAX_ROW_INDEX_BYTES;
            let bytes = bytes as u64;
            let limit = limit as u64;
            return Err(FormatError::TooLarge { what: "row index", bytes, limit }.into());
        }
        let (dimensions, compressed, checksums, blocks) = match self.version {
            TblVersion::V1 if sample.format.code() > v1::IndexEntry::MAX_FORMAT_CODE => {
                return Err(EncodeError::Format { format: sample.format });
            }
            TblVersion::V1 => ((0, 0), None, (0, 0), SampleBlocks::default()),
            TblVersion::V2 => (
                dimensions(sample)?,
                compressed,
                (payload_crc16(sample.bytes), crc32c(sample.bytes)),
                SampleBlocks::new(sample)?,
            ),
        };
        Ok(Encoded {
            version: self.version,
            sample_bytes,
            compressed,
            format: sample.format,
            dimensions,
            crc16: checksums.0,
            crc32c: checksums.1,
            key: sample.key.map(<[u8]>::to_vec),
            label: sample.label,
            field_count: sample.fields.len() as u64,
            metadata_count: match self.version {
                TblVersion::V1 => count_own(sample.metadata, sample.key, sample.label),
                TblVersion::V2 => 0,
            },
            row_index: if self.version == TblVersion::V2 { row_index.to_vec() } else { Vec::new() },
            blocks,
        })
    }

    /// The finished file's header.
    pub(super) fn header(
        &self,
        sample_count: u64,
        metadata: Range<u64>,
        has_codec: impl Fn(Codec) -> bool,
        custom: Option<v1::CustomMetadata>,
    ) -> Result<Vec<u8>, FormatError> {
        Ok(match self.version {
            TblVersion::V1 => {
                let header = v1::FileHeader::new(sample_count)?;
                custom
                    .map_or(header, |custom| header.with_custom_metadata(custom))
                    .to_bytes()
                    .to_vec()
            }
            TblVersion::V2 => {
                let flag = |is_set, flag| if is_set { flag } else { v2::FileFlags::NONE };
                let has_blocks = self.compression == Compression::Lz4 || has_codec(Codec::Lz4);
                let flags = v2::FileFlags::HAS_CHECKSUMS
                    | flag(has_blocks, v2::FileFlags::COMPRESSED)
                    | flag(has_codec(Codec::Zstd), v2::FileFlags::ZSTD);
                v2::FileHeader::new(sample_count, metadata, flags)?.to_bytes().to_vec()
            }
        })
    }
}

impl Encoded {
    /// The compression of the sample; `None` if it is stored as it is.
    pub fn codec(&self) -> Option<Codec> {
        self.compressed.as_ref().map(|compressed| compressed.codec)
    }

    /// The size of the sample itself.
    pub fn sample_bytes(&self) -> u64 {
        u64::from(self.sample_bytes)
    }

    /// The memory it holds beyond its own size.
    pub(crate) fn held_bytes(&self) -> u64 {
        let block = self.compressed.as_ref().map_or(0, |compressed| compressed.bytes.capacity());
        let key = self.key.as_ref().map_or(0, Vec::capacity);
        [block, key, self.row_index.capacity()]
            .into_iter()
            .fold(self.blocks.held_bytes(), |sum, bytes| sum.saturating_add(bytes as u64))
    }

    /// The stored form of the sample whose own bytes are `bytes`.
    pub(super) fn payload<'a>(&'a self, bytes: &'a [u8]) -> &'a [u8] {
        self.compressed.as_ref().map_or(bytes, |compressed| &compressed.bytes)
    }

    /// Appends the index entry for the payload at `offset`.
    pub(super) fn push_entry(&self, offset: u64, index: &mut Spool) -> io::Result<()> {
        // The length was checked when they came or is below the sample's.
        let stored_bytes = self
            .compressed
            .as_ref()
            .and_then(|compressed| u32::try_from(compressed.bytes.len()).ok())
            .unwrap_or(self.sample_bytes);
        match self.version {
            TblVersion::V1 => {
                index.push(&v1::IndexEntry::new(offset, stored_bytes, self.format).to_bytes())
            }
            TblVersion::V2 => {
                let compressed = self.codec().map_or(v2::EntryFlags::NONE, Codec::flag);
                let metadata = if self.blocks.is_empty() {
                    v2::EntryFlags::NONE
                } else {
                    v2::EntryFlags::HAS_METADATA
                };
                let payload = v2::Payload {
                    offset,
                    stored_bytes,
                    bytes: self.sample_bytes,
                    checksum: self.crc16,
                };
                let flags = compressed | metadata;
                index.push(
                    &v2::IndexEntry::new(payload, self.dimensions, self.format, flags).to_bytes(),
                )
            }
        }
    }

    /// The sample's metadata blocks.
    /// The largest number of metadata blocks: one with key and label if it has no others, and the
    /// fields.
    pub(super) fn block_count(&self) -> u64 {
        self.metadata_count.max(1) + self.field_count
    }

    pub(super) fn blocks(&self) -> &SampleBlocks {
        &self.blocks
    }
}

fn stored_size(len: usize) -> Result<u32, EncodeError> {
    u32::try_from(len)
        .map_err(|_| EncodeError::TooLarge { bytes: len as u64, limit: u64::from(u32::MAX) })
}

fn dimensions(sample: &NewSample<'_>) -> Result<(u16, u16), EncodeError> {
    let NewSample { width, height, .. } = *sample;
    let both = u16::try_from(width).ok().zip(u16::try_from(height).ok());
    let dimensions =
        both.ok_or(EncodeError::Dimensions { width, height, limit: u32::from(u16::MAX) })?;
    if sample.format == SampleFormat::RawU8 {
        let expected = 3 * u64::from(width) * u64::from(height);
        let bytes = sample.bytes.len() as u64;
        if bytes != expected {
            return Err(EncodeError::RawSize { width, height, bytes, expected });
        }
        if expected == 0 {
            return Err(EncodeError::EmptyRaw { width, height });
        }
    }
    Ok(dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_32_bits_are_refused_with_both_numbers() {
        let most = usize::try_from(u32::MAX).unwrap();
        assert_eq!(stored_size(most), Ok(u32::MAX));
        let bytes = u64::from(u32::MAX) + 1;
        let limit = u64::from(u32::MAX);
        assert_eq!(stored_size(most + 1), Err(EncodeError::TooLarge { bytes, limit }));
    }
}
