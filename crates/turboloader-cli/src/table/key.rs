//! Keys of encrypted segments, from files: a command line can be seen by every user of a machine.

use std::path::Path;

use tbf_format::Key;
use tbl_io::Source;

use super::failure::TableFailure;
use crate::failure::Failure;

const KEY_BYTES: usize = 32;

/// Reads a key: 32 bytes, or 64 hexadecimal digits and the end of a line.
pub(crate) fn read_key(path: Option<&Path>) -> Result<Option<Key>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let source = Source::open(path)?;
    let no_key = TableFailure::KeyFile { path: path.to_owned(), bytes: source.len() };
    // Digits and a line end of two bytes.
    if source.len() > 2 * KEY_BYTES as u64 + 2 {
        return Err(no_key.into());
    }
    let mut bytes = Vec::new();
    source.read_range_into(0, source.len(), &mut bytes)?;
    parse_key(&bytes).map(|key| Some(Key::new(key))).ok_or_else(|| no_key.into())
}

fn parse_key(bytes: &[u8]) -> Option<[u8; KEY_BYTES]> {
    if let Ok(key) = bytes.try_into() {
        return Some(key);
    }
    let digits = bytes.trim_ascii_end();
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let mut key = [0; KEY_BYTES];
    for (place, digits) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        *place = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::parse_key;

    #[test]
    fn a_key_is_bytes_or_digits() {
        let key = std::array::from_fn(|i| 0xf0 + u8::try_from(i % 16).expect("it is below 16"));
        let digits: String = key.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(parse_key(&key), Some(key));
        for end in ["", "\n", "\r\n"] {
            assert_eq!(parse_key(format!("{digits}{end}").as_bytes()), Some(key));
        }
        assert_eq!(parse_key(&digits.as_bytes()[1..]), None);
        assert_eq!(parse_key(digits.replace('F', "G").as_bytes()), None);
        assert_eq!(parse_key(&[7; 31]), None);
        assert_eq!(parse_key(b""), None);
    }
}
