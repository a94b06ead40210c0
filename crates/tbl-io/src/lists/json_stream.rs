//! One pass over a JSON file of any size: its elements one at a time, each in memory.

use std::fmt::Display;

use serde::Deserialize;

use crate::error::ReadError;
use crate::list_error::{ListDefect, ListPlace};
use crate::listed::Span;
use crate::source::Source;

/// Bytes that are read at once.
const BLOCK: u64 = 1 << 20;

/// The most bytes of one element: the annotations of a single object or image.
const MAX_ELEMENT: usize = 64 << 20;

/// The position in a JSON file.
pub(super) struct JsonStream<'a> {
    source: &'a Source,
    /// Bytes of the file from `start` on.
    block: Vec<u8>,
    start: u64,
    /// The position in `block`.
    at: usize,
    /// The last element.
    element: Vec<u8>,
}

impl<'a> JsonStream<'a> {
    pub(super) fn new(source: &'a Source) -> Self {
        Self { source, block: Vec::new(), start: 0, at: 0, element: Vec::new() }
    }

    pub(super) fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    /// The rest of the block, or the next one. Empty at the end of the file.
    fn rest(&mut self) -> Result<&[u8], ReadError> {
        if self.at == self.block.len() {
            self.start += self.at as u64;
            self.at = 0;
            let len = BLOCK.min(self.source.len() - self.start);
            self.source.read_range_into(self.start, len, &mut self.block)?;
        }
        Ok(&self.block[self.at..])
    }

    /// The next byte that is not white space, without passing over it.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            let rest = self.rest()?;
            let Some(&first) = rest.first() else { return Ok(None) };
            if !matches!(first, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(Some(first));
            }
            self.at += 1;
        }
    }

    /// Passes over white space and `byte`.
    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), ReadError> {
        if self.peek()? == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.unexpected(expected))
    }

    /// Passes over a comma, and returns true, or over `end`. `is_first` is whether an element may
    /// follow without a comma.
    pub(super) fn has_next(&mut self, is_first: bool, end: u8) -> Result<bool, ReadError> {
        match self.peek()? {
            Some(found) if found == end => {
                self.at += 1;
                Ok(false)
            }
            Some(_) if is_first => Ok(true),
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            _ => Err(self.unexpected("a comma or the end of a list")),
        }
    }

    /// Reads the next value, as far as `T` describes it. The rest of it is checked to be JSON.
    pub(super) fn value<T: for<'de> Deserialize<'de>>(
        &mut self,
        expected: &'static str,
    ) -> Result<(T, Span), ReadError> {
        self.peek()?;
        let offset = self.offset();
        self.take_value()?;
        let fault = |reason: &dyn Display| {
            let reason = reason.to_string();
            let reason = reason.split(" at line ").next().unwrap_or(&reason);
            let reason = reason.split(", expected ").next().unwrap_or(reason).to_owned();
            ListDefect::Json { reason, expected }
                .at(self.source.location(), ListPlace::offset(offset))
        };
        let text = str::from_utf8(&self.element).map_err(|_| fault(&"not UTF-8"))?;
        let value = serde_json::from_str(text).map_err(|error| fault(&error))?;
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        Ok((value, Span { offset, len }))
    }

    /// Takes the bytes of a value: up to the end of the bracket or string that opens it, or to the
    /// next separator.
    fn take_value(&mut self) -> Result<(), ReadError> {
        self.element.clear();
        let mut state = Scan::default();
        loop {
            self.rest()?;
            let rest = &self.block[self.at..];
            let end = if rest.is_empty() { Some(0) } else { state.end(rest) };
            let taken = end.unwrap_or(rest.len());
            if self.element.len() + taken > MAX_ELEMENT {
                return Err(ReadError::Limit {
                    location: self.source.location().clone(),
                    what: "bytes of one element of a JSON file",
                    limit: MAX_ELEMENT as u64,
                    need: (self.element.len() + taken) as u64,
                });
            }
            self.element.extend_from_slice(&rest[..taken]);
            self.at += taken;
            if end.is_some() {
                return Ok(());
            }
        }
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> ReadError {
        let found = self
            .block
            .get(self.at)
            .map_or("the end of the file".to_owned(), |byte| format!("`{}`", byte.escape_ascii()));
        let reason = format!("found {found}");
        let place = ListPlace::offset(self.offset());
        ListDefect::Json { reason, expected }.at(self.source.location(), place)
    }
}

/// The state of a scan for the end of a value.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Scan {
    /// The end of the value in `text`; `None` if text follows it.
    fn end(&mut self, text: &[u8]) -> Option<usize> {
        for (at, &byte) in text.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' if self.depth == 1 => return Some(at + 1),
                b']' | b'}' if self.depth > 0 => self.depth -= 1,
                b']' | b'}' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => {
                    return Some(at);
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn elements(text: &str) -> Result<Vec<(Value, Span)>, ReadError> {
        let source = Source::from_bytes("a.json", text.as_bytes().to_vec());
        let mut stream = JsonStream::new(&source);
        stream.expect(b'[', "a list")?;
        let mut found = Vec::new();
        while stream.has_next(found.is_empty(), b']')? {
            found.push(stream.value("a value")?);
        }
        assert_eq!(stream.peek()?, None);
        Ok(found)
    }

    #[test]
    fn elements_are_where_they_are_said_to_be() {
        let long = format!("\"{}\"", "x\\\"".repeat(1 << 20));
        let values =
            ["1", "\"a\\\\\\\"]\"", "{\"a\": [1, {\"b\": \"}\"}]}", "[]", "null", &long, "-2.5"];
        let text = format!(" [ {} ] \n", values.join(" ,\n"));
        let found = elements(&text).unwrap();
        assert_eq!(found.len(), values.len());
        for ((value, span), expected) in found.into_iter().zip(values) {
            let start = usize::try_from(span.offset).unwrap();
            assert_eq!(&text[start..start + span.len as usize], expected);
            assert_eq!(value, serde_json::from_str::<Value>(expected).unwrap());
        }
        assert!(elements("[]").unwrap().is_empty());
    }

    #[test]
    fn damage_names_the_byte() {
        for (text, offset, reason) in [
            ("{}", 0, "found `{`"),
            ("[1", 2, "found the end of the file"),
            ("[1 2]", 3, "found `2`"),
            ("[1,]", 3, "EOF while parsing a value"),
            ("[{\"a\": [1}, 2]", 1, "expected `,` or `]`"),
            ("[1, {\"a\" 1}]", 4, "expected `:`"),
            ("[tru]", 1, "EOF while parsing a value"),
            ("[\"a", 1, "EOF while parsing a string"),
            ("", 0, "found the end of the file"),
        ] {
            let ReadError::List { place, source, .. } = elements(text).unwrap_err() else {
                panic!("{text}");
            };
            assert_eq!(place.offset, Some(offset), "{text}");
            assert!(source.to_string().starts_with(reason), "{text}: {source}");
        }
    }

    #[test]
    fn one_element_is_bounded() {
        let text = format!("[\"{}\"]", "x".repeat(MAX_ELEMENT));
        let error = elements(&text).unwrap_err();
        assert!(matches!(error, ReadError::Limit { .. }), "{error}");
    }
}
