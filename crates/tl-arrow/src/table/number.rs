//! Values of stored columns as numbers of one type.

use crate::schema::{Leaf, Meaning, Physical};
use crate::text;
use crate::values::Value;

/// The type of the numbers of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum NumberType {
    /// One byte, 0 or 1; 2 for a missing one of a column with [`Missing::Two`].
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

/// The number that stands for a null. Those of floats are NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// All values are there, or NaN stands for nulls.
    None,
    /// The least number of the type.
    Least,
    /// 2, among booleans.
    Two,
}

/// The type of the numbers of a column, and what stands for nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) kind: NumberType,
    pub(super) missing: Missing,
}

/// The bits of a NaN of 16 bits.
const HALF_NAN: u16 = 0x7e00;

impl NumberType {
    /// Bytes of one number.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

impl Number {
    /// The numbers that the values of a leaf become. Integers of 8 and 16 bits and unsigned ones become
    /// wider if there may be nulls, so that the least number is none of theirs.
    ///
    /// # Errors
    /// The reason why there are none.
    pub(super) fn of(leaf: &Leaf, has_nulls: bool) -> Result<Self, &'static str> {
        let least = |kind| Ok(Self { kind, missing: Missing::Least });
        let plain = |kind| Ok(Self { kind, missing: Missing::None });
        if matches!(leaf.meaning, Meaning::Decimal(_)) {
            return plain(NumberType::F64);
        }
        let is_unsigned = leaf.meaning == Meaning::Unsigned;
        match (leaf.physical, leaf.bits, has_nulls) {
            (Physical::Boolean, _, false) => plain(NumberType::Bool),
            (Physical::Boolean, _, true) => {
                Ok(Self { kind: NumberType::U8, missing: Missing::Two })
            }
            (Physical::Int32, 8, false) if is_unsigned => plain(NumberType::U8),
            (Physical::Int32, 8, false) => plain(NumberType::I8),
            (Physical::Int32, 16, false) if is_unsigned => plain(NumberType::U16),
            (Physical::Int32, 16, false) => plain(NumberType::I16),
            (Physical::Int32, 8 | 16, true) => least(NumberType::I32),
            (Physical::Int32, _, false) if is_unsigned => plain(NumberType::U32),
            (Physical::Int32, _, true) if is_unsigned => least(NumberType::I64),
            (Physical::Int64, _, true) if is_unsigned => {
                Err("unsigned integers of 64 bits with nulls, for which no number is left")
            }
            (Physical::Int64, _, false) if is_unsigned => plain(NumberType::U64),
            // The same whether there are nulls or not, so that shards agree.
            (Physical::Int32, _, _) => least(NumberType::I32),
            (Physical::Int64, _, _) => least(NumberType::I64),
            (Physical::Float, _, _) => plain(NumberType::F32),
            (Physical::Double, _, _) => plain(NumberType::F64),
            (Physical::Fixed(_), _, _) if leaf.meaning == Meaning::Half => plain(NumberType::F16),
            (Physical::Int96, _, _) => Err("points of time of 96 bits, which are obsolete"),
            (Physical::Fixed(_) | Physical::Bytes | Physical::Other, _, _) => Err("not numbers"),
        }
    }

    /// Appends a value in the machine's byte order; false for one that is none of this type.
    pub(super) fn push(self, leaf: &Leaf, value: Option<Value<'_>>, out: &mut Vec<u8>) -> bool {
        let Some(value) = value else { return self.push_missing(out) };
        if let Meaning::Decimal(scale) = leaf.meaning {
            let number = decimal(leaf, value, scale);
            out.extend(number.unwrap_or(f64::NAN).to_ne_bytes());
            return number.is_some();
        }
        match value {
            Value::Boolean(value) => out.push(value.into()),
            Value::Integer(value) => return self.push_integer(leaf, value, out),
            Value::Float(value) => out.extend(value.to_ne_bytes()),
            Value::Double(value) => out.extend(value.to_ne_bytes()),
            Value::Bytes(bytes) => {
                let Ok(half) = bytes.try_into() else { return false };
                out.extend(u16::from_le_bytes(half).to_ne_bytes());
            }
        }
        true
    }

    fn push_missing(self, out: &mut Vec<u8>) -> bool {
        match (self.kind, self.missing) {
            (NumberType::F16, _) => out.extend(HALF_NAN.to_ne_bytes()),
            (NumberType::F32, _) => out.extend(f32::NAN.to_ne_bytes()),
            (NumberType::F64, _) => out.extend(f64::NAN.to_ne_bytes()),
            (NumberType::I32, Missing::Least) => out.extend(i32::MIN.to_ne_bytes()),
            (NumberType::I64, Missing::Least) => out.extend(i64::MIN.to_ne_bytes()),
            (_, Missing::Two) => out.push(2),
            (_, Missing::None | Missing::Least) => return false,
        }
        true
    }

    fn push_integer(self, leaf: &Leaf, value: i64, out: &mut Vec<u8>) -> bool {
        let is_unsigned = leaf.meaning == Meaning::Unsigned;
        let is_word = leaf.physical == Physical::Int32;
        let value = if is_word && is_unsigned { text::low_half(value) } else { value };
        macro_rules! push {
            ($number:ty) => {
                <$number>::try_from(value).map(|value| out.extend(value.to_ne_bytes())).is_ok()
            };
        }
        match self.kind {
            NumberType::I8 => push!(i8),
            NumberType::U8 => push!(u8),
            NumberType::I16 => push!(i16),
            NumberType::U16 => push!(u16),
            NumberType::I32 => push!(i32),
            NumberType::U32 => push!(u32),
            NumberType::I64 => push!(i64),
            NumberType::U64 => {
                out.extend(value.to_ne_bytes());
                true
            }
            NumberType::Bool | NumberType::F16 | NumberType::F32 | NumberType::F64 => false,
        }
    }
}

/// Powers of ten that a double has exactly.
const EXACT_POWERS: i64 = 22;

/// Integers that a double has exactly.
const EXACT_INTEGERS: u64 = 1 << 53;

/// The nearest double to a decimal.
fn decimal(leaf: &Leaf, value: Value<'_>, scale: i64) -> Option<f64> {
    if let Value::Integer(value) = value
        && (0..=EXACT_POWERS).contains(&scale)
        && value.unsigned_abs() <= EXACT_INTEGERS
    {
        #[expect(clippy::cast_precision_loss, reason = "it is small enough to be exact")]
        let whole = value as f64;
        // Both are exact, so the quotient is rounded once.
        return Some(whole / 10_f64.powi(i32::try_from(scale).ok()?));
    }
    str::from_utf8(&text::field(leaf, value)).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(physical: Physical, meaning: Meaning, bits: u8) -> Leaf {
        Leaf { physical, meaning, bits, max_definition: 1, max_repetition: 0 }
    }

    fn check(leaf: &Leaf, nulls: bool, kind: NumberType, values: &[(Option<Value<'_>>, &[u8])]) {
        let number = Number::of(leaf, nulls).unwrap();
        assert_eq!(number.kind, kind);
        for &(value, expected) in values {
            let mut out = Vec::new();
            assert!(number.push(leaf, value, &mut out), "{value:?}");
            assert_eq!(out, expected, "{value:?}");
        }
    }

    #[test]
    fn integers_keep_their_width_without_nulls() {
        let byte = leaf(Physical::Int32, Meaning::Plain, 8);
        check(&byte, false, NumberType::I8, &[(Some(Value::Integer(-128)), &[0x80])]);
        let least = i32::MIN.to_ne_bytes();
        check(&byte, true, NumberType::I32, &[(None, &least)]);
        let word = leaf(Physical::Int32, Meaning::Unsigned, 0);
        let most = u32::MAX.to_ne_bytes();
        check(&word, false, NumberType::U32, &[(Some(Value::Integer(-1)), &most)]);
        let wide = i64::from(u32::MAX).to_ne_bytes();
        let least = i64::MIN.to_ne_bytes();
        let values = [(Some(Value::Integer(-1)), &wide[..]), (None, &least)];
        check(&word, true, NumberType::I64, &values);
        let long = leaf(Physical::Int64, Meaning::Unsigned, 0);
        let most = u64::MAX.to_ne_bytes();
        check(&long, false, NumberType::U64, &[(Some(Value::Integer(-1)), &most)]);
        assert!(Number::of(&long, true).is_err());
        // A file may state fewer bits than its values have.
        let number = Number::of(&byte, false).unwrap();
        assert!(!number.push(&byte, Some(Value::Integer(128)), &mut Vec::new()));
        assert!(!number.push(&byte, None, &mut Vec::new()));
    }

    #[test]
    fn decimals_are_the_nearest_doubles() {
        let of = |value| (Some(Value::Integer(value)), (value as f64 / 100.0).to_ne_bytes());
        let cents = leaf(Physical::Int64, Meaning::Decimal(2), 0);
        for (value, expected) in [of(12_345), of(-5), of(0)] {
            check(&cents, true, NumberType::F64, &[(value, &expected)]);
        }
        let large = Value::Integer(9_007_199_254_740_993);
        let expected = 90_071_992_547_409.93_f64.to_ne_bytes();
        check(&cents, true, NumberType::F64, &[(Some(large), &expected)]);
        let fixed = leaf(Physical::Fixed(3), Meaning::Decimal(2), 0);
        check(
            &fixed,
            true,
            NumberType::F64,
            &[(Some(Value::Bytes(&[0, 1, 0])), &2.56_f64.to_ne_bytes())],
        );
    }

    #[test]
    fn booleans_and_floats_have_their_nulls() {
        let flag = leaf(Physical::Boolean, Meaning::Plain, 0);
        check(&flag, false, NumberType::Bool, &[(Some(Value::Boolean(true)), &[1])]);
        check(&flag, true, NumberType::U8, &[(None, &[2]), (Some(Value::Boolean(false)), &[0])]);
        let half = leaf(Physical::Fixed(2), Meaning::Half, 0);
        let one = 0x3c00_u16.to_ne_bytes();
        let nan = HALF_NAN.to_ne_bytes();
        let values = [(Some(Value::Bytes(&[0x00, 0x3c])), &one[..]), (None, &nan)];
        check(&half, true, NumberType::F16, &values);
    }
}
