//! `tl bench`: how fast a data set becomes batches, and what is in them.

mod cache;
mod columns;
mod digest;
pub(crate) mod machine;
mod measure;
mod padding;
mod result;
mod rows;
mod shard;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tl_decode::DecodeOptions;
use tl_pipeline::{
    Dataset, Loader, LoaderConfig, LoaderNote, Outcome, Replay, Report, Shard, Shuffle,
    ShuffleQuality, Work,
};

use crate::args::{BenchArgs, BenchRecipe, GlobalArgs, RecipeName};
use crate::data_set;
use crate::failure::{Failure, Verdict};
use crate::figures::{ReportFigures, rounded};
use crate::output::{Progress, Stdout, note, write_file};
use crate::recipe;
use result::BenchResult;

/// Events of a trace: some ten thousand samples, in 3 MB of memory and 8 MB of JSON.
const TRACED_EVENTS: usize = 1 << 16;

/// Batches that are served again and again.
const REPLAYED: u64 = 2;

/// Measures, and prints the result.
pub(crate) fn run(args: &BenchArgs, global: GlobalArgs) -> Result<Verdict, Failure> {
    let at_least = duration("--seconds", args.seconds, 1.0)?;
    let step = duration("--step-ms", args.observe.step_ms, 1e-3)?;
    let opened = Instant::now();
    let dataset = Dataset::open(&args.data)?;
    let config = config(args, &dataset)?;
    let loader = loader(dataset, config)?;
    loader.dataset().shards().iter().for_each(|shard| data_set::note(shard.as_ref()));
    let warm_up = warm_up(&loader, opened, global);
    // Also of an epoch that ended early, which is when it is looked for.
    report_bad_samples(&loader, args.audit.as_deref(), args.observe.force)?;
    let (warm_up, before) = (warm_up?, loader.stats());
    // What became of bad samples is reported one by one.
    let is_new = |said: &&LoaderNote| !matches!(said, LoaderNote::BadSample { .. });
    loader.notes().iter().filter(is_new).for_each(|said| note(&said));
    let mut replay = args.observe.replay.then(|| loader.replay(0, REPLAYED)).transpose()?;
    let mut epoch = 0;
    let rates = measure::measure(at_least, || {
        epoch += 1;
        match &mut replay {
            Some(replay) => Ok(drain_again(replay, loader.len(), step)),
            None => drain(&loader, epoch, step),
        }
    })?;
    // It keeps batches, which what follows may have no room beside.
    drop(replay);
    let report = args.observe.report.then(|| Report::new(loader.stats().since(&before)));
    if let Some(path) = &args.observe.trace {
        write_trace(&loader, path, args.observe.force)?;
    }
    let shuffle = args.loader.sampler.shuffle.map(|_| quality(&loader)).transpose()?;
    // A pass of its own: hashing must not slow down what is measured.
    let digest = args.digest.then(|| digest::epoch(&loader, 0)).transpose()?;
    if let Some(path) = &args.rows {
        rows::write(&loader, path, args.observe.force)?;
    }
    let result = BenchResult {
        recipe: recipe_of(args).to_string(),
        unit: if matches!(loader.config().work, Work::Columns(_)) { "rows" } else { "images" },
        workers: loader.config().workers,
        simd: tl_simd::Level::detect().to_string(),
        batch_size: loader.config().batch_size,
        seed: loader.config().seed,
        plan: recipe_of(args).resizes().then(|| plan(&loader.config().work)).flatten(),
        images_per_s: rounded(rates.median, 1),
        min: rounded(rates.min, 1),
        max: rounded(rates.max, 1),
        runs: rates.runs,
        noisy_runs_dropped: rates.noisy_runs_dropped,
        quiet: rates.quiet,
        images_per_cpu_s: rounded(rates.per_cpu_second, 1),
        samples_per_epoch: warm_up.samples,
        shard: shard::ShardResult::of(&loader, warm_up.not_valid),
        damaged_kept: before.damaged,
        skipped: before.skipped,
        replaced: before.replaced,
        filled: before.filled,
        padding: padding::PaddingResult::of(&loader),
        memory: loader.config().memory_budget.map(|_| loader.memory()),
        first_batch_s: rounded(warm_up.first_batch.as_secs_f64(), 4),
        peak_rss_mib: machine::peak_rss_mib().map(|peak| rounded(peak, 1)),
        cache: cache::CacheResult::of(&loader),
        shuffle,
        digest,
        replay: args.observe.replay,
        report: report.as_ref().map(ReportFigures::from),
    };
    let mut stdout = Stdout::open()?;
    if args.json {
        stdout.json_line(&result)?;
    } else {
        stdout.line(&result)?;
        report.map_or(Ok(()), |report| stdout.line(&format_args!("\n{report}")))?;
    }
    stdout.finish()?;
    Ok(Verdict::Good)
}

pub(crate) fn config(args: &BenchArgs, dataset: &Dataset) -> Result<LoaderConfig, Failure> {
    let recipe = recipe_of(args);
    if args.decode.is_given() && !recipe.resizes() {
        return Err(Failure::NoDecodeMode);
    }
    if recipe != BenchRecipe::Columns && args.columns_of.is_given() {
        return Err(Failure::Usage { what: "--features and --label need --recipe columns" });
    }
    let loaded = match &recipe {
        BenchRecipe::Columns => None,
        BenchRecipe::Samples(name) => recipe::load(name, args.size)?,
    };
    let work = match loaded {
        None if recipe == BenchRecipe::Columns && !args.views => columns::work(&args.columns_of),
        None if recipe == BenchRecipe::Columns => return Err(Failure::NoViews),
        None if args.views => Work::Views,
        None => Work::Bytes,
        Some(_) if args.views => return Err(Failure::NoViews),
        Some(recipe) => Work::Images(args.decode.apply(recipe)?),
    };
    let ordered = [RecipeName::Decode, RecipeName::ImagenetEval].map(BenchRecipe::Samples);
    let shuffle = !ordered.contains(&recipe);
    let config = LoaderConfig {
        sampler: if shuffle { Shuffle::Full } else { Shuffle::None }.into(),
        decode: DecodeOptions { on_damaged: args.on_damaged.into(), ..DecodeOptions::default() },
        trace: if args.observe.trace.is_some() { TRACED_EVENTS } else { 0 },
        ..LoaderConfig::new(work)
    };
    let config = args.loader.apply(config, dataset)?;
    Ok(columns::split(config, dataset))
}

/// What is asked for, or follows from what else is.
fn recipe_of(args: &BenchArgs) -> BenchRecipe {
    args.recipe.clone().unwrap_or(BenchRecipe::Columns)
}

/// A loader that has a batch.
pub(crate) fn loader(dataset: Dataset, config: LoaderConfig) -> Result<Loader, Failure> {
    let loader = Loader::new(dataset, config)?;
    if !loader.is_empty() {
        return Ok(loader);
    }
    let LoaderConfig { shard: Shard { rank, world, .. }, batch_size, .. } = *loader.config();
    let positions = loader.order(0).len();
    let global_batch = batch_size as u64 * u64::from(world);
    Err(Failure::NoBatch { rank, world, positions, global_batch })
}

/// How random the order is.
pub(crate) fn quality(loader: &Loader) -> Result<ShuffleQuality, Failure> {
    let config = loader.config();
    let (dataset, batch_size) = (loader.dataset(), config.batch_size as u64);
    Ok(ShuffleQuality::measure(&config.sampler, dataset, config.seed, batch_size)?)
}

/// `value` of `unit` seconds, as the option of this name says it.
pub(crate) fn duration(option: &'static str, value: f64, unit: f64) -> Result<Duration, Failure> {
    let duration = Duration::try_from_secs_f64(value * unit);
    duration.map_err(|source| Failure::Seconds { option, value, source })
}

fn write_trace(loader: &Loader, path: &Path, force: bool) -> Result<(), Failure> {
    write_file(path, force, |out| loader.write_trace(out))
}

/// The recipe in words, with its mode of decoding.
fn plan(work: &Work) -> Option<String> {
    if let Work::Images(recipe) = work { Some(recipe.to_string()) } else { None }
}

/// Writes what was wrong with samples to a file, one JSON object on a line, or says it.
fn report_bad_samples(loader: &Loader, file: Option<&Path>, force: bool) -> Result<(), Failure> {
    let Some(path) = file else {
        // What was raised is said as the error it is.
        for entry in loader.audit().iter().filter(|entry| entry.outcome != Outcome::Raised) {
            note(&format_args!("{} ({})", entry.error, entry.outcome));
        }
        return Ok(());
    };
    write_file(path, force, |out| {
        for entry in loader.audit() {
            serde_json::to_writer(&mut *out, &entry)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// What the first epoch says.
struct WarmUp {
    samples: u64,
    /// Those that do not count.
    not_valid: u64,
    /// From before the data set was opened to the first batch.
    first_batch: Duration,
}

fn warm_up(loader: &Loader, opened: Instant, global: GlobalArgs) -> Result<WarmUp, Failure> {
    let world = u64::from(loader.config().shard.world);
    let mut progress = Progress::new(global, loader.order(0).len().div_ceil(world));
    let (mut samples, mut not_valid, mut first_batch) = (0, 0, None);
    for batch in loader.epoch(0) {
        let batch = batch?;
        samples += batch.len() as u64;
        not_valid += batch.valid().iter().filter(|valid| !**valid).count() as u64;
        first_batch.get_or_insert_with(|| opened.elapsed());
        progress.set(samples);
    }
    let first_batch = first_batch.unwrap_or_else(|| opened.elapsed());
    Ok(WarmUp { samples, not_valid, first_batch })
}

/// Takes every batch of an epoch, `step` for each, and returns how many samples they had.
fn drain(loader: &Loader, epoch: u32, step: Duration) -> Result<u64, Failure> {
    let mut samples = 0;
    for batch in loader.epoch(epoch) {
        samples += batch?.len() as u64;
        thread::sleep(step);
    }
    Ok(samples)
}

/// As [`drain`], of batches that cost nothing.
fn drain_again(replay: &mut Replay, batches: u64, step: Duration) -> u64 {
    let mut samples = 0;
    for _ in 0..batches {
        samples += replay.next().map_or(0, |batch| batch.len() as u64);
        thread::sleep(step);
    }
    samples
}
