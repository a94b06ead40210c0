//! The header of safetensors files: a length of 64 bits, then names, types, shapes and places as JSON.

use std::collections::BTreeMap;

use serde_json::Value;
use tbl_io::Source;

use super::{Array, ArrayDefect, Values};
use crate::error::TableError;
use crate::table::ColumnType;

/// Bytes of the length before the header.
const LENGTH_BYTES: u64 = size_of::<u64>() as u64;

/// The header's largest length. The library that defines the format has the same limit.
const MOST_BYTES: u64 = 100_000_000;

/// The member with texts about the file instead of a tensor.
const METADATA: &str = "__metadata__";

/// The tensors in the order of their bytes.
pub(super) fn arrays(source: &Source) -> Result<Vec<Array>, TableError> {
    let have = source.len();
    let mut length = [0; size_of::<u64>()];
    let length_error = |need| ArrayDefect::Length { what: "the header", need, have };
    if have < LENGTH_BYTES {
        return Err(length_error(LENGTH_BYTES).into());
    }
    source.read_exact_at(0, &mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MOST_BYTES {
        let reason = format!("it has {length} bytes, expected at most {MOST_BYTES}");
        return Err(ArrayDefect::Header { reason }.into());
    }
    let start = LENGTH_BYTES + length;
    if start > have {
        return Err(length_error(start).into());
    }
    let mut header = Vec::new();
    source.read_range_into(LENGTH_BYTES, length, &mut header)?;
    let tensors: BTreeMap<String, Value> = serde_json::from_slice(&header)
        .map_err(|error| ArrayDefect::Header { reason: error.to_string() })?;
    let tensors = tensors.into_iter().filter(|(name, _)| name != METADATA);
    let mut arrays = Vec::new();
    for (name, value) in tensors {
        let array = array(&name, &value, start).ok_or_else(|| {
            let reason =
                format!("tensor `{}`: expected dtype, shape and data_offsets", name.escape_debug());
            ArrayDefect::Header { reason }
        })?;
        arrays.push(array);
    }
    arrays.sort_by_key(|array: &Array| match array.values {
        Values::Stored { offset, .. } => offset,
        Values::None | Values::Deflated { .. } | Values::Chunks(_) => 0,
    });
    Ok(arrays)
}

fn array(name: &str, value: &Value, data: u64) -> Option<Array> {
    let type_name = value.get("dtype")?.as_str()?;
    let sides = value.get("shape")?.as_array()?.iter();
    let shape = sides.map(Value::as_u64).collect::<Option<Vec<_>>>()?;
    let [start, end] = value.get("data_offsets")?.as_array()?.as_slice() else { return None };
    let start = start.as_u64()?;
    let bytes = end.as_u64()?.checked_sub(start)?;
    Some(Array {
        name: name.to_owned(),
        number: number(type_name).ok_or_else(|| format!("numbers of type {type_name}")),
        shape,
        is_big_endian: false,
        values: Values::Stored { offset: data.checked_add(start)?, bytes, member: None },
    })
}

fn number(name: &str) -> Option<ColumnType> {
    Some(match name {
        "BOOL" => ColumnType::Bool,
        "U8" => ColumnType::U8,
        "I8" => ColumnType::I8,
        "U16" => ColumnType::U16,
        "I16" => ColumnType::I16,
        "U32" => ColumnType::U32,
        "I32" => ColumnType::I32,
        "U64" => ColumnType::U64,
        "I64" => ColumnType::I64,
        "F16" => ColumnType::F16,
        "BF16" => ColumnType::Bf16,
        "F32" => ColumnType::F32,
        "F64" => ColumnType::F64,
        _ => return None,
    })
}
