//! Numbers of text, JSON and arrays, as the numbers of a column.

use half::{bf16, f16};
use tbl_io::{NpyArray, NpyKind};

use crate::table::{ColumnType, number_of};

/// A number as a file has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::fields) enum Value {
    Whole(i128),
    Real(f64),
}

/// Every whole number up to this is an `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Value {
    /// Reads a number in decimal; `nan` and `inf` are numbers.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let whole = text.parse().ok().map(Self::Whole);
        whole.or_else(|| text.parse().ok().map(Self::Real))
    }

    /// The number as a whole one.
    pub(super) fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(number) => Some(number),
            #[expect(clippy::cast_possible_truncation, reason = "whole, and within the bounds")]
            Self::Real(number) => {
                let is_whole = number.trunc() == number && number.abs() <= EXACT;
                is_whole.then_some(number as i128)
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "rounding to the nearest is what is asked for")]
    fn real(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Real(number) => number,
        }
    }

    /// To the nearest, without a step through `f64` for whole numbers.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "rounding to the nearest is what is asked for"
    )]
    fn single(self) -> f32 {
        match self {
            Self::Whole(number) => number as f32,
            Self::Real(number) => number as f32,
        }
    }
}

/// Writes `value` as a number of this type in the machine's byte order; false where that type does not
/// have it.
pub(in crate::fields) fn put(number: ColumnType, value: Value, out: &mut [u8]) -> bool {
    macro_rules! whole {
        ($type:ty) => {
            match value.whole().and_then(|number| <$type>::try_from(number).ok()) {
                Some(number) => out.copy_from_slice(&number.to_ne_bytes()),
                None => return false,
            }
        };
    }
    match number {
        ColumnType::Bool => match value.whole() {
            Some(0) => out[0] = 0,
            Some(1) => out[0] = 1,
            _ => return false,
        },
        ColumnType::U8 => whole!(u8),
        ColumnType::I8 => whole!(i8),
        ColumnType::U16 => whole!(u16),
        ColumnType::I16 => whole!(i16),
        ColumnType::U32 => whole!(u32),
        ColumnType::I32 => whole!(i32),
        ColumnType::U64 => whole!(u64),
        ColumnType::I64 => whole!(i64),
        ColumnType::F16 => out.copy_from_slice(&f16::from_f64(value.real()).to_ne_bytes()),
        ColumnType::Bf16 => out.copy_from_slice(&bf16::from_f64(value.real()).to_ne_bytes()),
        ColumnType::F32 => out.copy_from_slice(&value.single().to_ne_bytes()),
        ColumnType::F64 => out.copy_from_slice(&value.real().to_ne_bytes()),
    }
    true
}

/// The type that an array's numbers have.
pub(super) fn of_array(array: &NpyArray<'_>) -> ColumnType {
    number_of(array.kind, array.item_bytes)
}

/// True if the bytes of an array are those of a column of this type.
pub(super) fn lies_as_wanted(array: &NpyArray<'_>, number: ColumnType) -> bool {
    let has_order = array.item_bytes == 1 || array.is_big_endian == cfg!(target_endian = "big");
    // Truth values that are neither 0 nor 1 become 1.
    let is_number = array.kind != NpyKind::Bool;
    is_number && has_order && !array.is_fortran && of_array(array) == number
}

/// Calls `take` with the numbers of an array, the last dimension fastest, until it returns false.
pub(super) fn each_number(array: &NpyArray<'_>, mut take: impl FnMut(Value) -> bool) {
    let bytes = array.item_bytes;
    if !array.is_fortran {
        let mut numbers = array.data.chunks_exact(bytes);
        numbers.all(|number| take(value(array, number)));
        return;
    }
    // The place of each number, counted like an odometer.
    let mut place = vec![0; array.shape.len()];
    for _ in 0..array.data.len() / bytes {
        let strides = array.shape.iter().scan(1, |stride, side| {
            let own = *stride;
            *stride *= side;
            Some(own)
        });
        let at: usize = place.iter().zip(strides).map(|(place, stride)| place * stride).sum();
        if !take(value(array, &array.data[at * bytes..][..bytes])) {
            return;
        }
        for (place, side) in place.iter_mut().zip(&array.shape).rev() {
            *place += 1;
            if *place < *side {
                break;
            }
            *place = 0;
        }
    }
}

/// One number of an array.
fn value(array: &NpyArray<'_>, number: &[u8]) -> Value {
    let mut wide = [0_u8; 8];
    let low = &mut wide[..number.len()];
    low.copy_from_slice(number);
    if array.is_big_endian {
        low.reverse();
    }
    let unsigned = u64::from_le_bytes(wide);
    let unused = 64 - 8 * u32::try_from(number.len()).unwrap_or(8);
    match (array.kind, number.len()) {
        (NpyKind::Bool, _) => Value::Whole((unsigned != 0).into()),
        (NpyKind::Unsigned, _) => Value::Whole(unsigned.into()),
        (NpyKind::Signed, _) => {
            Value::Whole((unsigned.wrapping_shl(unused).cast_signed() >> unused).into())
        }
        (NpyKind::Float, 2) => Value::Real(f16::from_le_bytes([wide[0], wide[1]]).to_f64()),
        (NpyKind::Float, 4) => {
            let [a, b, c, d, ..] = wide;
            Value::Real(f32::from_le_bytes([a, b, c, d]).into())
        }
        (NpyKind::Float, _) => Value::Real(f64::from_bits(unsigned)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put_as(number: ColumnType, text: &str) -> Option<Vec<u8>> {
        let mut out = vec![0; number.bytes()];
        put(number, Value::parse(text).unwrap(), &mut out).then_some(out)
    }

    #[test]
    fn whole_numbers_are_kept_or_refused() {
        let check = |number, text, expected: Option<&[u8]>| {
            assert_eq!(put_as(number, text).as_deref(), expected, "{text} as {number:?}");
        };
        check(ColumnType::U8, "255", Some(&[255]));
        check(ColumnType::U8, "256", None);
        check(ColumnType::U8, "-1", None);
        check(ColumnType::I8, "-128", Some(&[128]));
        check(ColumnType::U8, "7.0", Some(&[7]));
        check(ColumnType::I64, "0.5", None);
        check(ColumnType::I64, "nan", None);
        check(ColumnType::I64, "1e300", None);
        check(ColumnType::U64, "18446744073709551615", Some(&[255; 8]));
        check(ColumnType::Bool, "1", Some(&[1]));
        check(ColumnType::Bool, "2", None);
    }

    #[test]
    fn fractions_are_rounded_once() {
        assert_eq!(put_as(ColumnType::F32, "0.1"), Some(0.1_f32.to_ne_bytes().to_vec()));
        // Halfway between two floats except for the last digit, which a step through f64 would lose.
        let long = ((1_i64 << 60) + (1 << 36) + 1).to_string();
        let expected = ((1_i64 << 60) + (1 << 37)) as f32;
        assert_eq!(put_as(ColumnType::F32, &long), Some(expected.to_ne_bytes().to_vec()));
        assert_eq!(put_as(ColumnType::F16, "1"), Some(0x3c00_u16.to_ne_bytes().to_vec()));
        assert_eq!(put_as(ColumnType::Bf16, "1"), Some(0x3f80_u16.to_ne_bytes().to_vec()));
        assert_eq!(put_as(ColumnType::F64, "-inf"), Some(f64::NEG_INFINITY.to_ne_bytes().to_vec()));
    }

    #[test]
    fn arrays_of_either_order_have_their_last_dimension_fastest() {
        let numbers = |is_fortran, is_big_endian, data: &[u8]| {
            let shape = vec![2, 3];
            let kind = NpyKind::Signed;
            let item_bytes = 2;
            let array = NpyArray { kind, item_bytes, is_big_endian, is_fortran, shape, data };
            let mut numbers = Vec::new();
            each_number(&array, |value| {
                numbers.push(value.whole().unwrap());
                true
            });
            numbers
        };
        let rows: [i16; 6] = [1, -2, 3, 400, 5, i16::MIN];
        let columns = [1, 400, -2, 5, 3, i16::MIN];
        let expected = rows.map(i128::from);
        assert_eq!(numbers(false, false, rows.map(i16::to_le_bytes).as_flattened()), expected);
        assert_eq!(numbers(true, true, columns.map(i16::to_be_bytes).as_flattened()), expected);
    }
}
