//! The values of a page.

use std::sync::Arc;

use crate::delta;
use crate::header::Encoding;
use crate::runs;
use crate::schema::{Leaf, Physical};

/// Values of one column, without nulls.
#[derive(Debug)]
pub(crate) enum Values {
    Booleans(Vec<bool>),
    Integers(Vec<i64>),
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Bytes(Texts),
    /// Places in a dictionary, all of them inside.
    Indexed {
        indices: Vec<u32>,
        dictionary: Arc<Self>,
    },
}

/// Parts of a buffer.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

/// A range of a buffer, which is inside of it.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: u32,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Boolean(bool),
    Integer(i64),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Booleans(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Floats(values) => values.len(),
            Self::Doubles(values) => values.len(),
            Self::Bytes(texts) => texts.spans.len(),
            Self::Indexed { indices, .. } => indices.len(),
        }
    }

    /// Value `number`; `None` past the end.
    pub(crate) fn get(&self, number: usize) -> Option<Value<'_>> {
        Some(match self {
            Self::Booleans(values) => Value::Boolean(*values.get(number)?),
            Self::Integers(values) => Value::Integer(*values.get(number)?),
            Self::Floats(values) => Value::Float(*values.get(number)?),
            Self::Doubles(values) => Value::Double(*values.get(number)?),
            Self::Bytes(texts) => Value::Bytes(texts.get(number)?),
            Self::Indexed { indices, dictionary } => {
                let place = usize::try_from(*indices.get(number)?).ok()?;
                // A dictionary has no dictionary, so this is as deep as it gets.
                return dictionary.get(place);
            }
        })
    }

    /// The buffer of values of bytes.
    pub(crate) fn into_buffer(self) -> Option<Vec<u8>> {
        match self {
            Self::Bytes(texts) => Some(texts.buffer),
            Self::Booleans(_)
            | Self::Integers(_)
            | Self::Floats(_)
            | Self::Doubles(_)
            | Self::Indexed { .. } => None,
        }
    }

    /// Bytes in memory, without those of a dictionary, which is shared.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Booleans(values) => values.len(),
            Self::Integers(values) => size_of_val(&**values),
            Self::Floats(values) => size_of_val(&**values),
            Self::Doubles(values) => size_of_val(&**values),
            Self::Bytes(texts) => texts.buffer.capacity() + size_of_val(&*texts.spans),
            Self::Indexed { indices, .. } => size_of_val(&**indices),
        }
    }

    /// Decodes `count` values from `start` on of `page`, which is kept if values are parts of it.
    /// `None` if the bytes are damaged, or the encoding is not one for this type. No more than `most`
    /// bytes are made of them.
    pub(crate) fn decode(
        leaf: &Leaf,
        encoding: Encoding,
        page: Vec<u8>,
        start: usize,
        count: usize,
        dictionary: Option<&Arc<Self>>,
        most: u64,
    ) -> Option<Self> {
        let bytes = page.get(start..)?;
        match (encoding, leaf.physical) {
            (Encoding::Plain, Physical::Bytes) => {
                let texts = lengths_before(page, start, count)?;
                Some(Self::Bytes(texts))
            }
            (Encoding::Plain, Physical::Fixed(len)) => fixed(page, start, count, len),
            (Encoding::Plain, Physical::Int96) => fixed(page, start, count, 12),
            (Encoding::Plain, physical) => plain(physical, bytes, count),
            (Encoding::Dictionary, _) => {
                let dictionary = dictionary?;
                indexed(bytes, count, dictionary)
            }
            (Encoding::Rle, Physical::Boolean) => {
                let (length, runs) = bytes.split_first_chunk()?;
                let len = usize::try_from(u32::from_le_bytes(*length)).ok()?;
                let mut values = Vec::with_capacity(count);
                runs::decode(runs.get(..len)?, 1, count, |value, run| {
                    values.extend(std::iter::repeat_n(value == 1, run));
                })?;
                Some(Self::Booleans(values))
            }
            (Encoding::DeltaBinaryPacked, Physical::Int32 | Physical::Int64) => {
                let mut values = delta::numbers(bytes, count)?.values;
                if leaf.physical == Physical::Int32 {
                    // Sums are of 32 bits, of which more have no meaning.
                    values.iter_mut().for_each(|value| *value = low_half(*value));
                }
                (values.len() == count).then_some(Self::Integers(values))
            }
            (Encoding::DeltaLengthBytes, Physical::Bytes) => {
                let numbers = delta::numbers(bytes, count)?;
                let at = page.len() - numbers.rest.len();
                lengths_apart(&numbers.values, count, at).and_then(|spans| texts(page, spans))
            }
            (Encoding::DeltaBytes, Physical::Bytes | Physical::Fixed(_)) => {
                let texts = shared_prefixes(bytes, count, most)?;
                let has_length = |span: &Span| {
                    leaf.physical == Physical::Bytes || leaf.physical == Physical::Fixed(span.len)
                };
                texts.spans.iter().all(has_length).then_some(Self::Bytes(texts))
            }
            (Encoding::ByteStreamSplit, physical) => split(physical, bytes, count),
            (Encoding::Rle, _)
            | (Encoding::DeltaBinaryPacked, _)
            | (Encoding::DeltaLengthBytes, _)
            | (Encoding::DeltaBytes, _) => None,
        }
    }
}

impl Texts {
    fn get(&self, number: usize) -> Option<&[u8]> {
        let Span { start, len } = *self.spans.get(number)?;
        let start = usize::try_from(start).ok()?;
        self.buffer.get(start..)?.get(..usize::try_from(len).ok()?)
    }
}

fn low_half(value: i64) -> i64 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    i32::from_le_bytes([a, b, c, d]).into()
}

/// Values with their length in front of each.
fn lengths_before(page: Vec<u8>, start: usize, count: usize) -> Option<Texts> {
    // A value takes at least the four bytes of its length.
    if count > page.len().saturating_sub(start) / 4 {
        return None;
    }
    let mut spans = Vec::with_capacity(count);
    let mut at = start;
    for _ in 0..count {
        let length = page.get(at..)?.first_chunk()?;
        let len = u32::from_le_bytes(*length);
        at += length.len();
        spans.push(Span { start: u32::try_from(at).ok()?, len });
        at = at.checked_add(usize::try_from(len).ok()?)?;
    }
    (at <= page.len()).then_some(Texts { buffer: page, spans })
}

fn fixed(page: Vec<u8>, start: usize, count: usize, len: u32) -> Option<Values> {
    let size = usize::try_from(len).ok()?;
    let end = count.checked_mul(size)?.checked_add(start)?;
    if end > page.len() {
        return None;
    }
    let span = |at: usize| Some(Span { start: u32::try_from(at).ok()?, len });
    let spans = (0..count).map(|number| span(start + number * size)).collect::<Option<_>>()?;
    Some(Values::Bytes(Texts { buffer: page, spans }))
}

fn plain(physical: Physical, bytes: &[u8], count: usize) -> Option<Values> {
    Some(match physical {
        Physical::Boolean => {
            let bytes = bytes.get(..count.div_ceil(8))?;
            let bit = |number: usize| bytes[number / 8] >> (number % 8) & 1 == 1;
            Values::Booleans((0..count).map(bit).collect())
        }
        Physical::Int32 => {
            Values::Integers(chunks(bytes, count)?.map(|v| i32::from_le_bytes(v).into()).collect())
        }
        Physical::Int64 => {
            Values::Integers(chunks(bytes, count)?.map(i64::from_le_bytes).collect())
        }
        Physical::Float => Values::Floats(chunks(bytes, count)?.map(f32::from_le_bytes).collect()),
        Physical::Double => {
            Values::Doubles(chunks(bytes, count)?.map(f64::from_le_bytes).collect())
        }
        Physical::Int96 | Physical::Bytes | Physical::Fixed(_) | Physical::Other => return None,
    })
}

/// The first `count` arrays of bytes.
fn chunks<const N: usize>(bytes: &[u8], count: usize) -> Option<impl Iterator<Item = [u8; N]>> {
    let (chunks, _) = bytes.as_chunks::<N>();
    Some(chunks.get(..count)?.iter().copied())
}

/// The first bytes of all values, then the second ones, and so on.
fn split(physical: Physical, bytes: &[u8], count: usize) -> Option<Values> {
    let size = match physical {
        Physical::Int32 | Physical::Float => 4,
        Physical::Int64 | Physical::Double => 8,
        Physical::Fixed(len) => usize::try_from(len).ok()?,
        Physical::Boolean | Physical::Int96 | Physical::Bytes | Physical::Other => return None,
    };
    let bytes = bytes.get(..count.checked_mul(size)?)?;
    let mut joined = Vec::with_capacity(bytes.len());
    for number in 0..count {
        joined.extend((0..size).map(|part| bytes[part * count + number]));
    }
    if let Physical::Fixed(len) = physical {
        return fixed(joined, 0, count, len);
    }
    plain(physical, &joined, count)
}

fn indexed(bytes: &[u8], count: usize, dictionary: &Arc<Values>) -> Option<Values> {
    let (&width, runs) = match bytes.split_first() {
        Some(split) => split,
        None if count == 0 => (&0, &[][..]),
        None => return None,
    };
    let mut indices = Vec::with_capacity(count);
    let mut is_inside = true;
    let len = dictionary.len();
    runs::decode(runs, width, count, |index, run| {
        is_inside &= usize::try_from(index).is_ok_and(|index| index < len);
        indices.extend(std::iter::repeat_n(index, run));
    })?;
    is_inside.then(|| Values::Indexed { indices, dictionary: Arc::clone(dictionary) })
}

/// Spans of `count` lengths that follow each other from `at` on.
fn lengths_apart(lengths: &[i64], count: usize, mut at: usize) -> Option<Vec<Span>> {
    if lengths.len() != count {
        return None;
    }
    let mut spans = Vec::with_capacity(count);
    for &len in lengths {
        let len = u32::try_from(len).ok()?;
        spans.push(Span { start: u32::try_from(at).ok()?, len });
        at = at.checked_add(usize::try_from(len).ok()?)?;
    }
    Some(spans)
}

/// Spans that follow each other, if the buffer reaches to the end of the last one.
fn texts(buffer: Vec<u8>, spans: Vec<Span>) -> Option<Values> {
    let end = spans.last().map_or(0, |span| u64::from(span.start) + u64::from(span.len));
    (end <= buffer.len() as u64).then_some(Values::Bytes(Texts { buffer, spans }))
}

/// Texts that begin as the ones before them do (`DELTA_BYTE_ARRAY`).
fn shared_prefixes(bytes: &[u8], count: usize, most: u64) -> Option<Texts> {
    let prefixes = delta::numbers(bytes, count)?;
    let suffixes = delta::numbers(prefixes.rest, count)?;
    if prefixes.values.len() != count || suffixes.values.len() != count {
        return None;
    }
    let mut rest = suffixes.rest;
    let mut texts = Texts { buffer: Vec::new(), spans: Vec::with_capacity(count) };
    let mut before = 0..0;
    for (prefix, suffix) in prefixes.values.into_iter().zip(suffixes.values) {
        let prefix = usize::try_from(prefix).ok().filter(|&prefix| prefix <= before.len())?;
        let suffix = rest.get(..usize::try_from(suffix).ok()?)?;
        rest = rest.get(suffix.len()..)?;
        let start = texts.buffer.len();
        if (start + prefix + suffix.len()) as u64 > most {
            return None;
        }
        texts.buffer.extend_from_within(before.start..before.start + prefix);
        texts.buffer.extend_from_slice(suffix);
        before = start..texts.buffer.len();
        let len = u32::try_from(before.len()).ok()?;
        texts.spans.push(Span { start: u32::try_from(start).ok()?, len });
    }
    Some(texts)
}
