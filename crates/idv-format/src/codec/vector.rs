//! Vectors: lengths, counts and indices, then the items of all vectors as one inner block.

use alloc::vec::Vec;

use crate::codec::{Vector, count};
use crate::cursor::Cursor;
use crate::error::FormatError;
use crate::values::ValuesError;
use crate::values::{Rows, Vectors};

/// The count of a vector that stores all its items.
const DENSE: i32 = -1;

pub(super) fn decode<'a>(
    vector: &Vector,
    expected: usize,
    cursor: &mut Cursor<'a>,
) -> Result<Vectors<'a>, FormatError> {
    let offset = cursor.offset();
    let found = cursor.i32("number of vectors")?;
    if usize::try_from(found) != Ok(expected) {
        let what = "number of vectors";
        let expected = expected as u64;
        let found = found.into();
        return Err(FormatError::Count { what, offset, expected, found });
    }
    let common = common_length(vector, cursor)?;
    let lengths_offset = cursor.offset();
    let lengths = match common {
        Some(_) => None,
        None => Some(super::number::take::<i32>("vector lengths", expected, cursor)?),
    };
    let counts_offset = cursor.offset();
    let counts = super::number::take::<i32>("vector counts", expected, cursor)?;
    let indices_offset = cursor.offset();
    let index_count = cursor.count("number of indices")?;
    let indices = super::number::take::<i32>("vector indices", index_count, cursor)?;
    if let Some(length) = common
        && index_count == 0
        && counts.iter().all(|&count| count == DENSE)
    {
        let too_many = FormatError::Truncated {
            what: "items of vectors",
            offset: cursor.offset(),
            need: (expected as u64).saturating_mul(length.into()),
            have: cursor.remaining() as u64,
        };
        let items = expected.checked_mul(length as usize).ok_or(too_many)?;
        return Ok(Vectors::dense(length, expected, vector.item.decode(items, cursor)?));
    }
    let mut rows = RowsBuilder::new(expected, &indices);
    for row in 0..expected {
        let length = match (common, &lengths) {
            (Some(length), _) => length,
            (None, lengths) => {
                let found = lengths.as_ref().and_then(|lengths| lengths.get(row));
                let found = found.copied().unwrap_or_default();
                let offset = lengths_offset + (row * size_of::<i32>()) as u64;
                let what = "vector length";
                let found_wide = found.into();
                let negative = FormatError::Negative { what, offset, found: found_wide };
                u32::try_from(found).map_err(|_| negative)?
            }
        };
        let count = counts.get(row).copied().unwrap_or(DENSE);
        rows.push(row, length, count, counts_offset)?;
    }
    let (items, rows) = rows.finish(indices_offset)?;
    Ok(Vectors::from_rows(rows, vector.item.decode(items, cursor)?))
}

/// The length that all vectors of the block have, `None` when their lengths follow.
fn common_length(vector: &Vector, cursor: &mut Cursor<'_>) -> Result<Option<u32>, FormatError> {
    const WHAT: &str = "common length of vectors";
    let offset = cursor.offset();
    let found = cursor.i32(WHAT)?;
    let negative = FormatError::Negative { what: WHAT, offset, found: found.into() };
    let stated = u32::try_from(found).map_err(|_| negative)?;
    match vector.length() {
        Some(length) if length != stated => {
            let expected = length.into();
            let found = found.into();
            Err(FormatError::Count { what: WHAT, offset, expected, found })
        }
        _ => Ok((stated > 0).then_some(stated)),
    }
}

/// Extents of vectors, one after the other, checked against the indices.
struct RowsBuilder<'i> {
    rows: Rows<'static>,
    items: usize,
    indices: &'i [i32],
    used: usize,
}

impl<'i> RowsBuilder<'i> {
    fn new(rows: usize, indices: &'i [i32]) -> Self {
        Self { rows: Rows::with_capacity(rows, indices.len()), items: 0, indices, used: 0 }
    }

    fn push(
        &mut self,
        vector: usize,
        length: u32,
        count: i32,
        counts_offset: u64,
    ) -> Result<(), FormatError> {
        let wrong_count = FormatError::VectorCount {
            vector: vector as u64,
            length: length.into(),
            count: count.into(),
        };
        let explicit = match u32::try_from(count) {
            Err(_) if count == DENSE => {
                self.items = self.items.checked_add(length as usize).ok_or(wrong_count)?;
                self.rows.push(length, self.items);
                return Ok(());
            }
            Ok(0) => 0,
            Ok(count) if count < length => count as usize,
            _ => return Err(wrong_count),
        };
        let range = self.used..self.used + explicit;
        let Some(indices) = self.indices.get(range) else {
            return Err(FormatError::Count {
                what: "sum of vector counts",
                offset: counts_offset,
                expected: self.indices.len() as u64,
                found: i64::try_from(self.used + explicit).unwrap_or(i64::MAX),
            });
        };
        let mut previous = -1;
        for &index in indices {
            // An index above the previous one is not negative.
            let index_u32 = u32::try_from(index).unwrap_or(u32::MAX);
            if index <= previous || index_u32 >= length {
                return Err(FormatError::VectorIndex {
                    vector: vector as u64,
                    index: index.into(),
                    previous: previous.into(),
                    length: length.into(),
                });
            }
            previous = index;
            self.rows.push_index(index_u32);
        }
        self.used += explicit;
        self.items = self.items.checked_add(explicit).ok_or(wrong_count)?;
        self.rows.push(length, self.items);
        Ok(())
    }

    /// The number of items in the block, and the vectors they make.
    fn finish(self, indices_offset: u64) -> Result<(usize, Rows<'static>), FormatError> {
        if self.used == self.indices.len() {
            return Ok((self.items, self.rows));
        }
        Err(FormatError::Count {
            what: "number of indices",
            offset: indices_offset,
            expected: self.used as u64,
            found: i64::try_from(self.indices.len()).unwrap_or(i64::MAX),
        })
    }
}

pub(super) fn encode(
    vector: &Vector,
    vectors: &Vectors<'_>,
    bytes: &mut Vec<u8>,
) -> Result<(), ValuesError> {
    let rows = vectors.len();
    let mut put = |number: i32| bytes.extend_from_slice(&number.to_le_bytes());
    put(count("vectors", rows)?);
    let common = written_length(vector, vectors)?;
    put(count("slots of a vector", common.unwrap_or(0) as usize)?);
    if common.is_none() {
        for row in vectors.rows() {
            put(count("slots of a vector", row.length() as usize)?);
        }
    }
    let mut indices = 0;
    for row in vectors.rows() {
        let explicit = row.indices();
        indices += explicit.map_or(0, <[u32]>::len);
        put(explicit.map_or(Ok(DENSE), |explicit| count("items of a vector", explicit.len()))?);
    }
    put(count("indices", indices)?);
    for row in vectors.rows() {
        row.indices().unwrap_or_default().iter().for_each(|&index| put(index.cast_signed()));
    }
    let items = vectors.items();
    count("items", items.len())?;
    vector.item.encode(&items, bytes)
}

/// The length written for all vectors, `None` when each needs its own.
fn written_length(vector: &Vector, vectors: &Vectors<'_>) -> Result<Option<u32>, ValuesError> {
    let mut lengths = vectors.rows().map(|row| row.length()).enumerate();
    if let Some(expected) = vector.length() {
        return match lengths.find(|&(_, found)| found != expected) {
            None => Ok(Some(expected)),
            Some((vector, found)) => Err(ValuesError::VectorLength { vector, expected, found }),
        };
    }
    let first = lengths.next().map(|(_, length)| length).filter(|&length| length > 0);
    Ok(first.filter(|&first| lengths.all(|(_, length)| length == first)))
}
