//! NumPy's arrays with one dimension.

use tbl_io::{NpyArray, NpyHeader, NpyKind, ReadError, Source, TokensDefect};

use super::{FRONT_BYTES, check_len, integer};
use crate::layout::{Layout, TokenFormat, defect};

pub(super) fn is(front: &[u8; FRONT_BYTES]) -> bool {
    front.starts_with(&NpyArray::MAGIC)
}

/// The place of the numbers of an array with one dimension, or of a table with `columns` columns, row
/// by row.
pub(super) fn layout(source: &Source, columns: usize) -> Result<Layout, ReadError> {
    let most = NpyHeader::MOST_BYTES;
    let mut front = vec![0; usize::try_from(source.len()).unwrap_or(most).min(most)];
    source.read_exact_at(0, &mut front)?;
    let header = NpyHeader::parse(&front).map_err(|error| defect(source, 0, error.into()))?;
    let kind = match header.kind {
        NpyKind::Bool => "bool",
        NpyKind::Unsigned => "u",
        NpyKind::Signed => "i",
        NpyKind::Float => "float",
    };
    let name = format!("{kind}{}", 8 * header.item_bytes);
    let number = integer(&name).filter(|number| number.bytes() == 1 || !header.is_big_endian);
    let is_shape = match &header.shape[..] {
        [_] => columns == 1,
        &[_, found] => columns == found && columns > 1 && !header.is_fortran,
        _ => false,
    };
    let Some(number) = number.filter(|_| is_shape) else {
        let order = if header.is_big_endian { "big-endian " } else { "" };
        let found = format!("{order}{name} with the shape {:?}", header.shape);
        return Err(defect(source, 0, TokensDefect::Array { found, columns }));
    };
    let offset = header.data_offset as u64;
    let need = header.data_bytes().and_then(|bytes| bytes.checked_add(offset));
    check_len(source, "header and numbers", need)?;
    let bytes = source.len() - offset;
    Ok(Layout { format: TokenFormat::Npy, number, offset, bytes })
}
