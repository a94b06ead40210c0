//! Making a segment: nodes in order, edges in any, then all regions at once.

mod encoded;
mod quantize;
mod regions;
#[cfg(feature = "std")]
mod stream;

pub use encoded::EncodedSegment;
#[cfg(feature = "std")]
pub use stream::{SegmentWriteError, SegmentWriter};

use alloc::vec::Vec;
use core::iter;

use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use self::encoded::Part;
use self::regions::{Rows, append_tree, bloom, pad};
use crate::build_error::BuildError;
use crate::columns::{MAX_NODES, Outcome};
use crate::edges::{Edge, Relation};
use crate::embedding::Dtype;
use crate::encryption::Encryption;
use crate::header::{Compression, Flags};
use crate::region::Region;

/// The options of building a segment.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// A number for the segment.
    pub segment_id: u64,
    /// The time of creation, in nanoseconds since 1970.
    pub created_at: u64,
    /// Components of each vector; 0 for nodes without vectors.
    pub dim: u32,
    /// The type of stored components.
    pub dtype: Dtype,
    /// The segment is the result of merging others.
    pub is_compacted: bool,
    /// Add trees over ids and timestamps.
    pub index: bool,
    /// Add the edges by target.
    pub reverse: bool,
    /// Compress regions that become smaller.
    pub compression: Compression,
    /// Encrypt every region.
    pub encryption: Option<Encryption>,
}

/// A node to be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node<'a> {
    /// A UUID in the order of its text form.
    pub id: [u8; 16],
    /// Nanoseconds since 1970.
    pub timestamp: u64,
    /// Opaque.
    pub context_hash: u64,
    /// The confidence of the extraction.
    pub confidence: f32,
    /// The outcome of the node.
    pub outcome: Outcome,
    /// Its text. There is a string table when some node has one; the others then have an empty
    /// text.
    pub text: Option<&'a str>,
}

/// Several nodes to be written, by column. All slices have one length, `vectors` that times the
/// number of components.
#[derive(Clone, Copy, Debug)]
pub struct NodeColumns<'a> {
    /// UUIDs in the order of their text form.
    pub ids: &'a [[u8; 16]],
    /// Nanoseconds since 1970.
    pub timestamps: &'a [u64],
    /// Opaque.
    pub context_hashes: &'a [u64],
    /// The confidence of the extraction.
    pub confidences: &'a [f32],
    /// The outcomes of the nodes.
    pub outcomes: &'a [Outcome],
    /// One vector after the other.
    pub vectors: &'a [f32],
}

/// Collects nodes and edges.
///
/// ```
/// use tbf_format::{BuildOptions, Node, Outcome, Relation, Segment, SegmentBuilder};
///
/// let mut builder = SegmentBuilder::new(BuildOptions { dim: 3, ..BuildOptions::default() });
/// let node = |id, timestamp| Node {
///     id: [id; 16],
///     timestamp,
///     context_hash: 0,
///     confidence: 1.0,
///     outcome: Outcome::Success,
///     text: None,
/// };
/// builder.push(&node(1, 1000), &[1.0, 0.0, 0.0])?;
/// builder.push(&node(2, 2000), &[0.0, 1.0, 0.0])?;
/// builder.push_edge(0, 1, Relation::Causal, 0.9);
/// let file = builder.finish()?.to_bytes();
///
/// let segment = Segment::open(&file)?;
/// assert_eq!(segment.find(&[2; 16])?, Some(1));
/// assert_eq!(segment.edges(0)?[0].target(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SegmentBuilder {
    options: BuildOptions,
    ids: Vec<[u8; 16]>,
    timestamps: Vec<U64>,
    context_hashes: Vec<U64>,
    confidences: Vec<[u8; 4]>,
    outcomes: Vec<u8>,
    /// Vectors as they will stand in the file, padding included.
    vectors: Vec<u8>,
    edges: Vec<(u32, Edge)>,
    texts: Texts,
}

#[derive(Debug, Default)]
struct Texts {
    is_used: bool,
    ends: Vec<U64>,
    bytes: Vec<u8>,
}

impl SegmentBuilder {
    /// A builder without nodes.
    pub fn new(options: BuildOptions) -> Self {
        Self {
            options,
            ids: Vec::new(),
            timestamps: Vec::new(),
            context_hashes: Vec::new(),
            confidences: Vec::new(),
            outcomes: Vec::new(),
            vectors: Vec::new(),
            edges: Vec::new(),
            texts: Texts::default(),
        }
    }

    /// How many nodes there are so far.
    pub fn node_count(&self) -> u32 {
        // `push` stops at `MAX_NODES`, the largest 32-bit number.
        u32::try_from(self.ids.len()).unwrap_or(u32::MAX)
    }

    /// Adds a node with its vector and returns its row.
    ///
    /// # Errors
    /// [`BuildError::VectorLength`], [`BuildError::Component`] or [`BuildError::TooManyNodes`];
    /// the node is then not added.
    pub fn push(&mut self, node: &Node<'_>, vector: &[f32]) -> Result<u32, BuildError> {
        let row = self.next_row()?;
        let BuildOptions { dim, dtype, .. } = self.options;
        let expected = u64::from(dim);
        let found = vector.len() as u64;
        if expected != found {
            return Err(BuildError::VectorLength { row: row.into(), expected, found });
        }
        quantize::append_vector(&mut self.vectors, vector, dtype).map_err(|component| {
            let value = vector.get(component).copied().unwrap_or(f32::NAN);
            BuildError::Component { row: row.into(), component: component as u64, value, dtype }
        })?;
        self.push_fields(node);
        Ok(row)
    }

    /// Adds a node with a vector as another segment of the same type and number of components
    /// stores it ([`Embeddings::vector_bytes`](crate::Embeddings::vector_bytes)), so that no
    /// rounding changes it. Returns the row.
    ///
    /// # Errors
    /// [`BuildError::VectorBytes`] or [`BuildError::TooManyNodes`]; the node is then not added.
    pub fn push_stored(&mut self, node: &Node<'_>, vector: &[u8]) -> Result<u32, BuildError> {
        let row = self.next_row()?;
        let BuildOptions { dim, dtype, .. } = self.options;
        let expected = dtype.vector_bytes(dim);
        let found = vector.len() as u64;
        if expected != found {
            return Err(BuildError::VectorBytes { row: row.into(), expected, found });
        }
        self.vectors.extend(vector);
        pad(&mut self.vectors);
        self.push_fields(node);
        Ok(row)
    }

    /// The row of the next node.
    fn next_row(&self) -> Result<u32, BuildError> {
        let row = self.node_count();
        if u64::from(row) == MAX_NODES {
            return Err(BuildError::TooManyNodes { limit: MAX_NODES });
        }
        Ok(row)
    }

    /// Adds all of a node but its vector.
    fn push_fields(&mut self, node: &Node<'_>) {
        self.ids.push(node.id);
        self.timestamps.push(U64::new(node.timestamp));
        self.context_hashes.push(U64::new(node.context_hash));
        self.confidences.push(node.confidence.to_le_bytes());
        self.outcomes.push(node.outcome.code());
        self.texts.is_used |= node.text.is_some();
        self.texts.bytes.extend(node.text.unwrap_or_default().as_bytes());
        self.texts.ends.push(U64::new(self.texts.bytes.len() as u64));
    }

    /// Adds nodes without texts, given by column.
    ///
    /// # Errors
    /// [`BuildError::ColumnLength`], and no node is added; otherwise as for [`push`](Self::push),
    /// and those before the node at fault are.
    pub fn push_columns(&mut self, columns: &NodeColumns<'_>) -> Result<(), BuildError> {
        let NodeColumns { ids, timestamps, context_hashes, confidences, outcomes, vectors } =
            *columns;
        // A `u32` fits into `usize` wherever this many components fit into memory.
        let dim = usize::try_from(self.options.dim).unwrap_or(usize::MAX);
        let lengths = [
            ("timestamp", timestamps.len(), ids.len()),
            ("context_hash", context_hashes.len(), ids.len()),
            ("confidence", confidences.len(), ids.len()),
            ("outcome_status", outcomes.len(), ids.len()),
            ("components of vectors", vectors.len(), ids.len().saturating_mul(dim)),
        ];
        for (column, found, expected) in lengths {
            if found != expected {
                let expected = expected as u64;
                let found = found as u64;
                return Err(BuildError::ColumnLength { column, expected, found });
            }
        }
        let mut vectors = vectors.chunks_exact(dim.max(1));
        let rows = ids.iter().zip(timestamps).zip(context_hashes).zip(confidences).zip(outcomes);
        for ((((&id, &timestamp), &context_hash), &confidence), &outcome) in rows {
            let node = Node { id, timestamp, context_hash, confidence, outcome, text: None };
            self.push(&node, vectors.next().unwrap_or_default())?;
        }
        Ok(())
    }

    /// Adds an edge. Its nodes may be added later.
    pub fn push_edge(&mut self, source: u32, target: u32, relation: Relation, weight: f32) {
        self.edges.push((source, Edge::new(target, relation, weight)));
    }

    /// Makes the segment.
    ///
    /// # Errors
    /// [`BuildError::EdgeEnd`] or [`BuildError::DuplicateId`]; [`BuildError::Unsupported`] or
    /// [`BuildError::TooLongToEncrypt`].
    pub fn finish(self) -> Result<EncodedSegment, BuildError> {
        self.encode(None)
    }

    /// The segment after vectors that are written.
    fn encode(self, written: Option<Part>) -> Result<EncodedSegment, BuildError> {
        self.check_edges()?;
        let by_id = self.rows_by_id()?;
        let mut flags = Flags::NONE;
        let pending = Outcome::Pending.code();
        for (flag, is_set) in [
            (Flags::HAS_OUTCOMES, self.outcomes.iter().any(|&code| code != pending)),
            (Flags::HAS_EMBEDDINGS, written.is_some() || !self.vectors.is_empty()),
            (Flags::IS_COMPACTED, self.options.is_compacted),
            (Flags::IS_ENCRYPTED, self.options.encryption.is_some()),
            (Flags::HAS_REVERSE, self.options.reverse),
        ] {
            flags = if is_set { flags | flag } else { flags };
        }
        let mut regions = Vec::from([(Region::Nodes, self.node_region())]);
        regions.push((Region::Edges, self.edge_region()));
        regions.push((Region::Bloom, bloom(self.node_count(), self.ids.iter())));
        if self.texts.is_used {
            regions.push((Region::Strings, self.string_region()));
        }
        if self.options.index {
            regions.push((Region::Index, self.index_region(&by_id)));
        }
        let node_count = self.node_count().into();
        let edge_count = self.edges.len() as u64;
        if !self.vectors.is_empty() {
            regions.insert(1, (Region::Embeddings, self.vectors));
        }
        let counts = encoded::Counts { node_count, edge_count, flags };
        EncodedSegment::new(&self.options, counts, written, regions)
    }

    fn check_edges(&self) -> Result<(), BuildError> {
        let count = self.node_count();
        let outside = |(source, edge): &(u32, Edge)| *source >= count || edge.target() >= count;
        match self.edges.iter().enumerate().find(|(_, edge)| outside(edge)) {
            Some((number, (source, edge))) => Err(BuildError::EdgeEnd {
                edge: number as u64,
                source_row: *source,
                target_row: edge.target(),
                node_count: count.into(),
            }),
            None => Ok(()),
        }
    }

    /// The rows in the order of their ids.
    fn rows_by_id(&self) -> Result<Vec<u32>, BuildError> {
        let mut rows: Vec<(&[u8; 16], u32)> = self.ids.iter().zip(0..).collect();
        rows.sort_unstable();
        for ((id, first), (next, second)) in rows.iter().zip(rows.iter().skip(1)) {
            if id == next {
                return Err(BuildError::DuplicateId { first: *first, second: *second });
            }
        }
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    fn node_region(&self) -> Vec<u8> {
        let mut out = self.ids.as_bytes().to_vec();
        for column in [
            self.timestamps.as_bytes(),
            self.context_hashes.as_bytes(),
            self.confidences.as_bytes(),
            &self.outcomes,
        ] {
            pad(&mut out);
            out.extend(column);
        }
        out
    }

    fn edge_region(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let rows = Rows::new(self.ids.len(), &self.edges);
        rows.append_to(&mut out);
        if self.options.reverse {
            pad(&mut out);
            rows.transposed().append_to(&mut out);
        }
        out
    }

    fn string_region(&self) -> Vec<u8> {
        [self.texts.ends.as_bytes(), &self.texts.bytes].concat()
    }

    fn index_region(&self, by_id: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        let ids = by_id.iter().filter_map(|&row| self.ids.get(row as usize).copied());
        append_tree(&mut out, &ids.collect::<Vec<_>>(), by_id);
        let mut by_time: Vec<(u64, u32)> =
            iter::zip(self.timestamps.iter().map(|time| time.get()), 0..).collect();
        by_time.sort_unstable();
        let times: Vec<U64> = by_time.iter().map(|&(time, _)| U64::new(time)).collect();
        let rows: Vec<u32> = by_time.iter().map(|&(_, row)| row).collect();
        append_tree(&mut out, &times, &rows);
        out
    }
}
