//! Conversions to and from TBF segments, by way of Arrow's arrays.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use idv_format::{ArrowOptions, ArrowReader, ArrowWriter, WriteOptions};
use tbl_io::{AtomicFile, Placement};

use super::error::TableError;
use super::event::{OnEvent, TableEvent, TableNote, progress, report};
use super::idv::Table;
use super::parquet::{Output, Rows};
use super::{CsvSchema, SegmentConversion, TableConversion, TableFormat, TableSummary, csv};
use crate::segment::{
    EdgeRows, NodeError, NodeNames, NodeRows, SegmentBatches, SegmentInput, SegmentSettings,
    SegmentTraits, copy_segment,
};

/// Slots of vectors that become arrays together.
const SLOTS: u64 = 1 << 22;

/// The types of columns of a CSV file that becomes a segment.
const CSV_TYPES: [(&str, &str); 6] = [
    ("id", "text"),
    ("timestamp", "uint64"),
    ("context_hash", "uint64"),
    ("confidence", "single"),
    ("embedding", "single"),
    ("text", "text"),
];

/// The types of columns of a CSV file of edges. Ends are rows or ids.
const CSV_EDGE_TYPES: [(&str, &str); 1] = [("weight", "single")];

/// The files of a conversion.
#[derive(Clone, Copy, Debug)]
struct Paths<'a> {
    source: &'a Path,
    destination: &'a Path,
}

/// Receives the schema, then batches.
trait Sink {
    /// The types of columns of a CSV file, by the names that segments have for them.
    fn csv_types(&self) -> &'static [(&'static str, &'static str)];
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), TableError>;
    fn push(&mut self, batch: &RecordBatch) -> Result<(), TableError>;
}

impl TableConversion {
    /// Converts where the source or the destination is a segment.
    pub(super) fn of_segments(
        &self,
        from: TableFormat,
        to: TableFormat,
        source: &Path,
        destination: &Path,
        on_event: OnEvent<'_>,
    ) -> Result<TableSummary, TableError> {
        let path = Paths { source, destination };
        let has_own = self.segment.edges.is_some() || !self.segment.names.is_empty();
        if has_own && (to != TableFormat::Tbf || from == TableFormat::Tbf) {
            return Err(TableError::NotForSegments);
        }
        if to != TableFormat::Tbf {
            return self.write_rows(to, path, on_event);
        }
        let traits = match from {
            TableFormat::Tbf => SegmentTraits::read(source).map_err(NodeError::from)?,
            TableFormat::Idv | TableFormat::Parquet | TableFormat::Csv => SegmentTraits::default(),
        };
        let settings = self.settings(&traits);
        if from == TableFormat::Tbf && self.segment.dtype.is_none() && self.columns.is_empty() {
            let on_node = &mut |done, total| on_event(TableEvent::Progress { done, total });
            let Paths { source, destination } = path;
            let copied =
                copy_segment(source, self.segment.key.as_ref(), destination, &settings, on_node);
            let written = copied.map_err(NodeError::from)?.written;
            return Ok(TableSummary { rows: written.nodes, file_bytes: written.file_bytes });
        }
        let mut nodes = Nodes {
            path: path.destination,
            settings: &settings,
            names: NodeNames(self.segment.names.clone()),
            keeps_ids: self.segment.edges.is_some(),
            is_compacted: traits.is_compacted,
            rows: None,
        };
        self.feed(path.source, from, path.destination, &mut nodes, on_event)?;
        let mut rows = nodes.rows.ok_or(TableError::NoColumns)?;
        if let Some(edges) = &self.segment.edges {
            let format = TableFormat::of_file(edges)?.ok_or(TableError::NoTable)?;
            let mut sink = Edges { nodes: &mut rows, rows: None };
            let plain = Self {
                columns: Vec::new(),
                schema: CsvSchema::default(),
                segment: SegmentConversion::default(),
                ..self.clone()
            };
            plain.feed(edges, format, path.destination, &mut sink, on_event).map_err(|source| {
                TableError::EdgeFile { path: edges.clone(), source: source.into() }
            })?;
        }
        let written = rows.finish()?;
        Ok(TableSummary { rows: written.nodes, file_bytes: written.file_bytes })
    }

    /// The settings of a segment that is made of a source with these traits.
    fn settings(&self, traits: &SegmentTraits) -> SegmentSettings {
        let given = &self.segment;
        let key = if given.decrypt { None } else { given.key.clone() };
        SegmentSettings {
            dtype: given.dtype.or(traits.dtype).unwrap_or_default(),
            compression: given.compression.unwrap_or(traits.compression),
            key,
            key_id: given.key_id.or(traits.key_id).unwrap_or_default(),
            index: given.index.unwrap_or(traits.index),
            reverse: given.reverse.unwrap_or(traits.reverse),
            segment_id: given.segment_id.unwrap_or(traits.segment_id),
            created_at: given.created_at,
            overwrite: self.overwrite,
            sync: self.sync,
        }
    }

    /// Hands the rows of a table to `sink`. CSV files become IDV files next to `beside` first, which have
    /// no name.
    fn feed(
        &self,
        source: &Path,
        from: TableFormat,
        beside: &Path,
        sink: &mut dyn Sink,
        on_event: OnEvent<'_>,
    ) -> Result<(), TableError> {
        let names = self.columns.as_slice();
        match from {
            TableFormat::Parquet => {
                let mut rows = Rows::open(source, names)?;
                sink.begin(&rows.schema)?;
                while let Some(batch) = rows.next()? {
                    sink.push(&batch)?;
                    progress(on_event, rows.done, rows.total)?;
                }
                Ok(())
            }
            TableFormat::Idv => {
                let table = Table::open(source, names, on_event)?.without_hidden(on_event)?;
                feed_table(&table, sink, on_event)
            }
            TableFormat::Csv => {
                let draft = temporary(beside)?;
                let usual = sink.csv_types().iter().map(|&(of, found)| {
                    let given = self.segment.names.iter().find(|(name, _)| name == of);
                    (given.map_or(of, |(_, column)| column.as_str()), found)
                });
                let schema = self.schema.with_usual(usual);
                csv::read(source, names, &schema, draft.file(), self.write_options(), on_event)?;
                let mut quiet = |event: TableEvent<'_>| match event {
                    // Bytes of the file were reported.
                    TableEvent::Progress { done, .. } => {
                        on_event(TableEvent::Progress { done, total: done })
                    }
                    TableEvent::LeftOut(note) => on_event(TableEvent::LeftOut(note)),
                };
                let file = draft.file().try_clone()?;
                let table = Table::of(file, &[], &mut quiet)?;
                feed_table(&table, sink, &mut quiet)
            }
            TableFormat::Tbf => {
                let input = SegmentInput::open(source).map_err(NodeError::from)?;
                let key = self.segment.key.as_ref();
                let segment = input.segment(&SegmentBatches::REGIONS, key);
                let segment = segment.map_err(NodeError::from)?;
                let batches = SegmentBatches::new(&input, &segment, names)?;
                sink.begin(&batches.schema())?;
                batches.read(|batch| sink.push(&batch))
            }
        }
    }
}

impl TableConversion {
    fn write_options(&self) -> WriteOptions {
        let mut options = WriteOptions::default();
        options.threads = self.threads;
        options
    }

    /// Writes the rows of a segment as a table.
    fn write_rows(
        &self,
        to: TableFormat,
        path: Paths<'_>,
        on_event: OnEvent<'_>,
    ) -> Result<TableSummary, TableError> {
        let placement = Placement { overwrite: self.overwrite, sync: self.sync };
        let draft = AtomicFile::create(path.destination, placement).map_err(TableError::Output)?;
        let input = SegmentInput::open(path.source).map_err(NodeError::from)?;
        let key = self.segment.key.as_ref();
        let segment = input.segment(&SegmentBatches::REGIONS, key).map_err(NodeError::from)?;
        let mut batches = SegmentBatches::new(&input, &segment, &self.columns)?;
        if to == TableFormat::Csv {
            let edges = batches.leave_out_edges();
            if edges > 0 {
                report(on_event, TableEvent::LeftOut(TableNote::Edges { edges }))?;
            }
        }
        if batches.schema().fields().is_empty() {
            return Err(TableError::NoColumns);
        }
        match to {
            TableFormat::Parquet => {
                let mut output = Output::new(draft.file(), batches.schema())?;
                batches.read(|batch| {
                    output.write(&batch)?;
                    progress(on_event, output.rows(), batches.row_count())
                })?;
                output.finish()?;
            }
            TableFormat::Idv => write_idv(&batches, draft.file(), self.write_options(), on_event)?,
            TableFormat::Csv => {
                let idv = temporary(path.destination)?;
                write_idv(&batches, idv.file(), self.write_options(), on_event)?;
                let file = idv.file().try_clone().map_err(TableError::Output)?;
                csv::write(&Table::of(file, &[], on_event)?, draft.file(), on_event)?;
            }
            TableFormat::Tbf => return Err(TableError::NotDirect),
        }
        let file_bytes = draft.file().metadata().map_err(TableError::Output)?.len();
        draft.commit().map_err(TableError::Output)?;
        Ok(TableSummary { rows: batches.row_count(), file_bytes })
    }
}

fn write_idv(
    batches: &SegmentBatches<'_>,
    output: &File,
    options: WriteOptions,
    on_event: OnEvent<'_>,
) -> Result<(), TableError> {
    let mut writer = ArrowWriter::new(BufWriter::new(output), &batches.schema(), options)?;
    let mut done = 0;
    batches.read(|batch| {
        writer.write(&batch)?;
        done += batch.num_rows() as u64;
        progress(on_event, done, batches.row_count())
    })?;
    writer.finish()?;
    Ok(())
}

/// A file without a name next to `beside`, where the file system has such files.
fn temporary(beside: &Path) -> Result<AtomicFile, TableError> {
    let placement = Placement { overwrite: true, sync: false };
    AtomicFile::create(beside, placement).map_err(TableError::Output)
}

fn feed_table(table: &Table, sink: &mut dyn Sink, on_event: OnEvent<'_>) -> Result<(), TableError> {
    let reader = ArrowReader::new(&table.file, &table.columns, ArrowOptions::default())?;
    sink.begin(&reader.schema())?;
    for rows in table.row_ranges() {
        let end = rows.end;
        reader.read_parts(rows, SLOTS, |batch| sink.push(&batch))?;
        progress(on_event, end, table.file.row_count())?;
    }
    Ok(())
}

/// Rows that become nodes.
struct Nodes<'a> {
    path: &'a Path,
    settings: &'a SegmentSettings,
    names: NodeNames,
    /// Whether edges may name their ends by id.
    keeps_ids: bool,
    is_compacted: bool,
    rows: Option<NodeRows>,
}

impl Sink for Nodes<'_> {
    fn csv_types(&self) -> &'static [(&'static str, &'static str)] {
        &CSV_TYPES
    }

    fn begin(&mut self, schema: &SchemaRef) -> Result<(), TableError> {
        let rows = self.rows.insert(NodeRows::new(self.path, self.settings, schema, &self.names)?);
        if self.keeps_ids {
            rows.keep_ids();
        }
        if self.is_compacted {
            rows.mark_compacted();
        }
        Ok(())
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        let rows = self.rows.as_mut().ok_or(TableError::NoColumns)?;
        Ok(rows.push(batch)?)
    }
}

/// Rows that become edges.
struct Edges<'a> {
    nodes: &'a mut NodeRows,
    rows: Option<EdgeRows>,
}

impl Sink for Edges<'_> {
    fn csv_types(&self) -> &'static [(&'static str, &'static str)] {
        &CSV_EDGE_TYPES
    }

    fn begin(&mut self, schema: &SchemaRef) -> Result<(), TableError> {
        self.rows = Some(EdgeRows::new(schema)?);
        Ok(())
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        let rows = self.rows.as_mut().ok_or(TableError::NoColumns)?;
        Ok(rows.push(batch, self.nodes)?)
    }
}
