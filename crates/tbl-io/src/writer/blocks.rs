//! The metadata blocks of one sample.

use std::io;

use tbl_format::FormatError;
use tbl_format::extension::{self, ExtensionHeader, ExtensionKind};
use tbl_format::metadata::{BlockHeader, MetadataType};

use super::encode::NewSample;
use crate::sample::Field;

/// Blocks back to back, as they stand in the file but for the sample's number, which is not known
/// when a sample is encoded.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleBlocks(Vec<u8>);

impl SampleBlocks {
    /// A JSON block with key and label, which is what the original's reader returns, then a block
    /// per field.
    pub(super) fn new(sample: &NewSample<'_>) -> Result<Self, FormatError> {
        let mut blocks = Vec::new();
        if sample.key.is_none() && sample.label.is_none() && sample.fields.is_empty() {
            return Ok(Self(blocks));
        }
        push_block(MetadataType::Json, json(sample).as_bytes(), &mut blocks)?;
        for Field { extension, bytes } in sample.fields {
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

fn push_block(kind: MetadataType, data: &[u8], blocks: &mut Vec<u8>) -> Result<(), FormatError> {
    let header = BlockHeader::new(0, kind, data.len() as u64)?;
    blocks.extend_from_slice(&header.to_bytes());
    blocks.extend_from_slice(data);
    Ok(())
}

fn json(sample: &NewSample<'_>) -> String {
    let key = sample.key.map(|key| format!("\"key\":{}", serde_json::Value::from(text(key))));
    let label = sample.label.map(|label| format!("\"label\":{label}"));
    let members: Vec<String> = key.into_iter().chain(label).collect();
    format!("{{{}}}", members.join(","))
}

/// A key as text: bytes that are not UTF-8 become `\xNN`. The exact bytes are in the file's own
/// table of names.
fn text(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len());
    for chunk in key.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}
