//! Arguments of conversions between tables.

use clap::{Args, ValueEnum};

/// What tables become.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Tables")]
pub(crate) struct TableArgs {
    /// The columns to write, in this order (default: all)
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// Types of columns of a CSV file: sbyte, byte, int16, uint16, int32, uint32, int64, uint64,
    /// single, double, boolean, text, timespan, datetime, datetimeoffset, rowid, key (categories,
    /// in the order in which they are first seen) or key:N (their numbers 1 to N). Columns that
    /// are not named are boolean, int64, double or text, whichever takes all their cells
    #[arg(long, value_name = "NAME=TYPE,..", value_delimiter = ',')]
    pub(crate) schema: Vec<String>,

    /// The unit of times in a Parquet file. Microseconds hold every year of .NET but not the last
    /// digit of its ticks, nanoseconds that digit but only the years 1678 to 2261
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = Unit::Us)]
    pub(crate) time_unit: Unit,
}

/// Units of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Microseconds
    #[default]
    Us,
    /// Nanoseconds
    Ns,
}
