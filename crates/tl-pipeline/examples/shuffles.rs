//! Rates of raw samples in files and shuffles, interleaved: `cargo run --release -p tl-pipeline
//! --example shuffles -- [WORKERS ROUNDS FILE@SHUFFLE...]`.
//!
//! A line has the medians for each second of processor time and of time, and the median of the rounds'
//! ratios to the first file. Without arguments it shows itself on a small file.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Instant;

use tl_pipeline::{Dataset, Loader, LoaderConfig, Shuffle, Work};

/// Seconds of a case in a round.
const SECONDS: f64 = 0.7;

/// The clock of `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;

/// A file with a shuffle, and what was measured.
struct Case {
    name: String,
    loader: Loader,
    epochs: u32,
    /// Samples for each second of processor time, and of time.
    rates: Vec<[f64; 2]>,
}

impl Case {
    fn open(name: &str, workers: usize) -> Result<Self, Box<dyn Error>> {
        let (file, shuffle) = name.split_once('@').ok_or("expected FILE@SHUFFLE")?;
        let sampler = shuffle.parse::<Shuffle>()?.into();
        let config =
            LoaderConfig { batch_size: 64, workers, sampler, ..LoaderConfig::new(Work::Bytes) };
        let loader = Loader::new(Dataset::open(&[file])?, config)?;
        loader.notes().iter().for_each(|note| println!("{note}"));
        let mut case = Self { name: name.to_owned(), loader, epochs: 0, rates: Vec::new() };
        // So that all is in the page cache, and places are known.
        case.epoch()?;
        Ok(case)
    }

    /// Samples of an epoch.
    fn epoch(&mut self) -> Result<f64, Box<dyn Error>> {
        let mut count = 0.0;
        for batch in self.loader.epoch(self.epochs) {
            count += f64::from(u32::try_from(batch?.len())?);
        }
        self.epochs += 1;
        Ok(count)
    }

    fn measure(&mut self) -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        let processor = processor_seconds()?;
        let mut count = 0.0;
        while start.elapsed().as_secs_f64() < SECONDS {
            count += self.epoch()?;
        }
        let processor = processor_seconds()? - processor;
        self.rates.push([count / processor, count / start.elapsed().as_secs_f64()]);
        Ok(())
    }
}

/// The processor time of this process.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(") ").ok_or("expected a name in parentheses")?.1;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let [Some(user), Some(system)] = [11, 12].map(|number| fields.get(number)) else {
        return Err("expected times".into());
    };
    Ok((user.parse::<f64>()? + system.parse::<f64>()?) / TICKS_PER_SECOND)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        let file = tl_testdata::shipped!("parquet/pyarrow_gzip.parquet");
        let cases = ["full", "block:source"].map(|shuffle| format!("{}@{shuffle}", file.display()));
        arguments = ["1", "1"].map(str::to_owned).into_iter().chain(cases).collect();
    }
    let [workers, rounds, names @ ..] = &*arguments else {
        return Err("expected WORKERS ROUNDS FILE@SHUFFLE...".into());
    };
    let workers = workers.parse()?;
    let cases: Result<Vec<Case>, _> = names.iter().map(|name| Case::open(name, workers)).collect();
    let mut cases = cases?;
    for _ in 0..rounds.parse::<u32>()? {
        cases.iter_mut().try_for_each(Case::measure)?;
        cases.iter_mut().rev().try_for_each(Case::measure)?;
    }
    for case in &cases {
        let [processor, time] =
            [0, 1].map(|which| median(case.rates.iter().map(|rates| rates[which]).collect()));
        let first = cases.iter().take(1).flat_map(|case| &case.rates);
        let ratios = case.rates.iter().zip(first).map(|(rates, first)| rates[0] / first[0]);
        let ratio = median(ratios.collect());
        println!("{:32} {processor:8.0} {time:8.0} {ratio:.3}", case.name);
    }
    Ok(())
}
