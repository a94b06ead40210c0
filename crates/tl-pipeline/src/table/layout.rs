//! The contents of a table's batches: the requested columns, found in the table.

use std::ops::Range;

use tl_handoff::sync::Arc;

use crate::error::ColumnsError;
use crate::table::{
    ColumnRequest, ColumnSpec, ColumnType, Columns, Content, Direction, Meaning, Neighbors, Table,
    TableColumn,
};

/// The name of the matrix of features.
const FEATURES: &str = "features";

/// The most neighbours of one row in its last hop.
const MOST_NEIGHBORS: u64 = 1 << 20;

/// Hops, each of which has a stream of random numbers.
const MOST_HOPS: usize = 16;

/// A column of the table that is read.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Its number in the table.
    pub(super) column: usize,
    pub(super) name: String,
    /// Type and meaning of its numbers; `None` for bytes.
    pub(super) numbers: Option<(ColumnType, Meaning)>,
    /// Bytes of a row as it is stored.
    pub(super) row_bytes: usize,
}

/// The place of a column in a batch.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Its place among the sources.
    pub(super) source: usize,
    /// True if it is converted to `f32`.
    pub(super) as_f32: bool,
    /// The bytes of a row that it takes.
    pub(super) range: Range<usize>,
}

/// One hop to neighbours.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) fanout: usize,
    pub(super) direction: Direction,
    /// The column that has their numbers.
    pub(super) output: usize,
    /// Columns that have something of them, and how much of one.
    pub(super) columns: Vec<(usize, Part)>,
}

/// The contents of a batch.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) sources: Vec<Source>,
    /// Columns of the batch.
    pub(super) specs: Arc<[ColumnSpec]>,
    /// The parts of each of the first outputs; the rest are neighbours.
    pub(super) outputs: Vec<Vec<Part>>,
    /// The source of the label.
    pub(super) label: Option<usize>,
    /// The columns of bytes.
    pub(super) bytes: Vec<usize>,
    pub(super) hops: Vec<Hop>,
}

impl Layout {
    /// That of `columns` and `bytes`, columns of bytes, of tables that are all like `table`.
    pub(super) fn new(
        table: &dyn Table,
        columns: &Columns,
        bytes: &[String],
    ) -> Result<Self, ColumnsError> {
        let mut builder = Builder { table, sources: Vec::new(), specs: Vec::new() };
        let all = || all_numbers(table, columns);
        let requests = columns.columns.clone().unwrap_or_else(all);
        let mut outputs = Vec::with_capacity(requests.len() + 1);
        for request in &requests {
            let (spec, part) = builder.array(request)?;
            outputs.push(vec![part]);
            builder.specs.push(spec);
        }
        if !columns.features.is_empty() {
            outputs.push(builder.features(&columns.features)?);
        }
        let label = columns.label.as_ref().map(|name| builder.label(name)).transpose()?;
        let bytes = bytes.iter().map(|name| builder.bytes(name)).collect::<Result<_, _>>()?;
        let hops = match &columns.neighbors {
            Some(neighbors) => builder.hops(neighbors)?,
            None => Vec::new(),
        };
        let Builder { sources, specs, .. } = builder;
        if sources.is_empty() && specs.is_empty() {
            return Err(ColumnsError::Nothing);
        }
        let mut names: Vec<&str> = specs.iter().map(|spec| &*spec.name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ColumnsError::Twice { column: twice[0].to_owned() });
        }
        Ok(Self { sources, specs: specs.into(), outputs, label, bytes, hops })
    }
}

/// The columns that batches have unless others are asked for.
fn all_numbers(table: &dyn Table, columns: &Columns) -> Vec<ColumnRequest> {
    let elsewhere =
        |name: &String| columns.features.contains(name) || columns.label.as_ref() == Some(name);
    let numbers = table.columns().iter().enumerate().filter(|(place, column)| {
        matches!(column.content, Content::Numbers { .. })
            && find(table, &column.name) == Some(*place)
            && !elsewhere(&column.name)
    });
    numbers.map(|(_, column)| ColumnRequest::new(column.name.clone())).collect()
}

/// The number of the column called `name`, the last if several have the name.
fn find(table: &dyn Table, name: &str) -> Option<usize> {
    table.columns().iter().rposition(|column| column.name == name)
}

struct Builder<'t> {
    table: &'t dyn Table,
    sources: Vec<Source>,
    specs: Vec<ColumnSpec>,
}

impl Builder<'_> {
    fn column(&self, name: &str) -> Result<(usize, &TableColumn), ColumnsError> {
        let place = find(self.table, name).ok_or_else(|| {
            let names = self.table.columns().iter().map(|column| column.name.escape_debug());
            let columns: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            ColumnsError::NoColumn { column: name.to_owned(), columns: columns.join(", ") }
        })?;
        Ok((place, &self.table.columns()[place]))
    }

    /// The place of the source that is column `name`, and what its rows are.
    fn source(&mut self, name: &str) -> Result<(usize, ColumnType, Vec<usize>), ColumnsError> {
        let (column, TableColumn { content, .. }) = self.column(name)?;
        let Content::Numbers { number, shape, meaning } = content else {
            let column = name.to_owned();
            let reason = describe(content);
            return Err(ColumnsError::NotNumbers { column, reason });
        };
        let number = *number;
        let shape = shape.clone();
        let meaning = *meaning;
        let spec = ColumnSpec { name: name.to_owned(), number, shape };
        let row_bytes = spec.row_bytes().ok_or_else(|| {
            let column = name.to_owned();
            let reason = describe(content);
            ColumnsError::NotNumbers { column, reason }
        })?;
        let source = self.add(Source {
            column,
            name: name.to_owned(),
            numbers: Some((number, meaning)),
            row_bytes,
        });
        Ok((source, number, spec.shape))
    }

    fn add(&mut self, source: Source) -> usize {
        let known = self.sources.iter().position(|known| known.column == source.column);
        known.unwrap_or_else(|| {
            self.sources.push(source);
            self.sources.len() - 1
        })
    }

    /// A column as a separate array.
    fn array(&mut self, request: &ColumnRequest) -> Result<(ColumnSpec, Part), ColumnsError> {
        let ColumnRequest { name, number: wanted } = request;
        let (source, stored, shape) = self.source(name)?;
        let number = wanted.unwrap_or(stored);
        let wanted_type = |reason| ColumnsError::Type {
            column: name.clone(),
            stored: stored.name(),
            wanted: reason,
        };
        if number != stored && number != ColumnType::F32 {
            return Err(wanted_type(number.name()));
        }
        let spec = ColumnSpec { name: name.clone(), number, shape };
        let row_bytes = spec.row_bytes().ok_or_else(|| wanted_type("so many numbers"))?;
        Ok((
            spec,
            Part {
                source,
                as_f32: wanted.is_some() && number == ColumnType::F32,
                range: 0..row_bytes,
            },
        ))
    }

    /// The matrix of features.
    fn features(&mut self, names: &[String]) -> Result<Vec<Part>, ColumnsError> {
        let mut parts = Vec::with_capacity(names.len());
        let mut start = 0usize;
        for name in names {
            let request = ColumnRequest { name: name.clone(), number: Some(ColumnType::F32) };
            let (_, part) = self.array(&request)?;
            let end = start.checked_add(part.range.len()).ok_or_else(|| ColumnsError::Type {
                column: name.clone(),
                stored: "numbers",
                wanted: "so many of them",
            })?;
            parts.push(Part { range: start..end, ..part });
            start = end;
        }
        let shape = vec![start / ColumnType::F32.bytes()];
        self.specs.push(ColumnSpec { name: FEATURES.to_owned(), number: ColumnType::F32, shape });
        Ok(parts)
    }

    fn label(&mut self, name: &str) -> Result<usize, ColumnsError> {
        let (source, _, shape) = self.source(name)?;
        if shape.is_empty() {
            return Ok(source);
        }
        let reason = format!("it has the shape {shape:?}");
        Err(ColumnsError::NotLabel { column: name.to_owned(), reason })
    }

    fn bytes(&mut self, name: &str) -> Result<usize, ColumnsError> {
        let (column, TableColumn { content, .. }) = self.column(name)?;
        if !matches!(content, Content::Bytes { .. }) {
            let column = name.to_owned();
            let reason = describe(content);
            return Err(ColumnsError::NotBytes { column, reason });
        }
        Ok(self.add(Source { column, name: name.to_owned(), numbers: None, row_bytes: 0 }))
    }

    fn hops(&mut self, neighbors: &Neighbors) -> Result<Vec<Hop>, ColumnsError> {
        let Neighbors { fanouts, direction, columns } = neighbors;
        let most = fanouts.iter().fold(1u64, |all, &fanout| all.saturating_mul(fanout.into()));
        if fanouts.is_empty() || fanouts.len() > MOST_HOPS || !(1..=MOST_NEIGHBORS).contains(&most)
        {
            let neighbors = most;
            let fanouts = fanouts.clone();
            let most = MOST_NEIGHBORS;
            return Err(ColumnsError::Fanouts { fanouts, neighbors, most });
        }
        let mut hops = Vec::with_capacity(fanouts.len());
        let mut shape = Vec::new();
        for (hop, &fanout) in fanouts.iter().enumerate() {
            let fanout = fanout as usize;
            shape.push(fanout);
            let name = format!("neighbors_{}", hop + 1);
            let output = self.specs.len();
            let of_each = columns.iter().map(|request| self.array(request));
            let of_each = of_each.collect::<Result<Vec<_>, _>>()?;
            let number = ColumnType::I64;
            self.specs.push(ColumnSpec { name: name.clone(), number, shape: shape.clone() });
            let mut hop_columns = Vec::with_capacity(of_each.len());
            for (spec, part) in of_each {
                hop_columns.push((self.specs.len(), part));
                let shape = [&shape[..], &spec.shape].concat();
                let name = format!("{name}_{}", spec.name);
                self.specs.push(ColumnSpec { name, number: spec.number, shape });
            }
            hops.push(Hop { fanout, direction: *direction, output, columns: hop_columns });
        }
        Ok(hops)
    }
}

/// A column's content in words.
pub(super) fn describe(content: &Content) -> String {
    match content {
        Content::Numbers { number, shape, meaning } => {
            let name = number.name();
            let of = match meaning {
                Meaning::Key { count, names: None } => {
                    format!("keys of {count} categories in {name}")
                }
                Meaning::Key { count, names: Some(names) } => {
                    format!("keys of {count} categories with the names {names:016x} in {name}")
                }
                Meaning::LeastIsMissing => format!("{name}, the least of which is missing"),
                Meaning::TwoIsMissing => "booleans that can be missing".to_owned(),
                Meaning::Value => name.to_owned(),
            };
            if shape.is_empty() { of } else { format!("{of} of shape {shape:?}") }
        }
        Content::Bytes { what } => (*what).to_owned(),
        Content::Unreadable { reason } => reason.clone(),
    }
}
