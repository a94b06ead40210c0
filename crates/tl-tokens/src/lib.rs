#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod bytes;
mod documents;
mod file;
mod format;
mod mix;
mod number;
mod open;
mod packing;
mod rows;
mod sequences;
mod source;
#[cfg(feature = "text")]
mod text;
mod windows;

pub use documents::Documents;
pub use file::{TokenFile, TokenFormat, TokenOptions};
pub use number::TokenType;
pub use open::open_all_in;
pub use rows::Piece;
pub use sequences::{DocumentRows, Fill, Long, PackedRows, Packing, Sequences};
pub use source::TokenSource;
#[cfg(feature = "text")]
#[cfg_attr(docsrs, doc(cfg(feature = "text")))]
pub use text::{
    OnBadText, TextInput, TextOptions, TokenTarget, Tokenize, TokenizeEvent, TokenizeSummary,
    Tokenizer,
};
pub use windows::{EpochOffset, Windows};
