//! The `tar_to_tbl` command: one TAR archive into one TBL version 2 file, with a summary.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Parser;
use tbl_io::{Compression, ConvertOptions, Target};
use turboloader::Probe;

use crate::args::GlobalArgs;
use crate::convert;
use crate::failure::{Failure, Verdict};
use crate::output::{self, Stdout};

/// Convert a TAR archive into a TBL file
///
/// The same as `tl convert IN.tar -o OUT.tbl`, with a summary of sizes and speed.
#[derive(Debug, Parser)]
#[command(name = "tar_to_tbl", version)]
pub(crate) struct TarToTblArgs {
    /// The archive
    #[arg(value_name = "IN.tar")]
    input: PathBuf,

    /// The file to write
    #[arg(value_name = "OUT.tbl")]
    output: PathBuf,

    /// Worker threads. Copying without compression takes one, whatever N is, and a note says so.
    /// `tl convert --lz4 --jobs N` compresses on N threads
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    no_sync: bool,

    /// Replace the output file if it exists
    #[arg(short, long)]
    force: bool,
}

/// The cells of the bar in the summary, which the guide of the format shows.
const BAR_CELLS: usize = 20;

/// Converts and prints the summary.
pub(crate) fn run(args: &TarToTblArgs) -> Result<Verdict, Failure> {
    let global = GlobalArgs::default();
    let start = Instant::now();
    let dataset = convert::open(&global, &[&args.input])?;
    let selection = convert::select(&dataset)?;
    let input_bytes = file_bytes(&args.input)?;
    let mut stdout = Stdout::open()?;
    stdout.line(&"Converting TAR to TBL format...")?;
    let input = args.input.display();
    let samples = Grouped(selection.sample_count());
    stdout.line(&format_args!("Input: {input} ({samples} samples, {})", Size(input_bytes)))?;
    if let Some(workers) = args.workers.filter(|workers| workers.get() > 1) {
        output::note(&format_args!(
            "--workers {workers}: copying without compression takes one thread"
        ));
    }
    let mut options = ConvertOptions::new(Target::Tbl2(Compression::None));
    (options.sync, options.overwrite) = (!args.no_sync, args.force);
    let summary = convert::write(&selection, &args.output, &options, Probe::default, &global)?;
    let seconds = start.elapsed().as_secs_f64();
    stdout.line(&format_args!("Processing: [{}] 100%", "█".repeat(BAR_CELLS)))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a rate for reading, far below 2^53 and not negative"
    )]
    let rate = (summary.samples as f64 / seconds.max(f64::MIN_POSITIVE)) as u64;
    stdout.line(&format_args!("Conversion rate: {} samples/second", Grouped(rate)))?;
    let output = args.output.display();
    let difference = Difference { from: input_bytes, to: summary.file_bytes };
    stdout.line(&format_args!("Output: {output} ({}, {difference})", Size(summary.file_bytes)))?;
    stdout.line(&format_args!("Completed in {seconds:.2} seconds"))?;
    stdout.finish()?;
    Ok(Verdict::Good)
}

fn file_bytes(path: &Path) -> Result<u64, Failure> {
    let metadata =
        path.metadata().map_err(|source| Failure::Io { path: path.to_owned(), source })?;
    Ok(metadata.len())
}

/// A number with its thousands set apart: `1,000,000`.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (position, digit) in digits.char_indices() {
            if position > 0 && (digits.len() - position).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// A file's size in decimal units: `52.3 GB`.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
        match UNITS.into_iter().find(|&(unit, _)| self.0 >= unit) {
            Some((unit, name)) => {
                let tenths = u128::from(self.0) * 10 / u128::from(unit);
                write!(f, "{}.{} {name}", tenths / 10, tenths % 10)
            }
            None => write!(f, "{} B", self.0),
        }
    }
}

/// How much smaller or larger the output is than the input, rounded towards no difference.
struct Difference {
    from: u64,
    to: u64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.from;
        let to = self.to;
        let hundredths = u128::from(from.abs_diff(to)) * 10_000 / u128::from(from.max(1));
        let word = match to.cmp(&from) {
            std::cmp::Ordering::Equal => return f.write_str("same size"),
            std::cmp::Ordering::Less => "smaller",
            std::cmp::Ordering::Greater => "larger",
        };
        write!(f, "{}.{:02}% {word}", hundredths / 100, hundredths % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_in_the_guide() {
        assert_eq!(Grouped(1_000_000).to_string(), "1,000,000");
        assert_eq!(
            [Grouped(0), Grouped(999), Grouped(1000)].map(|n| n.to_string()),
            ["0", "999", "1,000"]
        );
        assert_eq!(Size(52_345_678_901).to_string(), "52.3 GB");
        assert_eq!(
            [Size(999), Size(1_000), Size(74_000_000)].map(|n| n.to_string()),
            ["999 B", "1.0 kB", "74.0 MB"]
        );
    }

    #[test]
    fn the_size_difference_is_honest() {
        let difference = |from, to| Difference { from, to }.to_string();
        assert_eq!(difference(1000, 876), "12.40% smaller");
        assert_eq!(difference(1000, 1005), "0.50% larger");
        assert_eq!(difference(1000, 1000), "same size");
    }
}
