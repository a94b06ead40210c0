//! Name and label from a sample's JSON.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tbl_format::extension::NO_LABEL;

use crate::label::{LabelDefect, json_label};

/// The parts of a sample's JSON metadata that are used. The original's examples say `name`, ours
/// `key`.
#[derive(Debug)]
pub(crate) struct JsonFacts {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) label: Result<Option<i64>, LabelDefect>,
}

impl Default for JsonFacts {
    fn default() -> Self {
        Self { key: None, label: Ok(None) }
    }
}

impl JsonFacts {
    /// Metadata that is not a JSON object is somebody else's and says nothing to us.
    pub(crate) fn parse(data: &[u8]) -> Self {
        let Members { key, name, label } = Members::parse(data).unwrap_or_default();
        let key = match key.or(name) {
            Some(Value::Text(text)) => Some(text.into_bytes()),
            _ => None,
        };
        let label = label.as_ref().map(json_label).transpose();
        // The number that stands for none wherever labels are stored.
        Self { key, label: label.map(|label| label.filter(|&label| label != NO_LABEL)) }
    }
}

/// The members of an object that count; of equal names the last one.
#[derive(Default)]
pub(crate) struct Members {
    key: Option<Value>,
    name: Option<Value>,
    pub(crate) label: Option<Value>,
}

impl Members {
    /// Whatever else an object holds is passed over without keeping it: as values, 2 bytes of text
    /// take 32.
    ///
    /// # Errors
    /// A data error for JSON that is not an object, others for text that is not JSON.
    pub(crate) fn parse(data: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(data)
    }
}

/// A value, as far as keys and labels need it.
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    /// Another one, in words.
    Other(&'static str),
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    match &*name {
                        "key" => members.key = Some(map.next_value()?),
                        "name" => members.name = Some(map.next_value()?),
                        "label" => members.label = Some(map.next_value()?),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_owned()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
                Ok(Value::Integer(number))
            }

            #[expect(clippy::cast_precision_loss, reason = "too large for a label either way")]
            fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
                Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Integer))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
                Ok(Value::Float(number))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
                Ok(Value::Other("true or false"))
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Other("null"))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Value::Other("a list"))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Value::Other("an object"))
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_name_and_label_are_taken_and_nothing_else() {
        let check = |json: &str, key: Option<&str>, label: Option<Option<i64>>| {
            let facts = JsonFacts::parse(json.as_bytes());
            assert_eq!(facts.key, key.map(|key| key.as_bytes().to_vec()), "{json}");
            assert_eq!(facts.label.ok(), label, "{json}");
        };
        check(r#"{"key":"a\n","label":-7}"#, Some("a\n"), Some(Some(-7)));
        let nested = r#"{"name":"b","l\u0061bel":7,"x":[1,{"label":2}],"y":null}"#;
        check(nested, Some("b"), Some(Some(7)));
        check(r#"{"name":"b","key":"a","label":1,"label":2}"#, Some("a"), Some(Some(2)));
        check(r#"{"name":"b","key":3,"label":1.0}"#, None, Some(Some(1)));
        check(r#"{"key":[1,2],"name":{"a":1},"label":true}"#, None, None);
        check(r#"{"key":null,"label":9223372036854775807}"#, None, Some(Some(i64::MAX)));
        check(r#"{"label":9223372036854775808}"#, None, None);
        check(r#"{"label":-9223372036854775808}"#, None, Some(None));
        check(r#"{"label":1} x"#, None, Some(None));
        check(r#"["a","b",1]"#, None, Some(None));
        check("", None, Some(None));
    }
}
