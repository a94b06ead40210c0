//! JSON metadata that this crate writes: key and label of a sample, and the application's fields of
//! a version 1 header.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tbl_format::metadata::MetadataType;
use tbl_format::v1::CustomMetadata;

use crate::sample::MetadataBlock;

/// The JSON block that our writers make for a sample with this key and label.
pub(crate) fn sample_json(key: Option<&[u8]>, label: Option<i64>) -> String {
    let key = key.map(|key| format!("\"key\":{}", serde_json::Value::from(text(key))));
    let label = label.map(|label| format!("\"label\":{label}"));
    let members: Vec<String> = key.into_iter().chain(label).collect();
    format!("{{{}}}", members.join(","))
}

/// Whether this is the JSON that [`sample_json`] writes for a label alone.
pub(crate) fn is_label_json(data: &[u8]) -> bool {
    let label = data.strip_prefix(b"{\"label\":").and_then(|rest| rest.strip_suffix(b"}"));
    label.is_some_and(|label| label.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-')))
}

/// Whether a block has key and label of its sample as our writers write them, and nothing else: `{}`
/// without either.
pub(crate) fn is_ours(block: &MetadataBlock, key: Option<&[u8]>, label: Option<i64>) -> bool {
    let MetadataBlock { kind, data } = block;
    *kind == MetadataType::Json && *data == sample_json(key, label).as_bytes()
}

/// How many of a sample's blocks have more than its key and label.
pub(crate) fn count_own(blocks: &[MetadataBlock], key: Option<&[u8]>, label: Option<i64>) -> u64 {
    blocks.iter().filter(|block| !is_ours(block, key, label)).count() as u64
}

/// A key as text: bytes that are not UTF-8 become `\xNN`. The exact bytes are in the file's own
/// table of names.
fn text(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len());
    for chunk in key.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// `json` with the member `label` of its object set to `to` where it is `from`; every other byte
/// stays. `None` without such a member, or if it is not an object.
pub(crate) fn relabelled(json: &[u8], from: i64, to: Option<i64>) -> Option<Vec<u8>> {
    let to = to.map_or_else(|| "null".to_owned(), |label| label.to_string());
    let values = label_values(json)?;
    let is_stale = |range: &Range<usize>| {
        json.get(range.clone())
            .is_some_and(|value| serde_json::from_slice(value).ok() == Some(from))
    };
    let mut changed = Vec::with_capacity(json.len() + to.len());
    let mut copied = 0;
    for range in values.into_iter().filter(is_stale) {
        changed.extend_from_slice(json.get(copied..range.start)?);
        changed.extend_from_slice(to.as_bytes());
        copied = range.end;
    }
    if copied == 0 {
        return None;
    }
    changed.extend_from_slice(json.get(copied..)?);
    Some(changed)
}

/// The places of the values of all members `label` in the text of an object.
fn label_values(json: &[u8]) -> Option<Vec<Range<usize>>> {
    serde_json::from_slice::<IgnoredAny>(json).ok()?;
    let mut found = Vec::new();
    let mut at = skip(json, 0, b'{')?;
    while json.get(at) == Some(&b'"') {
        let mut names = serde_json::Deserializer::from_slice(json.get(at..)?).into_iter::<String>();
        let name = names.next()?.ok()?;
        let start = skip(json, at + names.byte_offset(), b':')?;
        let mut values =
            serde_json::Deserializer::from_slice(json.get(start..)?).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        let end = start + values.byte_offset();
        if name == "label" {
            found.push(start..end);
        }
        let Some(next) = skip(json, end, b',') else { break };
        at = next;
    }
    Some(found)
}

/// The place after `byte`, which stands at `at`, and after the white space on both of its sides.
fn skip(json: &[u8], at: usize, byte: u8) -> Option<usize> {
    let after_space = |at: usize| {
        let rest = json.get(at..)?;
        let space = rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
        Some(at + space)
    };
    let at = after_space(at)?;
    if json.get(at) == Some(&byte) { after_space(at + 1) } else { None }
}

/// [`CustomMetadata`] as JSON; all three members have to be there, and no other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderFields {
    creation_timestamp: u64,
    dataset_version: u32,
    custom_flags: u32,
}

/// The application's fields of a version 1 header as the metadata of a file.
pub(crate) fn custom_json(custom: CustomMetadata) -> String {
    let CustomMetadata { creation_timestamp, dataset_version, custom_flags } = custom;
    format!(
        "{{\"creation_timestamp\":{creation_timestamp},\"dataset_version\":{dataset_version},\
         \"custom_flags\":{custom_flags}}}"
    )
}

/// The reverse of [`custom_json`]; the order of members and white space may differ.
pub(crate) fn custom_of_json(json: &[u8]) -> Option<CustomMetadata> {
    let HeaderFields { creation_timestamp, dataset_version, custom_flags } =
        serde_json::from_slice(json).ok()?;
    Some(CustomMetadata { creation_timestamp, dataset_version, custom_flags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_label_itself_is_replaced() {
        let check = |json: &str, to: Option<i64>, expected: Option<&str>| {
            let found = relabelled(json.as_bytes(), 3, to);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{json}");
        };
        check(r#"{"key":"a","label":3}"#, Some(15), Some(r#"{"key":"a","label":15}"#));
        check(
            " { \"x\" : {\"label\":3} , \"label\" :\t3 ,\"y\":[1.50]}\n",
            Some(-1),
            Some(" { \"x\" : {\"label\":3} , \"label\" :\t-1 ,\"y\":[1.50]}\n"),
        );
        check(r#"{"l\u0061bel":3,"label":3}"#, None, Some(r#"{"l\u0061bel":null,"label":null}"#));
        check(r#"{"label":4}"#, Some(1), None);
        check(r#"{"label":3.0}"#, Some(1), None);
        check(r#"{"label":"3"}"#, Some(1), None);
        check(r#"{"label":3"#, Some(1), None);
        check(r#"[{"label":3}]"#, Some(1), None);
        check("{}", Some(1), None);
        check("", Some(1), None);
    }

    #[test]
    fn header_fields_survive_json() {
        let custom = CustomMetadata {
            creation_timestamp: u64::MAX,
            dataset_version: u32::MAX,
            custom_flags: 1,
        };
        assert_eq!(custom_of_json(custom_json(custom).as_bytes()), Some(custom));
        assert_eq!(custom_of_json(br#"{"creation_timestamp":1,"dataset_version":2}"#), None);
        assert_eq!(custom_of_json(br#"{"camera":"x"}"#), None);
    }
}
