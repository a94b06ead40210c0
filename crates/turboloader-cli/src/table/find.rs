//! `tl find`: nodes of a segment by id, by time, or by their vectors.

mod near;
mod time;

use std::path::PathBuf;

use clap::{ArgGroup, ValueEnum, ValueHint};
use tbf_format::{Key, Region, Segment};
use tl_simd::Level;
use tl_simd::column;
use turboloader::SegmentSet;
use uuid::Uuid;

use crate::args::{GlobalArgs, ItemName, KeyArgs, item_name};
use crate::failure::{Failure, Verdict};
use crate::output::{ListStyle, Stdout};
use crate::table::{
    Heading, NodeColumn, Nodes, SegmentFile, Sheet, Table, TableFailure, read_key, row_heading,
};
use time::TimeRange;

/// A node that was found, and how near it is where that was asked.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    row: u64,
    score: Option<f32>,
}

/// Find nodes of a TBF segment: by id, by time, or by their vectors
///
/// Prints the nodes as `tl ls` does; --json prints one object per line. Nodes found by time are in
/// the order of their timestamps; nodes found by similarity are nearest first, with a `score`. The
/// search uses the filter and the index of the segment if it has them. In many segments, the search
/// starts with the last one and skips those whose filter excludes the id. The column `file` names the
/// segment that has the node. An unknown id is an error with exit code 2. An empty range of time is
/// not an error.
///
/// Examples:
///   tl find segment.tbf --id 55c14841-a7dc-11c1-74ca-262430a87aa9
///   tl find segments/ --id 55c14841-a7dc-11c1-74ca-262430a87aa9
///   tl find segment.tbf --time 2026-11-20..2026-11-21T12:00:00Z
///   tl find segment.tbf --similar 17 -k 10 --json
///   tl find segment.tbf --vector '[0.1, -0.5, 0.25]' --metric l2
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    group = ArgGroup::new("by").args(["id", "time", "similar", "vector"]).required(true),
    group = ArgGroup::new("near").args(["similar", "vector"])
)]
pub(crate) struct Args {
    /// A TBF segment; with --id several, or folders of them, the oldest first
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Find the node with this UUID
    #[arg(long, value_name = "UUID", value_parser = uuid)]
    pub(crate) id: Option<Uuid>,

    /// Find nodes from A up to but not including B, each a time such as 2026-11-20T12:00:00Z, a
    /// date (midnight UTC) or nanoseconds since 1970; either may be omitted
    #[arg(long, value_name = "A..B", value_parser = time::time_range)]
    pub(crate) time: Option<TimeRange>,

    /// Find the nodes whose vectors are nearest to that of this node, given by row or UUID; the
    /// node itself is excluded
    #[arg(long, value_name = "ROW", value_parser = item_name)]
    pub(crate) similar: Option<ItemName>,

    /// Find the nodes whose vectors are nearest to this one: a JSON array, or a file that holds one
    #[arg(long, value_name = "VECTOR", value_hint = ValueHint::FilePath)]
    pub(crate) vector: Option<PathBuf>,

    /// How many of the nearest nodes to print
    #[arg(short, value_name = "K", default_value_t = 10, requires = "near")]
    pub(crate) k: usize,

    /// The measure of similarity
    #[arg(long, value_enum, value_name = "METRIC", default_value_t = MetricName::Cosine, requires = "near")]
    pub(crate) metric: MetricName,

    /// Print JSON, one object per node
    #[arg(long)]
    pub(crate) json: bool,

    /// Only these columns, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// The measure of similarity of two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricName {
    /// The dot product divided by both lengths; the largest is the nearest
    Cosine,
    /// The dot product; the largest is the nearest
    Dot,
    /// The sum of the squared differences; the smallest is the nearest
    L2,
}

/// Reads a UUID.
fn uuid(text: &str) -> Result<Uuid, &'static str> {
    Uuid::parse_str(text)
        .map_err(|_| "expected a UUID such as 55c14841-a7dc-11c1-74ca-262430a87aa9")
}

/// Finds nodes and prints them.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let key = read_key(args.key.key_file.as_deref())?;
    let many = of_many(args, key.as_ref())?;
    let path = match (&many, args.files.as_slice()) {
        (Some(path), _) | (None, [path]) => path,
        (None, _) => {
            let what = "--time, --similar and --vector search one segment: pass one file";
            return Err(Failure::Usage { what });
        }
    };
    let file = open_segment(global, path)?;
    let mut segment = file.segment()?;
    let mut stdout = Stdout::open()?;
    let style = ListStyle::choose(args.json, &stdout);
    let default: &[_] =
        if style == ListStyle::Table { &NodeColumn::TABLE } else { NodeColumn::list() };
    let shown = NodeColumn::choose(&file, &segment, args.columns.as_deref(), default)?;
    let mut regions = Nodes::regions(&shown);
    regions.extend([Region::Bloom, Region::Index]);
    let is_near = args.similar.is_some() || args.vector.is_some();
    if is_near {
        regions.push(Region::Embeddings);
    }
    file.unpack(&mut segment, &regions, key.as_ref())?;
    let found = if let Some(id) = args.id {
        vec![Found { row: file.row(&segment, ItemName::Id(id))?, score: None }]
    } else if let Some(range) = args.time {
        in_time(&file, &segment, range)?
    } else {
        near::nearest(&file, &segment, args)?
    };
    let nodes = Nodes::new(&segment, &shown).map_err(|error| file.failure(error))?;
    let mut headings = vec![row_heading()];
    if is_near {
        headings.push(Heading { name: "score".to_owned(), width: 12, is_right: true });
    }
    if many.is_some() {
        headings.push(Heading { name: "file".to_owned(), width: 24, is_right: false });
    }
    headings.extend(shown.iter().map(|column| column.heading()));
    let sheet = Sheet::begin(style, headings, &mut stdout)?;
    for Found { row, score } in found {
        let node = nodes.node(row).map_err(|error| file.failure(error))?;
        let node = if let Some(score) = score { node.with_score(score) } else { node };
        let node = if many.is_some() { node.with_file(path) } else { node };
        if style == ListStyle::Json {
            stdout.json_line(&node)?;
        } else {
            stdout.line(&sheet.text(&node.texts()))?;
        }
    }
    file.check_unchanged()?;
    stdout.finish()?;
    Ok(Verdict::Good)
}

/// The segment that has the node, if many are searched.
fn of_many(args: &Args, key: Option<&Key>) -> Result<Option<PathBuf>, Failure> {
    let Some(id) = args.id else { return Ok(None) };
    if let [path] = args.files.as_slice()
        && !path.is_dir()
    {
        return Ok(None);
    }
    let found = SegmentSet::open(&args.files)?.find(id.as_bytes(), key)?;
    let path = args.files.first().cloned().unwrap_or_default();
    let count = args.files.len();
    let absent = TableFailure::NoNodeInAny { path, more: count.saturating_sub(1), id };
    Ok(Some(found.ok_or(absent)?.path))
}

/// Opens a segment, where nothing else will do.
pub(crate) fn open_segment(
    global: &GlobalArgs,
    path: &std::path::Path,
) -> Result<SegmentFile, Failure> {
    match Table::open(global, &[path])? {
        Some(Table::Segment(file)) => Ok(file),
        Some(Table::Idv(_) | Table::Rows(_)) | None => {
            Err(TableFailure::NoSegment { path: path.to_owned() }.into())
        }
    }
}

/// The nodes of a range of time, in the order of their timestamps.
fn in_time(
    file: &SegmentFile,
    segment: &Segment<'_>,
    range: TimeRange,
) -> Result<Vec<Found>, Failure> {
    let failure = |error| file.failure(error);
    let timestamps = segment.columns().map_err(failure)?.timestamps();
    let found = |row: u64| Found { row, score: None };
    let TimeRange { start, end } = range;
    if segment.has(Region::Index) {
        let index = segment.index().map_err(failure)?;
        let tree = index.timestamps();
        let last = end.map_or(tree.keys().len(), |end| tree.lower_bound(&end));
        let places = tree.lower_bound(&start)..last;
        let mut rows = Vec::new();
        for (place, row) in places.clone().zip(tree.rows_at(places)) {
            // An index that does not fit its column finds nothing that can be trusted.
            let key = tree.keys().get(place);
            let in_column = usize::try_from(row).ok().and_then(|row| timestamps.get(row));
            if key.is_none() || in_column != key {
                let entry = place as u64;
                return Err(failure(tbf_format::FormatError::IndexEntry {
                    key: "timestamp",
                    entry,
                }));
            }
            rows.push(found(row.into()));
        }
        return Ok(rows);
    }
    let Some(last) = end.map_or(Some(u64::MAX), |end| end.checked_sub(1)) else {
        return Ok(Vec::new());
    };
    let copy;
    let values = match timestamps.as_slice() {
        Some(values) => values,
        None => {
            copy = timestamps.iter().collect::<Vec<u64>>();
            &copy
        }
    };
    let mut bits = vec![0; values.len().div_ceil(64)];
    column::find_range(Level::detect(), values, start..=last, &mut bits);
    let mut rows: Vec<_> = column::rows(&bits).collect();
    rows.sort_by_key(|&row| values.get(row).copied());
    Ok(rows.into_iter().map(|row| found(row as u64)).collect())
}
