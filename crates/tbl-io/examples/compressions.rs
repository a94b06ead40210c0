//! Prints size, time of writing and speed of reading of a data set under each compression of TBL
//! files: `cargo run --release -p tbl-io --example compressions -- DATA_SET`. Without one it takes
//! the photographs of the repository.
#![allow(clippy::print_stdout, reason = "an example that shows what it found")]

use std::ops::ControlFlow;
use std::time::Instant;

use tbl_io::{
    AsStored, Compression, ConvertOptions, Labels, SampleSource, Selection, Target, TblFile,
    ZstdLevel,
};

/// Reads of all samples, of which the fastest counts.
const PASSES: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "testdata/photos".into());
    let sources = [tbl_io::open(path)?];
    let labels = Labels::resolve(&sources)?;
    let selection = Selection::all(&sources, &labels)?;
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("out.tbl");
    let zstd = |level| ZstdLevel::new(level).map(Compression::Zstd);
    let zstd = [1, 3, 9, 19].into_iter().filter_map(zstd);
    println!("{:<24} {:>12} {:>8} {:>8} {:>10}", "", "bytes", "ratio", "write s", "read MB/s");
    for compression in [Compression::None, Compression::Lz4].into_iter().chain(zstd) {
        let mut options = ConvertOptions::new(Target::Tbl2(compression));
        (options.sync, options.overwrite) = (false, true);
        let start = Instant::now();
        let on_event = &mut |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
        let summary = tbl_io::convert(&selection, &output, &options, AsStored::default, on_event)?;
        let written = start.elapsed().as_secs_f64();
        let file = TblFile::open(&output)?;
        let mut bytes = Vec::new();
        let mut fastest = f64::INFINITY;
        for _ in 0..PASSES {
            let start = Instant::now();
            for index in 0..file.sample_count() {
                file.read_into(index, &mut bytes)?;
            }
            fastest = fastest.min(start.elapsed().as_secs_f64());
        }
        let mut stored = 0;
        for index in 0..file.sample_count() {
            stored += file.facts(index)?.stored_bytes;
        }
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let (sample_bytes, stored) = (summary.sample_bytes as f64, stored as f64);
        println!(
            "{:<24} {:>12} {:>8.3} {:>8.2} {:>10.0}",
            format!("{compression:?}"),
            summary.file_bytes,
            stored / sample_bytes,
            written,
            sample_bytes / fastest / 1e6,
        );
    }
    Ok(())
}
