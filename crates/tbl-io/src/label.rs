//! Explicit labels: the text of a `.cls` member, the key `label` of a `.json` member.

use crate::escape::Escaped;
use crate::json::{self, Value};

/// A sidecar field that can hold a label. The order is that of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LabelField {
    /// `cls`: an integer as text.
    Cls,
    /// `json`: an object whose key `label` holds an integer.
    Json,
}

/// A defect of a stored label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum LabelDefect {
    /// The value is not an integer of 64 bits, or is -2^63, which means "no label" in TBL files.
    #[error("the label is {found}, expected an integer (class folders give classes by name)")]
    NotAnInteger {
        /// The value, printable and shortened.
        found: String,
    },
    /// A `.json` member that may hold a label is not JSON.
    #[error("not JSON ({reason}), expected an object with an integer `label`, or without `label`")]
    NotJson { reason: String },
    /// The content is too long for a label.
    #[error("{bytes} bytes are too many for a label, expected at most {limit}")]
    TooLong {
        bytes: u64,
        /// The largest accepted size.
        limit: u64,
    },
    /// The label became readable after the data set was opened.
    #[error("the label changed after the data set was opened; open it again")]
    Changed,
}

/// The mark that editors on Windows write in front of UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The text after its byte order mark, if it has one.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

impl LabelField {
    pub(crate) fn of(extension: &[u8]) -> Option<Self> {
        if extension.eq_ignore_ascii_case(b"cls") {
            Some(Self::Cls)
        } else if extension.eq_ignore_ascii_case(b"json") {
            Some(Self::Json)
        } else {
            None
        }
    }

    /// Fails for content longer than an integer with some blanks around it, or than the annotations
    /// of one image.
    pub(crate) fn check_len(self, bytes: u64) -> Result<(), LabelDefect> {
        let limit = match self {
            Self::Cls => 64,
            Self::Json => 16 << 20,
        };
        if bytes > limit { Err(LabelDefect::TooLong { bytes, limit }) } else { Ok(()) }
    }

    /// The label in the field's content, which may start with a byte order mark. JSON without the key
    /// `label` is metadata of another kind and has none.
    pub(crate) fn parse(self, content: &[u8]) -> Result<Option<i64>, LabelDefect> {
        self.check_len(content.len() as u64)?;
        let content = without_mark(content);
        match self {
            Self::Cls => {
                let text = content.trim_ascii();
                let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                let label = number.filter(|&label| label != i64::MIN);
                label.map(Some).ok_or_else(|| LabelDefect::NotAnInteger { found: shown(text) })
            }
            Self::Json => match json::Members::parse(content) {
                Ok(members) => match members.label.as_ref().map(json_label).transpose()? {
                    Some(i64::MIN) => {
                        Err(LabelDefect::NotAnInteger { found: i64::MIN.to_string() })
                    }
                    label => Ok(label),
                },
                Err(error) if error.is_data() => Ok(None),
                Err(error) => Err(LabelDefect::NotJson { reason: error.to_string() }),
            },
        }
    }
}

/// The label that a JSON value is: an integer, which JSON may also write as `2.0`.
pub(crate) fn json_label(value: &Value) -> Result<i64, LabelDefect> {
    /// Larger floating-point numbers stand for several integers.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    let found = match value {
        Value::Integer(label) => return Ok(*label),
        #[expect(clippy::cast_possible_truncation, reason = "an integer within 53 bits")]
        Value::Float(number) if number.fract() == 0.0 && number.abs() <= MAX_EXACT => {
            return Ok(*number as i64);
        }
        Value::Float(number) => number.to_string(),
        Value::Text(text) => format!("text {}", shown(text.as_bytes())),
        Value::Other(kind) => (*kind).to_owned(),
    };
    Err(LabelDefect::NotAnInteger { found })
}

/// The text for a message.
fn shown(text: &[u8]) -> String {
    const MAX_BYTES: usize = 40;
    if text.is_empty() {
        return "empty".to_owned();
    }
    let more = if text.len() > MAX_BYTES { "..." } else { "" };
    format!("`{}{more}`", Escaped(&text[..text.len().min(MAX_BYTES)]))
}

/// The field that decides a sample's label, among its fields in stored order: the last `cls`, else
/// the last `json`.
pub(crate) fn deciding_field<F>(
    fields: impl Iterator<Item = (LabelField, F)>,
) -> Option<(LabelField, F)> {
    let mut cls = None;
    let mut json = None;
    for (kind, field) in fields {
        match kind {
            LabelField::Cls => cls = Some((kind, field)),
            LabelField::Json => json = Some((kind, field)),
        }
    }
    cls.or(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cls_label_is_an_integer() {
        let cls = |content: &str| LabelField::Cls.parse(content.as_bytes());
        for (content, label) in [
            ("3", 3),
            (" 4 ", 4),
            ("5\n", 5),
            ("007", 7),
            ("+2", 2),
            ("\u{feff}3\r\n", 3),
            ("-3\r\n", -3),
            ("-9223372036854775807", -i64::MAX),
        ] {
            assert_eq!(cls(content), Ok(Some(label)), "{content:?}");
        }
        for (content, found) in [
            ("dog", "`dog`"),
            ("1.5", "`1.5`"),
            ("2.0", "`2.0`"),
            ("1e3", "`1e3`"),
            ("0x10", "`0x10`"),
            ("1 2", "`1 2`"),
            ("", "empty"),
            (" \n", "empty"),
            ("\u{feff}", "empty"),
            ("\u{feff}\u{feff}3", "`\u{feff}3`"),
            ("3\u{feff}", "`3\u{feff}`"),
            ("-9223372036854775808", "`-9223372036854775808`"),
            ("9223372036854775808", "`9223372036854775808`"),
        ] {
            let found = found.to_owned();
            let error = cls(content).unwrap_err();
            assert_eq!(error, LabelDefect::NotAnInteger { found }, "{content:?}");
        }
        assert_eq!(cls(&"1".repeat(65)), Err(LabelDefect::TooLong { bytes: 65, limit: 64 }));
        let long = cls(&"x".repeat(64)).unwrap_err().to_string();
        assert!(long.contains(&format!("`{}...`", "x".repeat(40))), "{long}");
    }

    #[test]
    fn a_json_label_is_an_integer_or_not_there() {
        let json = |content: &str| LabelField::Json.parse(content.as_bytes());
        for (content, label) in [
            (r#"{"label": 3}"#, Some(3)),
            ("\u{feff}{\"label\": 4}", Some(4)),
            (r#"{"label": 2.0}"#, Some(2)),
            (r#"{"label": -1e3}"#, Some(-1000)),
            (r#"{"label": 12, "boxes": [1, {"label": "x"}]}"#, Some(12)),
            (r#"{"label": "a", "label": 4}"#, Some(4)),
            (r#"{"caption": "a cat"}"#, None),
            ("{}", None),
            ("[1, 2]", None),
            ("3", None),
            ("null", None),
        ] {
            assert_eq!(json(content), Ok(label), "{content}");
        }
        for (content, found) in [
            (r#"{"label": "cat"}"#, "text `cat`"),
            (r#"{"label": "12"}"#, "text `12`"),
            (r#"{"label": 2.5}"#, "2.5"),
            (r#"{"label": null}"#, "null"),
            (r#"{"label": true}"#, "true or false"),
            (r#"{"label": [1, 2]}"#, "a list"),
            (r#"{"label": {"id": 1}}"#, "an object"),
            (r#"{"label": 100000000000000000000}"#, "100000000000000000000"),
            (r#"{"label": 18446744073709551615}"#, "18446744073709552000"),
            (r#"{"label": -9223372036854775808}"#, "-9223372036854775808"),
        ] {
            let found = found.to_owned();
            assert_eq!(json(content), Err(LabelDefect::NotAnInteger { found }), "{content}");
        }
        for content in ["", "{", "dog", r#"{"label": 1} x"#, r#"{"label": 1e999}"#] {
            let error = json(content).unwrap_err();
            assert!(matches!(error, LabelDefect::NotJson { .. }), "{content}: {error}");
        }
        let large = LabelField::Json.check_len((16 << 20) + 1);
        assert!(matches!(large, Err(LabelDefect::TooLong { .. })));
    }

    #[test]
    fn the_last_of_a_kind_counts_and_cls_comes_first() {
        use LabelField::{Cls, Json};
        let decides = |fields: &[(LabelField, u8)]| deciding_field(fields.iter().copied());
        assert_eq!(decides(&[]), None);
        assert_eq!(decides(&[(Cls, 1), (Json, 2), (Cls, 3)]), Some((Cls, 3)));
        assert_eq!(decides(&[(Json, 1), (Json, 2)]), Some((Json, 2)));
    }
}
