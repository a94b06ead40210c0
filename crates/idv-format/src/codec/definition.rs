//! The definition of a codec in a file: its name, and parameters after their size.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::codec::{Codec, Item, Key, Number, Vector};
use crate::cursor::Cursor;
use crate::error::FormatError;

/// A codec as a file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecDefinition {
    /// The name in the file, which may be an older one for the same bytes.
    pub name: String,
    /// The parameters after the name.
    pub parameters: Vec<u8>,
    /// The codec, if the name is known.
    pub codec: Result<Codec, Unknown>,
}

/// A codec that this crate does not know: its name, or the name of its items' codec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(pub String);

impl CodecDefinition {
    /// The definition of a codec as version 1.1.1.6 names it.
    pub fn new(codec: Codec) -> Self {
        let name = name(&codec).to_owned();
        let parameters = parameters(&codec);
        Self { name, parameters, codec: Ok(codec) }
    }

    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, FormatError> {
        let (name, offset, parameters) = parts(cursor)?;
        let codec = resolve(name, offset, parameters)?;
        Ok(Self { name: name.to_owned(), parameters: parameters.to_vec(), codec })
    }

    /// Appends the definition as it stands in a file.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        write_string(bytes, &self.name);
        write_leb128(bytes, self.parameters.len() as u64);
        bytes.extend_from_slice(&self.parameters);
    }
}

impl fmt::Display for Codec {
    /// The type as ML.NET's users know it, such as `Vector<Single, 8x76>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(item) => item.fmt(f),
            Self::Vector(vector) => {
                write!(f, "Vector<{}", vector.item)?;
                for (i, extent) in vector.dimensions.iter().enumerate() {
                    write!(f, "{}{extent}", if i == 0 { ", " } else { "x" })?;
                }
                f.write_str(">")
            }
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(Key { number, count, min: 0 }) => {
                write!(f, "Key<{}, 1-{count}>", number.name())
            }
            Self::Key(Key { number, count, min }) => {
                write!(f, "Key<{}, 1-{count}, min {min}>", number.name())
            }
            Self::Text => f.write_str("Text"),
            Self::MissingBoolean => f.write_str("Boolean with missing values"),
            Self::Number(_)
            | Self::Boolean
            | Self::TimeSpan
            | Self::DateTime
            | Self::DateTimeOffset
            | Self::RowId => f.write_str(self.name()),
        }
    }
}

/// The name of a codec since version 1.1.1.6.
fn name(codec: &Codec) -> &'static str {
    match codec {
        Codec::Item(item) => item.name(),
        Codec::Vector(_) => "VBuffer",
    }
}

impl Item {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Number(number) => number.name(),
            Self::Key(_) => "Key2",
            Self::Boolean => "Boolean",
            Self::MissingBoolean => "DvBool",
            Self::Text => "TextSpan",
            Self::TimeSpan => "TimeSpan",
            Self::DateTime => "DateTime",
            Self::DateTimeOffset => "DateTimeOffset",
            Self::RowId => "DataViewRowId",
        }
    }
}

fn parameters(codec: &Codec) -> Vec<u8> {
    let mut bytes = Vec::new();
    match codec {
        Codec::Item(Item::Key(key)) => {
            CodecDefinition::new(Codec::number(key.number)).write(&mut bytes);
            bytes.extend_from_slice(&key.count.to_le_bytes());
        }
        Codec::Item(_) => {}
        Codec::Vector(vector) => {
            CodecDefinition::new(Codec::Item(vector.item.clone())).write(&mut bytes);
            // One dimension of unknown extent is how vectors of any length are written.
            let any = [0];
            let dimensions =
                if vector.dimensions.is_empty() { &any[..] } else { &vector.dimensions };
            let numbers = core::iter::once(dimensions.len() as u64)
                .chain(dimensions.iter().map(|&extent| u64::from(extent)));
            for number in numbers {
                let number = i32::try_from(number).unwrap_or(i32::MAX);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
    }
    bytes
}

pub(crate) fn write_string(bytes: &mut Vec<u8>, text: &str) {
    write_leb128(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

pub(crate) fn write_leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

/// Name, place of the parameters, parameters.
fn parts<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, u64, &'a [u8]), FormatError> {
    const PARAMETERS: &str = "codec parameters";
    let name = cursor.name("codec name")?;
    let len = cursor.leb128("size of codec parameters")?;
    let offset = cursor.offset();
    let have = cursor.remaining() as u64;
    let truncated = FormatError::Truncated { what: PARAMETERS, offset, need: len, have };
    let len = usize::try_from(len).map_err(|_| truncated)?;
    Ok((name, offset, cursor.take(PARAMETERS, len)?))
}

/// The codec of a name and its parameters.
///
/// The parameters of a codec with unknown items are not looked at beyond those: the size around
/// them says where they end.
fn resolve(
    name: &str,
    offset: u64,
    parameters: &[u8],
) -> Result<Result<Codec, Unknown>, FormatError> {
    let mut cursor = Cursor::new(parameters, offset);
    let codec = match name {
        "VBuffer" => vector(&mut cursor)?.map(Codec::Vector),
        _ => item(name, &mut cursor)?.map(Codec::Item),
    };
    if codec.is_ok() && cursor.remaining() > 0 {
        let declared = parameters.len() as u64;
        let used = declared - cursor.remaining() as u64;
        let codec = name.to_owned();
        return Err(FormatError::CodecParameters { codec, offset, declared, used });
    }
    Ok(codec)
}

fn item(name: &str, cursor: &mut Cursor<'_>) -> Result<Result<Item, Unknown>, FormatError> {
    let item = match name {
        "TimeSpan" | "DvTimeSpan" => Item::TimeSpan,
        "DateTime" | "DvDateTime" => Item::DateTime,
        "DateTimeOffset" | "DvDateTimeZone" => Item::DateTimeOffset,
        "TextSpan" => Item::Text,
        "Boolean" => Item::Boolean,
        "DvBool" => Item::MissingBoolean,
        "DataViewRowId" | "RowId" | "UInt128" => Item::RowId,
        "Key2" => return Ok(key(cursor, "Key2", new_key)?.map(Item::Key)),
        "Key" => return Ok(key(cursor, "Key", old_key)?.map(Item::Key)),
        _ => match Number::ALL.into_iter().find(|number| number.name() == name) {
            Some(number) => Item::Number(number),
            None => return Ok(Err(Unknown(name.to_owned()))),
        },
    };
    Ok(Ok(item))
}

type KeyCount = fn(&mut Cursor<'_>, u64) -> Result<(u64, u64), FormatError>;

/// A key type: the codec of its numbers, then what `count_and_min` reads.
fn key(
    cursor: &mut Cursor<'_>,
    outer: &'static str,
    count_and_min: KeyCount,
) -> Result<Result<Key, Unknown>, FormatError> {
    let offset = cursor.offset();
    let inner = CodecDefinition::parse(cursor)?;
    let codec = match inner.codec {
        Ok(codec) => codec,
        Err(unknown) => return Ok(Err(unknown)),
    };
    let number = match codec {
        Codec::Item(Item::Number(number)) => max_key(number).map(|max| (number, max)),
        Codec::Item(_) | Codec::Vector(_) => None,
    };
    let wrong = FormatError::CodecItem { outer, offset, inner: inner.name };
    let (number, max) = number.ok_or(wrong)?;
    let (count, min) = count_and_min(cursor, max)?;
    Ok(Ok(Key { number, count, min }))
}

/// The largest category that a number can hold, `None` for numbers that hold none.
fn max_key(number: Number) -> Option<u64> {
    match number {
        Number::Byte => Some(u8::MAX.into()),
        Number::UInt16 => Some(u16::MAX.into()),
        Number::UInt32 => Some(u32::MAX.into()),
        Number::UInt64 => Some(u64::MAX),
        Number::SByte
        | Number::Int16
        | Number::Int32
        | Number::Int64
        | Number::Single
        | Number::Double => None,
    }
}

fn new_key(cursor: &mut Cursor<'_>, max: u64) -> Result<(u64, u64), FormatError> {
    let offset = cursor.offset();
    let count = cursor.u64("key count")?;
    if (1..=max).contains(&count) {
        Ok((count, 0))
    } else {
        Err(FormatError::KeyCount { offset, count: count.into(), max })
    }
}

/// Before 2019: a flag, the smallest value shown, and a count that is 0 for an unbounded key.
/// ML.NET refuses the file today unless the smallest value is 0; its older readers did not.
fn old_key(cursor: &mut Cursor<'_>, max: u64) -> Result<(u64, u64), FormatError> {
    let offset = cursor.offset();
    let contiguous = cursor.u8("contiguity of a key")?;
    let min = cursor.u64("smallest key")?;
    let count_offset = cursor.offset();
    let count = cursor.i32("key count")?;
    if contiguous > 1 || (contiguous == 0 && count != 0) {
        return Err(FormatError::OldKey { offset, contiguous, count });
    }
    match u64::try_from(count) {
        Ok(0) => Ok((max, min)),
        Ok(bounded) if bounded <= max => Ok((bounded, min)),
        _ => Err(FormatError::KeyCount { offset: count_offset, count: count.into(), max }),
    }
}

fn vector(cursor: &mut Cursor<'_>) -> Result<Result<Vector, Unknown>, FormatError> {
    const EXTENT: &str = "vector dimension";
    let offset = cursor.offset();
    let inner = CodecDefinition::parse(cursor)?;
    let item = match inner.codec {
        Ok(Codec::Item(item)) => item,
        Ok(Codec::Vector(_)) => {
            return Err(FormatError::CodecItem { outer: "VBuffer", offset, inner: inner.name });
        }
        Err(unknown) => return Ok(Err(unknown)),
    };
    let rank = cursor.count("number of vector dimensions")?;
    let offset = cursor.offset();
    let mut extents = Cursor::new(cursor.take_items(EXTENT, rank, size_of::<i32>())?, offset);
    let mut dimensions = Vec::with_capacity(rank);
    for _ in 0..rank {
        let extent = extents.count(EXTENT)?;
        dimensions.push(u32::try_from(extent).unwrap_or(u32::MAX));
    }
    // A block counts slots in an `i32`. With a zero among the factors there is nothing to count.
    let limit = super::MAX_COUNT;
    let within = |slots: u64, &extent: &u32| {
        slots.checked_mul(extent.into()).filter(|&slots| slots <= limit)
    };
    if !dimensions.contains(&0) && dimensions.iter().try_fold(1, within).is_none() {
        return Err(FormatError::VectorSize { offset, limit });
    }
    Ok(Ok(Vector { item, dimensions }))
}
