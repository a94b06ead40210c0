//! Ids of nodes as text.

use std::fmt;

use serde::{Serialize, Serializer};

/// A node's id in its text form (RFC 9562).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uuid(pub(crate) [u8; 16]);

impl Uuid {
    /// Reads 32 hexadecimal digits, with or without the hyphens of the text form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        const HYPHENS: [usize; 4] = [8, 13, 18, 23];
        let is_hyphenated = text.len() == 36;
        let mut digits = Vec::with_capacity(32);
        for (at, character) in text.chars().enumerate() {
            if is_hyphenated && HYPHENS.contains(&at) {
                (character == '-').then_some(())?;
            } else {
                digits.push(character.to_digit(16)?);
            }
        }
        let pairs = digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]));
        let bytes: Vec<u8> = pairs.collect::<Result<_, _>>().ok()?;
        Some(Self(bytes.try_into().ok().filter(|_| digits.len() == 32)?))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let hyphen = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

impl Serialize for Uuid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Uuid;

    #[test]
    fn ids_are_read_with_and_without_hyphens() {
        let text = "55c14841-a7dc-11c1-74ca-262430a87aa9";
        let id = Uuid::parse(text).expect("it is an id");
        assert_eq!(id.to_string(), text);
        assert_eq!(Uuid::parse(&text.replace('-', "")), Some(id));
        assert_eq!(Uuid::parse(&text.to_uppercase()), Some(id));
        for wrong in ["", "0", &text[1..], &format!("{text}0"), &text.replacen('-', "0", 1)] {
            assert_eq!(Uuid::parse(wrong), None, "{wrong}");
        }
    }
}
