//! Measures reads of whole samples, in random and in stored order: of Parquet files, and of any other
//! data set.
//!
//! `cargo run --release -p tl-arrow --example random_reads -- [PASSES] DATA..`

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use tbl_io::{SampleSource, SampleSourceExt, Stores};

/// A number without a factor in common with most numbers of samples.
const STEP: u64 = 2_654_435_761;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let passes: u32 = match paths.first().and_then(|first| first.parse().ok()) {
        Some(passes) => {
            paths.remove(0);
            passes
        }
        None => 5,
    };
    let stores = tl_arrow::add_to(Stores::new());
    let mut output = std::io::stdout().lock();
    for path in paths {
        let start = Instant::now();
        let samples = tbl_io::open_in(&stores, &path)?;
        let opened = start.elapsed();
        writeln!(output, "{path}: {} samples, opened in {opened:?}", samples.sample_count())?;
        for pass in 0..passes {
            for (order, step) in [("random", STEP), ("stored", 1)] {
                let start = Instant::now();
                let read = read_all(&*samples, step, pass.into())?;
                let seconds = start.elapsed().as_secs_f64();
                let rate = read.samples as f64 / seconds;
                let bytes = read.bytes as f64 / 1e6 / seconds;
                writeln!(output, "  {order}: {rate:.0} samples/s, {bytes:.0} MB/s")?;
            }
        }
    }
    Ok(())
}

struct Read {
    samples: u64,
    bytes: u64,
}

/// Copies each sample once, from the mapping where there is one, as a loader does.
fn read_all(samples: &dyn SampleSource, step: u64, pass: u64) -> Result<Read, Box<dyn Error>> {
    let count = samples.sample_count();
    let mut read = Read { samples: 0, bytes: 0 };
    let mut bytes = Vec::new();
    for place in 0..count {
        let index = (place.wrapping_mul(step).wrapping_add(pass)) % count;
        match samples.view(index)? {
            Some(view) => {
                bytes.clear();
                bytes.extend_from_slice(view);
                samples.unpack(index, &mut bytes)?;
            }
            None => samples.read_into(index, &mut bytes)?,
        }
        read.samples += 1;
        read.bytes += black_box(&bytes).len() as u64;
    }
    Ok(read)
}
