//! Chunks of LitData that `TokensLoader` wrote: the number of items, the first byte of each item and
//! the end of the last, 32 bits each, then the tokens of all items.

use serde::Deserialize;
use tbl_io::{ReadError, Source, TokensDefect};

use super::check_len;
use crate::documents::items::{Items, NUMBER_BYTES, offset_at};
use crate::file::TokenFile;
use crate::layout::{Layout, TokenFormat, defect};
use crate::number::TokenType;

/// A chunk in `index.json`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) filename: String,
    /// The number of items.
    chunk_size: u64,
    /// The number of tokens; other loaders have none.
    dim: Option<u64>,
}

/// The settings of all chunks.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Config {
    data_format: Vec<String>,
    compression: Option<String>,
    encryption: Option<serde_json::Value>,
}

impl Config {
    /// The type of the tokens.
    pub(crate) fn number(&self, index: &Source) -> Result<TokenType, ReadError> {
        if let Some(codec) = &self.compression {
            let codec = codec.clone();
            return Err(defect(index, 0, TokensDefect::Compressed { codec }));
        }
        if self.encryption.is_some() {
            let codec = "encryption".to_owned();
            return Err(defect(index, 0, TokensDefect::Compressed { codec }));
        }
        let number = match &self.data_format[..] {
            [format] => match format.split_once(':') {
                Some(("no_header_tensor", code)) => code.parse().ok().and_then(of_torch),
                Some(("no_header_numpy", code)) => code.parse().ok().and_then(of_numpy),
                _ => None,
            },
            _ => None,
        };
        number.ok_or_else(|| {
            let found = self.data_format.join(", ");
            defect(index, 0, TokensDefect::Encoding { what: "items", found })
        })
    }
}

/// Opens a chunk whose tokens are of this type.
pub(crate) fn open(
    chunk: &Chunk,
    number: TokenType,
    source: Source,
) -> Result<TokenFile, ReadError> {
    let Some(tokens) = chunk.dim else {
        let found = "no number of tokens".to_owned();
        return Err(defect(&source, 0, TokensDefect::Encoding { what: "items", found }));
    };
    let items = chunk.chunk_size;
    let bytes = tokens.checked_mul(number.bytes() as u64);
    // The places of items have 32 bits.
    let front = u32::try_from(items).ok().map(|items| offset_at(u64::from(items) + 1));
    let need = front.zip(bytes).and_then(|(front, bytes)| front.checked_add(bytes));
    check_len(&source, "numbers and tokens of a chunk", need)?;
    let offset = front.unwrap_or_default();
    let place_at = |at: u64| -> Result<u64, ReadError> {
        let mut place = [0; 4];
        source.read_exact_at(at, &mut place)?;
        Ok(u32::from_le_bytes(place).into())
    };
    for (at, expected) in
        [(0, items), (NUMBER_BYTES, offset), (offset - NUMBER_BYTES, source.len())]
    {
        let found = place_at(at)?;
        if found != expected {
            return Err(defect(&source, at, TokensDefect::Chunk { found, expected }));
        }
    }
    let layout =
        Layout { format: TokenFormat::LitData, number, offset, bytes: bytes.unwrap_or_default() };
    let documents = Items::new(source.clone(), items, number.bytes() as u64);
    TokenFile::new(source, layout, Some(documents.into()))
}

/// The type of torch with this code of LitData.
fn of_torch(code: u8) -> Option<TokenType> {
    Some(match code {
        11 => TokenType::U8,
        12 => TokenType::I8,
        13 | 14 => TokenType::I16,
        15 | 16 => TokenType::I32,
        17 | 18 => TokenType::I64,
        20 => TokenType::U16,
        _ => return None,
    })
}

/// The type of NumPy with this code of LitData.
fn of_numpy(code: u8) -> Option<TokenType> {
    Some(match code {
        0 => TokenType::I8,
        1 => TokenType::I16,
        2 => TokenType::I32,
        3 => TokenType::I64,
        4 => TokenType::U8,
        5 => TokenType::U16,
        6 => TokenType::U32,
        7 => TokenType::U64,
        _ => return None,
    })
}
