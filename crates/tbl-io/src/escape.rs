//! Names as one printable line.
//!
//! Member and file names are bytes from outside: they may hold line breaks, terminal control
//! sequences or no valid UTF-8 at all.

use std::fmt;

/// Displays bytes as text on one line: control characters, backslashes and bytes that are not
/// UTF-8 appear as `\xNN`.
///
/// ```
/// assert_eq!(tbl_io::Escaped(b"n01440764/a\n\xff.jpg").to_string(), r"n01440764/a\x0a\xff.jpg");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if character == '\\' || character.is_control() || is_line_or_direction(character) {
                    let mut utf8 = [0; 4];
                    for byte in character.encode_utf8(&mut utf8).bytes() {
                        write!(f, "\\x{byte:02x}")?;
                    }
                } else {
                    fmt::Write::write_char(f, character)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Line separators and the bidirectional overrides that can make a printed name lie.
fn is_line_or_direction(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    #[test]
    fn printable_text_is_unchanged() {
        assert_eq!(Escaped("grün/日本.jpg".as_bytes()).to_string(), "grün/日本.jpg");
    }

    #[test]
    fn control_and_foreign_bytes_are_escaped() {
        let name = b"\x1b[31m\\\xc2\x85\xff\xe2\x80\xae";
        assert_eq!(Escaped(name).to_string(), r"\x1b[31m\x5c\xc2\x85\xff\xe2\x80\xae");
    }
}
