//! Prints the rows of a Parquet or an Arrow file: the name, the label and the size of each image.
//!
//! `cargo run -p tl-arrow --example rows -- FILE.parquet`

use std::error::Error;
use std::io::Write;

use tbl_io::{Escaped, SampleSource, Source, Stores};
use tl_arrow::RowSource;

fn main() -> Result<(), Box<dyn Error>> {
    let mut output = std::io::stdout().lock();
    let Some(path) = std::env::args_os().nth(1) else {
        writeln!(output, "usage: rows FILE.parquet")?;
        return Ok(());
    };
    let samples = RowSource::open(&Stores::new(), Source::open(path)?)?;
    for index in 0..samples.sample_count() {
        let entry = samples.entry(index)?;
        let label = entry.label.and_then(|label| usize::try_from(label).ok());
        let class = label.and_then(|label| samples.class_names().get(label));
        let key = Escaped(entry.key.as_deref().unwrap_or_default());
        let class = class.map_or("", String::as_str);
        writeln!(output, "{key} {class} {} bytes at {}", entry.bytes, entry.offset)?;
    }
    Ok(())
}
