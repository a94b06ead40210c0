//! Arguments about tables, and the commands that only segments have.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use thiserror::Error;
use uuid::Uuid;

use crate::table::parse_unix;

/// The key of an encrypted segment.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The key of an encrypted TBF segment: a file of 32 bytes, or of 64 hexadecimal digits
    #[arg(long, value_name = "KEY", value_hint = ValueHint::FilePath)]
    pub(crate) key_file: Option<PathBuf>,
}

/// A sample, a row or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemName {
    /// By its number.
    Number(u64),
    /// By its id.
    Id(Uuid),
}

/// Find nodes of a TBF segment: by id, by time, or by their vectors
///
/// Prints the nodes as `tl ls` does; with --json one object a line. Found by time they are in the
/// order of their timestamps, by similarity the nearest first, with a `score`. The filter and the
/// index of the segment are used where it has them. An id that no node has is an error, with exit
/// code 2; nothing in a range of time is none.
///
/// Examples:
///   tl find segment.tbf --id 55c14841-a7dc-11c1-74ca-262430a87aa9
///   tl find segment.tbf --time 2026-11-20..2026-11-21T12:00:00Z
///   tl find segment.tbf --similar 17 -k 10 --json
///   tl find segment.tbf --vector '[0.1, -0.5, 0.25]' --metric l2
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    group = ArgGroup::new("by").args(["id", "time", "similar", "vector"]).required(true),
    group = ArgGroup::new("near").args(["similar", "vector"])
)]
pub(crate) struct FindArgs {
    /// A TBF segment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The node of this UUID
    #[arg(long, value_name = "UUID", value_parser = uuid)]
    pub(crate) id: Option<Uuid>,

    /// Nodes from A on and before B, each a time such as 2026-11-20T12:00:00Z, a date (midnight
    /// UTC) or nanoseconds since 1970; either may be left out
    #[arg(long, value_name = "A..B", value_parser = time_range)]
    pub(crate) time: Option<TimeRange>,

    /// Nodes whose vectors are nearest to that of this node, by its row or UUID; it is left out
    #[arg(long, value_name = "ROW", value_parser = item_name)]
    pub(crate) similar: Option<ItemName>,

    /// Nodes whose vectors are nearest to this one: a JSON array, or a file that holds one
    #[arg(long, value_name = "VECTOR", value_hint = ValueHint::FilePath)]
    pub(crate) vector: Option<PathBuf>,

    /// How many of the nearest
    #[arg(short, value_name = "K", default_value_t = 10, requires = "near")]
    pub(crate) k: usize,

    /// What is near
    #[arg(long, value_enum, value_name = "METRIC", default_value_t = MetricName::Cosine, requires = "near")]
    pub(crate) metric: MetricName,

    /// Print one JSON object a node
    #[arg(long)]
    pub(crate) json: bool,

    /// Only these columns, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// How vectors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricName {
    /// The dot product divided by both lengths; the largest is the nearest
    Cosine,
    /// The dot product; the largest is the nearest
    Dot,
    /// The sum of the squared differences; the smallest is the nearest
    L2,
}

/// List the edges of a node of a TBF segment
///
/// Prints for each edge its relation and weight, and the row and id of the node at its other end;
/// with --json one object a line.
///
/// Examples:
///   tl edges segment.tbf 55c14841-a7dc-11c1-74ca-262430a87aa9
///   tl edges segment.tbf 17 --incoming --json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct EdgesArgs {
    /// A TBF segment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The node, by its UUID or row
    #[arg(value_name = "ID", value_parser = item_name)]
    pub(crate) node: ItemName,

    /// The edges that reach the node, instead of those that leave it
    #[arg(long)]
    pub(crate) incoming: bool,

    /// Print one JSON object an edge
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Timestamps from the first on and before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    /// The first timestamp that is in it.
    pub(crate) start: u64,
    /// The first behind it; `None` when there is none.
    pub(crate) end: Option<u64>,
}

/// Why an argument is not understood.
#[derive(Debug, Error)]
pub(super) enum TableArgError {
    #[error("expected a number, or the UUID of a node")]
    ItemName,
    #[error("expected a UUID such as 55c14841-a7dc-11c1-74ca-262430a87aa9")]
    Uuid,
    #[error("expected A..B, such as 2026-11-20..2026-11-21T12:00:00Z or nanoseconds since 1970")]
    TimeRange,
    #[error("`{0}` is neither a time such as 2026-11-20T12:00:00Z nor nanoseconds since 1970")]
    Time(String),
}

/// Reads a number or a UUID.
pub(super) fn item_name(text: &str) -> Result<ItemName, TableArgError> {
    let number = text.parse().map(ItemName::Number).ok();
    number.or_else(|| Uuid::parse_str(text).ok().map(ItemName::Id)).ok_or(TableArgError::ItemName)
}

fn uuid(text: &str) -> Result<Uuid, TableArgError> {
    Uuid::parse_str(text).map_err(|_| TableArgError::Uuid)
}

fn time_range(text: &str) -> Result<TimeRange, TableArgError> {
    let (start, end) = text.split_once("..").ok_or(TableArgError::TimeRange)?;
    let time = |text: &str| {
        let number = text.parse().ok();
        let time = number.or_else(|| parse_unix(text));
        time.ok_or_else(|| TableArgError::Time(text.to_owned()))
    };
    Ok(TimeRange {
        start: if start.is_empty() { 0 } else { time(start)? },
        end: if end.is_empty() { None } else { Some(time(end)?) },
    })
}

#[cfg(test)]
mod tests {
    use super::{TimeRange, time_range};

    #[test]
    fn ranges_of_time_are_open_where_nothing_is_said() {
        let range = |start, end| Some(TimeRange { start, end });
        let read = |text| time_range(text).ok();
        assert_eq!(read("5..9"), range(5, Some(9)));
        assert_eq!(read("5.."), range(5, None));
        assert_eq!(read("..9"), range(0, Some(9)));
        assert_eq!(read(".."), range(0, None));
        let day = 86_400_000_000_000;
        assert_eq!(
            read("1970-01-02..1970-01-03T00:00:00.5Z"),
            range(day, Some(2 * day + 500_000_000))
        );
        for wrong in ["", "5", "5.9", "5..x", "-1..5", "1970-01-32.."] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
