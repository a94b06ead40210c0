//! The types of tokens, and their conversion.

use crate::bytes::convert;

/// The type of the tokens in a file or a batch: integers, little-endian in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TokenType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
}

impl TokenType {
    /// All types.
    pub const ALL: [Self; 8] =
        [Self::U8, Self::I8, Self::U16, Self::I16, Self::U32, Self::I32, Self::U64, Self::I64];

    /// Bytes of one token.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 => 4,
            Self::U64 | Self::I64 => 8,
        }
    }

    /// Its name, such as `u16`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
        }
    }

    /// The type of this name: `u16`, or `uint16` as NumPy has it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let long = |kind: Self| match kind.name().split_at(1) {
            ("u", bits) => format!("uint{bits}"),
            (_, bits) => format!("int{bits}"),
        };
        Self::ALL.into_iter().find(|kind| kind.name() == name || long(*kind) == name)
    }

    /// Converts tokens of this type, little-endian in `stored`, to `wanted` in the machine's byte
    /// order in `out`.
    ///
    /// # Errors
    /// The place of the first token that `wanted` cannot hold, and its value. `out` is then
    /// unspecified.
    ///
    /// # Panics
    /// If the two have different numbers of tokens.
    pub fn convert(self, stored: &[u8], wanted: Self, out: &mut [u8]) -> Result<(), (usize, i128)> {
        let count = stored.len() / self.bytes();
        assert_eq!(stored.len(), count * self.bytes(), "whole tokens of {}", self.name());
        assert_eq!(out.len(), count * wanted.bytes(), "{count} tokens of {}", wanted.name());
        convert(self, stored, wanted, out)
    }
}
