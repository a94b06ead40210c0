//! `tl info`: what a data set or a table is, from its index alone.

mod facts;
mod idv;
mod metadata;
mod segment;

use std::fmt::Display;

use serde::Serialize;
use tbf_format::FormatError;

use crate::args::InfoArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Stdout;
use crate::table::Table;
use facts::Facts;
use idv::IdvFacts;
use segment::SegmentFacts;

/// Describes the data set.
pub(crate) fn run(args: &InfoArgs) -> Result<Verdict, Failure> {
    match Table::open(&args.file)? {
        Some(Table::Idv(table)) => {
            let (facts, damaged) = IdvFacts::collect(&table)?;
            print(&facts, args)?;
            damaged.verdict(facts.columns(), "columns")
        }
        Some(Table::Segment(file)) => {
            let facts = SegmentFacts::collect(&file)?;
            print(&facts, args)?;
            if facts.is_partial() {
                return Err(file.failure(FormatError::Partial));
            }
            Ok(Verdict::Good)
        }
        None => {
            let (facts, damaged) = Facts::collect(&args.file)?;
            print(&facts, args)?;
            damaged.verdict(facts.samples(), "samples")
        }
    }
}

fn print(facts: &(impl Serialize + Display), args: &InfoArgs) -> Result<(), Failure> {
    let mut stdout = Stdout::open()?;
    if args.json {
        stdout.json_line(facts)?;
    } else {
        stdout.line(facts)?;
    }
    stdout.finish()
}
