//! The edge region: for each node the edges that leave it, in compressed sparse rows, and in the
//! same form the edges that reach it, where the segment has a reverse index.

use core::mem::size_of;

use zerocopy::little_endian::{F32, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::aligned::align_up;
use crate::error::FormatError;
use crate::region::Region;
use crate::values::Values;

/// One edge, as it stands in a file.
#[derive(
    Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Edge {
    target: U32,
    relation: u8,
    weight: F32,
    padding: [u8; 3],
}

const _: () = assert!(size_of::<Edge>() == Edge::SIZE);

impl Edge {
    /// The size in bytes.
    pub const SIZE: usize = 12;

    /// An edge to the node of row `target`.
    pub fn new(target: u32, relation: Relation, weight: f32) -> Self {
        Self {
            target: U32::new(target),
            relation: relation.code(),
            weight: F32::new(weight),
            padding: [0; 3],
        }
    }

    /// The row at the other end: where the edge leads, or in a reverse index where it comes from.
    ///
    /// A file of the reference's writer can name rows that are not there.
    pub fn target(&self) -> u32 {
        self.target.get()
    }

    /// The relation that the edge expresses.
    pub fn relation(&self) -> Relation {
        Relation::from_code(self.relation)
    }

    /// The weight of the edge, its confidence.
    pub fn weight(&self) -> f32 {
        self.weight.get()
    }

    /// Whether its padding is zero, as it has to be.
    fn is_padded(&self) -> bool {
        self.padding == [0; 3]
    }
}

/// The meaning of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Relation {
    /// The source caused the target (0).
    Causal,
    /// The source came before (1).
    Temporal,
    /// The source needs the target (2).
    Dependency,
    /// A second attempt (3).
    Retry,
    /// An alternative (4).
    Branch,
    /// A code this version does not know; passed through.
    Other(u8),
}

impl Relation {
    /// The relation that `code` stands for.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Causal,
            1 => Self::Temporal,
            2 => Self::Dependency,
            3 => Self::Retry,
            4 => Self::Branch,
            other => Self::Other(other),
        }
    }

    /// The code that edges store.
    pub const fn code(self) -> u8 {
        match self {
            Self::Causal => 0,
            Self::Temporal => 1,
            Self::Dependency => 2,
            Self::Retry => 3,
            Self::Branch => 4,
            Self::Other(code) => code,
        }
    }
}

/// Bytes of row pointers and `edge_count` edges; `None` past 64 bits.
pub(crate) fn adjacency_bytes(node_count: u64, edge_count: u64) -> Option<u64> {
    let pointers = node_count.checked_add(1)?.checked_mul(8)?;
    pointers.checked_add(edge_count.checked_mul(Edge::SIZE as u64)?)
}

/// Bytes of an edge region, with a reverse index after the edges if there is one; `None` past 64
/// bits.
pub(crate) fn region_bytes(node_count: u64, edge_count: u64, has_reverse: bool) -> Option<u64> {
    let forward = adjacency_bytes(node_count, edge_count)?;
    if has_reverse { align_up(forward)?.checked_add(forward) } else { Some(forward) }
}

/// Edges by row: those that leave a node or, in a reverse index, those that reach it.
#[derive(Clone, Copy, Debug)]
pub struct Adjacency<'a> {
    pointers: Values<'a, u64>,
    edges: &'a [Edge],
}

impl<'a> Adjacency<'a> {
    /// The row pointers of `node_count` nodes at the front of `bytes`, and as many edges after
    /// them as the last pointer says.
    ///
    /// # Errors
    /// [`FormatError::Truncated`].
    pub fn parse(bytes: &'a [u8], node_count: u64) -> Result<Self, FormatError> {
        let truncated = |need: Option<u64>| FormatError::Truncated {
            region: Region::Edges,
            need: need.unwrap_or(u64::MAX),
            have: bytes.len() as u64,
        };
        let pointer_bytes = adjacency_bytes(node_count, 0);
        let pointers = node_count
            .checked_add(1)
            .and_then(|count| Values::<u64>::prefix(bytes, count))
            .ok_or_else(|| truncated(pointer_bytes))?;
        let edge_count = pointers.len().checked_sub(1).and_then(|last| pointers.get(last));
        let edge_count = edge_count.unwrap_or(0);
        let (_, rest) = bytes.split_at(pointers.as_bytes().len());
        let edges = usize::try_from(edge_count)
            .ok()
            .and_then(|count| <[Edge]>::ref_from_prefix_with_elems(rest, count).ok())
            .map(|(edges, _)| edges)
            .ok_or_else(|| truncated(adjacency_bytes(node_count, edge_count)))?;
        Ok(Self { pointers, edges })
    }

    /// The reverse index at the end of an edge region: edges by the node that they reach.
    ///
    /// # Errors
    /// [`FormatError::Truncated`], also when the region has no reverse index.
    pub fn parse_reverse(region: &'a [u8], node_count: u64) -> Result<Self, FormatError> {
        let forward = Self::parse(region, node_count)?.byte_len() as u64;
        let start = align_up(forward).and_then(|start| usize::try_from(start).ok());
        let reverse = start.and_then(|start| region.get(start..)).unwrap_or_default();
        Self::parse(reverse, node_count)
    }

    /// The edges of a row, in the order in which they were added.
    ///
    /// # Errors
    /// [`FormatError::NoRow`], or [`FormatError::RowPointers`] where the row's pointers are
    /// damaged.
    #[inline]
    pub fn row(&self, row: usize) -> Result<&'a [Edge], FormatError> {
        let start = self.pointers.get(row);
        let end = row.checked_add(1).and_then(|next| self.pointers.get(next));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(FormatError::NoRow { row: row as u64, node_count: self.rows() as u64 });
        };
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        range.and_then(|(start, end)| self.edges.get(start..end)).ok_or(FormatError::RowPointers {
            row: row as u64,
            start,
            end,
            edge_count: self.edges.len() as u64,
        })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.pointers.len().saturating_sub(1)
    }

    /// The edges of all rows, one row after the other.
    pub fn edges(&self) -> &'a [Edge] {
        self.edges
    }

    /// The start of each row's edges among all edges, and at the end their number.
    pub fn pointers(&self) -> Values<'a, u64> {
        self.pointers
    }

    /// The first byte after the edges, from the front of what was parsed.
    pub(crate) fn byte_len(&self) -> usize {
        self.pointers.as_bytes().len() + self.edges.as_bytes().len()
    }

    /// Checks that rows follow one another from the first edge on, and that edges lead to nodes, of
    /// which there are `node_count`: what code that takes them without looking relies on.
    ///
    /// # Errors
    /// [`FormatError::RowPointers`], [`FormatError::EdgeTarget`].
    pub fn check(&self, node_count: u64) -> Result<(), FormatError> {
        self.check_rows()?;
        let beyond = |(_, edge): &(usize, &Edge)| u64::from(edge.target()) >= node_count;
        match self.edges.iter().enumerate().find(beyond) {
            Some((edge, found)) => {
                let edge = edge as u64;
                let target = found.target();
                Err(FormatError::EdgeTarget { edge, target, node_count })
            }
            None => Ok(()),
        }
    }

    fn check_rows(&self) -> Result<(), FormatError> {
        let mut expected = 0;
        for (row, start) in self.pointers.iter().take(self.rows()).enumerate() {
            if start != expected {
                let edge_count = self.edges.len() as u64;
                return Err(FormatError::RowPointers {
                    row: row as u64,
                    start,
                    end: expected,
                    edge_count,
                });
            }
            expected = start.saturating_add(self.row(row)?.len() as u64);
        }
        Ok(())
    }

    /// Checks that rows follow one another and that padding is zero, and counts the edges to rows
    /// that are not there.
    pub(crate) fn verify(&self, node_count: u64) -> Result<Targets, FormatError> {
        self.check_rows()?;
        let mut targets = Targets::default();
        for (number, edge) in self.edges.iter().enumerate() {
            if !edge.is_padded() {
                let entry = self.pointers.as_bytes().len() + number * Edge::SIZE;
                let offset = (entry + core::mem::offset_of!(Edge, padding)) as u64;
                return Err(FormatError::NotZero { region: Region::Edges, offset });
            }
            if u64::from(edge.target()) >= node_count {
                targets.count += 1;
                targets.first.get_or_insert((number as u64, edge.target()));
            }
        }
        Ok(targets)
    }
}

/// Edges that lead nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Targets {
    pub(crate) count: u64,
    /// Number and target of the first.
    pub(crate) first: Option<(u64, u32)>,
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn bytes(pointers: &[u64], edges: &[Edge]) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
        bytes.extend(edges.as_bytes());
        bytes
    }

    #[test]
    fn an_edge_has_the_bytes_of_the_format() {
        let edge = Edge::new(0x0102_0304, Relation::Branch, 1.0);
        assert_eq!(edge.as_bytes(), [4, 3, 2, 1, 4, 0, 0, 0x80, 0x3f, 0, 0, 0]);
    }

    #[test]
    fn rows_have_their_edges_at_every_offset() {
        let edges = [1, 2, 0].map(|target| Edge::new(target, Relation::Causal, 0.5));
        let stored = bytes(&[0, 2, 2, 3], &edges);
        for offset in 0..8 {
            let mut shifted = Vec::from(&[0xee; 8][..offset]);
            shifted.extend(&stored);
            let adjacency = Adjacency::parse(&shifted[offset..], 3).unwrap();
            assert_eq!(adjacency.row(0).unwrap(), &edges[..2]);
            assert_eq!(adjacency.row(1).unwrap(), []);
            assert_eq!(adjacency.row(2).unwrap(), &edges[2..]);
            let no_row = |row| FormatError::NoRow { row, node_count: 3 };
            assert_eq!(adjacency.row(3), Err(no_row(3)));
            assert_eq!(adjacency.row(usize::MAX), Err(no_row(usize::MAX as u64)));
            assert_eq!(adjacency.verify(3), Ok(Targets::default()));
            assert_eq!(adjacency.verify(1).unwrap().first, Some((0, 1)));
            assert_eq!(adjacency.check(3), Ok(()));
            let beyond = FormatError::EdgeTarget { edge: 1, target: 2, node_count: 2 };
            assert_eq!(adjacency.check(2), Err(beyond));
        }
    }

    #[test]
    fn pointers_out_of_order_are_named() {
        let edges = [Edge::new(0, Relation::Causal, 0.5); 2];
        let stored = bytes(&[0, 3, 1, 2], &edges);
        let adjacency = Adjacency::parse(&stored, 3).unwrap();
        let bad = |row, start, end| FormatError::RowPointers { row, start, end, edge_count: 2 };
        assert_eq!(adjacency.row(0), Err(bad(0, 0, 3)));
        assert_eq!(adjacency.row(1), Err(bad(1, 3, 1)));
        assert_eq!(adjacency.row(2).unwrap().len(), 1);
        assert_eq!(adjacency.verify(3), Err(bad(0, 0, 3)));
        assert_eq!(adjacency.check(3), Err(bad(0, 0, 3)));
        let stored = bytes(&[1, 2], &edges);
        let late = Adjacency::parse(&stored, 1).unwrap();
        assert!(matches!(late.verify(1), Err(FormatError::RowPointers { row: 0, .. })));
    }

    #[test]
    fn padding_that_is_not_zero_is_named() {
        let mut stored = bytes(&[0, 1], &[Edge::new(0, Relation::Causal, 0.5)]);
        stored[16 + 10] = 1;
        let adjacency = Adjacency::parse(&stored, 1).unwrap();
        let expected = FormatError::NotZero { region: Region::Edges, offset: 16 + 9 };
        assert_eq!(adjacency.verify(1), Err(expected));
    }

    #[test]
    fn every_prefix_is_truncated_and_no_count_wraps() {
        let stored = bytes(&[0, 1], &[Edge::new(0, Relation::Causal, 0.5)]);
        for have in 0..stored.len() {
            let error = Adjacency::parse(&stored[..have], 1).unwrap_err();
            assert!(matches!(error, FormatError::Truncated { .. }), "{have}");
        }
        assert!(Adjacency::parse(&stored, u64::MAX).is_err());
        for last in [u64::MAX, u64::MAX / 12 + 2, 1 << 61] {
            assert!(Adjacency::parse(&bytes(&[0, last], &[]), 1).is_err(), "{last}");
        }
    }
}
