//! Lists of equally many numbers: Parquet has no type for them, but the features of `datasets` and the
//! schema of Arrow, which writers keep in the metadata, have their lengths.

use serde_json::Value as Json;

use crate::footer::Metadata;
use crate::ipc::{self, FixedLists};

/// The dimensions of the lists of a column by the features of `datasets`; `None` if they state none.
pub(super) fn dimensions(features: &[u8], column: &str) -> Option<Vec<usize>> {
    let features: Json = serde_json::from_slice(features).ok()?;
    of_feature(features.pointer("/info/features")?.get(column)?)
}

/// The lists in Arrow's schema; none without a schema, or if it cannot be read.
pub(super) fn of_arrow(metadata: &Metadata) -> FixedLists {
    let schema = metadata.arrow.as_deref().and_then(base64);
    schema.map(|schema| ipc::fixed_lists(&schema)).unwrap_or_default()
}

/// The dimensions of `{"feature": .., "length": 3, "_type": "List"}`, whose names differ between versions,
/// and of `{"shape": [2, 3], "_type": "Array2D"}`.
fn of_feature(feature: &Json) -> Option<Vec<usize>> {
    let size = |size: &Json| size.as_u64().and_then(|size| usize::try_from(size).ok());
    if let Some(shape) = feature.get("shape") {
        return shape.as_array()?.iter().map(size).collect();
    }
    let length = size(feature.get("length")?)?;
    let inner = feature.get("feature")?;
    let is_list = inner.get("length").is_some() || inner.get("shape").is_some();
    let inner = if is_list { of_feature(inner)? } else { Vec::new() };
    Some([vec![length], inner].concat())
}

/// The bytes of a text in base 64; `None` for other texts.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for quartet in text.chunks(4) {
        let mut bits = 0_u32;
        for &letter in quartet {
            let value = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        let missing = 4 - quartet.len();
        let [_, first, second, third] = (bits << (6 * missing)).to_be_bytes();
        let decoded = [first, second, third];
        bytes.extend_from_slice(decoded.get(..3 - missing).filter(|_| missing < 3)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_has_three_bytes_in_four_letters() {
        let texts: [(&[u8], &[u8]); 5] = [
            (b"", b""),
            (b"Zg==", b"f"),
            (b"Zm8=", b"fo"),
            (b"Zm9v", b"foo"),
            (b"+/8A", &[0xfb, 0xff, 0x00]),
        ];
        for (text, bytes) in texts {
            assert_eq!(base64(text).as_deref(), Some(bytes));
        }
        assert_eq!(base64(b"Zm9v!"), None);
        assert_eq!(base64(b"Z"), None);
    }

    #[test]
    fn features_of_all_versions_have_lengths() {
        let check = |text: &str, expected: Option<&[usize]>| {
            let feature: Json = serde_json::from_str(text).unwrap();
            assert_eq!(of_feature(&feature).as_deref(), expected, "{text}");
        };
        let value = r#"{"dtype": "float32", "_type": "Value"}"#;
        check(&format!(r#"{{"feature": {value}, "length": 3, "_type": "List"}}"#), Some(&[3]));
        check(&format!(r#"{{"feature": {value}, "length": 3, "_type": "Sequence"}}"#), Some(&[3]));
        check(&format!(r#"{{"feature": {value}, "_type": "List"}}"#), None);
        check(&format!(r#"{{"feature": {value}, "length": -1, "_type": "Sequence"}}"#), None);
        let inner = format!(r#"{{"feature": {value}, "length": 2, "_type": "List"}}"#);
        check(&format!(r#"{{"feature": {inner}, "length": 3, "_type": "List"}}"#), Some(&[3, 2]));
        check(r#"{"shape": [2, 3], "dtype": "int8", "_type": "Array2D"}"#, Some(&[2, 3]));
        check(r#"{"shape": [null, 3], "dtype": "int8", "_type": "Array2D"}"#, None);
        check(value, None);
    }
}
