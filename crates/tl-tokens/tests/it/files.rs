//! Files as other programs write them, built from the descriptions of their formats.

use tbl_io::{ReadError, Source, Stores, TokensDefect};
use tl_tokens::{TokenFile, TokenOptions, TokenType};

/// The bytes of 16-bit tokens.
pub(crate) fn u16s(tokens: &[u16]) -> Vec<u8> {
    tokens.iter().flat_map(|token| token.to_le_bytes()).collect()
}

/// A file of llm.c.
pub(crate) fn llm_c(magic: i32, version: i32, count: i32, tokens: &[u8]) -> Vec<u8> {
    let mut header = [0; 256];
    header[..3].copy_from_slice(&[magic, version, count]);
    let header = header.iter().flat_map(|number: &i32| number.to_le_bytes());
    header.chain(tokens.iter().copied()).collect()
}

/// An index of Megatron-LM: the lengths and places of documents of `item` bytes a token.
pub(crate) fn index(code: u8, lengths: &[i32], item: usize) -> Vec<u8> {
    let mut index = b"MMIDIDX\0\0".to_vec();
    index.extend(1u64.to_le_bytes());
    index.push(code);
    index.extend((lengths.len() as u64).to_le_bytes());
    index.extend((lengths.len() as u64 + 1).to_le_bytes());
    index.extend(lengths.iter().flat_map(|length| length.to_le_bytes()));
    let mut start = 0;
    for &length in lengths {
        index.extend(i64::to_le_bytes(start));
        start += i64::from(length) * item as i64;
    }
    index.extend((0..=lengths.len() as i64).flat_map(i64::to_le_bytes));
    index
}

/// A `.npy` file with this dictionary.
pub(crate) fn npy(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend(u16::try_from(dictionary.len()).unwrap().to_le_bytes());
    file.extend(dictionary.as_bytes());
    file.extend(data);
    file
}

/// A safetensors file with this header.
pub(crate) fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), data].concat()
}

/// Opens bytes under a name; `number` is the type that the caller gives.
pub(crate) fn open(
    name: &str,
    bytes: Vec<u8>,
    number: Option<TokenType>,
) -> Result<TokenFile, ReadError> {
    let options = TokenOptions { number, ..TokenOptions::default() };
    TokenFile::open(&Stores::new(), Source::from_bytes(name, bytes), &options)
}

/// The tokens of a file, converted to 64 bits.
pub(crate) fn tokens(file: &TokenFile) -> Vec<i64> {
    let bytes = file.read(0, file.len(), &mut Vec::new(), <[u8]>::to_vec).unwrap();
    let mut out = vec![0; 8 * usize::try_from(file.len()).unwrap()];
    file.number().convert(&bytes, TokenType::I64, &mut out).unwrap();
    out.as_chunks().0.iter().map(|token| i64::from_ne_bytes(*token)).collect()
}

/// Offset and defect of an error of tokens.
pub(crate) fn defect(result: Result<TokenFile, ReadError>) -> (u64, TokensDefect) {
    match result.map(|file| file.len()) {
        Err(ReadError::Tokens { offset, source, .. }) => (offset, source),
        other => panic!("{other:?}"),
    }
}
