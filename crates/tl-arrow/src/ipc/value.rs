//! Values as record batches have them.

use crate::ipc::array::Span;
use crate::ipc::schema::Kind;
use crate::values::Value;

/// The most bytes of a view that has its value.
const INLINE: u64 = 12;

/// The bytes of a view.
pub(super) const VIEW_BYTES: usize = 16;

/// Bits of missing values.
#[derive(Debug)]
pub(crate) struct Validity {
    pub(super) bytes: Vec<u8>,
    /// The row of the first bit.
    pub(super) first: u64,
}

impl Validity {
    /// Whether the value of a row is there, which is one of those that were asked for.
    pub(crate) fn is_valid(&self, row: u64) -> bool {
        let bit = row.saturating_sub(self.first);
        let byte = usize::try_from(bit / 8).ok().and_then(|byte| self.bytes.get(byte));
        byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }
}

/// The place of a value by its view. `None` if its buffer does not exist.
pub(crate) fn span_of_view(view: &[u8; VIEW_BYTES], row: u64, buffers: u32) -> Option<Span> {
    let (words, _) = view.as_chunks::<4>();
    let word = |number: usize| words.get(number).map(|word| i32::from_le_bytes(*word));
    let len = u64::try_from(word(0)?).ok()?;
    if len <= INLINE {
        return Some(Span { buffer: 1, start: row * VIEW_BYTES as u64 + 4, len });
    }
    let buffer = u32::try_from(word(2)?).ok().filter(|&buffer| buffer < buffers)?;
    let start = u64::try_from(word(3)?).ok()?;
    Some(Span { buffer: 2 + usize::try_from(buffer).ok()?, start, len })
}

pub(super) fn halves<const N: usize, const H: usize>(pair: [u8; N]) -> [[u8; H]; 2] {
    let (halves, _) = pair.as_chunks::<H>();
    let half = |number: usize| halves.get(number).copied().unwrap_or([0; H]);
    [half(0), half(1)]
}

/// The bytes of the widest decimal.
pub(crate) const MAX_DECIMAL: usize = 16;

/// A value of fixed [width](Kind::width). The bytes of decimals are reversed in `reversed`.
pub(crate) fn fixed_value<'b>(
    kind: Kind,
    bytes: &'b [u8],
    reversed: &'b mut [u8; MAX_DECIMAL],
) -> Value<'b> {
    match kind {
        Kind::Integer { is_signed, .. } => {
            let mut wide = [0; 8];
            let len = bytes.len().min(wide.len());
            let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
            wide.fill(if is_signed && is_negative { 0xff } else { 0 });
            wide[..len].copy_from_slice(&bytes[..len]);
            // Those without a sign are told by the meaning of the column.
            Value::Integer(i64::from_le_bytes(wide))
        }
        Kind::Float { bytes: 4 } => {
            Value::Float(f32::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default()))
        }
        Kind::Float { bytes: 8 } => {
            Value::Double(f64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default()))
        }
        Kind::Decimal { .. } => {
            // The greatest byte comes first in Parquet files.
            let len = bytes.len().min(reversed.len());
            reversed.iter_mut().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from);
            Value::Bytes(&reversed[..len])
        }
        Kind::Null
        | Kind::Boolean
        | Kind::Float { .. }
        | Kind::Bytes { .. }
        | Kind::View { .. }
        | Kind::Fixed { .. }
        | Kind::List { .. }
        | Kind::ListView { .. }
        | Kind::FixedList { .. }
        | Kind::Struct
        | Kind::Other { .. } => Value::Bytes(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_have_short_values_or_places() {
        let view = |words: [i32; 4]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let span = span_of_view(&bytes.try_into().unwrap(), 3, 2);
            span.map(|Span { buffer, start, len }| [buffer as u64, start, len])
        };
        assert_eq!(view([12, 0, 0, 0]), Some([1, 52, 12]));
        assert_eq!(view([13, 0, 1, 40]), Some([3, 40, 13]));
        assert_eq!(view([13, 0, 2, 40]), None);
        assert_eq!(view([13, 0, 0, -1]), None);
        assert_eq!(view([-1, 0, 0, 0]), None);
    }
}
