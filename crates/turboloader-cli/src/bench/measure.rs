//! Repeating an epoch and saying how fast it was: medians, with runs that other processes
//! disturbed left out.

use std::time::{Duration, Instant};

use super::machine::{machine_cpu_seconds, own_cpu_seconds};
use crate::failure::Failure;

/// A run during which other processes used more cores than this is left out.
const MAX_OTHERS: f64 = 0.15;
/// Fewer undisturbed runs than this say nothing; then all runs count.
const MIN_QUIET_RUNS: usize = 3;
/// At least this many epochs are measured.
const MIN_RUNS: usize = 5;
/// Measuring ends after this or what was asked for, however disturbed the machine is.
const MAX_DURATION: Duration = Duration::from_secs(60);

/// One measured epoch.
#[derive(Clone, Copy, Debug)]
struct Run {
    per_second: f64,
    per_cpu_second: f64,
    /// Cores that other processes used meanwhile.
    others: f64,
}

/// The figures of the measured epochs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    /// The median epoch's samples per second.
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// The median epoch's samples per second of CPU time, all threads together.
    pub(crate) per_cpu_second: f64,
    /// How many epochs were measured.
    pub(crate) runs: usize,
    /// How many of them were left out.
    pub(crate) noisy_runs_dropped: usize,
    /// Whether enough runs were undisturbed; if not, none was left out.
    pub(crate) quiet: bool,
}

/// Measures `epoch`, which returns how many samples it delivered, for at least `at_least` and
/// [`MIN_RUNS`] runs. Where one epoch takes longer than `at_least`, one is enough.
pub(crate) fn measure(
    at_least: Duration,
    mut epoch: impl FnMut() -> Result<u64, Failure>,
) -> Result<Rates, Failure> {
    let mut runs = Vec::new();
    let start = Instant::now();
    loop {
        let run = measure_one(&mut epoch)?;
        runs.push(run.0);
        let spent = start.elapsed();
        let enough = runs.iter().filter(|run| run.others < MAX_OTHERS).count() >= MIN_RUNS;
        if run.1 > at_least || (spent >= at_least && enough) || spent >= MAX_DURATION.max(at_least)
        {
            return Ok(summarize(&runs));
        }
    }
}

fn measure_one(
    epoch: &mut impl FnMut() -> Result<u64, Failure>,
) -> Result<(Run, Duration), Failure> {
    let machine = machine_cpu_seconds();
    let own = own_cpu_seconds();
    let start = Instant::now();
    let samples = epoch()?;
    let wall = start.elapsed();
    let own = own_cpu_seconds() - own;
    let seconds = wall.as_secs_f64();
    let machine = machine_cpu_seconds().zip(machine).map_or(own, |(after, before)| after - before);
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let samples = samples as f64;
    let run = Run {
        per_second: samples / seconds,
        per_cpu_second: if own > 0.0 { samples / own } else { 0.0 },
        others: (machine - own).max(0.0) / seconds,
    };
    Ok((run, wall))
}

fn summarize(runs: &[Run]) -> Rates {
    let undisturbed: Vec<Run> =
        runs.iter().copied().filter(|run| run.others < MAX_OTHERS).collect();
    let quiet = undisturbed.len() >= MIN_QUIET_RUNS;
    let kept = if quiet { &undisturbed } else { runs };
    let mut rates: Vec<f64> = kept.iter().map(|run| run.per_second).collect();
    let mut cpu_rates: Vec<f64> = kept.iter().map(|run| run.per_cpu_second).collect();
    let median_rate = median(&mut rates);
    Rates {
        median: median_rate,
        min: rates.first().copied().unwrap_or(0.0),
        max: rates.last().copied().unwrap_or(0.0),
        per_cpu_second: median(&mut cpu_rates),
        runs: runs.len(),
        noisy_runs_dropped: runs.len() - kept.len(),
        quiet,
    }
}

/// The median, and `values` sorted.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        None => 0.0,
        Some(upper) if values.len() % 2 == 1 => *upper,
        Some(upper) => f64::midpoint(values[middle - 1], *upper),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{MIN_RUNS, Run, measure, median, summarize};

    fn run(per_second: f64, others: f64) -> Run {
        Run { per_second, per_cpu_second: per_second / 2.0, others }
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(&mut [4.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&mut []), 0.0);
    }

    #[test]
    fn disturbed_runs_are_left_out_unless_too_few_remain() {
        let rates = summarize(&[run(10.0, 0.0), run(1.0, 0.9), run(12.0, 0.1), run(11.0, 0.0)]);
        assert_eq!((rates.median, rates.min, rates.max), (11.0, 10.0, 12.0));
        assert_eq!((rates.runs, rates.noisy_runs_dropped, rates.quiet), (4, 1, true));
        assert_eq!(rates.per_cpu_second, 5.5);
        let rates = summarize(&[run(10.0, 0.0), run(1.0, 0.9)]);
        assert_eq!((rates.median, rates.noisy_runs_dropped, rates.quiet), (5.5, 0, false));
    }

    #[test]
    fn a_long_epoch_is_measured_once() {
        let mut epochs = 0;
        let rates = measure(Duration::ZERO, || {
            epochs += 1;
            Ok(7)
        });
        assert_eq!((epochs, rates.unwrap().runs), (1, 1));
    }

    #[test]
    fn short_epochs_are_repeated() {
        let rates = measure(Duration::from_millis(50), || Ok(7)).unwrap();
        assert!(rates.runs >= MIN_RUNS);
    }
}
