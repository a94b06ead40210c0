//! Text: end positions in UTF-16 code units, then all values as one UTF-8 string.
//!
//! A value may start or end inside a character that takes two code units: .NET keeps the halves of
//! such a character apart in memory, and their concatenation in a file is whole again. A half has no
//! UTF-8, so it becomes U+FFFD, as it does in .NET when such text is written alone.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::codec::{MAX_COUNT, count};
use crate::cursor::Cursor;
use crate::error::FormatError;
use crate::values::Text;
use crate::values::ValuesError;

/// Set in an end position when the value is missing.
const MISSING_BIT: u32 = 1 << 31;

/// The character for a half that has no encoding.
const REPLACEMENT: &str = "\u{fffd}";

pub(super) fn decode<'a>(
    expected: usize,
    cursor: &mut Cursor<'a>,
) -> Result<Text<'a>, FormatError> {
    let offset = cursor.offset();
    let found = cursor.i32("number of texts")?;
    if usize::try_from(found) != Ok(expected) {
        let what = "number of texts";
        let expected = expected as u64;
        let found = found.into();
        return Err(FormatError::Count { what, offset, expected, found });
    }
    let ends = super::number::take::<u32>("ends of texts", expected, cursor)?;
    let (boundaries, missing) = boundaries(&ends)?;
    let offset = cursor.offset();
    let text = cursor.string("text")?;
    let units = boundaries.last().copied().unwrap_or(0);
    // Without characters beyond ASCII, code units and bytes are the same.
    if text.len() == units as usize && text.is_ascii() {
        return Ok(Text::new(boundaries, text.into(), missing));
    }
    let (offsets, text, found) = byte_offsets(text, &boundaries);
    if found != units as usize {
        let what = "UTF-16 length of the text";
        let expected = units.into();
        let found = i64::try_from(found).unwrap_or(i64::MAX);
        return Err(FormatError::Count { what, offset, expected, found });
    }
    Ok(Text::new(offsets, text, missing))
}

/// Start of the first value, then the end of each, in code units; and which values are missing,
/// empty when none is.
fn boundaries(ends: &[u32]) -> Result<(Vec<u32>, Vec<bool>), FormatError> {
    let mut boundaries = Vec::with_capacity(ends.len() + 1);
    let mut previous = 0;
    let mut any_missing = false;
    boundaries.push(previous);
    for (item, &end) in ends.iter().enumerate() {
        let is_missing = end & MISSING_BIT != 0;
        let end = end & !MISSING_BIT;
        if end < previous || (is_missing && end != previous) {
            return Err(FormatError::TextBoundary { item: item as u64, end, previous });
        }
        any_missing |= is_missing;
        previous = end;
        boundaries.push(end);
    }
    let missing = any_missing.then(|| ends.iter().map(|end| end & MISSING_BIT != 0).collect());
    Ok((boundaries, missing.unwrap_or_default()))
}

/// Turns boundaries in code units into offsets of bytes. The text comes back as it is, or with
/// replacements for characters that were cut in two. The last number is its length in code units.
fn byte_offsets<'a>(text: &'a str, boundaries: &[u32]) -> (Vec<u32>, Cow<'a, str>, usize) {
    let mut offsets = Vec::with_capacity(boundaries.len());
    let mut rebuilt = String::new();
    // Bytes of `text` that `rebuilt` has taken over already.
    let mut taken = 0;
    // Bytes by which replacements made the text longer.
    let mut grown = 0;
    let mut boundaries = boundaries.iter().map(|&boundary| boundary as usize).peekable();
    let mut units = 0;
    for (at, character) in text.char_indices() {
        while boundaries.next_if(|&boundary| boundary <= units).is_some() {
            offsets.push(at + grown);
        }
        if character.len_utf16() == 2 && boundaries.peek() == Some(&(units + 1)) {
            rebuilt.push_str(text.get(taken..at).unwrap_or_default());
            rebuilt.push_str(REPLACEMENT);
            while boundaries.next_if(|&boundary| boundary == units + 1).is_some() {
                offsets.push(rebuilt.len());
            }
            rebuilt.push_str(REPLACEMENT);
            taken = at + character.len_utf8();
            grown = rebuilt.len() - taken;
        }
        units += character.len_utf16();
    }
    offsets.extend(boundaries.map(|_| text.len() + grown));
    let offsets = offsets.into_iter().map(|at| u32::try_from(at).unwrap_or(u32::MAX)).collect();
    let text = if taken == 0 {
        Cow::Borrowed(text)
    } else {
        rebuilt.push_str(text.get(taken..).unwrap_or_default());
        Cow::Owned(rebuilt)
    };
    (offsets, text, units)
}

pub(super) fn encode(text: &Text<'_>, bytes: &mut Vec<u8>) -> Result<(), ValuesError> {
    bytes.extend_from_slice(&count("texts", text.len())?.to_le_bytes());
    let mut end = 0usize;
    let mut string_bytes = 0usize;
    for value in text.iter() {
        let value_units = value.map_or(0, utf16_len);
        string_bytes += value.map_or(0, str::len);
        end += value_units;
        let limit = MAX_COUNT;
        let too_many = ValuesError::TooMany { what: "UTF-16 code units", found: end as u64, limit };
        let end = i32::try_from(end).map_err(|_| too_many)?.unsigned_abs();
        let end = if value.is_none() { end | MISSING_BIT } else { end };
        bytes.extend_from_slice(&end.to_le_bytes());
    }
    count("bytes of text", string_bytes)?;
    super::definition::write_leb128(bytes, string_bytes as u64);
    text.iter().flatten().for_each(|value| bytes.extend_from_slice(value.as_bytes()));
    Ok(())
}

/// Length in UTF-16 code units.
fn utf16_len(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}
