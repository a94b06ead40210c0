//! Loads photographs to a GPU as fast as they go there, and at the pace of a training step; on the
//! host where there is none.
//!
//! ```text
//! cargo run --release -p tl-pipeline --example device -- [REPEAT [BATCH_SIZE]]
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tl_pipeline::{
    CacheConfig, CacheKind, Dataset, Delivery, DeviceOptions, Loader, LoaderConfig, MemoryCache,
    Report, Sampler, Work,
};
use tl_transform::op::{CenterCrop, Normalize, RandomHorizontalFlip, Resize, ToFloat};
use tl_transform::{Dtype, Layout, OutputSpec, Recipe};

const SIDE: u32 = 224;

/// The bytes that a training step takes in a second.
const PACE: f64 = 12e9;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let repeat: u32 = arguments.next().map_or(Ok(1), |repeat| repeat.parse())?;
    let batch_size: usize = arguments.next().map_or(Ok(4), |size| size.parse())?;
    let photos = tl_testdata::shipped!("photos");
    let ops = vec![
        Resize::new(256).into(),
        CenterCrop::new(SIDE).into(),
        RandomHorizontalFlip::default().into(),
        ToFloat {}.into(),
        Normalize::IMAGENET.into(),
    ];
    let recipe = Recipe::new(ops, OutputSpec { dtype: Dtype::F16, layout: Layout::Chw })?;
    for delivery in [Delivery::Host, Delivery::Device(DeviceOptions::default())] {
        let dataset = Dataset::open(&[&photos])?;
        let memory = MemoryCache { kind: CacheKind::Decoded, bytes: 1 << 30 };
        let config = LoaderConfig {
            delivery,
            batch_size,
            sampler: Sampler { repeat, ..Sampler::default() },
            cache: CacheConfig { memory: Some(memory), disk: None },
            ..LoaderConfig::new(Work::Images(recipe.clone()))
        };
        let loader = Loader::new(dataset, config)?;
        match loader.device_use() {
            Some(device) => println!("{device}"),
            None => println!("on the host"),
        }
        for note in loader.notes() {
            println!("{note}");
        }
        let pixels = SIDE as usize * SIDE as usize * 3;
        let step = Duration::from_secs_f64((batch_size * pixels) as f64 / PACE);
        for (name, step) in [("as fast as it goes", None), ("at 12 GB/s", Some(step))] {
            run(&loader, name, step)?;
        }
    }
    Ok(())
}

/// Prints what a consumer gets whose step takes as long as `step`.
fn run(loader: &Loader, name: &str, step: Option<Duration>) -> Result<(), Box<dyn Error>> {
    for batch in loader.epoch(0) {
        batch?;
    }
    let before = loader.stats();
    let start = Instant::now();
    let mut images = 0;
    for batch in loader.epoch(1) {
        images += batch?.len();
        if let Some(step) = step {
            sleep(step);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let report = Report::new(loader.stats().since(&before));
    let rate = images as f64 / seconds;
    let waited = report.consumer_wait() * 100.0;
    println!("  {name}: {rate:.0} images/s, the consumer waited {waited:.1} % of its time");
    if report.stats().uploads.batches > 0 {
        println!("  copies to the device: {}", report.stats().uploads);
    }
    Ok(())
}
