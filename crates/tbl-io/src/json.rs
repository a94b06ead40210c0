//! Name and label from a sample's JSON metadata.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tbl_format::extension::NO_LABEL;

/// What is used of a sample's JSON metadata. The original's examples say `name`, ours `key`.
#[derive(Debug, Default)]
pub(crate) struct JsonFacts {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) label: Option<i64>,
}

impl JsonFacts {
    /// Metadata that is not a JSON object is somebody else's and says nothing to us. Whatever else
    /// an object holds is passed over without keeping it: as values, 2 bytes of text take 32.
    pub(crate) fn parse(data: &[u8]) -> Self {
        let Members { key, name, label } = serde_json::from_slice(data).unwrap_or_default();
        let key = match key.or(name) {
            Some(Value::Text(text)) => Some(text.into_bytes()),
            _ => None,
        };
        let label = match label {
            // The number that stands for none wherever labels are stored.
            Some(Value::Integer(label)) if label != NO_LABEL => Some(label),
            _ => None,
        };
        Self { key, label }
    }
}

/// The members of an object that count; of equal names the last one.
#[derive(Default)]
struct Members {
    key: Option<Value>,
    name: Option<Value>,
    label: Option<Value>,
}

enum Value {
    Text(String),
    Integer(i64),
    Other,
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

            fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
                Ok(i64::try_from(number).map_or(Value::Other, Value::Integer))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
                Ok(Value::Other)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
                Ok(Value::Other)
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Other)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Value::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Value::Other)
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
        let check = |json: &str, key: Option<&str>, label: Option<i64>| {
            let facts = JsonFacts::parse(json.as_bytes());
            assert_eq!(facts.key, key.map(|key| key.as_bytes().to_vec()), "{json}");
            assert_eq!(facts.label, label, "{json}");
        };
        check(r#"{"key":"a\n","label":-7}"#, Some("a\n"), Some(-7));
        check(r#"{"name":"b","l\u0061bel":7,"x":[1,{"label":2}],"y":null}"#, Some("b"), Some(7));
        check(r#"{"name":"b","key":"a","label":1,"label":2}"#, Some("a"), Some(2));
        check(r#"{"name":"b","key":3,"label":1.0}"#, None, None);
        check(r#"{"key":[1,2],"name":{"a":1},"label":true}"#, None, None);
        check(r#"{"key":null,"label":9223372036854775807}"#, None, Some(i64::MAX));
        check(r#"{"label":9223372036854775808}"#, None, None);
        check(r#"{"label":1} x"#, None, None);
        check(r#"["a","b",1]"#, None, None);
        check("", None, None);
    }
}
