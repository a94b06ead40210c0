//! Makes a small folder of classes in a temporary place and iterates over its batches.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fs;
use std::path::Path;

use tl_pipeline::{Dataset, Loader, LoaderConfig, Shuffle, Work};
use tl_transform::Recipe;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    for (class, red) in [("cool", 40), ("warm", 220)] {
        fs::create_dir(folder.path().join(class))?;
        for number in 0..10 {
            let name = format!("{number}.bmp");
            write_bmp(&folder.path().join(class).join(name), red, 20 * number)?;
        }
    }

    let dataset = Dataset::open(&[folder.path()])?;
    println!("{} samples of {:?}", dataset.len(), dataset.class_names());
    let work = Work::Images(Recipe::imagenet_train(32)?);
    let config = LoaderConfig {
        batch_size: 8,
        sampler: Shuffle::Full.into(),
        seed: 42,
        ..LoaderConfig::new(work)
    };
    let loader = Loader::new(dataset, config)?;
    for epoch in 0..2 {
        for batch in loader.epoch(epoch) {
            let batch = batch?;
            let images = batch.images_f32().unwrap_or_default();
            let mean = images.iter().sum::<f32>() / images.len() as f32;
            println!(
                "epoch {epoch} {:?} mean {mean:+.3} labels {:?}",
                batch.shape(),
                batch.labels()
            );
        }
    }
    Ok(())
}

/// A 24-bit BMP of 48 x 40 pixels: one red, rising green, one blue.
fn write_bmp(path: &Path, red: u8, blue: u8) -> std::io::Result<()> {
    let (width, height) = (48u32, 40u32);
    let mut file = b"BM".to_vec();
    for word in [54 + width * height * 3, 0, 54, 40, width, height, 24 << 16 | 1, 0, 0, 0, 0, 0, 0]
    {
        file.extend(word.to_le_bytes());
    }
    for green in (0..width * height).map(|pixel| (pixel % 256).to_le_bytes()[0]) {
        file.extend([blue, green, red]);
    }
    fs::write(path, file)
}
