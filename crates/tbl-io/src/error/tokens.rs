//! Defects of token files, which errors carry.

use crate::escape::Escaped;
use crate::kind::ErrorKind;
use crate::npy::NpyError;

/// A defect of a file of tokens, or a request that the file does not meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum TokensDefect {
    /// The file has no header, and the caller gave no type.
    #[error("no known header: for raw tokens pass their type, such as u16")]
    NoType,
    /// The type that the caller gave is not that of the file.
    #[error("tokens are {stored}, not {wanted}")]
    OtherType { stored: &'static str, wanted: &'static str },
    /// The tokens end within a number.
    #[error("{bytes} bytes are not a whole number of {number} tokens")]
    Partial { bytes: u64, number: &'static str },
    /// The file is shorter or longer than its header says.
    #[error("{what} need {need} bytes, the file has {have}")]
    Length { what: &'static str, need: u64, have: u64 },
    /// The file is of another kind.
    #[error("not {what}: expected {expected}")]
    Kind { what: &'static str, expected: &'static str },
    /// A version of a format that is not read.
    #[error("version {found}, expected {expected}")]
    Version { found: u64, expected: u64 },
    /// The type code of a Megatron index does not stand for integers.
    #[error("type code {code}, expected that of integers: 1 to 5 or 8")]
    TypeCode { code: u8 },
    /// A NumPy file is damaged, or has no numbers.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// An array is not a sequence of tokens.
    #[error("array of {found}, expected one dimension of little-endian integers")]
    Array { found: String },
    /// The header of a safetensors file is damaged.
    #[error("damaged safetensors header: {reason}")]
    Header { reason: String },
    /// The file does not have the one tensor of tokens that is asked for.
    #[error("{}; the file has {}", wanted(name.as_deref()), listed(found))]
    NoTensor { name: Option<String>, found: Vec<String> },
    /// A document does not lie within the tokens.
    #[error(
        "document {document} has {length} tokens from byte {start} on, the tokens have {bytes} bytes"
    )]
    Document { document: u64, start: i64, length: i32, bytes: u64 },
    /// A document is longer than a row, and may not be.
    #[error("document {document} has {length} tokens, expected at most the {most} of a row")]
    Long { document: u64, length: u32, most: u32 },
    /// The file has no index of documents.
    #[error("no documents: expected a Megatron-LM index (.idx) next to the tokens")]
    NoDocuments,
    /// A number of a document or a token past the end.
    #[error("{what} {number} does not exist, expected one of {count}")]
    OutOfRange { what: &'static str, number: u64, count: u64 },
    /// A file is not a tokenizer, or one of another version.
    #[error("not a tokenizer of Hugging Face ({reason}), expected a tokenizer.json")]
    Tokenizer { reason: String },
    /// A text has no tokens by the tokenizer, or more than are counted.
    #[error("the text cannot be tokenized: {reason}")]
    Encode { reason: String },
    /// Sequences of texts that take all tokens to be found.
    #[error(
        "tokens of texts are made when they are read, as one document a row that is not split: for \
         other rows write them first, with `tl tokenize`"
    )]
    TextRows,
    /// Lines that cannot be read by position.
    #[error("a compressed file of texts: unpack it, or write its tokens with `tl tokenize`")]
    CompressedText,
    /// A token does not fit the type that is asked for.
    #[error("token {value} does not fit {wanted}")]
    Value { value: String, wanted: &'static str },
}

impl TokensDefect {
    /// The party at fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoType
            | Self::NoDocuments
            | Self::OtherType { .. }
            | Self::NoTensor { .. }
            | Self::TextRows
            | Self::CompressedText => ErrorKind::Setting,
            Self::OutOfRange { .. } => ErrorKind::NotFound,
            Self::Partial { .. }
            | Self::Length { .. }
            | Self::Kind { .. }
            | Self::Version { .. }
            | Self::TypeCode { .. }
            | Self::Npy(_)
            | Self::Array { .. }
            | Self::Header { .. }
            | Self::Document { .. }
            | Self::Long { .. }
            | Self::Tokenizer { .. }
            | Self::Encode { .. }
            | Self::Value { .. } => ErrorKind::Data,
        }
    }
}

fn wanted(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("no tensor `{}` of tokens", Escaped(name.as_bytes())),
        None => "expected exactly one tensor of tokens, otherwise pass its name".to_owned(),
    }
}

/// The most names that a message lists.
const MOST_NAMES: usize = 8;

fn listed(found: &[String]) -> String {
    if found.is_empty() {
        return "none".to_owned();
    }
    let shown = found.iter().take(MOST_NAMES);
    let names: Vec<String> = shown.map(|name| Escaped(name.as_bytes()).to_string()).collect();
    let more = if found.len() > MOST_NAMES { ", .." } else { "" };
    format!("{}{more}", names.join(", "))
}
