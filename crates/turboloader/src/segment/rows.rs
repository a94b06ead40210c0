//! Rows of Arrow arrays as nodes and edges of a segment.

mod cells;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use tbf_format::{Node, Outcome, Relation};
use tbl_io::ErrorKind;
use tl_pipeline::Fault;
use uuid::Uuid;

use super::error::SegmentError;
use super::output::{SegmentFile, SegmentSettings, SegmentSummary};
use cells::{Cells, Floats, Ids, Integers, Lists};

/// The reason why rows do not become a segment.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// The segment cannot be read or written.
    #[error(transparent)]
    Segment(Box<SegmentError>),
    /// Arrays cannot be made.
    #[error("{0}")]
    Arrow(arrow_schema::ArrowError),
    /// A column that was asked for.
    #[error("no column {name:?}")]
    NoColumn { name: String },
    /// A column that segments do not have.
    #[error(
        "column {name:?} has no place in a segment, whose columns are {expected}; \
         choose columns, or name the use of this one"
    )]
    NoPlace { name: String, expected: String },
    /// A column that is needed.
    #[error("no column {name:?}, which {what} need")]
    Needed { name: &'static str, what: &'static str },
    /// Two columns for one use.
    #[error("two columns are {name:?}")]
    Twice { name: &'static str },
    /// A column of another type.
    #[error("column {column:?} is {found}, expected {expected}")]
    Type { column: &'static str, found: Box<DataType>, expected: &'static str },
    /// A missing value.
    #[error("column {column:?}, row {row}: missing value, expected {expected}")]
    Missing { column: &'static str, row: u64, expected: &'static str },
    /// A value out of range.
    #[error("column {column:?}, row {row}: invalid value {value}, expected {expected}")]
    Value { column: &'static str, row: u64, value: String, expected: &'static str },
    /// Lists of edges of different lengths.
    #[error("column {column:?}, row {row}: {found} values for {expected} edges")]
    EdgeLists { column: &'static str, row: u64, found: usize, expected: usize },
    /// An edge from or to an id that no node has.
    #[error("column {column:?}, row {row}: no node has the id {id}")]
    NoNode { column: &'static str, row: u64, id: Uuid },
    /// A node with more edges than a list takes.
    #[error("row {row}: {count} edges, more than a list holds")]
    Edges { row: u64, count: usize },
    /// Vectors of more components than a list takes.
    #[error("vectors of {dim} components, more than a list holds")]
    Components { dim: usize },
}

impl NodeError {
    /// Whether the data is at fault, and not the usage or the system.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Segment(error) => error.kind() == ErrorKind::Data,
            Self::Missing { .. }
            | Self::Value { .. }
            | Self::EdgeLists { .. }
            | Self::NoNode { .. }
            | Self::Arrow(_) => true,
            Self::NoColumn { .. }
            | Self::NoPlace { .. }
            | Self::Needed { .. }
            | Self::Twice { .. }
            | Self::Type { .. }
            | Self::Edges { .. }
            | Self::Components { .. } => false,
        }
    }
}

/// The uses of columns that have other names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeNames(pub(crate) Vec<(String, String)>);

impl NodeNames {
    /// The use of a column: the name that is given for it, or its own.
    fn of<'n>(&'n self, column: &'n str) -> &'n str {
        let given = self.0.iter().find(|(_, name)| name == column);
        given.map_or(column, |(of, _)| of)
    }
}

const ID: &str = "id";
const TIMESTAMP: &str = "timestamp";
const CONTEXT_HASH: &str = "context_hash";
const CONFIDENCE: &str = "confidence";
const OUTCOME: &str = "outcome_status";
const EMBEDDING: &str = "embedding";
const TEXT: &str = "text";
const EDGE_TARGET: &str = "edge_target";
const EDGE_RELATION: &str = "edge_relation";
const EDGE_WEIGHT: &str = "edge_weight";
const COLUMNS: [&str; 10] = [
    ID,
    TIMESTAMP,
    CONTEXT_HASH,
    CONFIDENCE,
    OUTCOME,
    EMBEDDING,
    TEXT,
    EDGE_TARGET,
    EDGE_RELATION,
    EDGE_WEIGHT,
];
const SOURCE: &str = "source";
const TARGET: &str = "target";
const RELATION: &str = "relation";
const WEIGHT: &str = "weight";
const EDGE_COLUMNS: [&str; 4] = [SOURCE, TARGET, RELATION, WEIGHT];

/// The place of each known column in a schema.
#[derive(Debug)]
struct Uses {
    places: Vec<(&'static str, usize)>,
}

impl Uses {
    fn new(schema: &Schema, known: &[&'static str], names: &NodeNames) -> Result<Self, NodeError> {
        let mut places: Vec<(&'static str, usize)> = Vec::new();
        for (place, field) in schema.fields().iter().enumerate() {
            let wanted = names.of(field.name());
            let Some(name) = known.iter().copied().find(|name| *name == wanted) else {
                let expected = known.join(", ");
                return Err(NodeError::NoPlace { name: field.name().clone(), expected });
            };
            if places.iter().any(|&(found, _)| found == name) {
                return Err(NodeError::Twice { name });
            }
            places.push((name, place));
        }
        Ok(Self { places })
    }

    /// The array of a column, if there is one.
    fn column<'b>(&self, batch: &'b RecordBatch, name: &str) -> Option<&'b dyn Array> {
        let place = self.places.iter().find(|&&(found, _)| found == name)?.1;
        batch.columns().get(place).map(|array| &**array)
    }

    fn needed(&self, name: &'static str, what: &'static str) -> Result<(), NodeError> {
        let is_there = self.places.iter().any(|&(found, _)| found == name);
        if is_there { Ok(()) } else { Err(NodeError::Needed { name, what }) }
    }
}

/// Writes rows as nodes. The segment is begun when the number of components is known.
#[derive(Debug)]
pub(crate) struct NodeRows {
    path: PathBuf,
    settings: SegmentSettings,
    uses: Uses,
    dim: Option<u32>,
    file: Option<SegmentFile>,
    /// The rows of ids, if edges name their ends by id.
    rows: Option<HashMap<[u8; 16], u32>>,
    is_compacted: bool,
    done: u64,
}

impl NodeRows {
    /// A writer of rows of this schema.
    pub(crate) fn new(
        path: &Path,
        settings: &SegmentSettings,
        schema: &Schema,
        names: &NodeNames,
    ) -> Result<Self, NodeError> {
        let uses = Uses::new(schema, &COLUMNS, names)?;
        uses.needed(ID, "nodes")?;
        for name in [EDGE_RELATION, EDGE_WEIGHT] {
            if uses.needed(name, "").is_ok() {
                uses.needed(EDGE_TARGET, "edges")?;
            }
        }
        let dim = schema.fields().iter().find_map(|field| {
            let DataType::FixedSizeList(_, length) = field.data_type() else { return None };
            let is_wanted = names.of(field.name()) == EMBEDDING;
            u32::try_from(*length).ok().filter(|_| is_wanted)
        });
        let path = path.to_owned();
        let settings = settings.clone();
        Ok(Self { path, settings, uses, dim, file: None, rows: None, is_compacted: false, done: 0 })
    }

    /// Keeps the rows of ids, so that edges may be added by id.
    pub(crate) fn keep_ids(&mut self) {
        self.rows = Some(HashMap::new());
    }

    /// Marks the segment as compacted, because its source is.
    pub(crate) fn mark_compacted(&mut self) {
        self.is_compacted = true;
    }

    /// Adds all rows of a batch.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<(), NodeError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let base = self.done;
        let cell = |name| self.uses.column(batch, name);
        let ids = Ids::new(ID, cell(ID), base)?;
        let timestamps = Integers::times(TIMESTAMP, cell(TIMESTAMP), base)?;
        let hashes = Integers::new(CONTEXT_HASH, cell(CONTEXT_HASH), base)?;
        let confidences = Floats::new(CONFIDENCE, cell(CONFIDENCE), base)?;
        let outcomes = Cells::codes(OUTCOME, cell(OUTCOME), base, outcome_of)?;
        let vectors = Lists::new(EMBEDDING, cell(EMBEDDING), base)?;
        let components = vectors.as_ref().map(Lists::floats).transpose()?;
        let texts = cells::texts(TEXT, cell(TEXT))?;
        let edges = EdgeLists::new(&self.uses, batch, base)?;
        let dim = match (self.dim, &vectors) {
            (Some(dim), _) => dim,
            (None, None) => 0,
            (None, Some(lists)) => u32::try_from(lists.range(0)?.len()).unwrap_or(u32::MAX),
        };
        self.dim = Some(dim);
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let is_compacted = self.is_compacted;
                let path = &self.path;
                self.file.insert(SegmentFile::create_as(path, &self.settings, dim, is_compacted)?)
            }
        };
        let mut vector = Vec::new();
        for row in 0..batch.num_rows() {
            let id = ids.needed(row)?;
            let node = Node {
                id,
                timestamp: timestamps.or(row, 0)?,
                context_hash: hashes.or(row, 0)?,
                confidence: confidences.or(row, 1.0)?,
                outcome: Outcome::from_code(outcomes.or(row, 0)?),
                text: texts.as_ref().and_then(|texts| texts(row)),
            };
            vector.clear();
            if let (Some(lists), Some(components)) = (&vectors, &components) {
                components.append(lists.range(row)?, row, &mut vector)?;
            }
            let number = file.push(&node, &vector)?;
            if let Some(rows) = &mut self.rows {
                rows.insert(id, number);
            }
            if let Some(edges) = &edges {
                edges.push(row, number, file)?;
            }
        }
        self.done += batch.num_rows() as u64;
        Ok(())
    }

    /// Gives the file its name.
    pub(crate) fn finish(mut self) -> Result<SegmentSummary, NodeError> {
        Ok(self.file()?.finish()?)
    }

    /// The segment, also begun without a row.
    fn file(&mut self) -> Result<SegmentFile, NodeError> {
        match self.file.take() {
            Some(file) => Ok(file),
            None => {
                let dim = self.dim.unwrap_or(0);
                let is_compacted = self.is_compacted;
                Ok(SegmentFile::create_as(&self.path, &self.settings, dim, is_compacted)?)
            }
        }
    }
}

/// The edges of nodes as lists.
struct EdgeLists<'a> {
    targets: (Lists<'a>, Integers<'a>),
    relations: Option<(Lists<'a>, Cells<'a>)>,
    weights: Option<(Lists<'a>, Floats<'a>)>,
}

impl<'a> EdgeLists<'a> {
    fn new(uses: &Uses, batch: &'a RecordBatch, base: u64) -> Result<Option<Self>, NodeError> {
        let lists = |name| Lists::new(name, uses.column(batch, name), base);
        let Some(list) = lists(EDGE_TARGET)? else { return Ok(None) };
        let numbers = Integers::new(EDGE_TARGET, Some(list.values), base)?;
        let targets = (list, numbers);
        let relations = match lists(EDGE_RELATION)? {
            Some(list) => {
                let codes = Cells::codes(EDGE_RELATION, Some(list.values), base, relation_of)?;
                Some((list, codes))
            }
            None => None,
        };
        let weights = match lists(EDGE_WEIGHT)? {
            Some(list) => {
                let numbers = list.floats()?;
                Some((list, numbers))
            }
            None => None,
        };
        Ok(Some(Self { targets, relations, weights }))
    }

    /// Adds the edges of a row.
    fn push(&self, row: usize, source: u32, file: &mut SegmentFile) -> Result<(), NodeError> {
        let (lists, targets) = &self.targets;
        let places = lists.range(row)?;
        let expected = places.len();
        let mut relations = 0..0;
        if let Some((lists, _)) = &self.relations {
            relations = lists.range_of(row, expected)?;
        }
        let mut weights = 0..0;
        if let Some((lists, _)) = &self.weights {
            weights = lists.range_of(row, expected)?;
        }
        for place in places {
            let target = targets.at(place, row, u64::MAX)?;
            let target = u32::try_from(target)
                .map_err(|_| targets.invalid(row, &target, "the row of a node"))?;
            let relation = match (&self.relations, relations.next()) {
                (Some((_, codes)), Some(place)) => codes.at(place, row, 0)?,
                _ => 0,
            };
            let weight = match (&self.weights, weights.next()) {
                (Some((_, numbers)), Some(place)) => numbers.at(place, row, 1.0)?,
                _ => 1.0,
            };
            file.push_edge(source, target, Relation::from_code(relation), weight);
        }
        Ok(())
    }
}

/// Adds rows of a table of edges.
#[derive(Debug)]
pub(crate) struct EdgeRows {
    uses: Uses,
    done: u64,
}

impl EdgeRows {
    /// A reader of rows of this schema.
    pub(crate) fn new(schema: &Schema) -> Result<Self, NodeError> {
        let uses = Uses::new(schema, &EDGE_COLUMNS, &NodeNames::default())?;
        uses.needed(SOURCE, "edges")?;
        uses.needed(TARGET, "edges")?;
        Ok(Self { uses, done: 0 })
    }

    /// Adds all rows of a batch to the nodes.
    pub(crate) fn push(
        &mut self,
        batch: &RecordBatch,
        nodes: &mut NodeRows,
    ) -> Result<(), NodeError> {
        let base = self.done;
        let cell = |name| self.uses.column(batch, name);
        let sources = Ends::new(SOURCE, cell(SOURCE), base)?;
        let targets = Ends::new(TARGET, cell(TARGET), base)?;
        let relations = Cells::codes(RELATION, cell(RELATION), base, relation_of)?;
        let weights = Floats::new(WEIGHT, cell(WEIGHT), base)?;
        let mut file = nodes.file()?;
        for row in 0..batch.num_rows() {
            let source = sources.row(row, nodes.rows.as_ref())?;
            let target = targets.row(row, nodes.rows.as_ref())?;
            let relation = Relation::from_code(relations.or(row, 0)?);
            file.push_edge(source, target, relation, weights.or(row, 1.0)?);
        }
        nodes.file = Some(file);
        self.done += batch.num_rows() as u64;
        Ok(())
    }
}

/// Ends of edges: rows of nodes, or their ids.
enum Ends<'a> {
    Rows(Integers<'a>),
    Ids(Ids<'a>),
}

impl<'a> Ends<'a> {
    fn new(name: &'static str, array: Option<&'a dyn Array>, base: u64) -> Result<Self, NodeError> {
        if array.is_some_and(|array| array.data_type().is_integer()) {
            return Ok(Self::Rows(Integers::new(name, array, base)?));
        }
        Ok(Self::Ids(Ids::new(name, array, base)?))
    }

    fn row(&self, row: usize, rows: Option<&HashMap<[u8; 16], u32>>) -> Result<u32, NodeError> {
        match self {
            Self::Rows(numbers) => {
                let number = numbers.or(row, u64::MAX)?;
                u32::try_from(number)
                    .map_err(|_| numbers.invalid(row, &number, "the row of a node"))
            }
            Self::Ids(ids) => {
                let id = ids.needed(row)?;
                let found = rows.and_then(|rows| rows.get(&id)).copied();
                found.ok_or_else(|| ids.no_node(row, id))
            }
        }
    }
}

/// The code of an outcome by its name.
fn outcome_of(name: &str) -> Option<u8> {
    ["pending", "success", "failure", "partial"]
        .iter()
        .zip(0..)
        .find(|(n, _)| **n == name)
        .map(|(_, code)| code)
}

/// The code of a relation by its name.
fn relation_of(name: &str) -> Option<u8> {
    ["causal", "temporal", "dependency", "retry", "branch"]
        .iter()
        .zip(0..)
        .find(|(n, _)| **n == name)
        .map(|(_, code)| code)
}
