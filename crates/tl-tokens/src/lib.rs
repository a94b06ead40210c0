#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod bytes;
mod documents;
mod ends;
mod file;
mod format;
mod index;
mod layout;
mod mix;
mod number;
mod open;
mod order;
mod packing;
mod records;
mod rows;
mod sequences;
mod source;
mod starts;
#[cfg(feature = "text")]
mod text;
mod windows;

pub use documents::Documents;
pub use file::{TokenFile, TokenOptions};
pub use layout::TokenFormat;
pub use number::TokenType;
pub use open::open_all_in;
pub use records::TokenRecords;
pub use rows::Piece;
pub use sequences::{DocumentRows, Fill, Long, PackedRows, Packing, Sequences};
pub use source::TokenSource;
#[cfg(feature = "text")]
#[cfg_attr(docsrs, doc(cfg(feature = "text")))]
pub use text::{
    OnBadText, TextInput, TextOptions, TokenTarget, Tokenize, TokenizeEvent, TokenizeSummary,
    Tokenizer, index_texts_in,
};
pub use windows::{EpochOffset, Windows};
