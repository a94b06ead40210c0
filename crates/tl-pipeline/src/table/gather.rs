//! Rows of a batch, gathered from the columns of a table.

use tl_handoff::slab::Parts;
use tl_handoff::sync::Arc;
use tl_transform::{Draw, Rng};

use crate::dataset::Dataset;
use crate::error::{ColumnsError, PipelineError, SampleFault, TableError};
use crate::row::RowExtras;
use crate::table::blocks::{BlockCache, Held};
use crate::table::layout::{Hop, Layout, Part};
use crate::table::{ColumnSpec, ColumnType, ColumnValues, Columns, Direction, RowValues, Table};
use crate::table::{neighbors, number};

/// The default memory for decoded blocks, in bytes.
const BLOCK_BYTES: u64 = 1 << 30;

/// Gathers the rows of all files of a data set.
pub(crate) struct Gatherer {
    layout: Layout,
    /// By file and source.
    access: Vec<Vec<Access>>,
    cache: BlockCache,
    /// Bytes that loading a block takes at most.
    load_bytes: u64,
    row_bytes: usize,
}

/// The access to a column of a file.
enum Access {
    Whole(Arc<dyn RowValues>),
    Blocks { first_slot: usize, rows: u64 },
}

/// Memory of a worker for the row it is at.
#[derive(Debug, Default)]
pub(crate) struct TableScratch {
    stored: Vec<u8>,
    /// Rows at the end of the last hop; [`NOBODY`](neighbors::NOBODY) for none.
    nodes: Vec<u64>,
    next_nodes: Vec<u64>,
    picked: Vec<u32>,
    held: Held,
}

impl Gatherer {
    /// For `columns` of a data set of tables, and for `bytes`, columns of bytes.
    pub(crate) fn new(
        dataset: &Dataset,
        columns: &Columns,
        bytes: &[String],
        memory_budget: Option<u64>,
    ) -> Result<Self, PipelineError> {
        let tables: Vec<&dyn Table> = dataset.tables().collect();
        let location = tbl_io::Location::default();
        let &first = tables.first().ok_or(ColumnsError::NoTable { location })?;
        if let Some(neighbors) = &columns.neighbors {
            tables.iter().try_for_each(|table| check_edges(*table, neighbors.direction))?;
        }
        let layout = Layout::new(first, columns, bytes)?;
        let mut slots = 0u64;
        let mut load_bytes = 0;
        let mut access = Vec::with_capacity(tables.len());
        for table in tables {
            let fault =
                |source| PipelineError::Table { location: table.location().clone(), source };
            let of_source = |column| {
                Ok(match table.values(column)? {
                    ColumnValues::Whole(values) => Access::Whole(values),
                    ColumnValues::Blocks { rows, load_bytes: bytes } => {
                        let first = usize::try_from(slots);
                        let first_slot = first.map_err(|_| no_such("block", slots))?;
                        let rows = rows.max(1);
                        slots = slots.saturating_add(table.row_count().div_ceil(rows));
                        load_bytes = load_bytes.max(bytes);
                        Access::Blocks { first_slot, rows }
                    }
                })
            };
            let sources = layout.sources.iter().map(|source| source.column);
            let of_table: Result<Vec<Access>, TableError> = sources.map(of_source).collect();
            access.push(of_table.map_err(fault)?);
        }
        let most = memory_budget.map_or(BLOCK_BYTES, |budget| BLOCK_BYTES.min(budget / 4));
        let limit = match (slots, columns.block_bytes) {
            (0, _) => 0,
            (_, 0) => most,
            (_, bytes) => bytes,
        };
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        let bytes = layout.specs.iter().filter_map(ColumnSpec::row_bytes);
        let row_bytes = bytes.fold(0, usize::saturating_add);
        Ok(Self { layout, access, cache: BlockCache::new(slots, limit), load_bytes, row_bytes })
    }

    /// The columns of batches.
    pub(crate) fn specs(&self) -> &Arc<[ColumnSpec]> {
        &self.layout.specs
    }

    /// Bytes of a row, besides those that differ from row to row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Bytes of decoded blocks at most.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.cache.limit()
    }

    /// Bytes that a worker may take to load a block.
    pub(crate) fn load_bytes(&self) -> u64 {
        self.load_bytes
    }

    /// Gathers sample `draw.sample` into its row, and returns its label if it has one.
    pub(crate) fn gather(
        &self,
        dataset: &Dataset,
        draw: Draw,
        parts: &mut Parts<'_, RowExtras>,
        scratch: &mut TableScratch,
    ) -> Result<Option<i64>, SampleFault> {
        let (shard, row) = dataset.place(draw.sample)?;
        let Some(table) = dataset.table(shard) else { return Ok(None) };
        let start = draw.sample - row;
        let reader = Reader { gatherer: self, table, access: &self.access[shard] };
        let gathered = reader.gather(start, row, draw, parts, scratch);
        // Values gathered from a file that was cut short are wrong, and so is the reported defect.
        table.check()?;
        gathered
    }
}

/// The columns of one file.
struct Reader<'g> {
    gatherer: &'g Gatherer,
    table: &'g dyn Table,
    access: &'g [Access],
}

impl Reader<'_> {
    fn gather(
        &self,
        start: u64,
        row: u64,
        draw: Draw,
        parts: &mut Parts<'_, RowExtras>,
        scratch: &mut TableScratch,
    ) -> Result<Option<i64>, SampleFault> {
        let Layout { outputs, label, bytes, hops, sources, .. } = &self.gatherer.layout;
        for (output, from) in outputs.iter().enumerate() {
            let out = parts.columns.get(output);
            for part in from {
                let out = &mut out[part.range.clone()];
                self.write(part, row, out, &mut scratch.stored, &mut scratch.held)?;
            }
        }
        for &source in bytes {
            let mut bytes = Vec::new();
            let append = |values: &dyn RowValues, row| values.append_bytes(row, &mut bytes);
            let found = self.read(source, row, &mut scratch.held, append)?;
            parts.extra.fields.bytes.push(found.then_some(bytes));
        }
        scratch.nodes.clear();
        scratch.nodes.push(row);
        for (number, hop) in (0u8..).zip(hops) {
            let rng = Rng::new(draw.seed, draw.epoch, draw.sample, number);
            self.hop(hop, rng, start, parts, scratch).map_err(|(node, source)| {
                let column = self.gatherer.layout.specs[hop.output].name.clone();
                SampleFault::Column { row: node, column, source }
            })??;
        }
        let Some(label) = *label else { return Ok(None) };
        let source = &sources[label];
        let TableScratch { stored, held, .. } = scratch;
        stored.resize(source.row_bytes, 0);
        self.read(label, row, held, |values, row| {
            values.write(row, stored)?;
            let (kind, meaning) = source.numbers.unwrap_or((ColumnType::U8, super::Meaning::Value));
            number::label(kind, meaning, stored)
        })
    }

    /// Draws the neighbours of `scratch.nodes`, replaces the nodes by them, and writes their
    /// requested columns. The outer error is that of edges, with their row, the inner one that of
    /// columns.
    fn hop(
        &self,
        hop: &Hop,
        mut rng: Rng,
        start: u64,
        parts: &mut Parts<'_, RowExtras>,
        scratch: &mut TableScratch,
    ) -> Result<Result<(), SampleFault>, (u64, TableError)> {
        let TableScratch { stored, nodes, next_nodes, picked, held } = scratch;
        next_nodes.clear();
        for &node in &*nodes {
            let end = next_nodes.len() + hop.fanout;
            if node != neighbors::NOBODY {
                neighbors::draw(self.table, node, hop, &mut rng, picked, next_nodes)
                    .map_err(|source| (node, source))?;
            }
            next_nodes.resize(end, neighbors::NOBODY);
        }
        std::mem::swap(nodes, next_nodes);
        let places = parts.columns.get(hop.output).chunks_exact_mut(size_of::<i64>());
        for (place, &node) in places.zip(&*nodes) {
            let sample = if node == neighbors::NOBODY { None } else { start.checked_add(node) };
            let sample = sample.and_then(|sample| i64::try_from(sample).ok()).unwrap_or(-1);
            place.copy_from_slice(&sample.to_ne_bytes());
        }
        for (output, part) in &hop.columns {
            let places = parts.columns.get(*output).chunks_exact_mut(part.range.len().max(1));
            for (place, &node) in places.zip(&*nodes) {
                if node == neighbors::NOBODY {
                    place.fill(0);
                } else if let Err(fault) = self.write(part, node, place, stored, held) {
                    return Ok(Err(fault));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Writes row `row` of a source as it is asked for.
    fn write(
        &self,
        part: &Part,
        row: u64,
        out: &mut [u8],
        stored: &mut Vec<u8>,
        held: &mut Held,
    ) -> Result<(), SampleFault> {
        let source = &self.gatherer.layout.sources[part.source];
        self.read(part.source, row, held, |values, row| {
            let Some((kind, meaning)) = source.numbers.filter(|_| part.as_f32) else {
                return values.write(row, out);
            };
            if values.write_f32(row, out)? {
                return Ok(());
            }
            if kind == ColumnType::F32 {
                return values.write(row, out);
            }
            stored.resize(source.row_bytes, 0);
            values.write(row, stored)?;
            number::write_as_f32(kind, meaning, stored, out);
            Ok(())
        })
    }

    /// Reads of the values that row `row` of a source is among.
    fn read<T>(
        &self,
        source: usize,
        row: u64,
        held: &mut Held,
        read: impl FnOnce(&dyn RowValues, u64) -> Result<T, TableError>,
    ) -> Result<T, SampleFault> {
        let result = match &self.access[source] {
            Access::Whole(values) => read(&**values, row),
            Access::Blocks { first_slot, rows } => {
                let block = row / rows;
                let row = row % rows;
                let load = || self.table.load(self.gatherer.layout.sources[source].column, block);
                slot(*first_slot, block).and_then(|slot| {
                    held.read(&self.gatherer.cache, slot, load, |values| read(values, row))
                })
            }
        };
        result.map_err(|error| {
            let column = self.gatherer.layout.sources[source].name.clone();
            SampleFault::Column { row, column, source: error }
        })
    }
}

fn check_edges(table: &dyn Table, direction: Direction) -> Result<(), ColumnsError> {
    let location = || table.location().clone();
    match direction {
        _ if table.has_edges(direction) => Ok(()),
        Direction::Incoming if table.has_edges(Direction::Outgoing) => {
            Err(ColumnsError::NoReverseIndex { location: location() })
        }
        Direction::Incoming | Direction::Outgoing => {
            Err(ColumnsError::NoEdges { location: location() })
        }
    }
}

/// The slot of block `block` of a column whose first block has slot `first`.
fn slot(first: usize, block: u64) -> Result<usize, TableError> {
    let slot = usize::try_from(block).ok().and_then(|block| first.checked_add(block));
    slot.ok_or_else(|| no_such("block", block))
}

fn no_such(what: &'static str, number: u64) -> TableError {
    TableError::OutOfRange { what, number }
}
