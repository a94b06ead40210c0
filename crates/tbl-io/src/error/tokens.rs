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
    /// The index of LitData or MDS is damaged.
    #[error("damaged index of token files: {reason}")]
    Index { reason: String },
    /// Chunks or shards whose bytes are not tokens as they are.
    #[error(
        "{codec} of whole files, which gives no access to single tokens: write the data set without"
    )]
    Compressed { codec: String },
    /// Items or columns that are not integers.
    #[error("{what} of {found}, expected integers of one type")]
    Encoding { what: &'static str, found: String },
    /// A file does not have the one column of tokens that is asked for.
    #[error("{}; the file has {}", column(name.as_deref()), listed(found))]
    NoColumn { name: Option<String>, found: Vec<String> },
    /// A number at the front of a chunk or a shard is not that of its index.
    #[error("{found} where the index says {expected}")]
    Chunk { found: u64, expected: u64 },
    /// A record does not lie within its file.
    #[error("sample {record} reaches from byte {start} to {end} of {bytes}")]
    Record { record: u64, start: u64, end: u64, bytes: u64 },
    /// A record does not have one dimension of tokens.
    #[error("sample {record} is not an array of {number} with one dimension")]
    RecordArray { record: u64, number: &'static str },
    /// A record has an element without a value.
    #[error("sample {record} has a null among its tokens")]
    RecordNull { record: u64 },
    /// An order of Megatron-LM with another number of places than samples.
    #[error("{found} places of samples, expected one more than the {count} samples of the order")]
    OrderLength { found: u64, count: u64 },
    /// A number of an order of Megatron-LM that is not that of anything.
    #[error("{value} in an order of Megatron-LM, expected less than {most}")]
    OrderNumber { value: i64, most: u64 },
    /// A sample of an order of Megatron-LM that is not as long as a window.
    #[error(
        "sample {sample} has {found} tokens, expected the {expected} of a window: the order is of \
        other files, or of another length"
    )]
    OrderSample { sample: u64, found: u64, expected: u64 },
    /// An order of Megatron-LM is for windows of one file with documents.
    #[error("an order of Megatron-LM goes with windows of one file and its .idx, {found}")]
    OrderOf { found: &'static str },
    /// Documents are records, which no token ends.
    #[error("each sample is a document: end tokens are those of files without documents")]
    Ends,
    /// A NumPy file is damaged, or has no numbers.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// An array is not a sequence of tokens.
    #[error("array of {found}, expected {} of little-endian integers", dimensions(*columns))]
    Array { found: String, columns: usize },
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
    #[error(
        "no documents: expected a Megatron-LM index (.idx) next to the tokens, or the end token"
    )]
    NoDocuments,
    /// A number of a document or a token past the end.
    #[error("{what} {number} does not exist, expected one of {count}")]
    OutOfRange { what: &'static str, number: u64, count: u64 },
    /// A file is not a tokenizer, or one of another version.
    #[error("not a tokenizer of Hugging Face ({reason}), expected a tokenizer.json")]
    Tokenizer { reason: String },
    /// A tokenizer does not have a token.
    #[error("no token `{}`, expected a name or a number", Escaped(name.as_bytes()))]
    NoToken { name: String },
    /// A token is called by its name, and no tokenizer is given.
    #[error("end token `{}`: names need a tokenizer, pass its number", Escaped(name.as_bytes()))]
    NamedEnd { name: String },
    /// A text has no tokens by the tokenizer, or more than are counted.
    #[error("the text cannot be tokenized: {reason}")]
    Encode { reason: String },
    /// Texts without a tokenizer.
    #[error(
        "a file of texts: pass its tokenizer (`--tokenizer`, in Python `tokenizer=`), or write its \
        tokens with `tl tokenize`"
    )]
    Texts,
    /// Sequences of texts that take all tokens to be found.
    #[error(
        "tokens of texts are made when they are read, as one document a row that is not split: for \
         other rows write them first, with `tl tokenize`"
    )]
    TextRows,
    /// Texts that cannot be read by position.
    #[error(
        "a compressed file of texts without a seek table: unpack it, or write its tokens with \
        `tl tokenize`"
    )]
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
            | Self::Ends
            | Self::OrderOf { .. }
            | Self::OtherType { .. }
            | Self::NoColumn { .. }
            | Self::NoTensor { .. }
            | Self::NoToken { .. }
            | Self::NamedEnd { .. }
            | Self::Texts
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
            | Self::Index { .. }
            | Self::Compressed { .. }
            | Self::Encoding { .. }
            | Self::Chunk { .. }
            | Self::Record { .. }
            | Self::RecordArray { .. }
            | Self::RecordNull { .. }
            | Self::OrderLength { .. }
            | Self::OrderNumber { .. }
            | Self::OrderSample { .. }
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

fn column(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("no column `{}` of tokens", Escaped(name.as_bytes())),
        None => "expected exactly one column of tokens, otherwise pass its name".to_owned(),
    }
}

fn dimensions(columns: usize) -> String {
    match columns {
        1 => "one dimension".to_owned(),
        columns => format!("rows of {columns}"),
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
