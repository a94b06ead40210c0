//! The rows of a table, one line each.

use std::ops::Range;

use serde::Serialize;

use crate::failure::{Failure, Verdict};
use crate::ls::Args;
use crate::output::{ListStyle, Stdout};
use crate::table::{
    BadRows, Cell, Heading, IdvTable, NodeColumn, Nodes, Row, RowTable, SegmentFile, Sheet, Table,
    idv_heading, read_key, row_heading,
};
use crate::text::printable;

/// The word that a damaged row has instead of its values.
const DAMAGED: &str = "DAMAGED";

/// Lists the rows.
pub(crate) fn run(table: &Table, args: &Args) -> Result<Verdict, Failure> {
    if args.hash {
        return Err(Failure::Usage { what: "--hash is for samples: tl digest hashes tables" });
    }
    let mut stdout = Stdout::open()?;
    let style = ListStyle::choose(args.json, &stdout);
    let end = match table {
        Table::Idv(table) => list_idv(table, args, style, &mut stdout),
        Table::Segment(file) => list_nodes(file, args, style, &mut stdout),
        Table::Rows(table) => list_rows(table, args, style, &mut stdout),
    };
    // What was listed is good, and belongs before the error message.
    stdout.finish()?;
    end
}

fn list_idv(
    table: &IdvTable,
    args: &Args,
    style: ListStyle,
    stdout: &mut Stdout,
) -> Result<Verdict, Failure> {
    let chosen = table.choose(args.columns.as_deref())?;
    let mut rows = table.rows(&chosen)?;
    let names: Vec<String> = rows.names().map(str::to_owned).collect();
    let mut headings = vec![row_heading()];
    headings.extend(names.iter().zip(rows.codecs()).map(|(name, codec)| idv_heading(name, codec)));
    let columns = headings.len();
    let sheet = Sheet::begin(style, headings, stdout)?;
    let count = table.file().row_count();
    // Any number of rows takes no place in a file without columns, and has nothing to show.
    let mut row = if names.is_empty() { count } else { 0 };
    while row < count {
        row = match rows.read(row)? {
            Ok(cells) if style == ListStyle::Json => {
                let values = Row { names: &names, cells: &cells };
                stdout.json_line(&Line { row, values })?;
                row + 1
            }
            Ok(cells) => {
                let texts = cells.iter().map(Cell::text);
                let texts: Vec<String> = [row.to_string()].into_iter().chain(texts).collect();
                stdout.line(&sheet.text(&texts))?;
                row + 1
            }
            Err(bad) => {
                list_bad(&bad, columns, style, &sheet, stdout)?;
                bad.rows.end
            }
        };
    }
    rows.into_damaged().verdict(count, "rows")
}

/// One line for all rows of a damaged block.
fn list_bad(
    bad: &BadRows<'_>,
    columns: usize,
    style: ListStyle,
    sheet: &Sheet,
    stdout: &mut Stdout,
) -> Result<(), Failure> {
    let Range { start, end } = bad.rows;
    if style == ListStyle::Json {
        return stdout.json_line(&BadLine { row: start, rows: end - start, error: bad.error });
    }
    let rows = if end - start == 1 { start.to_string() } else { format!("{start}-{}", end - 1) };
    if style == ListStyle::Table {
        return stdout.line(&sheet.text(&[rows, format!("{DAMAGED}: {}", bad.error)]));
    }
    let mut cells = vec![rows, DAMAGED.to_owned()];
    cells.resize(columns, String::new());
    stdout.line(&cells.join("\t"))
}

/// A row of an IDV file as `tl ls --json` prints it.
#[derive(Serialize)]
struct Line<'a> {
    row: u64,
    values: Row<'a>,
}

/// Rows that cannot be read.
#[derive(Serialize)]
struct BadLine<'a> {
    row: u64,
    /// How many, this one included.
    rows: u64,
    error: &'a str,
}

fn list_rows(
    table: &RowTable,
    args: &Args,
    style: ListStyle,
    stdout: &mut Stdout,
) -> Result<Verdict, Failure> {
    let chosen = table.choose(args.columns.as_deref())?;
    let mut rows = table.rows(&chosen)?;
    let names: Vec<String> = chosen.iter().map(|&at| table.name(at).to_owned()).collect();
    let heading = |name: &String| {
        let name = printable(name.as_bytes()).into_owned();
        Heading { width: name.chars().count().max(12), name, is_right: false }
    };
    let headings = [row_heading()].into_iter().chain(names.iter().map(heading));
    let sheet = Sheet::begin(style, headings.collect(), stdout)?;
    let text = |value: &serde_json::Value| match value.as_str() {
        Some(text) => printable(text.as_bytes()).into_owned(),
        None => value.to_string(),
    };
    for row in 0..table.row_count() {
        let values = rows.values(row)?;
        if style == ListStyle::Json {
            let values: serde_json::Map<_, _> = names.iter().cloned().zip(values).collect();
            stdout.json_line(&serde_json::json!({"row": row, "values": values}))?;
        } else {
            let cells = [row.to_string()].into_iter().chain(values.iter().map(text));
            stdout.line(&sheet.text(&cells.collect::<Vec<_>>()))?;
        }
    }
    Ok(Verdict::Good)
}

fn list_nodes(
    file: &SegmentFile,
    args: &Args,
    style: ListStyle,
    stdout: &mut Stdout,
) -> Result<Verdict, Failure> {
    let default = if style == ListStyle::Table { &NodeColumn::TABLE } else { NodeColumn::list() };
    let mut segment = file.segment()?;
    let shown = NodeColumn::choose(file, &segment, args.columns.as_deref(), default)?;
    let key = read_key(args.key.key_file.as_deref())?;
    file.unpack(&mut segment, &Nodes::regions(&shown), key.as_ref())?;
    let nodes = Nodes::new(&segment, &shown).map_err(|error| file.failure(error))?;
    let mut headings = vec![row_heading()];
    headings.extend(nodes.shown().iter().map(|column| column.heading()));
    let sheet = Sheet::begin(style, headings, stdout)?;
    for row in 0..segment.node_count() {
        let node = nodes.node(row).map_err(|error| file.failure(error))?;
        if style == ListStyle::Json {
            stdout.json_line(&node)?;
        } else {
            stdout.line(&sheet.text(&node.texts()))?;
        }
    }
    file.check_unchanged()?;
    Ok(Verdict::Good)
}
