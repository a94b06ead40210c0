//! `tl doctor`: what limits training from a data set, and what to change.

mod change;
mod devices;
mod disk;
mod findings;
mod memory;
mod pass;
#[cfg(feature = "remote")]
mod store;
mod throttle;
mod videos;

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueHint;
use serde::Serialize;
use tbl_io::Stores;
use tl_decode::DecodeOptions;
use tl_pipeline::{
    CacheConfig, Dataset, Limit, LoaderConfig, LoaderNote, OnError, PipelineError, Readers, Report,
    Shuffle, Stage, Work,
};
use tl_transform::{DecodeMode, Dtype, OutputSpec, Recipe};
#[cfg(feature = "remote")]
use turboloader::RemoteStores;

use crate::args::{DecodeModeArgs, GlobalArgs, LoaderArgs, NO_DECODE_MODE, RecipeName};
use crate::bench::{duration, quality};
use crate::data_set;
use crate::failure::{Failure, Verdict};
use crate::output::{Progress, Stdout, note};
use crate::page::{Page, PageArgs};
use crate::recipe;
use change::{Measured, MoreReaders, Variant};
use devices::Devices;
use findings::{DataFigures, Findings};
use pass::{Pass, Training};
#[cfg(feature = "remote")]
use store::{Loaded, StoreFigures};
use throttle::{SlowDisk, Throttled};
use videos::VideoFindings;

/// Entries that are looked at to say how large samples are.
const LOOKED_AT: u64 = 1000;

/// More threads that read than this are not worth trying.
const MOST_READERS: usize = 256;

/// The advice for a table, whose rows are neither read from a slow disk nor decoded one by one.
const TABLES: &str = "doctor examines samples; of a table `tl bench FILE --recipe columns --report` \
                      says what limits it";

/// Measure what limits training from a data set, and suggest what to change
///
/// Takes about a minute. It reads from the disk past the page cache, makes batches with one worker
/// and with all of them, copies memory, and opens GPUs. Then it loads as training does and names the limit: a
/// stage of the loader (read, decode, transform, write) or the training step. It measures the
/// effect of a change where it can; other effects are marked as estimates.
///
/// --step-ms sets how long the training step takes for a batch. --read-limit slows reading to the
/// speed of such a disk. --cold reads past the page cache, as with a data set larger than memory.
///
/// Of a data set of videos it reads indexes: it says what a random frame costs, and names groups of
/// pictures that are long.
///
/// Examples:
///   tl doctor train.tar
///   tl doctor train.tbl --recipe recipe.toml --step-ms 120
///   tl doctor train.tar --read-limit 200 --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// TAR archives, folders or TBL files, read as one data set
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<PathBuf>,

    /// The work on each sample, as for tl bench
    #[arg(long, value_name = "RECIPE", value_hint = ValueHint::FilePath,
          default_value = "imagenet-train")]
    pub(crate) recipe: RecipeName,

    /// Side of the images in a batch, for the imagenet recipes (default: 224)
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) size: Option<u32>,

    #[command(flatten)]
    pub(crate) decode: DecodeModeArgs,

    /// Take about this long
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    pub(crate) seconds: f64,

    /// Simulate a training step of this many milliseconds per batch
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) step_ms: f64,

    /// Read as if from a disk of this many megabytes per second
    #[arg(long, value_name = "MB/S")]
    pub(crate) read_limit: Option<f64>,

    /// Read past the page cache, as with a data set larger than memory
    #[arg(long)]
    pub(crate) cold: bool,

    #[command(flatten)]
    page: PageArgs,

    /// Replace the file of --html if it exists
    #[arg(short, long)]
    force: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    // After the others, because it has its own headings.
    #[command(flatten)]
    pub(crate) loader: LoaderArgs,
}

/// Examines, and prints what was found.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    if global.has_tokens() {
        return Err(Failure::Usage { what: "--tokens does not go with doctor" });
    }
    let seconds = duration("--seconds", args.seconds, 1.0)?;
    let step = duration("--step-ms", args.step_ms, 1e-3)?;
    if args.read_limit.is_some_and(|limit| !(limit.is_finite() && limit > 0.0)) {
        return Err(Failure::Usage { what: "--read-limit: expected a number above 0" });
    }
    #[cfg(feature = "remote")]
    let remote = global.remote();
    let examination = Examination {
        args,
        step,
        seconds,
        #[cfg(feature = "remote")]
        stores: remote.add_to(global.without_remote()),
        #[cfg(not(feature = "remote"))]
        stores: global.stores(),
        #[cfg(feature = "remote")]
        remote,
    };
    let opened = Instant::now();
    let dataset = examination.open_samples()?;
    let open_s = opened.elapsed().as_secs_f64();
    let mut page = Page::new(format!("tl doctor: {}", args.recipe));
    page.sources(&dataset);
    let videos = VideoFindings::look(&dataset)?;
    if let Some(videos) = &videos {
        page.text("Videos", videos);
        print(videos, args)?;
    } else {
        let found = examination.run(dataset, open_s, global)?;
        found.plot(&mut page);
        print(&found, args)?;
    }
    if let Some(path) = &args.page.html {
        page.write(path, args.force)?;
    }
    Ok(Verdict::Good)
}

fn print(findings: &(impl Serialize + Display), args: &Args) -> Result<(), Failure> {
    let mut stdout = Stdout::open()?;
    if args.json {
        stdout.json_line(findings)?;
    } else {
        stdout.line(findings)?;
    }
    stdout.finish()
}

struct Examination<'a> {
    args: &'a Args,
    step: Duration,
    seconds: Duration,
    stores: Stores,
    /// The remote ones of them, which count requests.
    #[cfg(feature = "remote")]
    remote: RemoteStores,
}

impl Examination<'_> {
    /// Examines a data set that took `open_s` to open.
    fn run(&self, dataset: Dataset, open_s: f64, global: &GlobalArgs) -> Result<Findings, Failure> {
        let mut progress = Progress::new(global, 100);
        dataset.shards().iter().for_each(|shard| data_set::note(shard.as_ref()));
        let data = DataFigures::look(&dataset, LOOKED_AT, open_s);
        let work = self.work()?;

        // What has been read once is in the page cache from here on.
        let config = self.config(&work, &dataset)?;
        let all = Pass::new(dataset, config)?;
        let covered = all.run(Training::for_time(self.share(15)))?.batches;
        progress.set(15);
        let warm = all.run(Training::again(covered, self.share(15)))?.report;
        progress.set(30);
        let shuffle = quality(all.loader())?;
        let workers = all.loader().config().workers;
        let disk = [1, workers].map(|threads| {
            let dataset = all.loader().dataset();
            let order = all.loader().order(1);
            disk::cold_reads(dataset, &order, 0, threads, self.share(6))
        });
        let [one_reader, all_readers] = disk;
        let disk = (one_reader?, all_readers?);
        progress.set(42);
        let copy_rate = memory::copy_rate(workers, self.share(3))?;
        let one = self.pass(&work, None, |config| LoaderConfig { workers: 1, ..config })?;
        let one = one.run(Training::again(covered, self.share(10)))?.report;
        progress.set(55);
        let variants = self.variants(&work, covered)?;
        progress.set(73);
        let pass = self.pass(&work, self.limit(), |config| config)?;
        #[cfg(feature = "remote")]
        let before = self.remote.stats();
        let training = self.training(&pass, 22)?;
        #[cfg(feature = "remote")]
        let store = {
            let requests = self.remote.stats().since(&before);
            let is_full_shuffle = pass.loader().config().sampler.shuffle == Shuffle::Full;
            let loader = Loaded { notes: &pass.loader().notes(), is_full_shuffle };
            StoreFigures::new(&requests, &training, &loader)
        };
        let readers = self.other_readers(&work, &training)?;
        let has_step = !self.step.is_zero();
        let replay = has_step.then(|| all.replay(self.step, self.share(5))).transpose()?;
        progress.set(100);
        drop(progress);
        let notes = pass.loader().notes();
        // Bad samples are among the findings.
        let is_new = |note: &&LoaderNote| !matches!(note, LoaderNote::BadSample { .. });
        notes.iter().filter(is_new).for_each(|found| note(&found));
        let config = all.loader().config();
        let measured = Measured {
            data,
            warm,
            one,
            disk,
            variants,
            readers,
            training,
            replay,
            files: shell_words(self.args.data.iter().map(|path| path.as_os_str())),
            recipe: shell_words([OsStr::new(&self.args.recipe.to_string())]),
            size: self.args.recipe.resizes().then(|| side(&work)).flatten(),
            batch_size: config.batch_size,
            is_exact: is_exact(&work),
            is_cached: config.cache != CacheConfig::default(),
            copy_rate,
            shuffle,
            #[cfg(feature = "remote")]
            store,
        };
        let recipe = self.args.recipe.to_string();
        Ok(Findings::new(recipe, &work, self.limit(), &measured, Devices::look()))
    }

    /// The run as in training: at the disk's speed as given, with a consumer that takes its time.
    fn training(&self, pass: &Pass, percent: u32) -> Result<Report, Failure> {
        if self.args.cold {
            disk::drop_all_pages(pass.loader().dataset())?;
        }
        let training = Training { step: self.step, ..Training::for_time(self.share(percent)) };
        Ok(pass.run(training)?.report)
    }

    /// The number of readers doubled, and the rate with them, if reading limits training.
    fn other_readers(
        &self,
        work: &Work,
        training: &Report,
    ) -> Result<Option<MoreReaders>, Failure> {
        let now = match training.limit() {
            // One thread requests as many samples as the store brings.
            _ if training.stats().readers.is_planned => return Ok(None),
            Some(Limit::Readers) => training.stats().readers.readers,
            Some(Limit::Stage(Stage::Read)) => {
                // Those who read: the workers, or readers that they wait for.
                training.stats().workers.max(training.stats().readers.readers)
            }
            _ => return Ok(None),
        };
        let Some(readers) = twice(now) else { return Ok(None) };
        let mut option = "--readers";
        let with = |config: LoaderConfig| {
            let readers = match (config.readers, u32::try_from(readers)) {
                (Readers::Uring { page_cache, .. }, Ok(depth)) => {
                    option = "--uring";
                    Readers::Uring { depth, page_cache }
                }
                _ => Readers::Threads(readers),
            };
            LoaderConfig { readers, ..config }
        };
        let pass = self.pass(work, self.limit(), with)?;
        let rate = self.training(&pass, 8)?.rate();
        Ok(Some(MoreReaders { option, readers, rate }))
    }

    /// Rates of the same work done otherwise.
    fn variants(&self, work: &Work, covered: u64) -> Result<Vec<Variant>, Failure> {
        let Work::Images(recipe) = work else { return Ok(Vec::new()) };
        let mut variants = Vec::new();
        for (what, command, recipe) in self.others(recipe) {
            let pass = self.pass(&Work::Images(recipe), None, |config| config)?;
            let report = pass.run(Training::again(covered, self.share(5)))?.report;
            variants.push(Variant { what, command, rate: report.capacity() });
        }
        Ok(variants)
    }

    /// The recipe done otherwise, where that is another thing: results in half the bytes, and
    /// photographs decoded no further than they are needed.
    fn others(&self, recipe: &Recipe) -> Vec<(&'static str, Option<&'static str>, Recipe)> {
        let mut others = Vec::new();
        let output = recipe.output();
        if output.dtype == Dtype::F32 {
            let half = recipe.clone().with_output(OutputSpec { dtype: Dtype::F16, ..output });
            others.extend(half.ok().map(|half| ("a recipe with f16 instead of f32", None, half)));
        }
        if self.args.recipe.resizes() && recipe.decode_mode() == DecodeMode::Exact {
            let what = "decode photographs no further than they are needed, which is not exact";
            let fast = recipe.clone().with_decode(DecodeMode::FAST);
            others.extend(fast.ok().map(|fast| (what, Some("--decode fast"), fast)));
        }
        others
    }

    /// A loader over the data set, opened once more, with `change` made to its settings.
    fn pass(
        &self,
        work: &Work,
        limit: Option<f64>,
        change: impl FnOnce(LoaderConfig) -> LoaderConfig,
    ) -> Result<Pass, Failure> {
        let dataset = self.open(limit)?;
        let config = change(self.config(work, &dataset)?);
        Pass::new(dataset, config)
    }

    /// Opens the data set, which must have samples.
    fn open_samples(&self) -> Result<Dataset, Failure> {
        let dataset = self.open(None)?;
        if dataset.tables().next().is_some() {
            return Err(Failure::Usage { what: TABLES });
        }
        dataset.require_samples().map_err(PipelineError::from)?;
        Ok(dataset)
    }

    fn open(&self, limit: Option<f64>) -> Result<Dataset, Failure> {
        let Some(limit) = limit else {
            return Ok(Dataset::open_in(&self.stores, &self.args.data)?);
        };
        let disk = Arc::new(SlowDisk::new(limit * 1e6));
        let sources = tbl_io::open_all_in(&self.stores, &self.args.data)?;
        let throttled = sources.into_iter().map(|source| {
            let throttled = Throttled { source, disk: Arc::clone(&disk) };
            Box::new(throttled) as Box<dyn tbl_io::SampleSource>
        });
        Ok(Dataset::from_sources(throttled.collect())?)
    }

    fn work(&self) -> Result<Work, Failure> {
        let args = self.args;
        if args.decode.is_given() && !args.recipe.resizes() {
            return Err(NO_DECODE_MODE);
        }
        Ok(match recipe::load(&args.recipe, args.size)? {
            None => Work::Bytes,
            Some(recipe) => Work::Images(args.decode.apply(recipe)?),
        })
    }

    fn config(&self, work: &Work, dataset: &Dataset) -> Result<LoaderConfig, Failure> {
        // One bad sample must not end the examination; how many there were is part of it.
        let config = LoaderConfig {
            sampler: Shuffle::Full.into(),
            on_error: OnError::Skip,
            decode: DecodeOptions::default(),
            ..LoaderConfig::new(work.clone())
        };
        self.args.loader.apply(config, dataset)
    }

    fn limit(&self) -> Option<f64> {
        self.args.read_limit
    }

    /// So many hundredths of the time there is.
    fn share(&self, percent: u32) -> Duration {
        self.seconds * percent / 100
    }
}

/// Twice as many readers, or as many as are worth trying; `None` where there are that many.
fn twice(readers: usize) -> Option<usize> {
    Some(readers.saturating_mul(2).min(MOST_READERS)).filter(|&more| more > readers)
}

/// Side of the images in a batch, where they have one.
fn side(work: &Work) -> Option<u32> {
    let Work::Images(recipe) = work else { return None };
    recipe.output_size().map(|(width, height)| width.max(height))
}

fn is_exact(work: &Work) -> bool {
    matches!(work, Work::Images(recipe) if recipe.decode_mode() == DecodeMode::Exact)
}

/// Words as a shell takes them.
fn shell_words<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> String {
    let quoted = |word: &OsStr| {
        let text = word.to_string_lossy();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,%".contains(c);
        if !text.is_empty() && text.chars().all(is_plain) {
            return text.into_owned();
        }
        format!("'{}'", text.replace('\'', r"'\''"))
    };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{MOST_READERS, twice};

    #[test]
    fn twice_as_many_readers_are_more() {
        assert_eq!(twice(2), Some(4));
        assert_eq!(twice(MOST_READERS - 1), Some(MOST_READERS));
        assert_eq!((twice(MOST_READERS), twice(1000)), (None, None));
    }
}
