//! `tl info` of tables.

mod idv;
mod segment;

use tbf_format::FormatError;

use crate::failure::{Failure, Verdict};
use crate::info::{Args, print};
use crate::table::{RowFacts, Table};
use idv::IdvFacts;
use segment::SegmentFacts;

/// Describes a table.
pub(crate) fn run(table: &Table, args: &Args) -> Result<Verdict, Failure> {
    match table {
        Table::Idv(table) => {
            let (facts, damaged) = IdvFacts::collect(table)?;
            print(&facts, args)?;
            damaged.verdict(facts.columns(), "columns")
        }
        Table::Rows(table) => {
            print(&RowFacts::of(table), args)?;
            Ok(Verdict::Good)
        }
        Table::Segment(file) => {
            let facts = SegmentFacts::collect(file)?;
            print(&facts, args)?;
            if facts.is_partial() {
                return Err(file.failure(FormatError::Partial));
            }
            Ok(Verdict::Good)
        }
    }
}
