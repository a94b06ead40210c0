//! The limit of a loader: its counters as rates and shares, with a verdict in one sentence.

use std::fmt;
use std::time::Duration;

use crate::reader::ReaderStats;
use crate::retry::RetryStats;
use crate::stage::Stage;
use crate::stats::LoaderStats;

/// Readers that read for less than this part of the time could do more.
const FULLY_USED: f64 = 0.8;

/// The stage that limits the rate of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The consumer of the batches: workers wait for it more than it waits for them.
    Consumer,
    /// The stage that workers spend most of their time on.
    Stage(Stage),
    /// The readers: workers wait for them, or read instead of them.
    Readers,
}

/// The shares of a loader's time, and its limit.
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

    /// The counters of the report.
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

    /// Samples that the workers can make in a second when the consumer never keeps them waiting.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.capacity_in(self.busy())
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

    /// The part of the workers' time that they waited for readers, 0 to 1.
    #[must_use]
    pub fn reader_wait(&self) -> f64 {
        share(self.stats.readers.wait, self.worker_time())
    }

    /// The part of the workers' time in which they read what no reader had begun with, 0 to 1. It
    /// is part of [`Stage::Read`]'s.
    #[must_use]
    pub fn late(&self) -> f64 {
        share(self.stats.readers.late_time, self.worker_time())
    }

    /// The part of the readers that were reading, on average, 0 to 1.
    #[must_use]
    pub fn reader_use(&self) -> f64 {
        let ReaderStats { readers, read_time, .. } = self.stats.readers;
        // No thread waits for reads between two epochs.
        let reading = share(read_time, self.elapsed());
        if readers == 0 { 0.0 } else { (reading / float(readers as u64)).min(1.0) }
    }

    /// A reader's time for one sample, on average.
    #[must_use]
    pub fn per_read(&self) -> Duration {
        mean(self.stats.readers.read_time, self.stats.readers.samples)
    }

    /// Samples that readers had ready when a worker asked for its own, on average.
    #[must_use]
    pub fn read_ahead(&self) -> f64 {
        let ReaderStats { found, samples, late, .. } = self.stats.readers;
        let asked = samples.saturating_add(late);
        if asked == 0 { 0.0 } else { float(found) / float(asked) }
    }

    /// The part of the workers' time that goes to `stage`, 0 to 1; waiting has the rest.
    #[must_use]
    pub fn share(&self, stage: Stage) -> f64 {
        share(self.stats.stages[stage], self.worker_time())
    }

    /// A worker's time for one sample in `stage`, on average.
    #[must_use]
    pub fn per_sample(&self, stage: Stage) -> Duration {
        mean(self.stats.stages[stage], self.stats.processed)
    }

    /// Batches that were ready when the consumer asked for one, on average.
    #[must_use]
    pub fn ready(&self) -> f64 {
        let Self { stats: LoaderStats { ready, batches, .. } } = self;
        if *batches == 0 { 0.0 } else { float(*ready) / float(*batches) }
    }

    /// The stage that limits the loader; `None` before its first sample.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        if self.stats.processed == 0 || self.stats.samples == 0 {
            return None;
        }
        if self.worker_wait() > self.consumer_wait() {
            return Some(Limit::Consumer);
        }
        let stages = Stage::ALL.map(Limit::Stage).into_iter();
        // Readers first: of equals the last is the greatest, also where nobody reads ahead.
        let limits = [Limit::Readers].into_iter().chain(stages);
        limits.max_by_key(|limit| self.time_of(*limit))
    }

    /// The rate that could be reached if what limits took no time: the workers' where the consumer
    /// limits, otherwise theirs without the limiting stage, as far as the consumer can follow.
    #[must_use]
    pub fn reachable(&self) -> f64 {
        match self.limit() {
            None => 0.0,
            Some(Limit::Consumer) => self.capacity(),
            Some(limit) => self.capacity_without(limit).min(self.demand()),
        }
    }

    /// The limit and the reachable rate in one sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        let rate = self.rate();
        let reachable = self.reachable();
        match self.limit() {
            None => "Nothing limits a loader that has made no batch.".to_owned(),
            Some(Limit::Consumer) => format!(
                "Limited by the consumer: the workers wait for it {:.0} % of their time, and \
                 could make {reachable:.0} samples/s where it takes {rate:.0}.",
                100.0 * self.worker_wait()
            ),
            Some(limit @ Limit::Stage(stage)) => format!(
                "Limited by {stage}: it has {:.0} % of the workers' time, and the {rate:.0} \
                 samples/s could be {reachable:.0} without it{}.",
                100.0 * self.share(stage),
                self.why(limit)
            ),
            Some(limit @ Limit::Readers) if self.stats.readers.is_planned => format!(
                "Limited by the store: the workers wait for it {:.0} % of their time and read what \
                 had not been requested {:.0} %, and the {rate:.0} samples/s could be \
                 {reachable:.0} without that{}.",
                100.0 * self.reader_wait(),
                100.0 * self.late(),
                self.why(limit)
            ),
            Some(limit @ Limit::Readers) => {
                let readers = self.stats.readers.readers;
                let used = self.reader_use();
                let what = if used < FULLY_USED {
                    "so they lack room to read ahead, or processors"
                } else {
                    "so it takes more of them, or a disk that gives more"
                };
                format!(
                    "Limited by the readers: the workers wait for them {:.0} % of their time and \
                     read for them {:.0} %, and the {rate:.0} samples/s could be {reachable:.0} \
                     without that{}; {readers} at once are reading {:.0} % of the time, {what}.",
                    100.0 * self.reader_wait(),
                    100.0 * self.late(),
                    self.why(limit),
                    100.0 * used
                )
            }
        }
    }

    /// The rate, the consumer's waits, the limit and the batches in use in one line, to be shown while
    /// the loader runs. It fits into 79 columns below a hundred million samples a second and a hundred
    /// thousand batches.
    ///
    /// The limit is left out if all batches were made before the counters of a difference began.
    #[must_use]
    pub fn line(&self) -> String {
        if self.stats.samples == 0 {
            return "no batch received".to_owned();
        }
        let limit = match self.limit() {
            None => "",
            Some(Limit::Consumer) => ", limited by the consumer",
            Some(Limit::Stage(stage)) => &format!(", limited by {}", stage.name()),
            Some(Limit::Readers) if self.stats.readers.is_planned => ", limited by the store",
            Some(Limit::Readers) => ", limited by the readers",
        };
        let in_use = self.stats.slabs_in_use;
        let batches = if in_use == 1 { "batch" } else { "batches" };
        format!(
            "{:.0} samples/s, waiting {:.0} %{limit}, {in_use} {batches} in use",
            self.rate(),
            100.0 * self.consumer_wait()
        )
    }

    /// The reason for the limit in words, if it is not the workers.
    fn why(&self, limit: Limit) -> &'static str {
        let by_consumer = self.capacity_without(limit) > self.demand();
        if by_consumer { ", which is all the consumer can take" } else { "" }
    }

    /// The time of a limit within the workers' time, without their waits for the consumer.
    fn time_of(&self, limit: Limit) -> Duration {
        let ReaderStats { readers, late_time, wait, .. } = self.stats.readers;
        // If readers have given up, the workers read.
        let kept = |time| if readers == 0 { Duration::ZERO } else { time };
        let late_time = kept(late_time);
        let wait = kept(wait);
        match limit {
            Limit::Consumer => Duration::ZERO,
            Limit::Stage(Stage::Read) => self.stats.stages[Stage::Read].saturating_sub(late_time),
            Limit::Stage(stage) => self.stats.stages[stage],
            Limit::Readers => wait.saturating_add(late_time),
        }
    }

    fn capacity_without(&self, limit: Limit) -> f64 {
        self.capacity_in(self.busy().saturating_sub(self.time_of(limit)))
    }

    /// Samples a second if what was made had taken the workers so long.
    fn capacity_in(&self, time: Duration) -> f64 {
        self.workers() * ratio(self.stats.processed, time)
    }

    /// The workers' time without their waiting for the consumer.
    fn busy(&self) -> Duration {
        self.stats.stages.total().saturating_add(self.stats.readers.wait)
    }

    fn worker_time(&self) -> Duration {
        self.busy().saturating_add(self.stats.worker_wait)
    }

    fn fmt_readers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReaderStats { readers, is_planned, samples, late, .. } = self.stats.readers;
        if readers == 0 {
            return Ok(());
        }
        if is_planned {
            return writeln!(
                f,
                "requests {:.1} samples ready when a worker asks, {late} of {} read by workers instead",
                self.read_ahead(),
                samples.saturating_add(late)
            );
        }
        writeln!(
            f,
            "readers {:.1} % of {readers} at once, {:.1} us a sample, {:.1} samples ready when a \
             worker asks, {late} of {} read by workers instead",
            100.0 * self.reader_use(),
            self.per_read().as_secs_f64() * 1e6,
            self.read_ahead(),
            samples.saturating_add(late)
        )
    }

    fn workers(&self) -> f64 {
        float(self.stats.workers as u64)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoaderStats { samples, bytes_read, skipped, replaced, filled, damaged, .. } =
            self.stats;
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
        let mut waiting = |whom: &str, share: f64| {
            writeln!(
                f,
                "  {:<20}{:>14}{:>12.1} %",
                format!("waiting for {whom}"),
                "",
                100.0 * share
            )
        };
        if self.stats.readers.readers > 0 {
            waiting("readers", self.reader_wait())?;
        }
        waiting("consumer", self.worker_wait())?;
        self.fmt_readers(f)?;
        writeln!(
            f,
            "consumer waiting {:.1} % of the time, {:.1} of {prefetch} batches ready when it asks",
            100.0 * self.consumer_wait(),
            self.ready()
        )?;
        writeln!(f, "{slabs} slabs of {:.1} MB", float(slab_bytes) / 1e6)?;
        if self.stats.uploads.batches > 0 {
            writeln!(f, "copies to the device: {}", self.stats.uploads)?;
        }
        if skipped + replaced + filled + damaged > 0 {
            writeln!(
                f,
                "bad samples: {skipped} skipped, {replaced} replaced, {filled} filled with zeros, \
                 {damaged} kept with damage"
            )?;
        }
        let RetryStats { repeated, given_up, waited } = self.stats.retries;
        if repeated + given_up > 0 {
            writeln!(
                f,
                "repeated reads: {repeated} after errors that may pass, {:.3} s of waits, {given_up} \
                 samples given up",
                waited.as_secs_f64()
            )?;
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

/// `time` divided by `count`; zero if `count` is.
fn mean(time: Duration, count: u64) -> Duration {
    let nanos = time.as_nanos().checked_div(u128::from(count)).unwrap_or(0);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
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
    fn report(stages: [u64; 6], worker_wait: u64, consumer: (u64, u64)) -> Report {
        let (wait, busy) = consumer;
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

    /// As [`report`], by four readers in two seconds: what workers waited for them and read for
    /// them, and what the readers read, in milliseconds.
    fn read_ahead(stages: [u64; 6], workers: (u64, u64), read: u64) -> Report {
        let (wait, late) = workers;
        let Report { mut stats } = report(stages, 0, (1900, 100));
        stats.readers = ReaderStats {
            readers: 4,
            samples: 800,
            late: 200,
            found: 1500,
            read_time: Duration::from_millis(read),
            late_time: Duration::from_millis(late),
            wait: Duration::from_millis(wait),
            ..ReaderStats::default()
        };
        Report { stats }
    }

    #[test]
    fn readers_limit_whom_workers_wait_and_read_for() {
        // Of four seconds by two workers 2.2 s wait, 0.8 s read for readers, 0.1 s read besides.
        let report = read_ahead([900, 700, 0, 200, 0, 0], (2200, 800), 7600);
        assert_eq!(report.limit(), Some(Limit::Readers));
        assert_eq!((report.reader_wait(), report.late(), report.reader_use()), (0.55, 0.2, 0.95));
        assert_eq!(report.per_read(), Duration::from_micros(9500));
        assert_eq!((report.read_ahead(), report.capacity()), (1.5, 500.0));
        assert_eq!(
            report.verdict(),
            "Limited by the readers: the workers wait for them 55 % of their time and read for \
             them 20 %, and the 500 samples/s could be 2000 without that; 4 at once are reading \
             95 % of the time, so it takes more of them, or a disk that gives more."
        );
        let text = report.to_string();
        assert!(text.contains("\n  waiting for readers                       55.0 %\n"), "{text}");
        let readers = "readers 95.0 % of 4 at once, 9500.0 us a sample, 1.5 samples ready when a \
                       worker asks, 200 of 1000 read by workers instead";
        assert!(text.lines().any(|line| line == readers), "{text}");
    }

    #[test]
    fn readers_that_keep_up_do_not_limit() {
        // 0.9 s of reading by workers is more than what they read for readers and wait for them.
        let report = read_ahead([1200, 800, 0, 200, 0, 0], (500, 300), 800);
        assert_eq!(report.limit(), Some(Limit::Stage(Stage::Read)));
        let report = read_ahead([1200, 901, 0, 200, 0, 0], (500, 300), 800);
        assert_eq!(report.limit(), Some(Limit::Stage(Stage::Decode)));
        let report = read_ahead([300, 500, 0, 200, 0, 0], (500, 300), 800);
        assert_eq!(report.limit(), Some(Limit::Readers));
        let end = "10 % of the time, so they lack room to read ahead, or processors.";
        assert!(report.verdict().ends_with(end), "{}", report.verdict());
    }

    #[test]
    fn a_running_loader_has_a_line() {
        let Report { stats } = report([200, 1200, 100, 350, 30, 20], 100, (900, 100));
        let stats = LoaderStats { slabs_in_use: 4, ..stats };
        assert_eq!(
            Report::new(stats).line(),
            "1000 samples/s, waiting 90 %, limited by decode, 4 batches in use"
        );
        let consumer = report([100, 200, 50, 50, 0, 0], 1600, (10, 990)).line();
        assert!(consumer.contains(", limited by the consumer, "), "{consumer}");
        let Report { mut stats } = read_ahead([900, 700, 0, 200, 0, 0], (2200, 800), 7600);
        let readers = Report::new(stats.clone()).line();
        assert!(readers.contains(", limited by the readers, "), "{readers}");
        stats.readers.is_planned = true;
        let store = Report::new(stats).line();
        assert!(store.contains(", limited by the store, "), "{store}");
    }

    #[test]
    fn the_longest_line_fits_into_a_terminal() {
        let Report { mut stats } = report([100, 200, 50, 50, 0, 0], 1600, (1000, 0));
        stats = LoaderStats { samples: 99_999_999, slabs_in_use: 65_536, ..stats };
        stats.worker_wait = Duration::ZERO;
        stats.readers.readers = 4;
        stats.readers.wait = Duration::from_secs(60);
        let line = Report::new(stats).line();
        let expected = "99999999 samples/s, waiting 100 %, limited by the readers, 65536 batches \
                        in use";
        assert_eq!(line, expected);
        assert!(line.len() < 80, "{}", line.len());
    }

    #[test]
    fn batches_that_were_made_before_have_a_rate_without_a_limit() {
        let Report { stats } = report([0; 6], 0, (900, 100));
        let stats = LoaderStats { processed: 0, slabs_in_use: 1, ..stats };
        let line = Report::new(stats.clone()).line();
        assert_eq!(line, "1000 samples/s, waiting 90 %, 1 batch in use");
        // What is made and not received has a limit neither.
        let line = Report::new(LoaderStats { samples: 0, processed: 9, ..stats }).line();
        assert_eq!(line, "no batch received");
    }

    #[test]
    fn nothing_done_is_no_limit() {
        let report = Report::new(LoaderStats::default());
        assert_eq!(report.line(), "no batch received");
        assert_eq!((report.limit(), report.rate(), report.reachable()), (None, 0.0, 0.0));
        assert_eq!(report.to_string().lines().last(), Some(&*report.verdict()));
    }

    #[test]
    fn bad_samples_are_counted_in_the_text() {
        let Report { stats } = report([200, 1200, 100, 350, 30, 20], 100, (900, 100));
        let is_counted = |line: &str| line.starts_with("bad samples: ");
        assert!(!Report::new(stats.clone()).to_string().lines().any(is_counted));
        let stats = LoaderStats { skipped: 1, replaced: 2, filled: 3, damaged: 4, ..stats };
        let text = Report::new(stats).to_string();
        let line = "bad samples: 1 skipped, 2 replaced, 3 filled with zeros, 4 kept with damage";
        assert_eq!(text.lines().find(|line| is_counted(line)), Some(line));
    }

    #[test]
    fn repeated_reads_are_counted_in_the_text() {
        let Report { stats } = report([200, 1200, 100, 350, 30, 20], 100, (900, 100));
        let is_counted = |line: &str| line.starts_with("repeated reads: ");
        assert!(!Report::new(stats.clone()).to_string().lines().any(is_counted));
        let waited = Duration::from_millis(1500);
        let retries = RetryStats { repeated: 7, given_up: 2, waited };
        let text = Report::new(LoaderStats { retries, ..stats }).to_string();
        let line =
            "repeated reads: 7 after errors that may pass, 1.500 s of waits, 2 samples given up";
        assert_eq!(text.lines().find(|line| is_counted(line)), Some(line));
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
