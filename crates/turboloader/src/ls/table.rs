//! The rows of a table, one line each.

use serde::Serialize;

use crate::args::LsArgs;
use crate::failure::{Failure, Verdict};
use crate::output::{ListStyle, Stdout};
use crate::table::{
    Cell, IdvTable, NodeColumn, Nodes, Row, SegmentFile, Sheet, Table, idv_heading, read_key,
    row_heading,
};

/// What a damaged row has in the place of its values.
const DAMAGED: &str = "DAMAGED";

/// Lists the rows.
pub(super) fn run(table: &Table, args: &LsArgs) -> Result<Verdict, Failure> {
    if args.hash {
        return Err(Failure::Usage { what: "--hash is for samples: tl digest hashes tables" });
    }
    let mut stdout = Stdout::open()?;
    let style = ListStyle::choose(args.json, &stdout);
    let end = match table {
        Table::Idv(table) => list_idv(table, args, style, &mut stdout),
        Table::Segment(file) => list_nodes(file, args, style, &mut stdout),
    };
    // What was listed is good, and belongs before the error message.
    stdout.finish()?;
    end
}

fn list_idv(
    table: &IdvTable,
    args: &LsArgs,
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
    for row in 0..count {
        match (rows.read(row)?, style) {
            (Ok(cells), ListStyle::Json) => {
                let values = Row { names: &names, cells: &cells };
                stdout.json_line(&Line { row, values: Some(values), error: None })?;
            }
            (Err(error), ListStyle::Json) => {
                stdout.json_line(&Line { row, values: None, error: Some(error) })?;
            }
            (Ok(cells), ListStyle::Table | ListStyle::Tsv) => {
                let texts = cells.iter().map(Cell::text);
                let texts: Vec<String> = [row.to_string()].into_iter().chain(texts).collect();
                stdout.line(&sheet.text(&texts))?;
            }
            (Err(error), ListStyle::Table) => {
                stdout.line(&sheet.text(&[row.to_string(), format!("{DAMAGED}: {error}")]))?;
            }
            (Err(_), ListStyle::Tsv) => {
                let mut cells = vec![String::new(); columns];
                let shown = [row.to_string(), DAMAGED.to_owned()];
                cells.iter_mut().zip(shown).for_each(|(cell, shown)| *cell = shown);
                stdout.line(&cells.join("\t"))?;
            }
        }
    }
    rows.into_damaged().verdict(count, "rows")
}

/// A row of an IDV file as `tl ls --json` prints it.
#[derive(Serialize)]
struct Line<'a> {
    row: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

fn list_nodes(
    file: &SegmentFile,
    args: &LsArgs,
    style: ListStyle,
    stdout: &mut Stdout,
) -> Result<Verdict, Failure> {
    let default = if style == ListStyle::Table { &NodeColumn::TABLE } else { NodeColumn::list() };
    let mut segment = file.segment()?;
    let shown = NodeColumn::choose((file, &segment), args.columns.as_deref(), default)?;
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
