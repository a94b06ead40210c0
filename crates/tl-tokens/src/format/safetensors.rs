//! Tensors of safetensors files: a length of 64 bits, a header in JSON, then the numbers.

use std::collections::BTreeMap;

use serde_json::Value;
use tbl_io::{ReadError, Source, TokensDefect};

use super::integer;
use crate::layout::{Layout, TokenFormat, defect};
use crate::number::TokenType;

/// Bytes of the length before the header.
const LENGTH_BYTES: u64 = 8;

/// The header's largest length. The library that defines the format has the same limit.
const MOST_BYTES: u64 = 100_000_000;

/// The place of tensor `name`, or of the only one of one dimension of integers.
pub(super) fn layout(source: &Source, name: Option<&str>) -> Result<Layout, ReadError> {
    let have = source.len();
    let truncated = |need| {
        let what = "length and header";
        defect(source, have, TokensDefect::Length { what, need, have })
    };
    if have < LENGTH_BYTES {
        return Err(truncated(LENGTH_BYTES));
    }
    let mut length = [0; 8];
    source.read_exact_at(0, &mut length)?;
    let length = u64::from_le_bytes(length);
    let reason = |at, reason: String| defect(source, at, TokensDefect::Header { reason });
    if length > MOST_BYTES {
        return Err(reason(0, format!("{length} bytes, expected at most {MOST_BYTES}")));
    }
    let offset = LENGTH_BYTES + length;
    if offset > have {
        return Err(truncated(offset));
    }
    let mut header = Vec::new();
    source.read_range_into(LENGTH_BYTES, length, &mut header)?;
    let tensors: BTreeMap<String, Value> =
        serde_json::from_slice(&header).map_err(|error| reason(LENGTH_BYTES, error.to_string()))?;
    let tokens: Vec<(&String, Tensor)> =
        tensors.iter().filter_map(|(key, value)| Some((key, Tensor::of(value)?))).collect();
    let found = || tokens.iter().map(|(key, _)| (*key).clone()).collect();
    let tensor = match (name, &tokens[..]) {
        (None, [(_, tensor)]) => Some(tensor),
        (None, _) => None,
        (Some(name), all) => all.iter().find(|(key, _)| *key == name).map(|(_, tensor)| tensor),
    };
    let Some(&Tensor { number, count, start, end }) = tensor else {
        let name = name.map(str::to_owned);
        return Err(defect(source, LENGTH_BYTES, TokensDefect::NoTensor { name, found: found() }));
    };
    let bytes = end.checked_sub(start);
    if bytes.is_none() || bytes != count.checked_mul(number.bytes() as u64) {
        let numbers = format!("{count} numbers of {}", number.name());
        let text = format!("bytes {start} to {end} for {numbers}");
        return Err(reason(LENGTH_BYTES, text));
    }
    let need = end.saturating_add(offset);
    if need > have {
        let what = "header and tensor";
        return Err(defect(source, have, TokensDefect::Length { what, need, have }));
    }
    let offset = offset + start;
    Ok(Layout { format: TokenFormat::Safetensors, number, offset, bytes: end - start })
}

/// A tensor of one dimension of integers.
#[derive(Clone, Copy)]
struct Tensor {
    number: TokenType,
    count: u64,
    /// Its first byte after the header, and the one after its last.
    start: u64,
    end: u64,
}

impl Tensor {
    fn of(value: &Value) -> Option<Self> {
        let number = integer(value.get("dtype")?.as_str()?)?;
        let [count] = value.get("shape")?.as_array()?.as_slice() else { return None };
        let [start, end] = value.get("data_offsets")?.as_array()?.as_slice() else { return None };
        Some(Self { number, count: count.as_u64()?, start: start.as_u64()?, end: end.as_u64()? })
    }
}
