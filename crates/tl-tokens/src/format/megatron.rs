//! Megatron-LM's indexed data sets: tokens in `.bin`, the lengths and places of documents in `.idx`.
//!
//! The index is a header, the length of each document (32 bits), its first byte in the `.bin` (64
//! bits), and the numbers of the first documents of larger ones, which are not needed here. Data sets
//! of several modalities have a byte more for each document.

use tbl_io::{ReadError, Source, TokensDefect};

use super::FRONT_BYTES;
use crate::documents::Documents;
use crate::documents::megatron::{Index, LENGTH_BYTES, POINTER_BYTES};
use crate::layout::{Layout, TokenFormat, defect};
use crate::number::TokenType;

const MAGIC: &[u8; 9] = b"MMIDIDX\0\0";
const VERSION: u64 = 1;
/// Magic, version, type, and the numbers of documents and of larger ones.
pub(crate) const HEADER_BYTES: usize = 9 + 8 + 1 + 8 + 8;

pub(super) fn is(front: &[u8; FRONT_BYTES]) -> bool {
    front.starts_with(MAGIC)
}

/// The place of the tokens in `tokens`, and the documents of `index`.
pub(crate) fn open(tokens: &Source, index: &Source) -> Result<(Layout, Documents), ReadError> {
    let need = HEADER_BYTES as u64;
    let length = |need, have: u64| {
        let what = "header, lengths and places of documents";
        defect(index, have.min(need), TokensDefect::Length { what, need, have })
    };
    if index.len() < need {
        return Err(length(need, index.len()));
    }
    let mut header = [0; HEADER_BYTES];
    index.read_exact_at(0, &mut header)?;
    if !header.starts_with(MAGIC) {
        let what = "an index of Megatron-LM";
        return Err(defect(index, 0, TokensDefect::Kind { what, expected: "MMIDIDX" }));
    }
    let number_at = |at: usize| {
        let bytes = header[at..at + 8].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    };
    let found = number_at(9);
    if found != VERSION {
        return Err(defect(index, 9, TokensDefect::Version { found, expected: VERSION }));
    }
    let number = number(header[17])
        .ok_or_else(|| defect(index, 17, TokensDefect::TypeCode { code: header[17] }))?;
    let [documents, groups] = [number_at(18), number_at(26)];
    let all = |each: u64, count: u64| each.checked_mul(count);
    let body = all(LENGTH_BYTES + POINTER_BYTES, documents)
        .and_then(|bytes| bytes.checked_add(all(8, groups)?));
    let need = body.and_then(|body| body.checked_add(need));
    let with_modes = need.and_then(|need| need.checked_add(documents));
    let have = index.len();
    if need != Some(have) && with_modes != Some(have) {
        return Err(length(need.unwrap_or(u64::MAX), have));
    }
    let item = number.bytes() as u64;
    let bytes = tokens.len();
    let offset = HEADER_BYTES as u64;
    let index = Index::new(index.clone(), offset, documents, item, bytes)?;
    let layout = Layout { format: TokenFormat::Megatron, number, offset: 0, bytes };
    Ok((layout, index.into()))
}

/// The header of an index.
#[cfg(feature = "text")]
pub(crate) fn header(number: TokenType, documents: u64, groups: u64) -> [u8; HEADER_BYTES] {
    let code = (0..=u8::MAX).find(|&code| self::number(code) == Some(number));
    let code = code.expect("only types with a code are written");
    let mut header = [0; HEADER_BYTES];
    header[..9].copy_from_slice(MAGIC);
    header[9..17].copy_from_slice(&VERSION.to_le_bytes());
    header[17] = code;
    header[18..26].copy_from_slice(&documents.to_le_bytes());
    header[26..].copy_from_slice(&groups.to_le_bytes());
    header
}

/// The type with this code, if it is an integer.
fn number(code: u8) -> Option<TokenType> {
    Some(match code {
        1 => TokenType::U8,
        2 => TokenType::I8,
        3 => TokenType::I16,
        4 => TokenType::I32,
        5 => TokenType::I64,
        8 => TokenType::U16,
        _ => return None,
    })
}
