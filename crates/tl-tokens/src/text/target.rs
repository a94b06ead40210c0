//! The formats that are written.

use crate::number::TokenType;

/// The formats that tokens of texts are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenTarget {
    /// The `.bin` of Megatron-LM, and the `.idx` with the documents next to it.
    #[default]
    Megatron,
    /// Tokens alone, without a header.
    Raw,
}

impl TokenTarget {
    /// The type of tokens of a vocabulary: that of Megatron-LM, or the smallest unsigned one.
    #[must_use]
    pub const fn number(self, vocabulary: u64) -> TokenType {
        /// The vocabularies that Megatron-LM stores in 16 bits are smaller.
        const MEGATRON_U16: u64 = 65_500;
        match self {
            Self::Megatron if vocabulary < MEGATRON_U16 => TokenType::U16,
            Self::Megatron => TokenType::I32,
            Self::Raw if vocabulary <= 1 << 16 => TokenType::U16,
            Self::Raw => TokenType::U32,
        }
    }
}
