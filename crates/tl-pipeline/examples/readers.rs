//! Who should read: `cargo run --release -p tl-pipeline --features io-uring --example readers -- \
//! RECIPE FILE [ROUNDS]`.
//!
//! RECIPE is `raw` or `imagenet-train`. One epoch of FILE, by two workers and in random order, for
//! each way to read, from a page cache that was emptied of the file and from one that has it. The
//! ways take turns, ROUNDS times. Prints the median rate of each, and the median of its ratios to
//! the workers' own reading in the same round.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use tbl_io::{PageCache, Source};
use tl_pipeline::{Dataset, Loader, LoaderConfig, Readers, Shuffle, Work};
use tl_transform::Recipe;

const WAYS: [(&str, Readers); 6] = [
    ("workers, hints", Readers::Workers),
    ("2 threads", Readers::Threads(2)),
    ("8 threads", Readers::Threads(8)),
    ("io_uring 8", Readers::Uring { depth: 8, page_cache: PageCache::Used }),
    ("io_uring 32", Readers::Uring { depth: 32, page_cache: PageCache::Used }),
    ("io_uring 32, O_DIRECT", Readers::Uring { depth: 32, page_cache: PageCache::Bypassed }),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(recipe), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("RECIPE FILE [ROUNDS]".into());
    };
    let work = match recipe.as_str() {
        "raw" => Work::Bytes,
        "imagenet-train" => Work::Images(Recipe::imagenet_train(224)?),
        other => return Err(format!("{other} is neither raw nor imagenet-train").into()),
    };
    let rounds: usize = arguments.next().map(|text| text.parse()).transpose()?.unwrap_or(5);
    for is_cold in [true, false] {
        println!("{}", if is_cold { "cold" } else { "warm" });
        let mut rates = vec![Vec::new(); WAYS.len()];
        for _ in 0..rounds {
            for ((_, readers), rates) in WAYS.into_iter().zip(&mut rates) {
                rates.push(epoch(path.as_ref(), &work, readers, is_cold)?);
            }
        }
        let Some((first, _)) = rates.split_first() else { continue };
        for ((name, _), rates) in WAYS.into_iter().zip(&rates) {
            let ratios = rates.iter().zip(first).map(|(rate, first)| rate / first).collect();
            let (rate, ratio) = (median(rates.clone()), median(ratios));
            println!("  {name:<24}{rate:>10.0} samples/s {ratio:>6.2}");
        }
    }
    Ok(())
}

/// Samples a second of one epoch.
fn epoch(path: &Path, work: &Work, readers: Readers, is_cold: bool) -> Result<f64, Box<dyn Error>> {
    // Mapped pages stay, so what the last loader mapped is gone before the file is dropped.
    let source = Source::open(path)?;
    if is_cold {
        source.dont_need(0, source.len())?;
    }
    let sampler = Shuffle::Full.into();
    let config = LoaderConfig {
        readers,
        sampler,
        workers: 2,
        batch_size: 64,
        ..LoaderConfig::new(work.clone())
    };
    let loader = Loader::new(Dataset::open(&[path])?, config)?;
    let start = Instant::now();
    let mut samples = 0_u32;
    for batch in loader.epoch(1) {
        samples += u32::try_from(batch?.len())?;
    }
    if let Some(note) = loader.notes().first() {
        return Err(note.to_string().into());
    }
    Ok(f64::from(samples) / start.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
