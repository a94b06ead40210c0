//! Byte strings as text: how names that are not UTF-8, or not printable, are shown.

use std::borrow::Cow;
use std::fmt::{self, Write};

use serde::{Serialize, Serializer};
use tbl_io::Escaped;

/// The longest error message, in characters; longer ones lose their middle.
const MAX_MESSAGE_CHARS: usize = 400;

/// `bytes` as UTF-8 with every byte that is not part of it as `\xNN`, and nothing else changed:
/// the form names have in JSON.
pub(crate) fn json_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        push_hex(&mut text, chunk.invalid());
    }
    Cow::Owned(text)
}

/// `bytes` as one field of a table: [`Escaped`], without its cost for plain names.
pub(crate) fn printable(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.iter().all(|&byte| matches!(byte, b' '..=b'~') && byte != b'\\') {
        String::from_utf8_lossy(bytes)
    } else {
        Cow::Owned(Escaped(bytes).to_string())
    }
}

/// `message` as one printable line of at most [`MAX_MESSAGE_CHARS`] characters.
pub(crate) fn one_line(message: &dyn fmt::Display) -> String {
    let message = message.to_string();
    let mut line = String::with_capacity(message.len());
    for character in message.chars() {
        match character {
            '"' | '\'' | '\\' => line.push(character),
            _ => line.extend(character.escape_debug()),
        }
    }
    let length = line.chars().count();
    if length <= MAX_MESSAGE_CHARS {
        return line;
    }
    // Both ends matter: paths come first, numbers and causes last.
    let kept = (MAX_MESSAGE_CHARS - " ... ".len()) / 2;
    let mut short: String = line.chars().take(kept).collect();
    short.push_str(" ... ");
    short.extend(line.chars().skip(length - kept));
    short
}

/// The name of a sample: [`printable`] as text, [`json_text`] in JSON.
#[derive(Clone, Debug)]
pub(crate) struct Key(pub(crate) Vec<u8>);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.0))
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&json_text(&self.0))
    }
}

/// A SHA-256 as 64 lower-case digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hex(pub(crate) [u8; 32]);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "\\x{byte:02x}").expect("writing to a string cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_MESSAGE_CHARS, json_text, one_line, printable};

    #[test]
    fn json_text_changes_only_bytes_that_are_not_utf8() {
        assert_eq!(json_text(b"plain.jpg"), "plain.jpg");
        assert_eq!(json_text("h\u{e9}\t\\x.jpg".as_bytes()), "h\u{e9}\t\\x.jpg");
        assert_eq!(json_text(b"a\xff\xc3.jpg"), "a\\xff\\xc3.jpg");
        assert_eq!(json_text(b"\xed\xa0\x80"), "\\xed\\xa0\\x80");
    }

    #[test]
    fn a_table_field_is_escaped_whichever_way_it_takes() {
        assert_eq!(printable(b"it's \"plain\""), "it's \"plain\"");
        assert_eq!(printable(b"a\tb\x1b[31m"), "a\\x09b\\x1b[31m");
        assert_eq!(printable(b"a\\tb"), "a\\x5ctb");
    }

    #[test]
    fn a_message_is_one_line_of_bounded_length() {
        assert_eq!(one_line(&"one\ntwo"), "one\\ntwo");
        let long = one_line(&format!("start{}end", "x".repeat(5000)));
        assert!(long.chars().count() <= MAX_MESSAGE_CHARS);
        assert!(long.starts_with("startx") && long.ends_with("xend") && long.contains(" ... "));
    }
}
