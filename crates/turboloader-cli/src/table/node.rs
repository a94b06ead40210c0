//! A node of a segment as JSON and as a line of a table.

use std::fmt;
use std::path::Path;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use tbf_format::{Adjacency, Columns, Embeddings, FormatError, Outcome, Region, Segment, Strings};
use tbl_io::Escaped;
use turboloader::DateTime;
use uuid::Uuid;

use super::failure::TableFailure;
use super::value::Single;
use super::{Heading, SegmentFile};
use crate::failure::Failure;
use crate::text::printable;

/// The properties of a node that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeColumn {
    /// Its id.
    Id,
    /// Nanoseconds since 1970.
    Timestamp,
    /// The same as text.
    Time,
    /// A number that is opaque to the format.
    ContextHash,
    /// The confidence of the extraction.
    Confidence,
    /// The outcome.
    OutcomeStatus,
    /// How many edges leave it.
    Edges,
    /// Its text.
    Text,
    /// Its vector.
    Embedding,
}

impl NodeColumn {
    /// All columns.
    pub(crate) const ALL: [Self; 9] = [
        Self::Id,
        Self::Timestamp,
        Self::Time,
        Self::ContextHash,
        Self::Confidence,
        Self::OutcomeStatus,
        Self::Edges,
        Self::Text,
        Self::Embedding,
    ];

    /// The columns that a table shows by default.
    pub(crate) const TABLE: [Self; 6] =
        [Self::Id, Self::Time, Self::OutcomeStatus, Self::Confidence, Self::Edges, Self::Text];

    /// The columns of a JSON list: all except vectors.
    pub(crate) fn list() -> &'static [Self] {
        Self::ALL.split_last().map_or(&[], |(_, columns)| columns)
    }

    /// The columns named; where none is, those of `default` that the segment has.
    pub(crate) fn choose(
        file: &SegmentFile,
        segment: &Segment<'_>,
        names: Option<&[String]>,
        default: &[Self],
    ) -> Result<Vec<Self>, Failure> {
        let Some(names) = names else {
            let there = default.iter().filter(|column| segment.has(column.region()));
            return Ok(there.copied().collect());
        };
        let find = |name: &String| {
            let path = file.path().to_owned();
            let name = name.clone();
            let known = Self::ALL.into_iter().find(|column| column.name() == name);
            known.ok_or_else(|| TableFailure::NoColumn { path, name }.into())
        };
        names.iter().map(find).collect()
    }

    /// Its name in the description of the format, where it has one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Timestamp => "timestamp",
            Self::Time => "time",
            Self::ContextHash => "context_hash",
            Self::Confidence => "confidence",
            Self::OutcomeStatus => "outcome_status",
            Self::Edges => "edges",
            Self::Text => "text",
            Self::Embedding => "embedding",
        }
    }

    /// The region that holds it.
    fn region(self) -> Region {
        match self {
            Self::Edges => Region::Edges,
            Self::Text => Region::Strings,
            Self::Embedding => Region::Embeddings,
            Self::Id
            | Self::Timestamp
            | Self::Time
            | Self::ContextHash
            | Self::Confidence
            | Self::OutcomeStatus => Region::Nodes,
        }
    }

    /// The column's heading in a table.
    pub(crate) fn heading(self) -> Heading {
        let (width, is_right) = match self {
            Self::Id => (36, false),
            Self::Time => (30, false),
            Self::Timestamp | Self::ContextHash => (20, true),
            Self::Confidence => (10, true),
            Self::OutcomeStatus => (14, false),
            Self::Edges => (6, true),
            Self::Text | Self::Embedding => (40, false),
        };
        Heading { name: self.name().to_owned(), width, is_right }
    }
}

/// The nodes of a segment, of which some columns are shown.
#[derive(Debug)]
pub(crate) struct Nodes<'s> {
    shown: Vec<NodeColumn>,
    columns: Columns<'s>,
    edges: Option<Adjacency<'s>>,
    texts: Option<Strings<'s>>,
    vectors: Option<Embeddings<'s>>,
}

impl<'s> Nodes<'s> {
    /// The regions that have to be unpacked to show these columns.
    pub(crate) fn regions(shown: &[NodeColumn]) -> Vec<Region> {
        let mut regions: Vec<Region> = shown.iter().map(|column| column.region()).collect();
        regions.extend([Region::Nodes]);
        regions.sort_unstable();
        regions.dedup();
        regions
    }

    /// The nodes of a segment whose [`regions`](Self::regions) are unpacked.
    pub(crate) fn new(segment: &'s Segment<'_>, shown: &[NodeColumn]) -> Result<Self, FormatError> {
        let has = |column| shown.contains(&column);
        let edges = has(NodeColumn::Edges).then(|| segment.outgoing()).transpose()?;
        let texts = has(NodeColumn::Text).then(|| segment.strings()).transpose()?;
        let vectors = has(NodeColumn::Embedding).then(|| segment.embeddings()).transpose()?;
        Ok(Self { columns: segment.columns()?, shown: shown.to_vec(), edges, texts, vectors })
    }

    /// The columns that are shown.
    pub(crate) fn shown(&self) -> &[NodeColumn] {
        &self.shown
    }

    /// The node of a row.
    ///
    /// # Errors
    /// [`FormatError::NoRow`], or what is wrong with its edges or its text.
    pub(crate) fn node(&self, row: u64) -> Result<Node<'s>, FormatError> {
        let cells = self.shown.iter().map(|&column| Ok((column.name(), self.value(row, column)?)));
        Ok(Node { row, cells: cells.collect::<Result<_, FormatError>>()? })
    }

    fn value(&self, number: u64, column: NodeColumn) -> Result<NodeValue<'s>, FormatError> {
        let no_row = FormatError::NoRow { row: number, node_count: self.columns.len() as u64 };
        let row = usize::try_from(number).map_err(|_| no_row.clone())?;
        let columns = &self.columns;
        let value = match column {
            NodeColumn::Id => columns.ids().get(row).map(|id| NodeValue::Id(Uuid::from_bytes(id))),
            NodeColumn::Timestamp => columns.timestamps().get(row).map(NodeValue::Number),
            NodeColumn::Time => columns.timestamps().get(row).map(NodeValue::Time),
            NodeColumn::ContextHash => columns.context_hashes().get(row).map(NodeValue::Number),
            NodeColumn::Confidence => columns.confidences().get(row).map(NodeValue::Float),
            NodeColumn::OutcomeStatus => columns
                .outcomes()
                .get(row)
                .map(|&code| NodeValue::Outcome(Outcome::from_code(code))),
            NodeColumn::Edges => match &self.edges {
                Some(edges) => Some(NodeValue::Number(edges.row(row)?.len() as u64)),
                None => None,
            },
            NodeColumn::Text => match &self.texts {
                Some(texts) => Some(NodeValue::Text(texts.row(row)?)),
                None => None,
            },
            NodeColumn::Embedding => match &self.vectors {
                Some(vectors) => {
                    let mut components = vec![0.0; vectors.dim()];
                    vectors.read_into(row, &mut components)?;
                    Some(NodeValue::Vector(components))
                }
                None => None,
            },
        };
        value.ok_or(no_row)
    }
}

/// The columns of a node to show.
#[derive(Debug)]
pub(crate) struct Node<'s> {
    row: u64,
    cells: Vec<(&'static str, NodeValue<'s>)>,
}

#[derive(Debug)]
enum NodeValue<'s> {
    Id(Uuid),
    Number(u64),
    Time(u64),
    Float(f32),
    Outcome(Outcome),
    Text(&'s str),
    Path(String),
    Vector(Vec<f32>),
}

impl Node<'_> {
    /// Adds how near the node is to what was asked for.
    pub(crate) fn with_score(mut self, score: f32) -> Self {
        self.cells.insert(0, ("score", NodeValue::Float(score)));
        self
    }

    /// Adds the segment that has the node.
    pub(crate) fn with_file(mut self, path: &Path) -> Self {
        let path = Escaped(path.as_os_str().as_encoded_bytes()).to_string();
        self.cells.insert(0, ("file", NodeValue::Path(path)));
        self
    }

    /// The cells of the node's line in a table, the row first.
    pub(crate) fn texts(&self) -> Vec<String> {
        let cells = self.cells.iter().map(|(_, value)| value.to_string());
        [self.row.to_string()].into_iter().chain(cells).collect()
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.cells.len() + 1))?;
        map.serialize_entry("row", &self.row)?;
        for (name, value) in &self.cells {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl fmt::Display for NodeValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Time(nanoseconds) => write!(f, "{}Z", DateTime::from_unix(*nanoseconds)),
            Self::Float(number) => Single(*number).fmt(f),
            Self::Outcome(outcome) => f.write_str(&outcome_name(*outcome)),
            Self::Text(text) => f.write_str(&printable(text.as_bytes())),
            Self::Path(text) => f.write_str(&printable(text.as_bytes())),
            Self::Vector(components) => {
                let components: Vec<String> =
                    components.iter().map(|&component| Single(component).to_string()).collect();
                write!(f, "[{}]", components.join(","))
            }
        }
    }
}

impl Serialize for NodeValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Id(_) | Self::Time(_) | Self::Outcome(_) => serializer.collect_str(self),
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Float(number) => Single(*number).serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Path(text) => serializer.serialize_str(text),
            Self::Vector(components) => {
                serializer.collect_seq(components.iter().map(|&c| Single(c)))
            }
        }
    }
}

/// An outcome in a word, or its code where it has none.
pub(crate) fn outcome_name(outcome: Outcome) -> String {
    match outcome {
        Outcome::Pending => "pending".to_owned(),
        Outcome::Success => "success".to_owned(),
        Outcome::Failure => "failure".to_owned(),
        Outcome::Partial => "partial".to_owned(),
        Outcome::Other(_) | _ => outcome.code().to_string(),
    }
}
