//! Pages that are neither compressed nor in a dictionary.

use std::ops::Range;

use tbl_io::RowsDefect;

use crate::codec::Codec;
use crate::header::{Encoding, Levels, PageHeader, PageKind};
use crate::page::level_bytes;
use crate::pages::Slot;
use crate::thrift::Flaw;

/// A page whose values are in the file as they are.
pub(super) struct Plain {
    /// The place of its levels, after their length.
    pub(super) levels: Range<usize>,
    pub(super) encoding: Levels,
    pub(super) values: usize,
}

impl Plain {
    /// `None` for a page that must be decoded.
    pub(super) fn of(
        header: &PageHeader,
        bytes: &[u8],
        codec: Codec,
        max: u8,
        slot: Slot,
    ) -> Result<Option<Self>, Flaw> {
        let damaged = || {
            let what = "levels of the page";
            Flaw::new(slot.offset, RowsDefect::Damaged { what })
        };
        let start = header.bytes as usize;
        let page = bytes.get(start..).unwrap_or_default();
        match header.kind {
            PageKind::Data { values, encoding: Encoding::Plain, definition, .. }
                if codec == Codec::Uncompressed =>
            {
                let len = level_bytes(page, definition, max, values).ok_or_else(damaged)?;
                let first = if definition == Levels::Rle && len > 0 { 4 } else { 0 };
                let levels = start + first..start + len;
                Ok(Some(Self { levels, encoding: definition, values: start + len }))
            }
            PageKind::DataV2 {
                encoding: Encoding::Plain,
                definition_bytes,
                repetition_bytes,
                is_compressed,
                ..
            } if codec == Codec::Uncompressed || !is_compressed => {
                let first = start + repetition_bytes as usize;
                let values = first + definition_bytes as usize;
                if values > bytes.len() {
                    return Err(damaged());
                }
                Ok(Some(Self { levels: first..values, encoding: Levels::Rle, values }))
            }
            PageKind::Data { .. }
            | PageKind::DataV2 { .. }
            | PageKind::Dictionary { .. }
            | PageKind::Other => Ok(None),
        }
    }
}
