//! One row of a table as a JSON object.

use tbf_format::Region;

use crate::args::ItemName;
use crate::cat::Args;
use crate::failure::{Failure, NO_SAMPLES, Verdict};
use crate::output::{Stdout, write_file};
use crate::table::{
    IdvTable, NodeColumn, Nodes, Row, RowTable, SegmentFile, Table, TableFailure, read_key,
};

/// Writes the row.
pub(crate) fn run(table: &Table, args: &Args) -> Result<Verdict, Failure> {
    let Some(index) = args.index.filter(|_| !args.metadata) else {
        return Err(Failure::Usage { what: "--metadata is for TBL files" });
    };
    if args.field.is_some() {
        return Err(Failure::Usage { what: "--field is for samples: tables have --columns" });
    }
    let mut json = match table {
        Table::Idv(table) => idv_row(table, args, index)?,
        Table::Segment(file) => node(file, args, index)?,
        Table::Rows(table) => row(table, args, index)?,
    };
    json.push('\n');
    match &args.output {
        Some(path) => write_file(path, args.force, |file| file.write_all(json.as_bytes()))?,
        None => {
            let mut stdout = Stdout::open()?;
            stdout.bytes(json.as_bytes())?;
            stdout.finish()?;
        }
    }
    Ok(Verdict::Good)
}

fn idv_row(table: &IdvTable, args: &Args, index: ItemName) -> Result<String, Failure> {
    let ItemName::Number(row) = index else {
        return Err(Failure::Usage {
            what: "only nodes of TBF segments have ids; rows of an IDV file have numbers",
        });
    };
    let count = table.file().row_count();
    if row >= count {
        return Err(TableFailure::NoRow { path: table.path().to_owned(), row, count }.into());
    }
    let chosen = table.choose(args.columns.as_deref())?;
    let mut rows = table.rows(&chosen)?;
    let names: Vec<String> = rows.names().map(str::to_owned).collect();
    if let Ok(cells) = rows.read(row)? {
        return to_json(&Row { names: &names, cells: &cells });
    }
    Err(rows.into_damaged().into_first().unwrap_or(NO_SAMPLES))
}

fn row(table: &RowTable, args: &Args, index: ItemName) -> Result<String, Failure> {
    let ItemName::Number(row) = index else {
        return Err(Failure::Usage {
            what: "only nodes of TBF segments have ids; rows have numbers",
        });
    };
    table.require(row)?;
    let chosen = table.choose(args.columns.as_deref())?;
    let values = table.rows(&chosen)?.values(row)?;
    let names = chosen.iter().map(|&column| table.name(column).to_owned());
    to_json(&names.zip(values).collect::<serde_json::Map<_, _>>())
}

fn node(file: &SegmentFile, args: &Args, index: ItemName) -> Result<String, Failure> {
    let mut segment = file.segment()?;
    let names = args.columns.as_deref();
    let shown = NodeColumn::choose(file, &segment, names, &NodeColumn::ALL)?;
    let key = read_key(args.key.key_file.as_deref())?;
    let mut regions = Nodes::regions(&shown);
    regions.extend([Region::Bloom, Region::Index]);
    file.unpack(&mut segment, &regions, key.as_ref())?;
    let row = file.row(&segment, index)?;
    let nodes = Nodes::new(&segment, &shown).map_err(|error| file.failure(error))?;
    let node = nodes.node(row).map_err(|error| file.failure(error))?;
    let json = to_json(&node)?;
    file.check_unchanged()?;
    Ok(json)
}

fn to_json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::stdout(error.into()))
}
