//! What the loader itself costs: `cargo run --release --example overhead [SAMPLES [DROPS]]`.
//!
//! Prints the processor time per sample when a sample is eight bytes from memory, how long it takes
//! from opening a TBL file of `SAMPLES` samples to the first batch, with the file in the page cache
//! and after its pages were dropped, and how long dropping an epoch of photographs takes: medians
//! with the lowest and the highest. With `--tsv`, one line for each value: what, unit, value.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tbl_format::SampleFormat;
use tbl_io::{
    Entry, Location, NewSample, ReadError, SampleSource, Source, SourceKind, StreamWriter,
};
use tl_pipeline::{Dataset, Loader, LoaderConfig, Shuffle, Work};
use tl_transform::Recipe;

fn main() -> Result<(), Box<dyn Error>> {
    let is_tsv = std::env::args().any(|argument| argument == "--tsv");
    let numbers = std::env::args().skip(1).filter(|argument| argument != "--tsv");
    let mut arguments = numbers.map(|text| text.parse());
    let samples: u32 = arguments.next().transpose()?.unwrap_or(20_000);
    let drops: u32 = arguments.next().transpose()?.unwrap_or(8);
    for workers in [1, 2] {
        let (wall, cpu) = per_sample(samples, workers)?;
        show(is_tsv, &format!("overhead, {workers} workers"), "us a sample", &[wall]);
        show(is_tsv, &format!("overhead, {workers} workers"), "us of processor time", &[cpu]);
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("many.tbl");
    write_many(&path, samples)?;
    let warm = (0..5).map(|_| first_batch(&path)).collect::<Result<Vec<_>, _>>()?;
    show(is_tsv, &format!("first batch of {samples} samples, warm"), "ms", &warm);
    let cold = (0..5).map(|_| drop_pages(&path).and_then(|()| first_batch(&path)));
    let cold = cold.collect::<Result<Vec<_>, _>>()?;
    show(is_tsv, &format!("first batch of {samples} samples, cold"), "ms", &cold);
    let drops = (0..drops).map(stop_to_join).collect::<Result<Vec<_>, _>>()?;
    show(is_tsv, "stop to join", "ms", &drops);
    Ok(())
}

/// Prints values: each of them for a program, their median for people.
fn show(is_tsv: bool, what: &str, unit: &str, values: &[f64]) {
    if is_tsv {
        values.iter().for_each(|value| println!("{what}\t{unit}\t{value:.4}"));
        return;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return };
    let median = sorted[sorted.len() / 2];
    println!("{what}: {median:.3} {unit} ({first:.3} to {last:.3})");
}

/// Samples of eight bytes that cost nothing to get.
#[derive(Debug)]
struct Numbers {
    location: Location,
    count: u64,
}

impl SampleSource for Numbers {
    fn location(&self) -> &Location {
        &self.location
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Folder
    }

    fn sample_count(&self) -> u64 {
        self.count
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        Ok(Entry {
            key: None,
            label: None,
            format: SampleFormat::Unknown,
            width: 0,
            height: 0,
            offset: 8 * index,
            stored_bytes: 8,
            bytes: 8,
        })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        bytes.clear();
        bytes.extend_from_slice(&index.to_le_bytes());
        Ok(())
    }
}

/// Microseconds of the clock and of processor time that a sample takes.
fn per_sample(samples: u32, workers: usize) -> Result<(f64, f64), Box<dyn Error>> {
    let dataset = Dataset::from_sources(vec![Box::new(Numbers {
        location: "numbers".into(),
        count: samples.into(),
    })])?;
    let sampler = Shuffle::Full.into();
    // One epoch: what would be prepared of the next one is not counted.
    let prefetch_next_epoch = false;
    let config =
        LoaderConfig { workers, sampler, prefetch_next_epoch, ..LoaderConfig::new(Work::Bytes) };
    let loader = Loader::new(dataset, config)?;
    let (start, cpu) = (Instant::now(), processor_time()?);
    let mut received = 0;
    for batch in loader.epoch(0) {
        received += batch?.len();
    }
    assert_eq!(received, samples as usize, "every sample is received");
    let scale = 1e6 / f64::from(samples);
    let cpu = processor_time()?.saturating_sub(cpu);
    Ok((start.elapsed().as_secs_f64() * scale, cpu.as_secs_f64() * scale))
}

/// What this process has used of its cores, in steps of 10 ms; nothing where there is no `/proc`.
fn processor_time() -> Result<Duration, Box<dyn Error>> {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return Ok(Duration::ZERO) };
    // The second field is a name in brackets; the two numbers are the 14th and 15th.
    let (_, fields) = stat.rsplit_once(')').ok_or("an unknown form of /proc/self/stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>()?))
}

/// A TBL file with names and labels, as a conversion makes it.
fn write_many(path: &Path, samples: u32) -> Result<(), Box<dyn Error>> {
    let mut writer = StreamWriter::create(path, tbl_io::WriteOptions::default())?;
    writer
        .set_class_names(&std::array::from_fn::<String, 1_000, _>(|class| format!("n{class:08}")));
    for index in 0..samples {
        let (bytes, key) = (index.to_le_bytes(), format!("n{:08}/{index:08}.jpg", index % 1_000));
        let label = Some(i64::from(index % 1_000));
        let sample = NewSample { key: Some(key.as_bytes()), label, ..NewSample::new(&bytes) };
        writer.write_sample(&sample)?;
    }
    writer.finish()?;
    Ok(())
}

/// Makes the next reads of a file go to the disk.
fn drop_pages(path: &Path) -> Result<(), Box<dyn Error>> {
    let file = Source::open(path)?;
    Ok(file.dont_need(0, file.len())?)
}

/// Milliseconds from opening a file to its first batch.
fn first_batch(path: &Path) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let loader = Loader::new(
        Dataset::open(&[path])?,
        LoaderConfig { sampler: Shuffle::Full.into(), ..LoaderConfig::new(Work::Bytes) },
    )?;
    let batch = loader.epoch(0).next().ok_or("an epoch without a batch")??;
    let time = start.elapsed();
    assert!(!batch.is_empty(), "the first batch holds samples");
    Ok(time.as_secs_f64() * 1e3)
}

/// Milliseconds that dropping an epoch takes.
fn stop_to_join(round: u32) -> Result<f64, Box<dyn Error>> {
    let photographs = tl_testdata::shipped!("photos");
    let paths: Vec<PathBuf> = vec![photographs; 4];
    let work = Work::Images(Recipe::imagenet_train(224)?);
    let config = LoaderConfig { batch_size: 8, workers: 2, ..LoaderConfig::new(work) };
    let loader = Loader::new(Dataset::open(&paths)?, config)?;
    let mut epoch = loader.epoch(round);
    for batch in epoch.by_ref().take(round as usize % 3) {
        batch?;
    }
    let start = Instant::now();
    drop(epoch);
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
