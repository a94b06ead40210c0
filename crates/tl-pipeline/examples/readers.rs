//! Who should read: `cargo run --release -p tl-pipeline --features io-uring --example readers -- \
//! [RECIPE FILE [ROUNDS]]`.
//!
//! RECIPE is `raw` or `imagenet-train`. One epoch of FILE, by two workers and in random order, for
//! each way to read, from a page cache that was emptied of the file and from one that has it. The
//! ways take turns, ROUNDS times. Prints the median rate of each, and the median of its ratios to
//! the workers' own reading in the same round; of a way that this build or machine does not have,
//! why. Without a FILE it shows itself on a small one of its own.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use tbl_format::SampleFormat;
use tbl_io::{NewSample, PageCache, Source, StreamWriter, WriteOptions};
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        [] => {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("some.tbl");
            write(&path)?;
            compare(&path, &Work::Bytes, 1)
        }
        [recipe, path] => compare(path.as_ref(), &work(recipe)?, 5),
        [recipe, path, rounds] => compare(path.as_ref(), &work(recipe)?, rounds.parse()?),
        _ => Err("RECIPE FILE [ROUNDS]".into()),
    }
}

fn work(recipe: &str) -> Result<Work, Box<dyn Error>> {
    match recipe {
        "raw" => Ok(Work::Bytes),
        "imagenet-train" => Ok(Work::Images(Recipe::imagenet_train(224)?)),
        other => Err(format!("{other} is neither raw nor imagenet-train").into()),
    }
}

fn write(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut writer = StreamWriter::create(path, WriteOptions::default())?;
    for index in 0..256_u32 {
        let bytes = [index.to_le_bytes(); 4096].concat();
        let format = SampleFormat::Unknown;
        writer.write_sample(&NewSample { format, ..NewSample::new(&bytes) })?;
    }
    writer.finish()?;
    Ok(())
}

fn compare(path: &Path, work: &Work, rounds: usize) -> Result<(), Box<dyn Error>> {
    for is_cold in [true, false] {
        println!("{}", if is_cold { "cold" } else { "warm" });
        let mut rates = vec![Vec::new(); WAYS.len()];
        let mut notes = vec![None; WAYS.len()];
        for _ in 0..rounds {
            for (((_, readers), rates), note) in WAYS.into_iter().zip(&mut rates).zip(&mut notes) {
                match epoch(path, work, readers, is_cold)? {
                    Outcome::Rate(rate) => rates.push(rate),
                    Outcome::OtherWay(reason) => *note = Some(reason),
                }
            }
        }
        let Some((first, _)) = rates.split_first() else { continue };
        for (((name, _), rates), note) in WAYS.into_iter().zip(&rates).zip(notes) {
            if let Some(note) = note {
                println!("  {name:<24}{note}");
                continue;
            }
            let ratios = rates.iter().zip(first).map(|(rate, first)| rate / first).collect();
            let (rate, ratio) = (median(rates.clone()), median(ratios));
            println!("  {name:<24}{rate:>10.0} samples/s {ratio:>6.2}");
        }
    }
    Ok(())
}

enum Outcome {
    /// Samples a second of one epoch.
    Rate(f64),
    /// The loader could not read as it was told and says why.
    OtherWay(String),
}

fn epoch(
    path: &Path,
    work: &Work,
    readers: Readers,
    is_cold: bool,
) -> Result<Outcome, Box<dyn Error>> {
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
        return Ok(Outcome::OtherWay(note.to_string()));
    }
    Ok(Outcome::Rate(f64::from(samples) / start.elapsed().as_secs_f64()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
