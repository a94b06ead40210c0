//! TBF segments as tables: a row for every node of a graph.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use tbf_format::{
    Adjacency, AlignedBytes, Columns, Dtype, Edge, Embeddings, FormatError, Region, Segment,
    Strings, UnpackOptions, Vector,
};
use tbl_io::{Location, Mapped, ReadError, Source};
use tl_handoff::sync::Arc;

use crate::error::{PipelineError, TableError};
use crate::table::number::from_little_endian;
use crate::table::{
    ColumnType, ColumnValues, Content, Direction, Meaning, RowValues, Table, TableColumn, TableKind,
};

/// A TBF segment, whose rows are the nodes of a graph.
///
/// | column | batches have |
/// |---|---|
/// | `id` | 16 `u8` |
/// | `timestamp` | `u64` nanoseconds since 1970 |
/// | `context_hash` | `u64` |
/// | `confidence` | `f32` |
/// | `outcome_status` | `u8` |
/// | `embedding` | components as they are stored: `f32`, `f16`, `bf16`, or the `i8` codes, which are only numbers as `f32` |
/// | `text` | bytes, row by row |
///
/// The last two columns exist if the segment has them.
pub struct TbfTable {
    regions: Arc<Regions>,
    columns: Vec<TableColumn>,
    kinds: Vec<Kind>,
}

/// The columns of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A column of the node region, with the bytes of its numbers.
    Node(&'static str, usize),
    Embedding,
    Text,
}

/// The places of the regions.
struct Regions {
    location: Location,
    mapped: Mapped,
    node_count: u64,
    dim: u32,
    dtype: Dtype,
    nodes: Place,
    embeddings: Option<Place>,
    edges: Place,
    has_reverse: bool,
    strings: Option<Place>,
}

/// The bytes of a region.
enum Place {
    /// A range of the mapped file.
    Mapped(Range<u64>),
    /// In memory, where it is compressed or encrypted in the file.
    Unpacked(AlignedBytes),
}

impl TbfTable {
    /// Opens the segment at `path`.
    ///
    /// # Errors
    /// [`PipelineError::Open`], [`PipelineError::Table`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, PipelineError> {
        Self::open_with(path, &UnpackOptions::default())
    }

    /// Opens the segment at `path`. Regions that are compressed or encrypted are unpacked into memory,
    /// within the limit of `options` each; an encrypted one needs the key.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(
        path: impl AsRef<Path>,
        options: &UnpackOptions<'_>,
    ) -> Result<Self, PipelineError> {
        Self::from_source(&Source::open(path)?, options)
    }

    /// Opens a segment that is in memory or in a store. One that cannot be mapped is read into memory.
    ///
    /// # Errors
    /// [`PipelineError::Table`].
    pub fn from_source(
        source: &Source,
        options: &UnpackOptions<'_>,
    ) -> Result<Self, PipelineError> {
        let fault =
            |fault| PipelineError::Table { location: source.location().clone(), source: fault };
        Self::of(source, options).map_err(fault)
    }

    fn of(source: &Source, options: &UnpackOptions<'_>) -> Result<Self, TableError> {
        let source = &*source.to_mappable()?;
        let mapped = Mapped::new(source, 0, source.len())?;
        let found = mapped.with(0, source.len(), |bytes| {
            let mut segment = Segment::open(bytes)?;
            let mut place = |region| place(&mut segment, region, options);
            let nodes = place(Region::Nodes)?;
            let edges = place(Region::Edges)?;
            let embeddings = place(Region::Embeddings)?;
            let strings = place(Region::Strings)?;
            let header = *segment.header();
            Ok::<_, FormatError>((header, nodes, edges, embeddings, strings))
        })?;
        let (header, nodes, edges, embeddings, strings) = found?;
        let absent = |region| FormatError::Absent { region };
        let regions = Regions {
            location: source.location().clone(),
            mapped,
            node_count: header.node_count(),
            dim: header.embedding_dim(),
            dtype: header.embedding_dtype(),
            nodes: nodes.ok_or(absent(Region::Nodes))?,
            embeddings,
            edges: edges.ok_or(absent(Region::Edges))?,
            has_reverse: header.has_reverse(),
            strings,
        };
        let (kinds, columns) = regions.columns().into_iter().unzip();
        Ok(Self { regions: Arc::new(regions), columns, kinds })
    }
}

/// The place of a region, if it exists, unpacked if it is compressed or encrypted.
fn place(
    segment: &mut Segment<'_>,
    region: Region,
    options: &UnpackOptions<'_>,
) -> Result<Option<Place>, FormatError> {
    if !segment.has(region) {
        return Ok(None);
    }
    if segment.is_packed(region) {
        segment.unpack(region, options)?;
        return Ok(Some(Place::Unpacked(AlignedBytes::copy_of(segment.region(region)?))));
    }
    let start = segment.header().offset(region);
    let len = segment.region(region)?.len() as u64;
    Ok(Some(Place::Mapped(start..start.saturating_add(len))))
}

impl Regions {
    fn columns(&self) -> Vec<(Kind, TableColumn)> {
        let column = |kind, name: &str, number, shape| {
            let content = Content::Numbers { number, shape, meaning: Meaning::Value };
            (kind, TableColumn { name: name.to_owned(), content })
        };
        let nodes = [
            ("id", ColumnType::U8, vec![16]),
            ("timestamp", ColumnType::U64, vec![]),
            ("context_hash", ColumnType::U64, vec![]),
            ("confidence", ColumnType::F32, vec![]),
            ("outcome_status", ColumnType::U8, vec![]),
        ];
        let mut columns: Vec<_> = nodes
            .into_iter()
            .map(|(name, number, shape)| {
                column(Kind::Node(name, number.bytes()), name, number, shape)
            })
            .collect();
        if self.embeddings.is_some()
            && let (Ok(dim @ 1..), Some(number)) = (usize::try_from(self.dim), self.number())
        {
            columns.push(column(Kind::Embedding, "embedding", number, vec![dim]));
        }
        if self.strings.is_some() {
            let content = Content::Bytes { what: "text" };
            columns.push((Kind::Text, TableColumn { name: "text".to_owned(), content }));
        }
        columns
    }

    /// The type of components; `None` for one that a later version knows.
    fn number(&self) -> Option<ColumnType> {
        Some(match self.dtype {
            Dtype::F32 => ColumnType::F32,
            Dtype::F16 => ColumnType::F16,
            Dtype::Bf16 => ColumnType::Bf16,
            Dtype::Int8 => ColumnType::I8,
            _ => return None,
        })
    }

    fn bytes<'r>(&'r self, place: &'r Place) -> Result<&'r [u8], TableError> {
        match place {
            Place::Unpacked(bytes) => Ok(bytes.as_bytes()),
            Place::Mapped(Range { start, end }) => {
                let bytes = self.mapped.lend(*start, end - start);
                bytes.ok_or_else(|| {
                    let location = self.location.clone();
                    let offset = *start;
                    let expected = end - start;
                    ReadError::ChangedWhileOpen { location, offset, expected }.into()
                })
            }
        }
    }

    fn embeddings(&self) -> Result<Embeddings<'_>, TableError> {
        let absent = FormatError::Absent { region: Region::Embeddings };
        let bytes = self.bytes(self.embeddings.as_ref().ok_or(absent)?)?;
        Ok(Embeddings::parse(bytes, self.node_count, self.dim, self.dtype)?)
    }

    fn edges(&self, direction: Direction, row: u64) -> Result<&[Edge], TableError> {
        let region = self.bytes(&self.edges)?;
        let edges = match direction {
            Direction::Outgoing => Adjacency::parse(region, self.node_count)?,
            Direction::Incoming => Adjacency::parse_reverse(region, self.node_count)?,
        };
        Ok(edges.row(place_of(row)?)?)
    }

    /// The bytes of a column of the node region.
    fn node_column(&self, name: &str) -> Result<&[u8], TableError> {
        use tbf_format::Column;
        let columns = Columns::parse(self.bytes(&self.nodes)?, self.node_count)?;
        Ok(match columns.by_name(name) {
            Some(Column::Ids(values)) => values.as_bytes(),
            Some(Column::U64(values)) => values.as_bytes(),
            Some(Column::F32(values)) => values.as_bytes(),
            Some(Column::U8(values)) => values,
            _ => &[],
        })
    }
}

impl Table for TbfTable {
    fn location(&self) -> &Location {
        &self.regions.location
    }

    fn format(&self) -> &'static str {
        TableKind::Tbf.name()
    }

    fn row_count(&self) -> u64 {
        self.regions.node_count
    }

    fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    fn values(&self, column: usize) -> Result<ColumnValues, TableError> {
        let no_column = TableError::OutOfRange { what: "column", number: column as u64 };
        let kind = *self.kinds.get(column).ok_or(no_column)?;
        Ok(ColumnValues::Whole(Arc::new(TbfColumn { regions: Arc::clone(&self.regions), kind })))
    }

    /// All columns are read whole.
    fn load(&self, _column: usize, block: u64) -> Result<Arc<dyn RowValues>, TableError> {
        Err(TableError::OutOfRange { what: "block", number: block })
    }

    fn check(&self) -> Result<(), ReadError> {
        self.regions.mapped.check()
    }

    fn has_edges(&self, direction: Direction) -> bool {
        direction == Direction::Outgoing || self.regions.has_reverse
    }

    fn edge_count(&self, direction: Direction, row: u64) -> Result<u64, TableError> {
        Ok(self.regions.edges(direction, row)?.len() as u64)
    }

    fn edge_target(
        &self,
        direction: Direction,
        row: u64,
        edge: u64,
    ) -> Result<Option<u64>, TableError> {
        let edges = self.regions.edges(direction, row)?;
        let target = edges.get(place_of(edge)?).map(|edge| u64::from(edge.target()));
        Ok(target.filter(|&target| target < self.regions.node_count))
    }
}

impl fmt::Debug for TbfTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TbfTable")
            .field("location", &self.regions.location)
            .field("rows", &self.regions.node_count)
            .finish_non_exhaustive()
    }
}

/// A column of a segment.
struct TbfColumn {
    regions: Arc<Regions>,
    kind: Kind,
}

impl RowValues for TbfColumn {
    fn kept_bytes(&self) -> u64 {
        0
    }

    fn write(&self, row: u64, out: &mut [u8]) -> Result<(), TableError> {
        let no_row = FormatError::NoRow { row, node_count: self.regions.node_count };
        let place = place_of(row)?;
        let (found, number_bytes) = match self.kind {
            Kind::Node(name, number_bytes) => {
                let column = self.regions.node_column(name)?;
                (place.checked_mul(out.len()).and_then(|start| column.get(start..)), number_bytes)
            }
            Kind::Embedding => {
                let vector = self.regions.embeddings()?.vector_bytes(place);
                // Scale and zero point stand in front of codes.
                let components = vector.and_then(|vector| vector.len().checked_sub(out.len()));
                let components = components.and_then(|start| vector?.get(start..));
                (components, self.regions.number().map_or(1, ColumnType::bytes))
            }
            Kind::Text => (None, 1),
        };
        let found = found.and_then(|found| found.get(..out.len())).ok_or(no_row)?;
        out.copy_from_slice(found);
        from_little_endian(out, number_bytes);
        Ok(())
    }

    /// Codes are nothing without their scale and zero point.
    fn write_f32(&self, row: u64, out: &mut [u8]) -> Result<bool, TableError> {
        if self.kind != Kind::Embedding || self.regions.dtype != Dtype::Int8 {
            return Ok(false);
        }
        let vector = self.regions.embeddings()?.vector(place_of(row)?);
        let Some(Vector::Int8 { scale, zero_point, codes }) = vector else {
            return Err(FormatError::NoRow { row, node_count: self.regions.node_count }.into());
        };
        for (place, code) in out.chunks_exact_mut(size_of::<f32>()).zip(codes.iter()) {
            place.copy_from_slice(&(scale * (f32::from(code) - zero_point)).to_ne_bytes());
        }
        Ok(true)
    }

    fn append_bytes(&self, row: u64, bytes: &mut Vec<u8>) -> Result<bool, TableError> {
        let (Kind::Text, Some(place)) = (self.kind, &self.regions.strings) else {
            return Ok(false);
        };
        let strings = Strings::parse(self.regions.bytes(place)?, self.regions.node_count)?;
        bytes.extend_from_slice(strings.row(place_of(row)?)?.as_bytes());
        Ok(true)
    }
}

fn place_of(row: u64) -> Result<usize, TableError> {
    usize::try_from(row).map_err(|_| TableError::OutOfRange { what: "row", number: row })
}
