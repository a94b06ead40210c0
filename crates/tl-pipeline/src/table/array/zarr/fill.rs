//! Fill values as metadata spells them.

use half::{bf16, f16};
use serde_json::Value;

use crate::table::ColumnType;

/// The bytes of a fill value; `None` for a value of another type.
pub(super) fn fill(number: ColumnType, value: &Value, is_big_endian: bool) -> Option<Vec<u8>> {
    macro_rules! unsigned {
        ($number:ty) => {
            <$number>::try_from(value.as_u64()?).ok()?.to_be_bytes().to_vec()
        };
    }
    macro_rules! signed {
        ($number:ty) => {
            <$number>::try_from(value.as_i64()?).ok()?.to_be_bytes().to_vec()
        };
    }
    macro_rules! float {
        ($bits:ty, $of:expr) => {
            match value.as_str().and_then(|text| text.strip_prefix("0x")) {
                Some(digits) => bits(digits, size_of::<$bits>())?,
                None => ($of)(float(value)?).to_be_bytes().to_vec(),
            }
        };
    }
    let mut bytes = match number {
        ColumnType::Bool => vec![u8::from(value.as_bool()?)],
        ColumnType::U8 => unsigned!(u8),
        ColumnType::U16 => unsigned!(u16),
        ColumnType::U32 => unsigned!(u32),
        ColumnType::U64 => unsigned!(u64),
        ColumnType::I8 => signed!(i8),
        ColumnType::I16 => signed!(i16),
        ColumnType::I32 => signed!(i32),
        ColumnType::I64 => signed!(i64),
        ColumnType::F16 => float!(u16, f16::from_f64),
        ColumnType::Bf16 => float!(u16, bf16::from_f64),
        #[expect(clippy::cast_possible_truncation, reason = "the nearest float of the type")]
        ColumnType::F32 => float!(u32, |value: f64| value as f32),
        ColumnType::F64 => float!(u64, |value: f64| value),
    };
    if !is_big_endian {
        bytes.reverse();
    }
    Some(bytes)
}

fn float(value: &Value) -> Option<f64> {
    match value.as_str() {
        None => value.as_f64(),
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(_) => None,
    }
}

/// The bytes that so many pairs of hexadecimal digits stand for, the most significant first.
fn bits(digits: &str, bytes: usize) -> Option<Vec<u8>> {
    if digits.len() != 2 * bytes || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let number = u64::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some(number[number.len() - bytes..].to_vec())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_spelled_as_the_specification_does() {
        let check = |number, value: Value, expected: &[u8]| {
            assert_eq!(fill(number, &value, true).as_deref(), Some(expected), "{value}");
        };
        check(ColumnType::F32, json!("NaN"), &[0x7f, 0xc0, 0, 0]);
        check(ColumnType::F64, json!("-Infinity"), &f64::NEG_INFINITY.to_be_bytes());
        check(ColumnType::F16, json!("Infinity"), &[0x7c, 0]);
        check(ColumnType::F16, json!(1.5), &[0x3e, 0]);
        check(ColumnType::Bf16, json!("NaN"), &[0x7f, 0xc0]);
        check(ColumnType::Bf16, json!("0x7fc1"), &[0x7f, 0xc1]);
        check(ColumnType::F32, json!("0x7fc00001"), &[0x7f, 0xc0, 0, 1]);
        check(ColumnType::F32, json!(7), &7_f32.to_be_bytes());
        check(ColumnType::U64, json!(u64::MAX), &[255; 8]);
        check(ColumnType::I64, json!(i64::MIN), &i64::MIN.to_be_bytes());
        check(ColumnType::I8, json!(-1), &[255]);
        check(ColumnType::Bool, json!(true), &[1]);
        assert_eq!(fill(ColumnType::I16, &json!(258), false), Some(vec![2, 1]));
    }

    #[test]
    fn values_of_other_types_are_none() {
        for (number, value) in [
            (ColumnType::U8, json!(256)),
            (ColumnType::U8, json!(-1)),
            (ColumnType::I32, json!(0.5)),
            (ColumnType::Bool, json!(0)),
            (ColumnType::F32, json!("nan")),
            (ColumnType::F32, json!("0x7fc0")),
            (ColumnType::F32, json!("0x+fc00000")),
            (ColumnType::F64, Value::Null),
        ] {
            assert_eq!(fill(number, &value, false), None, "{value}");
        }
    }
}
