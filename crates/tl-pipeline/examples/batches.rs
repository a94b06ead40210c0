//! Streams the training batches of a data set: `cargo run --example batches -- DATA...`
//!
//! Without an argument it takes the photographs in the repository's `testdata`.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use tl_pipeline::{Batch, Dataset, Loader, LoaderConfig, Shuffle, Work};
use tl_transform::Recipe;

fn main() -> Result<(), Box<dyn Error>> {
    match stream(&mut io::stdout().lock()) {
        // Whoever reads this has seen enough.
        Err(error) if is_closed_pipe(&*error) => Ok(()),
        ended => ended,
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn stream(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        paths.push(tl_testdata::shipped!("photos"));
    }
    let dataset = Dataset::open(&paths)?;
    writeln!(out, "{} samples, {} classes", dataset.len(), dataset.class_names().len())?;

    let work = Work::Images(Recipe::imagenet_train(224)?);
    let config = LoaderConfig {
        batch_size: 4,
        sampler: Shuffle::Full.into(),
        seed: 42,
        ..LoaderConfig::new(work)
    };
    let loader = Loader::new(dataset, config)?;
    for epoch in 0..2 {
        let start = Instant::now();
        for batch in loader.epoch(epoch) {
            let batch = batch?;
            let text = describe(&batch, &loader)?;
            writeln!(out, "epoch {epoch} batch {}: {text}", batch.number())?;
        }
        writeln!(out, "epoch {epoch} took {:.0} ms", start.elapsed().as_secs_f64() * 1e3)?;
    }
    Ok(())
}

/// Shape and mean of the images, then each sample's name and class.
fn describe(batch: &Batch, loader: &Loader) -> Result<String, Box<dyn Error>> {
    let images = batch.images_f32().unwrap_or_default();
    let mean = images.iter().sum::<f32>() / images.len().max(1) as f32;
    let mut text =
        format!("{:?} f32, mean {mean:+.2}", batch.shape().as_deref().unwrap_or_default());
    let names = loader.dataset().class_names();
    for (&index, &label) in batch.indices().iter().zip(batch.labels()) {
        let entry = loader.dataset().entry(index)?;
        let key = String::from_utf8_lossy(entry.key.as_deref().unwrap_or_default()).into_owned();
        let class = usize::try_from(label).ok().and_then(|label| names.get(label));
        let class = class.map_or_else(|| "no name".to_owned(), String::clone);
        text.push_str(&format!("\n    {key}: label {label} ({class})"));
    }
    Ok(text)
}
