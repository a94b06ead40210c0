//! Segments as Arrow arrays: a row for each node, with its edges as lists.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{Float32Builder, ListBuilder, UInt8Builder, UInt32Builder};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt8Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tbf_format::{Adjacency, Columns, Embeddings, FormatError, Region, Segment, Strings};
use uuid::Uuid;

use super::error::SegmentError;
use super::input::SegmentInput;
use super::rows::NodeError;

/// Rows of a batch at most.
const ROWS: usize = 4096;

/// Bytes of a batch's vectors, unless one vector is larger.
const VECTOR_BYTES: usize = 16 << 20;

/// Edges of a batch, unless one node has more.
const EDGES: usize = 1 << 20;

/// A column of a segment as an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Id,
    Timestamp,
    ContextHash,
    Confidence,
    Outcome,
    Embedding,
    Text,
    EdgeTarget,
    EdgeRelation,
    EdgeWeight,
}

impl Part {
    const ALL: [Self; 10] = [
        Self::Id,
        Self::Timestamp,
        Self::ContextHash,
        Self::Confidence,
        Self::Outcome,
        Self::Embedding,
        Self::Text,
        Self::EdgeTarget,
        Self::EdgeRelation,
        Self::EdgeWeight,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Timestamp => "timestamp",
            Self::ContextHash => "context_hash",
            Self::Confidence => "confidence",
            Self::Outcome => "outcome_status",
            Self::Embedding => "embedding",
            Self::Text => "text",
            Self::EdgeTarget => "edge_target",
            Self::EdgeRelation => "edge_relation",
            Self::EdgeWeight => "edge_weight",
        }
    }

    fn is_of_edges(self) -> bool {
        matches!(self, Self::EdgeTarget | Self::EdgeRelation | Self::EdgeWeight)
    }
}

/// The views of a segment whose rows become batches.
pub(crate) struct SegmentBatches<'a> {
    input: &'a SegmentInput,
    columns: Columns<'a>,
    vectors: Option<Embeddings<'a>>,
    strings: Option<Strings<'a>>,
    edges: Adjacency<'a>,
    parts: Vec<Part>,
    dim: i32,
    rows: usize,
}

impl<'a> SegmentBatches<'a> {
    /// Regions that have to be unpacked.
    pub(crate) const REGIONS: [Region; 4] =
        [Region::Nodes, Region::Embeddings, Region::Edges, Region::Strings];

    /// The columns of these names, or all that the segment has.
    pub(crate) fn new(
        input: &'a SegmentInput,
        segment: &'a Segment<'a>,
        names: &[String],
    ) -> Result<Self, NodeError> {
        let fault = |error| NodeError::from(input.fault(error));
        let columns = segment.columns().map_err(fault)?;
        let has = |region| segment.has(region);
        let vectors =
            if has(Region::Embeddings) { Some(segment.embeddings().map_err(fault)?) } else { None };
        let strings =
            if has(Region::Strings) { Some(segment.strings().map_err(fault)?) } else { None };
        let edges = segment.outgoing().map_err(fault)?;
        edges.check(segment.node_count()).map_err(fault)?;
        let exists = |part: &Part| match part {
            Part::Embedding => vectors.is_some(),
            Part::Text => strings.is_some(),
            Part::EdgeTarget | Part::EdgeRelation | Part::EdgeWeight => !edges.edges().is_empty(),
            Part::Id | Part::Timestamp | Part::ContextHash | Part::Confidence | Part::Outcome => {
                true
            }
        };
        let all: Vec<Part> = Part::ALL.into_iter().filter(exists).collect();
        let find = |name: &String| {
            let found = all.iter().copied().find(|part| part.name() == name);
            found.ok_or_else(|| NodeError::NoColumn { name: name.clone() })
        };
        let parts = if names.is_empty() {
            all.clone()
        } else {
            names.iter().map(find).collect::<Result<_, _>>()?
        };
        let dim = vectors.as_ref().map_or(0, Embeddings::dim);
        let dim = i32::try_from(dim).map_err(|_| NodeError::Components { dim })?;
        let rows = columns.len();
        Ok(Self { input, columns, vectors, strings, edges, parts, dim, rows })
    }

    /// Rows of the segment.
    pub(crate) fn row_count(&self) -> u64 {
        self.rows as u64
    }

    /// Leaves out the columns of edges. Returns how many edges there are.
    pub(crate) fn leave_out_edges(&mut self) -> u64 {
        let before = self.parts.len();
        self.parts.retain(|part| !part.is_of_edges());
        if self.parts.len() < before { self.edges.edges().len() as u64 } else { 0 }
    }

    /// The names and types of the columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |part: &Part| {
            let list = |item| DataType::List(Arc::new(Field::new("item", item, false)));
            let data_type = match part {
                Part::Id | Part::Text => DataType::Utf8,
                Part::Timestamp | Part::ContextHash => DataType::UInt64,
                Part::Confidence => DataType::Float32,
                Part::Outcome => DataType::UInt8,
                Part::Embedding => DataType::FixedSizeList(component_field(), self.dim),
                Part::EdgeTarget => list(DataType::UInt32),
                Part::EdgeRelation => list(DataType::UInt8),
                Part::EdgeWeight => list(DataType::Float32),
            };
            Field::new(part.name(), data_type, false)
        };
        Arc::new(Schema::new(self.parts.iter().map(field).collect::<Vec<_>>()))
    }

    /// Reads all rows, batch by batch.
    pub(crate) fn read<E: From<NodeError>>(
        &self,
        mut visit: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let schema = self.schema();
        let dim = usize::try_from(self.dim).unwrap_or(0);
        let most = (VECTOR_BYTES / (dim * size_of::<f32>()).max(1)).clamp(1, ROWS);
        let mut start = 0;
        while start < self.rows {
            let mut end = start;
            let mut edges = 0_usize;
            while end < self.rows && end - start < most {
                let count = self.edges_of(end)?.len();
                if i32::try_from(count).is_err() {
                    return Err(NodeError::Edges { row: end as u64, count }.into());
                }
                if end > start && edges.saturating_add(count) > EDGES {
                    break;
                }
                edges = edges.saturating_add(count);
                end += 1;
            }
            visit(self.batch(&schema, start..end)?)?;
            start = end;
        }
        self.input.check().map_err(NodeError::from)?;
        Ok(())
    }

    fn edges_of(&self, row: usize) -> Result<&'a [tbf_format::Edge], NodeError> {
        self.edges.row(row).map_err(|error| self.input.fault(error).into())
    }

    fn batch(&self, schema: &SchemaRef, rows: Range<usize>) -> Result<RecordBatch, NodeError> {
        let array = |part: &Part| self.array(*part, rows.clone());
        let arrays = self.parts.iter().map(array).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
            .map_err(NodeError::Arrow)
    }

    fn array(&self, part: Part, rows: Range<usize>) -> Result<ArrayRef, NodeError> {
        let absent = |row: usize| {
            let node_count = self.rows as u64;
            NodeError::from(self.input.fault(FormatError::NoRow { row: row as u64, node_count }))
        };
        let numbers = |values: tbf_format::Values<'_, u64>| {
            let found: Result<Vec<u64>, _> =
                rows.clone().map(|row| values.get(row).ok_or_else(|| absent(row))).collect();
            Ok::<ArrayRef, NodeError>(Arc::new(UInt64Array::from(found?)))
        };
        match part {
            Part::Id => {
                let ids = self.columns.ids();
                let text = |row| {
                    let id = ids.get(row).ok_or_else(|| absent(row))?;
                    Ok(Uuid::from_bytes(id).hyphenated().to_string())
                };
                let texts = rows.clone().map(text).collect::<Result<Vec<_>, NodeError>>()?;
                Ok(Arc::new(StringArray::from(texts)))
            }
            Part::Timestamp => numbers(self.columns.timestamps()),
            Part::ContextHash => numbers(self.columns.context_hashes()),
            Part::Confidence => {
                let values = self.columns.confidences();
                let found: Result<Vec<f32>, _> =
                    rows.clone().map(|row| values.get(row).ok_or_else(|| absent(row))).collect();
                Ok(Arc::new(Float32Array::from(found?)))
            }
            Part::Outcome => {
                let found = self.columns.outcomes().get(rows.clone());
                Ok(Arc::new(UInt8Array::from(found.ok_or_else(|| absent(rows.start))?.to_vec())))
            }
            Part::Embedding => self.vectors(rows),
            Part::Text => {
                let Some(strings) = &self.strings else { return Err(absent(rows.start)) };
                let texts = rows.map(|row| strings.row(row)).collect::<Result<Vec<_>, _>>();
                let texts = texts.map_err(|error| self.input.fault(error))?;
                Ok(Arc::new(StringArray::from(texts)))
            }
            Part::EdgeTarget | Part::EdgeRelation | Part::EdgeWeight => self.edge_lists(part, rows),
        }
    }

    fn vectors(&self, rows: Range<usize>) -> Result<ArrayRef, NodeError> {
        let dim = usize::try_from(self.dim).unwrap_or(0);
        let mut components = vec![0.0_f32; rows.len() * dim];
        if let Some(vectors) = &self.vectors {
            for (row, place) in rows.zip(components.chunks_exact_mut(dim.max(1))) {
                vectors.read_into(row, place).map_err(|error| self.input.fault(error))?;
            }
        }
        let values = Arc::new(Float32Array::from(components));
        let list = FixedSizeListArray::try_new(component_field(), self.dim, values, None);
        Ok(Arc::new(list.map_err(NodeError::Arrow)?))
    }

    fn edge_lists(&self, part: Part, rows: Range<usize>) -> Result<ArrayRef, NodeError> {
        let item = |data_type| Arc::new(Field::new("item", data_type, false));
        let mut targets = ListBuilder::new(UInt32Builder::new()).with_field(item(DataType::UInt32));
        let mut relations = ListBuilder::new(UInt8Builder::new()).with_field(item(DataType::UInt8));
        let mut weights =
            ListBuilder::new(Float32Builder::new()).with_field(item(DataType::Float32));
        for row in rows {
            for edge in self.edges_of(row)? {
                if part == Part::EdgeTarget {
                    targets.values().append_value(edge.target());
                } else if part == Part::EdgeRelation {
                    relations.values().append_value(edge.relation().code());
                } else {
                    weights.values().append_value(edge.weight());
                }
            }
            targets.append(true);
            relations.append(true);
            weights.append(true);
        }
        Ok(if part == Part::EdgeTarget {
            Arc::new(targets.finish())
        } else if part == Part::EdgeRelation {
            Arc::new(relations.finish())
        } else {
            Arc::new(weights.finish())
        })
    }
}

fn component_field() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Float32, false))
}

impl From<SegmentError> for NodeError {
    fn from(error: SegmentError) -> Self {
        Self::Segment(Box::new(error))
    }
}
