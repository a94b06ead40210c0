//! Trains a logistic regression on a small IDV file, which it writes first.
//!
//! Two classes of flowers in four measures: overlapping clouds, so that not every row can be right.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fs::File;
use std::path::Path;

use idv_format::{
    Codec, Item, Key, NewColumn, Number, Values, Vector, Vectors, WriteOptions, Writer,
};
use tl_pipeline::{Columns, Dataset, Loader, LoaderConfig, Shuffle, Work};
use tl_transform::Rng;

const ROWS: u32 = 3_000;
const EPOCHS: u32 = 5;
const RATE: f32 = 0.1;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("flowers.idv");
    write(&path)?;

    let columns = Columns {
        features: vec!["sepal".into(), "petal".into()],
        label: Some("species".into()),
        columns: Some(Vec::new()),
        ..Columns::default()
    };
    let config = LoaderConfig {
        batch_size: 50,
        sampler: Shuffle::Full.into(),
        seed: 42,
        ..LoaderConfig::new(Work::Columns(columns))
    };
    let loader = Loader::new(Dataset::open(&[&path])?, config)?;
    let (mut weights, mut bias) = ([0.0f32; 4], 0.0f32);
    let mut correct = 0;
    for epoch in 0..EPOCHS {
        let mut loss = 0.0;
        correct = 0;
        for batch in loader.epoch(epoch) {
            let batch = batch?;
            let features = batch.column_named("features").ok_or("the features are there")?;
            let rows = features.numbers::<f32>().ok_or("features are floats")?;
            let (mut steps, mut bias_step) = ([0.0f32; 4], 0.0);
            for (row, &label) in rows.chunks_exact(weights.len()).zip(batch.labels()) {
                // Keys count from 1 in the file and from 0 here: 0 or 1.
                let label = if label == 1 { 1.0 } else { 0.0 };
                let sum = bias + row.iter().zip(&weights).map(|(x, w)| x * w).sum::<f32>();
                let found = 1.0 / (1.0 + (-sum).exp());
                loss -= (if label > 0.5 { found } else { 1.0 - found }).max(1e-6).ln();
                correct += usize::from((found > 0.5) == (label > 0.5));
                steps.iter_mut().zip(row).for_each(|(step, x)| *step += (found - label) * x);
                bias_step += found - label;
            }
            let rate = RATE / batch.len() as f32;
            weights.iter_mut().zip(steps).for_each(|(weight, step)| *weight -= rate * step);
            bias -= rate * bias_step;
        }
        let loss = loss / ROWS as f32;
        println!("epoch {epoch}: loss {loss:.4}, {correct} of {ROWS} right on the way");
    }
    println!("weights {weights:.3?}, bias {bias:.3}");
    if correct < ROWS as usize * 9 / 10 {
        return Err("less than nine of ten are right".into());
    }
    Ok(())
}

/// Rows of class `row mod 2`, whose measures lie around -1 or 1.
fn write(path: &Path) -> Result<(), Box<dyn Error>> {
    let key = Key { number: Number::Byte, count: 2, min: 0 };
    let vector = Vector { item: Item::Number(Number::Single), dimensions: vec![3] };
    let columns = vec![
        NewColumn::new("sepal", Codec::number(Number::Single)),
        NewColumn::new("petal", Codec::Vector(vector)),
        NewColumn::new("species", Codec::Item(Item::Key(key))),
    ];
    let class = |row: u32| if row.is_multiple_of(2) { -1.0 } else { 1.0 };
    let measure = |row: u32, measure: u8| {
        #[expect(clippy::cast_possible_truncation, reason = "measures are not exact")]
        let noise = Rng::new(7, 0, row.into(), measure).uniform(-2.0, 2.0) as f32;
        class(row) + noise
    };
    let sepal: Vec<f32> = (0..ROWS).map(|row| measure(row, 0)).collect();
    let petal: Vec<f32> =
        (0..ROWS).flat_map(|row| (1..4).map(move |number| measure(row, number))).collect();
    let species: Vec<u8> = (0..ROWS).map(|row| if class(row) > 0.0 { 2 } else { 1 }).collect();
    let mut writer = Writer::new(File::create(path)?, columns, WriteOptions::default())?;
    writer.write(&[
        Values::Single(sepal.into()),
        Values::Vector(Vectors::dense(3, ROWS as usize, Values::Single(petal.into()))),
        Values::Byte(species.into()),
    ])?;
    writer.finish()?;
    Ok(())
}
