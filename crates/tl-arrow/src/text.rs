//! Values of columns as the bytes of fields.

use std::fmt::Write;

use crate::schema::{Leaf, Meaning, Physical};
use crate::values::Value;

/// The field of a value: bytes as they are, numbers as decimal text, booleans as `true` and `false`.
pub(crate) fn field(leaf: &Leaf, value: Value<'_>) -> Vec<u8> {
    match value {
        Value::Boolean(value) => value.to_string().into_bytes(),
        Value::Integer(value) => integer(leaf, value).into_bytes(),
        Value::Float(value) => value.to_string().into_bytes(),
        Value::Double(value) => value.to_string().into_bytes(),
        Value::Bytes(bytes) => match leaf.meaning {
            Meaning::Decimal(scale) => {
                decimal_of_bytes(bytes, scale).map_or_else(|| bytes.to_vec(), String::into_bytes)
            }
            Meaning::Half => {
                half(bytes).map_or_else(|| bytes.to_vec(), |half| half.to_string().into_bytes())
            }
            Meaning::Plain | Meaning::Text | Meaning::Json | Meaning::Unsigned => bytes.to_vec(),
        },
    }
}

/// The number of 32 bits without a sign that is in the lower half.
pub(crate) fn low_half(value: i64) -> i64 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d]).into()
}

/// A number of 16 bits as one of 32, which has it exactly.
pub(crate) fn half(bytes: &[u8]) -> Option<f32> {
    let bits = u16::from_le_bytes(bytes.try_into().ok()?);
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    Some(
        sign * match exponent {
            0 => fraction * f32::from_bits((127 - 24) << 23),
            31 if fraction > 0.0 => f32::NAN,
            31 => f32::INFINITY,
            _ => {
                let scale = f32::from_bits((exponent.unsigned_abs() + 127 - 15) << 23);
                (1.0 + fraction / 1024.0) * scale
            }
        },
    )
}

fn integer(leaf: &Leaf, value: i64) -> String {
    match (leaf.meaning, leaf.physical) {
        (Meaning::Unsigned, Physical::Int32) => low_half(value).to_string(),
        (Meaning::Unsigned, _) => value.cast_unsigned().to_string(),
        (Meaning::Decimal(scale), _) => decimal(value.into(), scale),
        _ => value.to_string(),
    }
}

/// A number of at most 16 bytes, the greatest first.
fn decimal_of_bytes(bytes: &[u8], scale: i64) -> Option<String> {
    let sign = if bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
    let mut whole = [sign; 16];
    let start = whole.len().checked_sub(bytes.len())?;
    whole.get_mut(start..)?.copy_from_slice(bytes);
    Some(decimal(i128::from_be_bytes(whole), scale))
}

/// The most digits of a decimal.
const MAX_SCALE: i64 = 38;

fn decimal(value: i128, scale: i64) -> String {
    let Some(scale) = usize::try_from(scale.min(MAX_SCALE)).ok().filter(|&scale| scale > 0) else {
        return value.to_string();
    };
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let mut text = String::new();
    // Writing into a string cannot fail.
    write!(text, "{sign}{whole}.{part}").map_or(String::new(), |()| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(meaning: Meaning, physical: Physical, value: Value<'_>, expected: &str) {
        let leaf = Leaf { physical, meaning, bits: 0, max_definition: 0, max_repetition: 0 };
        let found = field(&leaf, value);
        assert_eq!(String::from_utf8(found).unwrap(), expected);
    }

    #[test]
    fn numbers_are_decimal_text() {
        check(Meaning::Plain, Physical::Int64, Value::Integer(-7), "-7");
        check(Meaning::Unsigned, Physical::Int32, Value::Integer(-1), "4294967295");
        check(Meaning::Unsigned, Physical::Int64, Value::Integer(-1), "18446744073709551615");
        check(Meaning::Plain, Physical::Float, Value::Float(0.1), "0.1");
        check(Meaning::Plain, Physical::Double, Value::Double(1e300), &1e300_f64.to_string());
        check(Meaning::Plain, Physical::Boolean, Value::Boolean(true), "true");
        check(Meaning::Half, Physical::Fixed(2), Value::Bytes(&[0x00, 0x3e]), "1.5");
        check(Meaning::Text, Physical::Bytes, Value::Bytes(b"a b"), "a b");
    }

    #[test]
    fn numbers_of_16_bits_are_exact() {
        for (bits, expected) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x0400, 6.103_515_6e-5),
            (0x3555, 0.333_251_95),
            (0xfc00, f32::NEG_INFINITY),
            (0x0000, 0.0),
        ] {
            assert_eq!(half(&u16::to_le_bytes(bits)), Some(expected), "{bits:#x}");
        }
        assert!(half(&[0, 0x7e]).unwrap().is_nan());
        assert_eq!(half(&[0]), None);
    }

    #[test]
    fn decimals_have_their_point() {
        for (value, scale, expected) in
            [(12345, 2, "123.45"), (-5, 2, "-0.05"), (5, 0, "5"), (-12, 1, "-1.2")]
        {
            check(Meaning::Decimal(scale), Physical::Int64, Value::Integer(value), expected);
        }
        check(Meaning::Decimal(2), Physical::Fixed(3), Value::Bytes(&[0, 1, 0]), "2.56");
        check(Meaning::Decimal(2), Physical::Bytes, Value::Bytes(&[0xff]), "-0.01");
    }
}
