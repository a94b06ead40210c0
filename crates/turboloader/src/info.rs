//! `tl info`: what a data set is, from its index alone.

mod facts;

use crate::args::InfoArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Stdout;
use facts::Facts;

/// Describes the data set.
pub(crate) fn run(args: &InfoArgs) -> Result<Verdict, Failure> {
    let (facts, damaged) = Facts::collect(&args.file)?;
    let samples = facts.samples();
    let mut stdout = Stdout::open()?;
    if args.json {
        stdout.json_line(&facts)?;
    } else {
        stdout.line(&facts)?;
    }
    stdout.finish()?;
    damaged.verdict(samples)
}
