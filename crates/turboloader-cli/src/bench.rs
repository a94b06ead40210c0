//! `tl bench`: how fast a data set becomes batches, and what is in them.

mod cache;
mod columns;
mod digest;
pub(crate) mod machine;
mod measure;
mod padding;
#[cfg(feature = "remote")]
mod remote;
mod result;
mod rows;
mod shard;
mod timeline;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueHint;
use tl_decode::DecodeOptions;
use tl_pipeline::{
    Batch, Dataset, Loader, LoaderConfig, LoaderNote, Outcome, PipelineError, Report, Shard,
    Shuffle, ShuffleQuality, TokenWork, Work,
};

use crate::args::{
    BenchRecipe, DamageChoice, DecodeModeArgs, GlobalArgs, LoaderArgs, NO_DECODE_MODE, RecipeName,
};
use crate::data_set;
use crate::failure::{Failure, Verdict};
use crate::figures::{ReportFigures, rounded};
use crate::output::{Progress, Stdout, note, write_file};
use crate::page::{Page, PageArgs};
use crate::recipe;
use measure::Rates;
use result::BenchResult;
use timeline::Timeline;

/// Events of a trace: some ten thousand samples, in 3 MB of memory and 8 MB of JSON.
const TRACED_EVENTS: usize = 1 << 16;

/// Batches that are served again and again.
const REPLAYED: u64 = 2;

/// The heading of options for tables, which `next_help_heading` would keep for later arguments.
const TABLES: &str = "Columns of tables";

const NO_COLUMNS: Failure = Failure::Usage {
    what: "--columns, --features and --label need --recipe columns: samples have --fields",
};

const NO_VIEWS: Failure =
    Failure::Usage { what: "--views needs --recipe raw: it borrows stored bytes" };

/// Measure how fast a data set becomes batches
///
/// One warm-up epoch brings the files into the page cache and measures the time from opening to the
/// first batch. Then the command measures at least five epochs and at least --seconds; if one epoch
/// takes longer than that, it measures one. The rate is that of the median epoch. Epochs during
/// which other processes used more than 0.15 cores are not counted: measuring continues for up to a
/// minute until five quiet epochs are found. With fewer than three, all epochs count and the result
/// has `"quiet": false`.
/// Training, raw reads and recipe files are shuffled; decoding and evaluation are not. --shuffle
/// overrides this, and the result then reports how random the order is.
///
/// The environment variable TURBOLOADER_SIMD selects the instruction set of the kernels: scalar,
/// avx2, avx512 or neon, if the CPU supports it. Batches are the same with each.
///
/// --digest also prints the SHA-256 of epoch 0. It covers every batch in order: its images (their
/// bytes as the batch holds them; for `decode`, width and height as u32 and the pixels of each
/// sample; for `raw`, length as u64 and the bytes of each sample), then its labels (i64), then its
/// sample indices (u64), all little-endian. A batch with a row that does not count adds a byte for
/// each row, 1 where it counts. Requested fields follow, sample by sample: name and files, each
/// after its length (u64; 2^64 - 1 if missing), the number of boxes (u64), the boxes (four f32
/// each) and their labels (i64), how many numbers keypoints have (u64) and these (f32), how
/// many bytes the masks of objects have (u64) and these, and the mask.
///
/// For tables, batches hold the numeric columns, or those given with --columns; a text column is
/// read as bytes. Instead of images, the digest then covers the values of each column of the row,
/// in order, followed by the matrix of --features.
///
/// --rows writes the same hashes row by row. Sorted together, the lines of all ranks equal those of
/// one process with the same global batch, if all images have one size and --mixing-group is the
/// same.
///
/// Examples:
///   tl bench train.tar --recipe imagenet-train --workers 2
///   tl bench train.tbl --recipe recipe.toml --json
///   tl bench train.tbl --recipe imagenet-train --shuffle block:1024x8
///   tl bench train.tbl --recipe imagenet-train --report --trace run.json --step-ms 40
///   tl bench photos.tbl drawings.tbl --mix 3,1 --length first-used-up --recipe imagenet-train
///   tl bench train.tbl --recipe imagenet-train --rank 0 --world 2 --batch-size 32 --rows 0.jsonl
///   tl bench adult.idv --recipe columns --digest
///   tl bench corpus.bin --tokens u16 --sequence-length 1024 --recipe tokens
///   tl bench iris.idv --features PetalLength,PetalWidth --label Label --batch-size 256
///   tl bench coco.tbl --recipe detect.toml --boxes 'json:/annotations/*/bbox' --box-format xywh
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// TAR archives, folders or TBL files, read as one data set; or IDV files and TBF segments
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<PathBuf>,

    /// The work on each sample: decode (to RGB at full size), raw (read the stored bytes),
    /// imagenet-train (random resized crop, random horizontal flip, normalise, f32 planes),
    /// imagenet-eval (resize of the short side, centre crop, normalise, f32 planes), columns (rows
    /// of a table; the default with --columns, --features and --label), tokens (with --tokens:
    /// sequences as i64), or the path of a recipe in JSON or TOML
    #[arg(long, value_name = "RECIPE", value_hint = ValueHint::FilePath,
          required_unless_present_any = ["columns", "features", "label"])]
    pub(crate) recipe: Option<BenchRecipe>,

    #[command(flatten)]
    pub(crate) columns_of: RowArgs,

    /// Side of the images in a batch, for the imagenet recipes (default: 224)
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) size: Option<u32>,

    /// With --recipe raw: borrow the bytes from the mapped files, without copying or checking them
    #[arg(long)]
    pub(crate) views: bool,

    /// Measure at least this long
    #[arg(long, value_name = "S", default_value_t = 8.0)]
    pub(crate) seconds: f64,

    #[command(flatten)]
    pub(crate) decode: DecodeModeArgs,

    /// Handling of damaged JPEG data
    #[arg(long, value_enum, value_name = "CHOICE", default_value_t = DamageChoice::Error)]
    pub(crate) on_damaged: DamageChoice,

    /// Write the defects of samples in epoch 0 to a file: one JSON object per line, with position,
    /// sample, name, place in the file, reason and how it was handled
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) audit: Option<PathBuf>,

    /// Add the SHA-256 of epoch 0
    #[arg(long)]
    pub(crate) digest: bool,

    /// Write the rows of epoch 0 to a file: one JSON object per line, with the batch, the row in
    /// the global batch, the sample, its label, whether the row counts, and the SHA-256 of its
    /// content
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) rows: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) observe: ObserveArgs,

    #[cfg(feature = "remote")]
    #[command(flatten)]
    prices: remote::PriceArgs,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    // After the others, because it has its own headings.
    #[command(flatten)]
    pub(crate) loader: LoaderArgs,
}

/// The content of batches of a table in addition to its columns.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RowArgs {
    /// Only these columns (default: all columns of numbers)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = TABLES)]
    pub(crate) columns: Option<Vec<String>>,

    /// Numeric columns that form one f32 matrix
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = TABLES)]
    pub(crate) features: Vec<String>,

    /// The column with the labels
    #[arg(long, value_name = "NAME", help_heading = TABLES)]
    pub(crate) label: Option<String>,
}

impl RowArgs {
    /// Whether anything was asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.columns.is_some() || !self.features.is_empty() || self.label.is_some()
    }
}

/// The observations to make while measuring.
#[derive(Debug, clap::Args)]
pub(crate) struct ObserveArgs {
    /// Report how the time of the measured epochs was spent, and what limits the rate
    #[arg(long)]
    pub(crate) report: bool,

    /// Write a trace of workers and consumer for ui.perfetto.dev or a browser's trace viewer (the
    /// latest 65 536 events)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) page: PageArgs,

    /// Replace the files of --trace, --html, --audit and --rows if they exist
    #[arg(short, long)]
    pub(crate) force: bool,

    /// Simulate a training step: the consumer waits this many milliseconds after each batch
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) step_ms: f64,

    /// Serve the first batches repeatedly: the rate of the consumer if loading cost nothing
    #[arg(long, conflicts_with_all = ["report", "trace"])]
    pub(crate) replay: bool,
}

/// Measures, and prints the result.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let at_least = duration("--seconds", args.seconds, 1.0)?;
    let step = duration("--step-ms", args.observe.step_ms, 1e-3)?;
    let opened = Instant::now();
    #[cfg(feature = "remote")]
    let remote = remote::Remote::new(global);
    #[cfg(feature = "remote")]
    let stores = remote.stores();
    #[cfg(not(feature = "remote"))]
    let stores = global.stores();
    let dataset = global.open(&stores, &args.data)?;
    let config = config(args, &dataset)?;
    let loader = loader(dataset, config)?;
    loader.dataset().shards().iter().for_each(|shard| data_set::note(shard.as_ref()));
    let warm_up = warm_up(&loader, opened, global);
    // Also of an epoch that ended early, which is when it is looked for.
    report_bad_samples(&loader, args.audit.as_deref(), args.observe.force)?;
    let warm_up = warm_up?;
    let before = loader.stats();
    #[cfg(feature = "remote")]
    let requests_before = remote.stats();
    // Bad samples are reported one by one.
    let is_new = |said: &&LoaderNote| !matches!(said, LoaderNote::BadSample { .. });
    loader.notes().iter().filter(is_new).for_each(|said| note(&said));
    let mut timeline = Timeline::new();
    let rates = rates(args, &loader, at_least, step, &mut timeline)?;
    #[cfg(feature = "remote")]
    let requests = remote.result(&requests_before, &loader.stats().since(&before), args.prices);
    let measured = Report::new(loader.stats().since(&before));
    write_trace(&loader, &args.observe)?;
    let shuffle = args.loader.sampler.shuffle.map(|_| quality(&loader)).transpose()?;
    // A separate pass: hashing must not slow down what is measured.
    let digest = args.digest.then(|| digest::epoch(&loader, 0)).transpose()?;
    if let Some(path) = &args.rows {
        rows::write(&loader, path, args.observe.force)?;
    }
    let result = BenchResult {
        recipe: recipe_of(args).to_string(),
        unit: unit(&loader.config().work),
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
        #[cfg(feature = "remote")]
        remote: requests,
        digest,
        replay: args.observe.replay,
        report: args.observe.report.then(|| ReportFigures::from(&measured)),
    };
    if let Some(path) = &args.observe.page.html {
        page(&loader, &result, &timeline, &measured).write(path, args.observe.force)?;
    }
    let mut stdout = Stdout::open()?;
    if args.json {
        stdout.json_line(&result)?;
    } else {
        stdout.line(&result)?;
        if args.observe.report {
            stdout.line(&format_args!("\n{measured}"))?;
        }
    }
    stdout.finish()?;
    Ok(Verdict::Good)
}

/// The page of `--html`.
fn page(loader: &Loader, result: &BenchResult, timeline: &Timeline, measured: &Report) -> Page {
    let mut page = Page::new(format!("tl bench: {}", result.recipe));
    page.sources(loader.dataset());
    page.text("Result", result);
    timeline.plot(&mut page, result.unit);
    // Nothing was loaded for batches from memory.
    if !result.replay {
        page.shares("Shares of the workers' time", measured);
        page.text("Report", measured);
    }
    page
}

/// Measures epochs from the second on, or batches of the first from memory.
fn rates(
    args: &Args,
    loader: &Loader,
    at_least: Duration,
    step: Duration,
    timeline: &mut Timeline,
) -> Result<Rates, Failure> {
    let mut replay = args.observe.replay.then(|| loader.replay(0, REPLAYED)).transpose()?;
    let batches = usize::try_from(loader.len()).unwrap_or(usize::MAX);
    let mut epoch = 0;
    measure::measure(at_least, || {
        epoch += 1;
        match &mut replay {
            Some(replay) => drain(replay.take(batches).map(Ok), step, timeline),
            None => drain(loader.epoch(epoch), step, timeline),
        }
    })
}

pub(crate) fn config(args: &Args, dataset: &Dataset) -> Result<LoaderConfig, Failure> {
    let recipe = recipe_of(args);
    if args.decode.is_given() && !recipe.resizes() {
        return Err(NO_DECODE_MODE);
    }
    if recipe != BenchRecipe::Columns && args.columns_of.is_given() {
        return Err(NO_COLUMNS);
    }
    let loaded = match &recipe {
        BenchRecipe::Columns | BenchRecipe::Tokens => None,
        BenchRecipe::Samples(name) => recipe::load(name, args.size)?,
    };
    let mut bytes = Vec::new();
    let work = match loaded {
        None if recipe == BenchRecipe::Columns && !args.views => {
            let (work, of_bytes) = columns::work(&args.columns_of, dataset);
            bytes = of_bytes;
            work
        }
        None if recipe == BenchRecipe::Tokens && !args.views => Work::Tokens(TokenWork::default()),
        None if !matches!(recipe, BenchRecipe::Samples(_)) => return Err(NO_VIEWS),
        None if args.views => Work::Views,
        None => Work::Bytes,
        Some(_) if args.views => return Err(NO_VIEWS),
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
    let mut config = args.loader.apply(config, dataset)?;
    if recipe == BenchRecipe::Columns && !config.fields.bytes.is_empty() {
        return Err(Failure::Usage { what: "--fields is for samples: tables have --columns" });
    }
    config.fields.bytes.extend(bytes);
    Ok(config)
}

/// The unit of rates.
fn unit(work: &Work) -> &'static str {
    match work {
        Work::Columns(_) => "rows",
        Work::Tokens(_) => "sequences",
        Work::Bytes | Work::Views | Work::Images(_) | _ => "images",
    }
}

/// The recipe that is asked for, or follows from other arguments.
fn recipe_of(args: &Args) -> BenchRecipe {
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
    Err(Failure::setting(format_args!(
        "rank {rank} of {world} has no batch: the epoch has {positions} samples, a global batch \
         {global_batch}"
    )))
}

/// The randomness of the order.
pub(crate) fn quality(loader: &Loader) -> Result<ShuffleQuality, Failure> {
    let config = loader.config();
    let dataset = loader.dataset();
    let batch_size = config.batch_size as u64;
    Ok(ShuffleQuality::measure(&config.sampler, dataset, config.seed, batch_size)?)
}

/// `value` of `unit` seconds, as the option of this name says it.
pub(crate) fn duration(option: &'static str, value: f64, unit: f64) -> Result<Duration, Failure> {
    let duration = Duration::try_from_secs_f64(value * unit);
    duration.map_err(|error| Failure::setting(format_args!("{option} {value}: {error}")))
}

fn write_trace(loader: &Loader, args: &ObserveArgs) -> Result<(), Failure> {
    let Some(path) = &args.trace else { return Ok(()) };
    write_file(path, args.force, |out| loader.write_trace(out))
}

/// The recipe in words, with its mode of decoding.
fn plan(work: &Work) -> Option<String> {
    if let Work::Images(recipe) = work { Some(recipe.to_string()) } else { None }
}

/// Writes what was wrong with samples to a file, one JSON object on a line, or says it.
fn report_bad_samples(loader: &Loader, file: Option<&Path>, force: bool) -> Result<(), Failure> {
    let Some(path) = file else {
        // Raised errors are reported as errors.
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

/// The figures of the first epoch.
struct WarmUp {
    samples: u64,
    /// Those that do not count.
    not_valid: u64,
    /// From before the data set was opened to the first batch.
    first_batch: Duration,
}

fn warm_up(loader: &Loader, opened: Instant, global: &GlobalArgs) -> Result<WarmUp, Failure> {
    let world = u64::from(loader.config().shard.world);
    let mut progress = Progress::new(global, loader.order(0).len().div_ceil(world));
    let mut samples = 0;
    let mut not_valid = 0;
    let mut first_batch = None;
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

/// Takes every batch, `step` for each, and returns how many samples they had.
fn drain(
    mut batches: impl Iterator<Item = Result<Batch, PipelineError>>,
    step: Duration,
    timeline: &mut Timeline,
) -> Result<u64, Failure> {
    let mut samples = 0;
    loop {
        let asked = Instant::now();
        let Some(batch) = batches.next() else { return Ok(samples) };
        let len = batch?.len() as u64;
        timeline.add(len, asked.elapsed());
        samples += len;
        thread::sleep(step);
    }
}
