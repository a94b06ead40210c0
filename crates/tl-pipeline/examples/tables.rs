//! What rows of tables cost: `cargo run --release --example tables [ROWS [COLUMNS]]`.
//!
//! Prints rows and bytes per second of full shuffles, by the clock and with two workers: of an IDV
//! file of `COLUMNS` columns of `f32`, uncompressed and with DEFLATE, as columns and as one matrix;
//! of vectors of 384 `f32` in a TBF segment, and with ten neighbours of every node. The files are in
//! the page cache. Each line has the median of five epochs, with the lowest and the highest.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::time::Instant;

use idv_format::{Codec, Compression, NewColumn, Number, Values, WriteOptions, Writer};
use tbf_format::{BuildOptions, Node, Outcome, Relation, SegmentBuilder};
use tl_pipeline::{Columns, Dataset, Loader, LoaderConfig, Neighbors, Shuffle, Work};

const DIM: u32 = 384;
const EPOCHS: u32 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse());
    let rows: u32 = arguments.next().transpose()?.unwrap_or(2_000);
    let columns: u32 = arguments.next().transpose()?.unwrap_or(64);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table");
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    let matrix =
        Columns { features: names.clone(), columns: Some(Vec::new()), ..Columns::default() };
    for (compression, name) in [(Compression::None, "plain"), (Compression::Deflate, "deflate")] {
        write_idv(&path, rows, &names, compression)?;
        measure(&format!("{columns} columns, {name}"), &path, Columns::default())?;
        measure(&format!("{columns} columns, {name}, one matrix"), &path, matrix.clone())?;
    }
    write_tbf(&path, rows)?;
    let vectors = Some(vec!["embedding".into()]);
    let vectors = Columns { columns: vectors, ..Columns::default() };
    measure(&format!("vectors of {DIM}"), &path, vectors.clone())?;
    let neighbors =
        |columns| Some(Neighbors { fanouts: vec![10], columns, ..Neighbors::default() });
    let numbers = Columns { neighbors: neighbors(Vec::new()), ..vectors.clone() };
    measure("the same, 10 of 20 neighbours", &path, numbers)?;
    let of_neighbors = Columns { neighbors: neighbors(vec!["embedding".into()]), ..vectors };
    measure("the same with their vectors", &path, of_neighbors)
}

fn measure(what: &str, path: &Path, columns: Columns) -> Result<(), Box<dyn Error>> {
    let config = LoaderConfig {
        batch_size: 256,
        sampler: Shuffle::Full.into(),
        seed: 42,
        workers: 2,
        prefetch: 4,
        prefetch_next_epoch: false,
        ..LoaderConfig::new(Work::Columns(columns))
    };
    let loader = Loader::new(Dataset::open(&[path])?, config)?;
    let mut rates = Vec::new();
    let mut row_bytes = 0;
    // The first epoch decodes what has to be, and brings pages in.
    for epoch in 0..=EPOCHS {
        let (start, mut rows) = (Instant::now(), 0);
        for batch in loader.epoch(epoch) {
            let batch = batch?;
            rows += batch.len();
            row_bytes =
                batch.columns().map(|column| column.bytes.len()).sum::<usize>() / batch.len();
        }
        rates.push(rows as f64 / start.elapsed().as_secs_f64());
    }
    let first = rates.remove(0);
    rates.sort_by(f64::total_cmp);
    let (lowest, median, highest) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
    let mib = median * row_bytes as f64 / f64::from(1 << 20);
    println!(
        "{what}: {median:.0} rows/s ({lowest:.0} to {highest:.0}; first epoch {first:.0}), \
         {mib:.0} MiB/s of {row_bytes} bytes a row"
    );
    Ok(())
}

fn write_idv(
    path: &Path,
    rows: u32,
    names: &[String],
    compression: Compression,
) -> Result<(), Box<dyn Error>> {
    let column = |name: &String| NewColumn {
        compression,
        ..NewColumn::new(name, Codec::number(Number::Single))
    };
    let columns = names.iter().map(column).collect();
    let mut writer = Writer::new(File::create(path)?, columns, WriteOptions::default())?;
    let values = (0..names.len()).map(|column| {
        let value = |row: u32| (row.wrapping_mul(2_654_435_761) >> (8 + column % 8)) as f32;
        Values::Single((0..rows).map(value).collect::<Vec<f32>>().into())
    });
    writer.write(&values.collect::<Vec<_>>())?;
    writer.finish()?;
    Ok(())
}

fn write_tbf(path: &Path, nodes: u32) -> Result<(), Box<dyn Error>> {
    let mut builder = SegmentBuilder::new(BuildOptions { dim: DIM, ..BuildOptions::default() });
    for node in 0..nodes {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&node.to_be_bytes());
        let of_node = Node {
            id,
            timestamp: node.into(),
            context_hash: 0,
            confidence: 1.0,
            outcome: Outcome::Success,
            text: None,
        };
        let vector: Vec<f32> = (0..DIM).map(|slot| (node ^ slot) as f32).collect();
        builder.push(&of_node, &vector)?;
        for edge in 0..20u32 {
            let target = (node ^ edge).wrapping_mul(2_654_435_761) % nodes;
            builder.push_edge(node, target, Relation::Causal, 1.0);
        }
    }
    fs::write(path, builder.finish()?.to_bytes())?;
    Ok(())
}
