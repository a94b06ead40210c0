//! The text of a line of JSON Lines.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use tbl_io::{Escaped, Location, ReadError, TokensDefect};

use super::{TextOptions, bad_text, too_long};

const EXPECTED: &str = "a string";

/// A line of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) location: &'a Location,
    /// From 1; unknown where the file has lines of spaces.
    pub(crate) number: Option<u64>,
    /// The offset of the line in the plain file.
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Line<'a> {
    /// The string of the line's object; `None` for a line of spaces.
    ///
    /// # Errors
    /// [`ReadError::List`] with line and byte.
    pub(crate) fn text(&self, options: &TextOptions) -> Result<Option<Cow<'a, str>>, ReadError> {
        let field = &*options.field;
        let most = options.document_bytes;
        if self.bytes.len() as u64 > most {
            return Err(too_long(self.location, self.number, self.offset, most));
        }
        // Editors of Windows put a byte order mark in front.
        let bytes = match self.offset {
            0 => self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.bytes),
            _ => self.bytes,
        };
        if bytes.trim_ascii().is_empty() {
            return Ok(None);
        }
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let mut keys = Vec::new();
        let found = Object { field, keys: &mut keys }.deserialize(&mut deserializer);
        let found = found.and_then(|found| deserializer.end().map(|()| found));
        let skipped = (self.bytes.len() - bytes.len()) as u64;
        let found = found.map_err(|error| {
            let offset = self.offset + skipped + (error.column() as u64).saturating_sub(1);
            let text = error.to_string();
            let reason = text.split(" at line ").next().unwrap_or(&text);
            let (reason, expected) = match reason.rsplit_once(", expected ") {
                Some((reason, "a string")) => (reason.to_owned(), EXPECTED),
                Some((reason, _)) if error.is_data() => (reason.to_owned(), "an object"),
                _ => (format!("not JSON ({reason})"), "an object"),
            };
            let column = (expected == EXPECTED).then_some(field);
            bad_text(self.location, self.number, column, offset, reason, expected)
        })?;
        found.map(Some).ok_or_else(|| {
            let keys: Vec<String> =
                keys.iter().map(|key| Escaped(key.as_bytes()).to_string()).collect();
            let keys = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
            let reason = format!("no such key, the object has {keys}");
            bad_text(self.location, self.number, Some(field), self.offset, reason, EXPECTED)
        })
    }

    /// The error of a text that cannot be tokenized.
    pub(crate) fn defect(&self, defect: &TokensDefect) -> ReadError {
        let reason = defect.to_string();
        bad_text(self.location, self.number, None, self.offset, reason, "another text")
    }
}

/// The most keys that a message names.
const MOST_KEYS: usize = 8;

/// An object, of which one member counts; of equal names the last one, as in Python.
struct Object<'f, 'de> {
    field: &'f str,
    /// The first other keys.
    keys: &'f mut Vec<Cow<'de, str>>,
}

impl<'de> DeserializeSeed<'de> for Object<'_, 'de> {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, 'de> {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(Text(name)) = map.next_key_seed(TextSeed)? {
            if name == self.field {
                let Text(text) = map.next_value_seed(TextSeed)?;
                found = Some(text);
            } else {
                if found.is_none() && self.keys.len() < MOST_KEYS {
                    self.keys.push(name);
                }
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// A string, borrowed where it has no escapes.
struct Text<'de>(Cow<'de, str>);

struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Text<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text<'de>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &[u8], number: u64) -> Result<Option<String>, String> {
        let location = Location::new("a.jsonl");
        let offset = if number == 1 { 0 } else { 100 };
        let line = Line { location: &location, number: Some(number), offset, bytes: line };
        let text = line.text(&TextOptions::default());
        text.map(|text| text.map(Cow::into_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_text_is_the_string_of_the_key() {
        let check = |line: &str, expected: &str| {
            assert_eq!(text(line.as_bytes(), 1), Ok(Some(expected.to_owned())), "{line}");
        };
        check(r#"{"text": "a"}"#, "a");
        check(" {\"x\": [1, {\"text\": 2}], \"t\\u0065xt\": \"a\\n\\u00e9\"}\r", "a\né");
        check(r#"{"text": "a", "text": ""}"#, "");
        check("\u{feff}{\"text\": \"\u{1F600}\"}", "\u{1F600}");
        assert_eq!(text(b" \r", 3), Ok(None));
        assert_eq!(text(b"", 3), Ok(None));
    }

    #[test]
    fn other_lines_are_errors_at_their_byte() {
        let check = |line: &[u8], expected: &str| {
            let error = text(line, 7).unwrap_err();
            assert_eq!(error, format!("a.jsonl: {expected}"), "{:?}", str::from_utf8(line));
        };
        check(
            b"{\"a\": 1}",
            "at byte 100: line 7, column `text`: no such key, the object has a, expected a string",
        );
        check(
            b"{\"text\": 31}",
            "at byte 110: line 7, column `text`: invalid type: integer `31`, expected a string",
        );
        check(b"[1]", "at byte 100: line 7: invalid type: sequence, expected an object");
        check(
            b"{\"text\": \"a\",}",
            "at byte 113: line 7: not JSON (trailing comma), expected an object",
        );
        check(
            b"{\"text\": \"a\"} x",
            "at byte 114: line 7: not JSON (trailing characters), expected an object",
        );
        let error = text(b"{\"text\": \"\xff\"}", 7).unwrap_err();
        assert!(error.contains("at byte 11") && error.contains("unicode"), "{error}");
    }
}
