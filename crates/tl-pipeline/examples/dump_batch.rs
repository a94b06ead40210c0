//! Runs a recipe over a data set and writes what came out, for comparison with other software.
//!
//! ```text
//! dump_batch DATA RECIPE SIZE EPOCH OUT
//! ```
//!
//! RECIPE is `imagenet-train` or `imagenet-eval`, decoded exactly; the seed is 42. OUT gets the images as 32-bit
//! floats, in order, `3 * SIZE * SIZE` each; the plans go to standard output, one line of JSON per
//! sample. `testdata/tools/compare_torchvision.py` calls this.

#![expect(clippy::print_stdout, reason = "the plans are the output")]

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use tl_pipeline::{Dataset, Loader, LoaderConfig, Work};
use tl_transform::{DecodeMode, Draw, Recipe};

const SEED: u64 = 42;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, recipe, size, epoch, out] = &arguments[..] else {
        println!("usage: dump_batch DATA RECIPE SIZE EPOCH OUT");
        return Ok(());
    };
    let (size, epoch) = (size.parse()?, epoch.parse()?);
    let recipe = match recipe.as_str() {
        "imagenet-train" => Recipe::imagenet_train(size)?,
        "imagenet-eval" => Recipe::imagenet_eval(size)?,
        other => return Err(format!("unknown recipe {other}").into()),
    };
    let recipe = recipe.with_decode(DecodeMode::Exact)?;
    let dataset = Dataset::open(&[data])?;
    let config = LoaderConfig { seed: SEED, ..LoaderConfig::new(Work::Images(recipe.clone())) };
    let loader = Loader::new(dataset, config)?;
    let mut out = BufWriter::new(File::create(out)?);
    let mut bytes = Vec::new();
    for batch in loader.epoch(epoch) {
        let batch = batch?;
        out.write_all(batch.images())?;
        for &index in batch.indices() {
            loader.dataset().read_into(index, &mut bytes)?;
            let image = tl_decode::probe(&bytes)?;
            let plan = recipe
                .plan(image.width, image.height, Draw { seed: SEED, epoch, sample: index })?
                .head;
            let (region, window) = (plan.region, plan.window);
            println!(
                "{{\"index\":{index},\"region\":[{},{},{},{}],\"resized\":[{},{}],\
                 \"window\":[{},{},{},{}],\"flip\":{}}}",
                region.x,
                region.y,
                region.width,
                region.height,
                plan.resized.0,
                plan.resized.1,
                window.x,
                window.y,
                window.width,
                window.height,
                plan.flip
            );
        }
    }
    out.flush()?;
    Ok(())
}
