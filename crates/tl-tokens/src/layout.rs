//! The format of a file, and the place of its tokens.

use std::fmt;

use tbl_io::{ReadError, Source, TokensDefect};

use crate::number::TokenType;

/// The format of a file of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenFormat {
    /// Tokens and nothing else, as nanoGPT writes them.
    Raw,
    /// 256 numbers of 32 bits before the tokens.
    LlmC,
    /// The `.bin` of Megatron-LM, with the `.idx` next to it.
    Megatron,
    /// An array of NumPy with one dimension.
    Npy,
    /// A tensor of a safetensors file.
    Safetensors,
    /// A chunk of LitData, listed in an `index.json`.
    LitData,
    /// A column of a shard of MDS, listed in an `index.json`.
    Mds,
    /// Texts, whose tokens are made when they are read.
    Text,
    /// A column of lists in a Parquet file.
    Parquet,
    /// A column of lists in an Arrow file or stream.
    Arrow,
}

impl TokenFormat {
    /// Its name, such as `megatron`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw tokens",
            Self::LlmC => "llm.c",
            Self::Megatron => "megatron",
            Self::Npy => "npy",
            Self::Safetensors => "safetensors",
            Self::LitData => "litdata",
            Self::Mds => "mds",
            Self::Text => "texts",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }
}

impl fmt::Display for TokenFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The place of the tokens in a file, as its header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) format: TokenFormat,
    pub(crate) number: TokenType,
    pub(crate) offset: u64,
    /// The bytes of all tokens.
    pub(crate) bytes: u64,
}

/// The error of a defect at `offset` of a file.
pub(crate) fn defect(source: &Source, offset: u64, defect: TokensDefect) -> ReadError {
    ReadError::Tokens { location: source.location().clone(), offset, source: defect }
}
