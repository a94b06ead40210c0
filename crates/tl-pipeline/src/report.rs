//! What limits a loader: its counters, read as rates and shares, with a verdict in one sentence.

use std::fmt;
use std::time::Duration;

use crate::stage::Stage;
use crate::stats::LoaderStats;

/// What keeps batches from coming faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Whoever takes the batches: workers wait for it more than it waits for them.
    Consumer,
    /// The stage that workers spend most of their time on.
    Stage(Stage),
}

/// What a loader's time went to, and what limits it.
///
/// Its text ends in one sentence that names the limit and the rate without it.
///
/// ```
/// # fn epoch(loader: &tl_pipeline::Loader) -> Result<(), tl_pipeline::PipelineError> {
/// let before = loader.stats();
/// for batch in loader.epoch(1) {
///     drop(batch?);
/// }
/// // Of epoch 1 alone; `loader.report()` covers all so far.
/// println!("{}", tl_pipeline::Report::new(loader.stats().since(&before)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    stats: LoaderStats,
}

impl Report {
    /// The report on these counters.
    #[must_use]
    pub fn new(stats: LoaderStats) -> Self {
        Self { stats }
    }

    /// The counters it is made of.
    #[must_use]
    pub fn stats(&self) -> &LoaderStats {
        &self.stats
    }

    /// The time from asking for the first batch to the last one received, in which the consumer
    /// either waited or worked.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.stats.consumer_wait.saturating_add(self.stats.consumer_busy)
    }

    /// Samples the consumer received in a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        ratio(self.stats.samples, self.elapsed())
    }

    /// Samples that the workers can make in a second when nobody keeps them waiting.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.workers() * ratio(self.stats.processed, self.stats.stages.total())
    }

    /// Samples a second that the consumer can take when it never waits; infinite where it does
    /// nothing.
    #[must_use]
    pub fn demand(&self) -> f64 {
        let busy = self.stats.consumer_busy;
        if busy.is_zero() { f64::INFINITY } else { ratio(self.stats.samples, busy) }
    }

    /// The part of the consumer's time that it waited for a batch, 0 to 1.
    #[must_use]
    pub fn consumer_wait(&self) -> f64 {
        share(self.stats.consumer_wait, self.elapsed())
    }

    /// The part of the workers' time that they waited for the consumer, 0 to 1.
    #[must_use]
    pub fn worker_wait(&self) -> f64 {
        share(self.stats.worker_wait, self.worker_time())
    }

    /// The part of the workers' time that goes to `stage`, 0 to 1; waiting has the rest.
    #[must_use]
    pub fn share(&self, stage: Stage) -> f64 {
        share(self.stats.stages[stage], self.worker_time())
    }

    /// A worker's time for one sample in `stage`, on average.
    #[must_use]
    pub fn per_sample(&self, stage: Stage) -> Duration {
        let samples = self.stats.processed;
        if samples == 0 {
            return Duration::ZERO;
        }
        let nanos = self.stats.stages[stage].as_nanos() / u128::from(samples);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Batches that were ready when the consumer asked for one, on average.
    #[must_use]
    pub fn ready(&self) -> f64 {
        let Self { stats: LoaderStats { ready, batches, .. } } = self;
        if *batches == 0 { 0.0 } else { float(*ready) / float(*batches) }
    }

    /// What limits the loader; `None` before it has done anything.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        if self.stats.processed == 0 || self.stats.samples == 0 {
            return None;
        }
        if self.worker_wait() > self.consumer_wait() {
            return Some(Limit::Consumer);
        }
        let stage = Stage::ALL.into_iter().max_by_key(|stage| self.stats.stages[*stage]);
        stage.map(Limit::Stage)
    }

    /// The rate that could be reached if what limits took no time: the workers' where the consumer
    /// limits, otherwise theirs without the limiting stage, as far as the consumer can follow.
    #[must_use]
    pub fn reachable(&self) -> f64 {
        match self.limit() {
            None => 0.0,
            Some(Limit::Consumer) => self.capacity(),
            Some(Limit::Stage(stage)) => self.capacity_without(stage).min(self.demand()),
        }
    }

    /// The limit and the reachable rate in one sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let (rate, reachable) = (self.rate(), self.reachable());
        match self.limit() {
            None => "Nothing limits a loader that has made no batch.".to_owned(),
            Some(Limit::Consumer) => format!(
                "Limited by the consumer: the workers wait for it {:.0} % of their time, and \
                 could make {reachable:.0} samples/s where it takes {rate:.0}.",
                100.0 * self.worker_wait()
            ),
            Some(Limit::Stage(stage)) => {
                let by_consumer = self.capacity_without(stage) > self.demand();
                let why = if by_consumer { ", which is all the consumer can take" } else { "" };
                format!(
                    "Limited by {stage}: it has {:.0} % of the workers' time, and the {rate:.0} \
                     samples/s could be {reachable:.0} without it{why}.",
                    100.0 * self.share(stage)
                )
            }
        }
    }

    fn capacity_without(&self, stage: Stage) -> f64 {
        let rest = self.stats.stages.total().saturating_sub(self.stats.stages[stage]);
        self.workers() * ratio(self.stats.processed, rest)
    }

    fn worker_time(&self) -> Duration {
        self.stats.stages.total().saturating_add(self.stats.worker_wait)
    }

    fn workers(&self) -> f64 {
        float(self.stats.workers as u64)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoaderStats { samples, bytes_read, skipped, damaged, .. } = self.stats;
        let LoaderStats { workers, prefetch, slabs, slab_bytes, .. } = self.stats;
        let elapsed = self.elapsed();
        writeln!(
            f,
            "{samples} samples in {:.3} s: {:.1}/s by {workers} workers, {:.1} MB/s read",
            elapsed.as_secs_f64(),
            self.rate(),
            ratio(bytes_read, elapsed) / 1e6
        )?;
        writeln!(f, "{:<22}{:>14}{:>14}", "workers", "us a sample", "of the time")?;
        for stage in Stage::ALL {
            let micros = self.per_sample(stage).as_secs_f64() * 1e6;
            let share = 100.0 * self.share(stage);
            writeln!(f, "  {stage:<20}{micros:>14.1}{share:>12.1} %")?;
        }
        let waiting = 100.0 * self.worker_wait();
        writeln!(f, "  {:<20}{:>14}{waiting:>12.1} %", "waiting for consumer", "")?;
        writeln!(
            f,
            "consumer waiting {:.1} % of the time, {:.1} of {prefetch} batches ready when it asks",
            100.0 * self.consumer_wait(),
            self.ready()
        )?;
        writeln!(f, "{slabs} slabs of {:.1} MB", float(slab_bytes) / 1e6)?;
        if skipped + damaged > 0 {
            writeln!(f, "{skipped} samples left out, {damaged} kept with damage")?;
        }
        f.write_str(&self.verdict())
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are shown with a few digits")]
fn float(count: u64) -> f64 {
    count as f64
}

/// `count` a second; 0 where no time passed.
fn ratio(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { float(count) / time.as_secs_f64() }
}

fn share(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::StageTimes;

    /// Two workers that made 1000 samples, of which the consumer took all in 10 batches: stages in
    /// milliseconds, then what workers waited, and what the consumer waited and worked.
    fn report(stages: [u64; 6], worker_wait: u64, (wait, busy): (u64, u64)) -> Report {
        let mut times = StageTimes::default();
        for (stage, millis) in Stage::ALL.into_iter().zip(stages) {
            times[stage] = Duration::from_millis(millis);
        }
        Report::new(LoaderStats {
            batches: 10,
            samples: 1000,
            processed: 1000,
            workers: 2,
            prefetch: 2,
            ready: 5,
            bytes_read: 4_000_000,
            stages: times,
            worker_wait: Duration::from_millis(worker_wait),
            consumer_wait: Duration::from_millis(wait),
            consumer_busy: Duration::from_millis(busy),
            ..LoaderStats::default()
        })
    }

    #[test]
    fn the_largest_stage_limits_a_loader_whose_consumer_waits() {
        // Two seconds by two workers: 1.2 s of it decode, 0.1 s waiting.
        let report = report([200, 1200, 100, 350, 30, 20], 100, (900, 100));
        assert_eq!(report.limit(), Some(Limit::Stage(Stage::Decode)));
        assert_eq!((report.elapsed(), report.rate()), (Duration::from_secs(1), 1000.0));
        // 2 * 1000 / 1.9 s of work; without decode 0.7 s.
        assert!((report.capacity() - 1052.63).abs() < 0.01);
        assert!((report.reachable() - 2857.14).abs() < 0.01);
        assert_eq!(report.share(Stage::Decode), 0.6);
        assert_eq!(report.per_sample(Stage::Read), Duration::from_micros(200));
        assert_eq!(report.ready(), 0.5);
        assert_eq!(
            report.verdict(),
            "Limited by decode: it has 60 % of the workers' time, and the 1000 samples/s could be \
             2857 without it."
        );
    }

    #[test]
    fn a_stage_is_worth_no_more_than_the_consumer_can_take() {
        let report = report([1500, 200, 0, 100, 0, 0], 0, (400, 500));
        assert_eq!(report.limit(), Some(Limit::Stage(Stage::Read)));
        assert_eq!(report.reachable(), 2000.0);
        let verdict = report.verdict();
        assert!(verdict.ends_with("could be 2000 without it, which is all the consumer can take."));
    }

    #[test]
    fn the_consumer_limits_whom_workers_wait_for() {
        let report = report([100, 200, 50, 50, 0, 0], 1600, (10, 990));
        assert_eq!(report.limit(), Some(Limit::Consumer));
        assert_eq!(report.reachable(), 5000.0);
        assert_eq!(
            report.verdict(),
            "Limited by the consumer: the workers wait for it 80 % of their time, and could make \
             5000 samples/s where it takes 1000."
        );
    }

    #[test]
    fn nothing_done_is_no_limit() {
        let report = Report::new(LoaderStats::default());
        assert_eq!((report.limit(), report.rate(), report.reachable()), (None, 0.0, 0.0));
        assert_eq!(report.to_string().lines().last(), Some(&*report.verdict()));
    }

    #[test]
    fn the_text_ends_in_the_verdict() {
        let report = report([200, 1200, 100, 350, 30, 20], 100, (900, 100));
        let text = report.to_string();
        assert_eq!(text.lines().last(), Some(&*report.verdict()));
        assert!(text.starts_with("1000 samples in 1.000 s: 1000.0/s by 2 workers, 4.0 MB/s read"));
        let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name));
        assert_eq!(row("decode"), Some("  decode                      1200.0        60.0 %"));
        assert_eq!(row("waiting"), Some("  waiting for consumer                       5.0 %"));
    }
}
