//! `tl doctor`: what limits training from a data set, and what to change.

mod change;
mod disk;
mod findings;
mod memory;
mod pass;
mod throttle;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tl_decode::DecodeOptions;
use tl_pipeline::{Dataset, LoaderConfig, OnError, Report, Shuffle, Work};
use tl_transform::{DecodeMode, Dtype, OutputSpec, Recipe};

use crate::args::{DoctorArgs, GlobalArgs};
use crate::bench::{duration, quality};
use crate::data_set;
use crate::failure::{Failure, Verdict};
use crate::output::{Progress, Stdout};
use crate::recipe;
use change::Measured;
use findings::{DataFigures, Findings};
use pass::{Pass, Training};
use throttle::{SlowDisk, Throttled};

/// Entries that are looked at to say how large samples are.
const LOOKED_AT: u64 = 1000;

/// Examines, and prints what was found.
pub(crate) fn run(args: &DoctorArgs, global: GlobalArgs) -> Result<Verdict, Failure> {
    let seconds = duration("--seconds", args.seconds, 1.0)?;
    let step = duration("--step-ms", args.step_ms, 1e-3)?;
    if args.read_limit.is_some_and(|limit| !(limit.is_finite() && limit > 0.0)) {
        return Err(Failure::Usage { what: "--read-limit is a number above 0" });
    }
    let findings = Examination { args, step, seconds }.run(global)?;
    let mut stdout = Stdout::open()?;
    if args.json {
        stdout.json_line(&findings)?;
    } else {
        stdout.line(&findings)?;
    }
    stdout.finish()?;
    Ok(Verdict::Good)
}

struct Examination<'a> {
    args: &'a DoctorArgs,
    step: Duration,
    seconds: Duration,
}

impl Examination<'_> {
    fn run(&self, global: GlobalArgs) -> Result<Findings, Failure> {
        let mut progress = Progress::new(global, 100);
        let opened = Instant::now();
        let dataset = self.open(None)?;
        if dataset.is_empty() {
            return Err(Failure::NoSamples);
        }
        let open_s = opened.elapsed().as_secs_f64();
        dataset.shards().iter().for_each(|shard| data_set::note(shard.as_ref()));
        let data = DataFigures::look(&dataset, LOOKED_AT, open_s)?;
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
            let (dataset, order) = (all.loader().dataset(), all.loader().order(1));
            disk::cold_reads(dataset, &order, 0, threads, self.share(6))
        });
        let [one_reader, all_readers] = disk;
        let disk = (one_reader?, all_readers?);
        progress.set(42);
        let copy_rate = memory::copy_rate(workers, self.share(3));
        let one = self.pass(&work, None, 1)?;
        let one = one.run(Training::again(covered, self.share(10)))?.report;
        progress.set(55);
        let variants = self.variants(&work, covered)?;
        progress.set(73);
        let training = self.training(&work)?;
        let has_step = !self.step.is_zero();
        let replay = has_step.then(|| all.replay(self.step, self.share(5))).transpose()?;
        progress.set(100);
        let is_throttled = self.limit().is_some();
        let measured = Measured {
            data,
            warm,
            one,
            disk,
            variants,
            training,
            replay,
            is_throttled,
            copy_rate,
            shuffle,
        };
        Ok(Findings::new(self.args.recipe.to_string(), &work, self.limit(), &measured))
    }

    /// What training does: from the disk as it is said to be, with a consumer that takes its time.
    fn training(&self, work: &Work) -> Result<Report, Failure> {
        let pass = self.pass(work, self.limit(), 0)?;
        if self.args.cold {
            disk::drop_all_pages(pass.loader().dataset())?;
        }
        let training = Training { step: self.step, ..Training::for_time(self.share(22)) };
        Ok(pass.run(training)?.report)
    }

    /// Rates of the same work done otherwise.
    fn variants(&self, work: &Work, covered: u64) -> Result<Vec<(String, f64)>, Failure> {
        let Work::Images(recipe) = work else { return Ok(Vec::new()) };
        let mut rates = Vec::new();
        for (name, recipe) in others(recipe) {
            let pass = self.pass(&Work::Images(recipe), None, 0)?;
            let report = pass.run(Training::again(covered, self.share(6)))?.report;
            rates.push((name, report.capacity()));
        }
        Ok(rates)
    }

    /// A loader over the data set, opened once more, with `workers` threads, 0 for those asked for.
    fn pass(&self, work: &Work, limit: Option<f64>, workers: usize) -> Result<Pass, Failure> {
        let dataset = self.open(limit)?;
        let mut config = self.config(work, &dataset)?;
        if workers > 0 {
            config.workers = workers;
        }
        Pass::new(dataset, config)
    }

    fn open(&self, limit: Option<f64>) -> Result<Dataset, Failure> {
        let Some(limit) = limit else { return Ok(Dataset::open(&self.args.data)?) };
        let disk = Arc::new(SlowDisk::new(limit * 1e6));
        let sources = tbl_io::open_all(&self.args.data)?;
        let throttled = sources.into_iter().map(|source| {
            let throttled = Throttled { source, disk: Arc::clone(&disk) };
            Box::new(throttled) as Box<dyn tbl_io::SampleSource>
        });
        Ok(Dataset::from_sources(throttled.collect())?)
    }

    fn work(&self) -> Result<Work, Failure> {
        let args = self.args;
        if args.decode.is_given() && !args.recipe.resizes() {
            return Err(Failure::NoDecodeMode);
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

/// The recipe done otherwise, where that is another thing: results in half the bytes, and
/// photographs decoded no further than they are needed.
fn others(recipe: &Recipe) -> Vec<(String, Recipe)> {
    let mut others = Vec::new();
    let output = recipe.output();
    if output.dtype == Dtype::F32 {
        let half = OutputSpec { dtype: Dtype::F16, ..output };
        others.extend(recipe.clone().with_output(half).ok().map(|half| ("f16 output", half)));
    }
    if recipe.decode_mode() == DecodeMode::Exact {
        let fast = recipe.clone().with_decode(DecodeMode::FAST);
        others.extend(fast.ok().map(|fast| ("--decode fast", fast)));
    }
    others.into_iter().map(|(name, recipe)| (name.to_owned(), recipe)).collect()
}
