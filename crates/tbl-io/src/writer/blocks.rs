//! The metadata blocks of one sample.

use std::io;

use tbl_format::FormatError;
use tbl_format::extension::{self, Extension, ExtensionHeader, ExtensionKind};
use tbl_format::metadata::{BlockHeader, MetadataType};

use super::encode::NewSample;
use crate::metadata_json::sample_json;
use crate::sample::{Field, MetadataBlock, is_extension};
use crate::write_error::MetadataDefect;

/// Blocks back to back, as they stand in the file except for the sample's number, which is not
/// known
/// when a sample is encoded.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleBlocks(Vec<u8>);

impl SampleBlocks {
    /// The sample's own metadata or, if it has none, a JSON block with key and label: the first
    /// block is what the original's reader returns. Then a block per field.
    pub(super) fn new(sample: &NewSample<'_>) -> Result<Self, MetadataDefect> {
        let NewSample { key, label, fields, metadata, .. } = *sample;
        let mut blocks = Vec::new();
        for MetadataBlock { kind, data } in metadata {
            check_block(*kind, data)?;
            push_block(*kind, data, &mut blocks)?;
        }
        let is_described = key.is_some() || label.is_some() || !fields.is_empty();
        if metadata.is_empty() && is_described {
            push_block(MetadataType::Json, sample_json(key, label).as_bytes(), &mut blocks)?;
        }
        for Field { extension, bytes } in fields {
            let field = extension::Field { extension, bytes };
            let mut body = Vec::with_capacity(bytes.len() + extension.len() + 2);
            field.write_body(&mut body)?;
            let mut data = Vec::with_capacity(body.len() + ExtensionHeader::SIZE);
            data.extend_from_slice(&ExtensionHeader::new(ExtensionKind::Field, &body).to_bytes());
            data.append(&mut body);
            push_block(MetadataType::Custom, &data, &mut blocks)?;
        }
        Ok(Self(blocks))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.0.capacity() as u64
    }

    /// Passes the blocks of what is now known to be sample `index` to `push`, in pieces.
    pub(super) fn for_each_piece(
        &self,
        index: u64,
        mut push: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut rest = self.0.as_slice();
        // `push_block` made the blocks, so each starts with a whole header that has its size.
        while let Some((header, after)) = rest.split_first_chunk::<{ BlockHeader::SIZE }>() {
            let [_, _, _, _, _, _, _, _, size @ .., _, _, _, _] = header;
            let data_bytes = usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX);
            let (data, next) = after.split_at_checked(data_bytes).unwrap_or((after, &[]));
            push(&index.to_le_bytes())?;
            push(&header[8..])?;
            push(data)?;
            rest = next;
        }
        Ok(())
    }
}

/// Refuses what a reader would take for a sidecar field, or for a damaged block of ours.
pub(super) fn check_block(kind: MetadataType, data: &[u8]) -> Result<(), MetadataDefect> {
    if !is_extension(kind, data) {
        return Ok(());
    }
    match Extension::parse(data) {
        Ok(Some(Extension::Field(_))) | Err(_) => Err(MetadataDefect::Reserved),
        Ok(_) => Extension::verify(data).map_err(|_| MetadataDefect::Reserved),
    }
}

fn push_block(kind: MetadataType, data: &[u8], blocks: &mut Vec<u8>) -> Result<(), FormatError> {
    let header = BlockHeader::new(0, kind, data.len() as u64)?;
    blocks.extend_from_slice(&header.to_bytes());
    blocks.extend_from_slice(data);
    Ok(())
}
