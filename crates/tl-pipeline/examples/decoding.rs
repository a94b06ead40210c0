//! Photographs per second, and time of the host's CPUs for each, with every part of decoding on a GPU;
//! and whether all epochs have the bits of the host.
//! Without a GPU it says why there is none.
//!
//! ```text
//! cargo run --release -p tl-pipeline --example decoding -- [DATA [WORKERS [EPOCHS [BATCH_SIZE [LIBRARY [ONLY]]]]]]
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;
use std::time::Instant;

use tl_pipeline::{
    Batch, Dataset, Delivery, DeviceDecode, DeviceOptions, Loader, LoaderConfig, PipelineError,
    Work,
};
use tl_transform::{Dtype, Layout, OutputSpec, Recipe};

/// Clock ticks in a second, of `/proc/self/stat`.
const TICKS: f64 = 100.0;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let photos = tl_testdata::shipped!("photos");
    let data = arguments.next().map_or(photos, PathBuf::from);
    let workers = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let epochs = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let batch_size = arguments.next().map_or(Ok(8), |size| size.parse())?;
    let library = arguments.next().map(PathBuf::from);
    let only = arguments.next().unwrap_or_default();
    let output = OutputSpec { dtype: Dtype::F16, layout: Layout::Chw };
    let recipe = Recipe::imagenet_train(224)?.with_output(output)?;
    let loader = |delivery| {
        let work = Work::Images(recipe.clone());
        let config = LoaderConfig { delivery, batch_size, workers, ..LoaderConfig::new(work) };
        Loader::new(Dataset::open(&[&data])?, config)
    };
    let device = |decode| {
        let library = library.clone();
        Delivery::Device(DeviceOptions { decode, library, ..DeviceOptions::default() })
    };
    let host = loader(Delivery::Host)?;
    if "on the host".contains(&only) {
        rate("on the host", &host, epochs)?;
    }
    for (name, decode) in [
        ("pixels to the device", DeviceDecode::Never),
        ("coefficients to the device", DeviceDecode::Coefficients),
        ("rows to the device", DeviceDecode::Auto),
    ] {
        if !name.contains(&only) {
            continue;
        }
        let loader = loader(device(decode))?;
        if loader.device_use().is_none() {
            loader.notes().iter().for_each(|note| println!("{note}"));
            break;
        }
        rate(name, &loader, epochs)?;
        let mut equal = 0;
        for epoch in 0..epochs {
            let found = digest(&loader, epoch)?;
            equal += u32::from(found == digest(&host, epoch)?);
        }
        println!("  {equal} of {epochs} epochs have the bits of the host");
    }
    Ok(())
}

/// Prints what epochs take after the first.
fn rate(name: &str, loader: &Loader, epochs: u32) -> Result<(), Box<dyn Error>> {
    loader.epoch(0).try_for_each(|batch| batch.map(drop))?;
    let before = loader.stats();
    let cpu = cpu_seconds()?;
    let start = Instant::now();
    let mut images = 0;
    let mut last = None;
    for epoch in 1..=epochs {
        for batch in loader.epoch(epoch) {
            let batch = batch?;
            images += batch.len();
            last = Some(batch);
        }
    }
    if let Some(device) = last.as_ref().and_then(Batch::device) {
        device.buffer().ready().synchronize()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let used = cpu_seconds()? - cpu;
    let stats = loader.stats().since(&before).uploads;
    let count = images as f64;
    let rate = count / seconds;
    let each = used / count * 1e6;
    println!("{name}: {rate:.0} photographs/s, {each:.1} us of the CPUs each, {used:.1} s in all");
    if stats.batches > 0 {
        let device = stats.device_nanos as f64 / 1e6 / stats.batches as f64;
        let decoded = stats.pictures;
        println!("  {stats}; {decoded} decoded there, {device:.2} ms of the device for a batch");
    }
    Ok(())
}

/// The time of the CPUs that this process has used.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let [user, system] = [11, 12].map(|field| fields.get(field).ok_or("a number of ticks"));
    Ok((user?.parse::<f64>()? + system?.parse::<f64>()?) / TICKS)
}

fn digest(loader: &Loader, epoch: u32) -> Result<u64, PipelineError> {
    let mut hasher = DefaultHasher::new();
    for batch in loader.epoch(epoch) {
        let batch = batch?;
        match batch.device() {
            None => hasher.write(batch.images()),
            Some(device) => {
                let bytes = device.buffer().read();
                let bytes = bytes.map_err(|reason| PipelineError::Device { reason })?;
                hasher.write(&bytes[..device.image_bytes()]);
            }
        }
    }
    Ok(hasher.finish())
}
