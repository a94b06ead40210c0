//! The metadata blocks of a TBL file as its users see them: those of a sample, and those of the
//! whole file.

use std::ops::ControlFlow;

use tbl_format::FormatError;
use tbl_format::extension::Extension;
use tbl_format::metadata::MetadataType;

use super::TblFile;
use crate::error::ReadError;
use crate::metadata_json::{custom_json, is_ours};
use crate::sample::MetadataBlock;

/// The metadata blocks of a file, counted, without those in which our writers keep names, labels,
/// checksums, row indexes and fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataTotals {
    /// Blocks of samples by type. Of files that we wrote, those with key and label are among them.
    pub samples: Vec<(MetadataType, u64)>,
    /// Blocks of the whole file by type.
    pub file: Vec<(MetadataType, u64)>,
    /// Blocks of samples that do not exist.
    pub without_sample: u64,
    /// Blocks of the whole file that a later version of our writers made.
    pub later_version: u64,
}

impl TblFile {
    /// All metadata blocks of sample `index`, in stored order; ours included.
    ///
    /// The first call walks the whole metadata section once.
    ///
    /// # Errors
    /// [`ReadError::SampleOutOfRange`], [`ReadError::Format`] for a damaged section,
    /// [`ReadError::Limit`].
    pub fn metadata(&self, index: u64) -> Result<Vec<MetadataBlock>, ReadError> {
        self.index_entry(index)?;
        self.metadata.check()?;
        let mut blocks = BlockList::new(self.options.limits.sample_bytes);
        self.metadata.for_each_block(index, |kind, data| Ok(blocks.push(kind, data)))?;
        blocks.finish(self)
    }

    /// The metadata blocks of the whole file, in stored order, without our own. Of version 1, the
    /// application's fields in the header as a JSON object of `creation_timestamp`,
    /// `dataset_version` and `custom_flags`.
    ///
    /// # Errors
    /// [`ReadError::Format`] for a damaged section, [`ReadError::Limit`].
    pub fn file_metadata(&self) -> Result<Vec<MetadataBlock>, ReadError> {
        self.metadata.check()?;
        let mut blocks = BlockList::new(self.options.limits.sample_bytes);
        self.for_each_file_block(|kind, data| Ok(blocks.push(kind, data)))?;
        blocks.finish(self)
    }

    /// As [`file_metadata`](Self::file_metadata), block by block without copying, until `take` has
    /// enough.
    pub(crate) fn for_each_file_block(
        &self,
        mut take: impl FnMut(MetadataType, &[u8]) -> Result<ControlFlow<()>, FormatError>,
    ) -> Result<(), ReadError> {
        let Some(custom) = self.custom_metadata() else {
            return self.metadata.for_each_file_block(take);
        };
        let taken = take(MetadataType::Json, custom_json(custom).as_bytes());
        taken.map(|_| ()).map_err(|defect| self.format_error(0, defect))
    }

    /// The metadata blocks that go with sample `index`, whose key and label these are, wherever it
    /// is copied to. Fields are left out, and so is a lone block of key and label as our writers make
    /// it, which the next writer makes anew. They make `{}` only for a sample with fields: that of
    /// another sample is the application's.
    pub(crate) fn own_metadata(
        &self,
        index: u64,
        key: Option<&[u8]>,
        label: Option<i64>,
    ) -> Result<Vec<MetadataBlock>, ReadError> {
        let mut blocks = BlockList::new(self.options.limits.sample_bytes);
        let mut is_described = key.is_some() || label.is_some();
        self.metadata.for_each_block(index, |kind, data| {
            if kind == MetadataType::Custom {
                if let Some(Extension::Field(_)) = Extension::parse(data)? {
                    is_described = true;
                    return Ok(ControlFlow::Continue(()));
                }
                Extension::verify(data)?;
            }
            Ok(blocks.push(kind, data))
        })?;
        let mut blocks = blocks.finish(self)?;
        if let [block] = blocks.as_slice()
            && is_described
            && is_ours(block, key, label)
        {
            blocks.clear();
        }
        Ok(blocks)
    }

    /// How many bytes of metadata sample `index` has, fields included.
    pub(crate) fn metadata_bytes(&self, index: u64) -> Result<u64, ReadError> {
        self.metadata.block_bytes(index)
    }

    /// How many metadata blocks belong to no sample, or are of a later version of the format.
    pub(crate) fn unreachable_metadata(&self) -> Result<u64, ReadError> {
        self.metadata.unreachable_blocks()
    }

    /// Counts the metadata blocks that are not ours. Walks the whole metadata section.
    ///
    /// # Errors
    /// [`ReadError::Format`] for a damaged section.
    pub fn metadata_totals(&self) -> Result<MetadataTotals, ReadError> {
        self.metadata.totals()
    }
}

/// Metadata blocks that are read, up to a limit.
struct BlockList {
    blocks: Vec<MetadataBlock>,
    bytes: u64,
    limit: u64,
}

impl BlockList {
    fn new(limit: u64) -> Self {
        Self { blocks: Vec::new(), bytes: 0, limit }
    }

    /// Copies a block, unless that is too much.
    fn push(&mut self, kind: MetadataType, data: &[u8]) -> ControlFlow<()> {
        self.bytes = self.bytes.saturating_add(data.len() as u64);
        if self.bytes > self.limit {
            return ControlFlow::Break(());
        }
        self.blocks.push(MetadataBlock { kind, data: data.to_vec() });
        ControlFlow::Continue(())
    }

    fn finish(self, file: &TblFile) -> Result<Vec<MetadataBlock>, ReadError> {
        if self.bytes <= self.limit {
            return Ok(self.blocks);
        }
        let location = file.source.location().clone();
        let limit = self.limit;
        let need = self.bytes;
        Err(ReadError::Limit { location, what: "metadata bytes", limit, need })
    }
}
