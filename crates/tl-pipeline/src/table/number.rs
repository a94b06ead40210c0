//! The types of numbers in columns, and their conversion to `f32` and labels.

use half::{bf16, f16};
use tl_transform::Dtype;
use zerocopy::{FromBytes, Immutable};

use crate::error::TableError;
use crate::table::Meaning;

mod sealed {
    pub trait Sealed {}
}

/// The type of a column's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ColumnType {
    /// One byte, 0 or 1.
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl ColumnType {
    /// All types of numbers.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::U64,
        Self::I64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    /// Bytes of one number.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Its name, such as `f32`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

impl From<Dtype> for ColumnType {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Self::F32,
            Dtype::F16 => Self::F16,
            Dtype::Bf16 => Self::Bf16,
            Dtype::U8 => Self::U8,
            Dtype::U16 => Self::U16,
        }
    }
}

/// A number that a column can be seen as ([`ColumnView::numbers`](crate::ColumnView::numbers)).
pub trait ColumnNumber: sealed::Sealed + FromBytes + Immutable + Copy {
    /// The types of columns that hold it. `f16` and `bf16` are seen as their bits.
    const TYPES: &'static [ColumnType];
}

macro_rules! column_numbers {
    ($($number:ty: $($column:ident)*;)*) => {$(
        impl sealed::Sealed for $number {}
        impl ColumnNumber for $number {
            const TYPES: &'static [ColumnType] = &[$(ColumnType::$column),*];
        }
    )*};
}

column_numbers! {
    u8: Bool U8;
    i8: I8;
    u16: U16 F16 Bf16;
    i16: I16;
    u32: U32;
    i32: I32;
    u64: U64;
    i64: I64;
    f32: F32;
    f64: F64;
}

/// Matches numbers as they lie in memory, with one expression for each type.
macro_rules! for_numbers {
    ($number:expr, $bytes:expr, $value:ident => $body:expr) => {{
        macro_rules! each {
            ($type:ty) => {
                $bytes.chunks_exact(size_of::<$type>()).for_each(|chunk| {
                    let array = chunk.try_into().expect("chunks have the size of a number");
                    let $value = <$type>::from_ne_bytes(array);
                    $body
                })
            };
        }
        match $number {
            ColumnType::Bool | ColumnType::U8 => each!(u8),
            ColumnType::I8 => each!(i8),
            ColumnType::U16 => each!(u16),
            ColumnType::I16 => each!(i16),
            ColumnType::U32 => each!(u32),
            ColumnType::I32 => each!(i32),
            ColumnType::U64 => each!(u64),
            ColumnType::I64 => each!(i64),
            ColumnType::F16 => each!(f16),
            ColumnType::Bf16 => each!(bf16),
            ColumnType::F32 => each!(f32),
            ColumnType::F64 => each!(f64),
        }
    }};
}

/// A number as any other: whole ones exactly, so that nothing is rounded twice.
#[derive(Clone, Copy, Debug)]
enum Wide {
    Whole(i64),
    /// Whole numbers above the range of `i64`.
    Large(u64),
    Real(f64),
}

macro_rules! wide {
    ($variant:ident: $($number:ty)*) => {$(
        impl From<$number> for Wide {
            #[inline]
            fn from(number: $number) -> Self {
                Self::$variant(number.into())
            }
        }
    )*};
}

wide! { Whole: u8 i8 u16 i16 u32 i32 i64 }
wide! { Real: f16 bf16 f32 f64 }

impl From<u64> for Wide {
    #[inline]
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Large(number), Self::Whole)
    }
}

impl Wide {
    /// `None` for a missing number; `least` is the least one of the type.
    #[inline]
    fn with(self, meaning: Meaning, least: i64) -> Option<Self> {
        Some(match (meaning, self) {
            (Meaning::Key { .. }, Self::Whole(0)) | (Meaning::TwoIsMissing, Self::Whole(2)) => {
                return None;
            }
            (Meaning::LeastIsMissing, Self::Whole(number)) if number == least => return None,
            (Meaning::Key { .. }, Self::Whole(number)) => Self::Whole(number.saturating_sub(1)),
            (Meaning::Key { .. }, Self::Large(number)) => (number - 1).into(),
            (_, number) => number,
        })
    }

    /// To the nearest, ties to even, as IEEE 754 and NumPy have it.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "rounding to the nearest is what is asked for"
    )]
    fn to_f32(self) -> f32 {
        match self {
            Self::Whole(number) => number as f32,
            Self::Large(number) => number as f32,
            Self::Real(number) => number as f32,
        }
    }

    fn is_nan(self) -> bool {
        matches!(self, Self::Real(number) if number.is_nan())
    }

    /// The number as `i64`; `None` if it is not whole or does not fit.
    fn to_label(self) -> Option<i64> {
        match self {
            Self::Whole(number) => Some(number),
            Self::Large(_) => None,
            #[expect(clippy::cast_possible_truncation, reason = "whole, and within the bounds")]
            Self::Real(number) => {
                let is_label = number.trunc() == number && number.abs() < EXACT;
                is_label.then_some(number as i64)
            }
        }
    }

    fn to_f64(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "for a message")]
        match self {
            Self::Whole(number) => number as f64,
            Self::Large(number) => number as f64,
            Self::Real(number) => number,
        }
    }
}

/// Above this not every whole number is an `f64`, so that one may be another that was rounded.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The least number of a type with signs.
fn least_of(number: ColumnType) -> i64 {
    match number {
        ColumnType::I8 => i8::MIN.into(),
        ColumnType::I16 => i16::MIN.into(),
        ColumnType::I32 => i32::MIN.into(),
        ColumnType::I64
        | ColumnType::Bool
        | ColumnType::U8
        | ColumnType::U16
        | ColumnType::U32
        | ColumnType::U64
        | ColumnType::F16
        | ColumnType::Bf16
        | ColumnType::F32
        | ColumnType::F64 => i64::MIN,
    }
}

/// Writes `stored` numbers as `f32`.
pub(crate) fn write_as_f32(number: ColumnType, meaning: Meaning, stored: &[u8], out: &mut [u8]) {
    let mut places = out.chunks_exact_mut(size_of::<f32>());
    let mut put = |value: f32| {
        if let Some(place) = places.next() {
            place.copy_from_slice(&value.to_ne_bytes());
        }
    };
    let least = least_of(number);
    for_numbers!(number, stored, value => {
        put(Wide::from(value).with(meaning, least).map_or(f32::NAN, Wide::to_f32));
    });
}

/// A stored number as a label; `None` for one that is missing.
pub(crate) fn label(
    number: ColumnType,
    meaning: Meaning,
    stored: &[u8],
) -> Result<Option<i64>, TableError> {
    let mut label = Ok(None);
    for_numbers!(number, stored, value => {
        let value = Wide::from(value);
        if let Some(value) = value.with(meaning, least_of(number)).filter(|value| !value.is_nan()) {
            let whole = value.to_label().ok_or(TableError::Label { value: value.to_f64() });
            label = whole.map(Some);
        }
    });
    label
}

/// Brings little-endian numbers of `unit` bytes to the machine's order.
pub(crate) fn from_little_endian(bytes: &mut [u8], unit: usize) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(unit.max(1)).for_each(<[u8]>::reverse);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn floats(number: ColumnType, meaning: Meaning, stored: &[u8]) -> Vec<f32> {
        let mut out = vec![0.0f32; stored.len() / number.bytes()];
        write_as_f32(number, meaning, stored, out.as_mut_bytes());
        out
    }

    fn labels(number: ColumnType, meaning: Meaning, stored: &[u8]) -> Option<Option<i64>> {
        label(number, meaning, stored).ok()
    }

    #[test]
    fn every_type_becomes_the_nearest_float() {
        use Meaning::Value;
        assert_eq!(floats(ColumnType::Bool, Value, &[0, 1]), [0.0, 1.0]);
        assert_eq!(floats(ColumnType::U8, Value, &[0, 255]), [0.0, 255.0]);
        assert_eq!(floats(ColumnType::I8, Value, [-128i8, 127].as_bytes()), [-128.0, 127.0]);
        assert_eq!(floats(ColumnType::U16, Value, [65_535u16].as_bytes()), [65_535.0]);
        assert_eq!(floats(ColumnType::I16, Value, [-32_768i16].as_bytes()), [-32_768.0]);
        assert_eq!(floats(ColumnType::U32, Value, [u32::MAX].as_bytes()), [4_294_967_296.0]);
        assert_eq!(floats(ColumnType::I32, Value, [16_777_217].as_bytes()), [16_777_216.0]);
        assert_eq!(
            floats(ColumnType::U64, Value, [u64::MAX].as_bytes()),
            [18_446_744_073_709_551_616.0]
        );
        // Halfway between two floats except for its last bit, which a step through f64 would lose.
        let long = (1i64 << 60) + (1 << 36) + 1;
        assert_eq!(
            floats(ColumnType::I64, Value, [long].as_bytes()),
            [((1i64 << 60) + (1 << 37)) as f32]
        );
        assert_eq!(floats(ColumnType::F16, Value, [0x3c01u16].as_bytes()), [1.000_976_6]);
        assert_eq!(floats(ColumnType::Bf16, Value, [0x4049u16].as_bytes()), [3.140_625]);
        assert_eq!(
            floats(ColumnType::F64, Value, [0.1f64, 1e300].as_bytes()),
            [0.1, f32::INFINITY]
        );
        assert!(floats(ColumnType::F32, Value, [f32::NAN].as_bytes())[0].is_nan());
    }

    #[test]
    fn missing_numbers_are_no_numbers_and_keys_count_from_zero() {
        let key = Meaning::Key { count: 3, names: None };
        let keys = floats(ColumnType::U32, key, [0u32, 1, 3].as_bytes());
        assert!(keys[0].is_nan() && keys[1..] == [0.0, 2.0], "{keys:?}");
        let ticks = floats(ColumnType::I64, Meaning::LeastIsMissing, [i64::MIN, -7].as_bytes());
        assert!(ticks[0].is_nan() && ticks[1] == -7.0, "{ticks:?}");
        let booleans = floats(ColumnType::U8, Meaning::TwoIsMissing, &[2, 1]);
        assert!(booleans[0].is_nan() && booleans[1] == 1.0, "{booleans:?}");
        assert_eq!(labels(ColumnType::U8, key, &[0]), Some(None));
        assert_eq!(labels(ColumnType::U8, key, &[3]), Some(Some(2)));
        assert_eq!(labels(ColumnType::U8, Meaning::TwoIsMissing, &[2]), Some(None));
        let ticks = labels(ColumnType::I64, Meaning::LeastIsMissing, i64::MIN.as_bytes());
        assert_eq!(ticks, Some(None));
        // The least number is that of the type.
        let days = floats(ColumnType::I32, Meaning::LeastIsMissing, [i32::MIN, -7].as_bytes());
        assert!(days[0].is_nan() && days[1] == -7.0, "{days:?}");
        let days = labels(ColumnType::I32, Meaning::LeastIsMissing, i32::MIN.as_bytes());
        assert_eq!(days, Some(None));
    }

    #[test]
    fn labels_are_whole_numbers_of_64_bits() {
        let value = Meaning::Value;
        assert_eq!(labels(ColumnType::I64, value, i64::MIN.as_bytes()), Some(Some(i64::MIN)));
        assert_eq!(labels(ColumnType::Bool, value, &[1]), Some(Some(1)));
        assert_eq!(labels(ColumnType::F32, value, (-3.0f32).as_bytes()), Some(Some(-3)));
        assert_eq!(labels(ColumnType::F32, value, f32::NAN.as_bytes()), Some(None));
        for bad in [0.5f64, 9.1e15, f64::INFINITY] {
            let error = label(ColumnType::F64, value, bad.as_bytes()).unwrap_err();
            assert!(matches!(error, TableError::Label { value } if value == bad), "{bad}");
        }
        assert_eq!(labels(ColumnType::U64, value, u64::MAX.as_bytes()), None);
    }
}
