//! The node region: five columns, one value of each for every node.
//!
//! Their places are not stored. Each column starts at the first multiple of 64 after the one
//! before it.

use crate::aligned::align_up;
use crate::error::FormatError;
use crate::region::Region;
use crate::values::Values;

/// Bytes of one value of each column, in their order.
const WIDTHS: [u64; 5] = [16, 8, 8, 4, 1];

/// The most nodes of a segment: targets of edges and rows of indexes have 32 bits.
pub const MAX_NODES: u64 = u32::MAX as u64;

/// The offsets of the columns of `node_count` nodes in the region, and the end of the last one.
/// `None` past 64 bits.
pub(crate) fn column_offsets(node_count: u64) -> Option<([u64; 5], u64)> {
    let mut starts = [0; 5];
    let mut end = 0;
    for (start, width) in starts.iter_mut().zip(WIDTHS) {
        *start = align_up(end)?;
        end = start.checked_add(node_count.checked_mul(width)?)?;
    }
    Some((starts, end))
}

/// The columns of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    ids: Values<'a, [u8; 16]>,
    timestamps: Values<'a, u64>,
    context_hashes: Values<'a, u64>,
    confidences: Values<'a, f32>,
    outcomes: &'a [u8],
}

impl<'a> Columns<'a> {
    /// The columns' names, in their order.
    pub const NAMES: [&'static str; 5] =
        ["id", "timestamp", "context_hash", "confidence", "outcome_status"];

    /// The columns of `node_count` nodes in the bytes of a node region.
    ///
    /// # Errors
    /// [`FormatError::TooMany`] or [`FormatError::Truncated`].
    pub fn parse(region: &'a [u8], node_count: u64) -> Result<Self, FormatError> {
        let too_many = FormatError::TooMany { what: "nodes", count: node_count, limit: MAX_NODES };
        if node_count > MAX_NODES {
            return Err(too_many);
        }
        let (starts, end) = column_offsets(node_count).ok_or(too_many)?;
        let truncated =
            FormatError::Truncated { region: Region::Nodes, need: end, have: region.len() as u64 };
        let columns = || {
            let [ids, timestamps, context_hashes, confidences, outcomes] = starts;
            let from = |start| region.get(usize::try_from(start).ok()?..);
            Some(Self {
                ids: Values::prefix(from(ids)?, node_count)?,
                timestamps: Values::prefix(from(timestamps)?, node_count)?,
                context_hashes: Values::prefix(from(context_hashes)?, node_count)?,
                confidences: Values::prefix(from(confidences)?, node_count)?,
                outcomes: from(outcomes)?.get(..usize::try_from(node_count).ok()?)?,
            })
        };
        columns().ok_or(truncated)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the segment has no nodes.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// UUIDs in the order of their text form (RFC 9562).
    pub fn ids(&self) -> Values<'a, [u8; 16]> {
        self.ids
    }

    /// Nanoseconds since 1970.
    pub fn timestamps(&self) -> Values<'a, u64> {
        self.timestamps
    }

    /// Hashes of the context, opaque to the format: the published one is `xxHash3`, the
    /// reference's writer has FNV-1a.
    pub fn context_hashes(&self) -> Values<'a, u64> {
        self.context_hashes
    }

    /// The confidence of the extraction.
    pub fn confidences(&self) -> Values<'a, f32> {
        self.confidences
    }

    /// Codes of [`Outcome`].
    pub fn outcomes(&self) -> &'a [u8] {
        self.outcomes
    }

    /// The column of a name, one of [`NAMES`](Self::NAMES).
    pub fn by_name(&self, name: &str) -> Option<Column<'a>> {
        Some(match name {
            "id" => Column::Ids(self.ids),
            "timestamp" => Column::U64(self.timestamps),
            "context_hash" => Column::U64(self.context_hashes),
            "confidence" => Column::F32(self.confidences),
            "outcome_status" => Column::U8(self.outcomes),
            _ => return None,
        })
    }
}

/// One column, by the type of its values.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Column<'a> {
    /// 128-bit ids.
    Ids(Values<'a, [u8; 16]>),
    /// 64-bit numbers.
    U64(Values<'a, u64>),
    /// 32-bit floating point numbers.
    F32(Values<'a, f32>),
    /// Codes.
    U8(&'a [u8]),
}

/// The outcome of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Not known yet (0).
    Pending,
    /// Success (1).
    Success,
    /// Failure (2).
    Failure,
    /// Success in part (3).
    Partial,
    /// A code this version does not know; passed through.
    Other(u8),
}

impl Outcome {
    /// The outcome that `code` stands for.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Pending,
            1 => Self::Success,
            2 => Self::Failure,
            3 => Self::Partial,
            other => Self::Other(other),
        }
    }

    /// The code that columns store.
    pub const fn code(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::Success => 1,
            Self::Failure => 2,
            Self::Partial => 3,
            Self::Other(code) => code,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// The reference's file of five nodes has its columns at 128 + these.
    #[test]
    fn columns_lie_where_the_reference_puts_them() {
        assert_eq!(column_offsets(5), Some(([0, 128, 192, 256, 320], 325)));
        assert_eq!(column_offsets(0), Some(([0; 5], 0)));
        assert_eq!(column_offsets(1), Some(([0, 64, 128, 192, 256], 257)));
    }

    #[test]
    fn counts_that_wrap_are_refused() {
        for count in [u64::MAX, u64::MAX / 16, 1 << 60] {
            assert!(Columns::parse(&[0; 512], count).is_err(), "{count}");
        }
    }

    #[test]
    fn every_shorter_region_is_truncated() {
        let region = vec![0; 325];
        assert!(Columns::parse(&region, 5).is_ok());
        for have in 0..325 {
            let expected =
                FormatError::Truncated { region: Region::Nodes, need: 325, have: have as u64 };
            assert_eq!(Columns::parse(&region[..have], 5).unwrap_err(), expected);
        }
    }
}
