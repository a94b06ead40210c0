//! `tl edges`: the edges of a node of a segment.

use std::path::PathBuf;

use serde::Serialize;
use tbf_format::{Edge, FormatError, Region, Relation, Segment};
use uuid::Uuid;

use crate::args::{GlobalArgs, ItemName, KeyArgs, item_name};
use crate::failure::{Failure, Verdict};
use crate::output::{ListStyle, Stdout};
use crate::table::find::open_segment;
use crate::table::{Heading, Sheet, Single, read_key, row_heading};

/// An edge as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line {
    /// The row of the node at the other end.
    row: u64,
    /// `null` where no such node exists, which files of the reference's writer can have.
    id: Option<Uuid>,
    relation: String,
    weight: Single,
}

/// List the edges of a node of a TBF segment
///
/// Prints for each edge its relation and weight, and the row and id of the node at its other end.
/// --json prints one object per line.
///
/// Examples:
///   tl edges segment.tbf 55c14841-a7dc-11c1-74ca-262430a87aa9
///   tl edges segment.tbf 17 --incoming --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// A TBF segment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The node, by its UUID or row
    #[arg(value_name = "ID", value_parser = item_name)]
    pub(crate) node: ItemName,

    /// List the edges to the node instead of the edges from it
    #[arg(long)]
    pub(crate) incoming: bool,

    /// Print JSON, one object per edge
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Lists the edges.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let file = open_segment(global, &args.file)?;
    let key = read_key(args.key.key_file.as_deref())?;
    let mut segment = file.segment()?;
    let regions = [Region::Nodes, Region::Edges, Region::Bloom, Region::Index];
    file.unpack(&mut segment, &regions, key.as_ref())?;
    let row = file.row(&segment, args.node)?;
    let lines = if args.incoming { incoming(&segment, row) } else { outgoing(&segment, row) };
    let lines = lines.map_err(|error| file.failure(error))?;
    let mut stdout = Stdout::open()?;
    let style = ListStyle::choose(args.json, &stdout);
    let heading = |name: &str, width, is_right| Heading { name: name.to_owned(), width, is_right };
    let headings = vec![
        row_heading(),
        heading("id", 36, false),
        heading("relation", 10, false),
        heading("weight", 12, true),
    ];
    let sheet = Sheet::begin(style, headings, &mut stdout)?;
    for line in &lines {
        if style == ListStyle::Json {
            stdout.json_line(line)?;
        } else {
            let id = line.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
            let cells = [line.row.to_string(), id, line.relation.clone(), line.weight.to_string()];
            stdout.line(&sheet.text(&cells))?;
        }
    }
    file.check_unchanged()?;
    stdout.finish()?;
    Ok(Verdict::Good)
}

fn outgoing(segment: &Segment<'_>, row: u64) -> Result<Vec<Line>, FormatError> {
    let edges = segment.edges(to_index(row))?;
    edges.iter().map(|edge| line(segment, edge.target().into(), edge)).collect()
}

/// The edges to a node, in the order of the nodes they come from: from the reverse index, or by
/// scanning all edges if the segment has none.
fn incoming(segment: &Segment<'_>, row: u64) -> Result<Vec<Line>, FormatError> {
    if segment.header().has_reverse() {
        let edges = segment.incoming()?.row(to_index(row))?;
        return edges.iter().map(|edge| line(segment, edge.target().into(), edge)).collect();
    }
    let all = segment.outgoing()?;
    let mut lines = Vec::new();
    for source in 0..all.rows() {
        for edge in all.row(source)?.iter().filter(|edge| u64::from(edge.target()) == row) {
            lines.push(line(segment, source as u64, edge)?);
        }
    }
    Ok(lines)
}

/// A row of a segment in memory.
fn to_index(row: u64) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}

fn line(segment: &Segment<'_>, row: u64, edge: &Edge) -> Result<Line, FormatError> {
    Ok(Line {
        row,
        id: segment.columns()?.ids().get(to_index(row)).map(Uuid::from_bytes),
        relation: relation_name(edge.relation()),
        weight: Single(edge.weight()),
    })
}

/// A relation in a word, or its code where it has none.
fn relation_name(relation: Relation) -> String {
    let name = match relation {
        Relation::Causal => "causal",
        Relation::Temporal => "temporal",
        Relation::Dependency => "dependency",
        Relation::Retry => "retry",
        Relation::Branch => "branch",
        Relation::Other(_) | _ => return relation.code().to_string(),
    };
    name.to_owned()
}
