//! Batches over time, for the plots of a page.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::page::{Bar, Page, Point};

/// The number of intervals; when they are full, two become one.
const INTERVALS: usize = 512;

/// The first length of an interval.
const SHORTEST: Duration = Duration::from_millis(10);

/// The batches of an interval. Both numbers are parts of those of batches, which arrive in later ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Interval {
    samples: f64,
    /// The seconds that the consumer waited.
    wait: f64,
}

/// Batches as they arrived, in intervals of equal length: its memory does not grow.
#[derive(Debug)]
pub(super) struct Timeline {
    start: Instant,
    /// The arrival of the batch before.
    last: Duration,
    length: Duration,
    intervals: Vec<Interval>,
    /// The number of batches of each size.
    sizes: BTreeMap<u64, u64>,
}

impl Timeline {
    pub(super) fn new() -> Self {
        let intervals = Vec::with_capacity(INTERVALS);
        let last = Duration::ZERO;
        Self { start: Instant::now(), last, length: SHORTEST, intervals, sizes: BTreeMap::new() }
    }

    /// Counts a batch that arrives now, for which the consumer waited so long.
    pub(super) fn add(&mut self, samples: u64, wait: Duration) {
        self.add_at(self.start.elapsed(), samples, wait);
    }

    fn add_at(&mut self, at: Duration, samples: u64, wait: Duration) {
        *self.sizes.entry(samples).or_default() += 1;
        let mut index = self.index(at);
        while index >= INTERVALS {
            let halved = self.intervals.chunks(2).map(|pair| Interval {
                samples: pair.iter().map(|interval| interval.samples).sum(),
                wait: pair.iter().map(|interval| interval.wait).sum(),
            });
            self.intervals = halved.collect();
            self.length *= 2;
            index = self.index(at);
        }
        if self.intervals.len() <= index {
            self.intervals.resize(index + 1, Interval::default());
        }
        #[expect(clippy::cast_precision_loss, reason = "a plot")]
        let samples = samples as f64;
        // Samples come about evenly since the batch before, which is more often than batches.
        self.spread(self.last, at, |interval, share| interval.samples += samples * share);
        let wait_s = wait.as_secs_f64();
        self.spread(at.saturating_sub(wait), at, |interval, share| interval.wait += wait_s * share);
        self.last = at;
    }

    /// Calls `add` with each interval between two times and its share of the time between them.
    fn spread(&mut self, from: Duration, to: Duration, mut add: impl FnMut(&mut Interval, f64)) {
        let length = self.length;
        let first = self.index(from);
        let last = self.index(to);
        let whole = to.saturating_sub(from).as_secs_f64();
        let mut begin = from;
        let mut end = length * u32::try_from(first + 1).unwrap_or(u32::MAX);
        for interval in &mut self.intervals[first..=last] {
            let part = end.min(to).saturating_sub(begin).as_secs_f64();
            add(interval, if whole > 0.0 { part / whole } else { 1.0 });
            begin = end;
            end += length;
        }
    }

    fn index(&self, at: Duration) -> usize {
        usize::try_from(at.as_nanos() / self.length.as_nanos()).unwrap_or(usize::MAX)
    }

    /// Adds plots of samples a second, waiting and sizes of batches.
    pub(super) fn plot(&self, page: &mut Page, unit: &str) {
        let length = self.length.as_secs_f64();
        let points = |value: fn(&Interval) -> f64| -> Vec<Point> {
            let number = |index: usize| f64::from(u32::try_from(index).unwrap_or(u32::MAX));
            // The last interval ends before its time.
            let whole = self.intervals.len().saturating_sub(1).max(1);
            let intervals = self.intervals.iter().take(whole).enumerate();
            intervals
                .map(|(index, interval)| Point {
                    x: (number(index) + 0.5) * length,
                    y: value(interval) / length,
                })
                .collect()
        };
        let rate = points(|interval| interval.samples);
        page.line("Throughput", &format!("{unit} per second, over the measured epochs"), &rate);
        let wait = points(|interval| 100.0 * interval.wait);
        page.line("Waiting", "% of the time in which the consumer waited for a batch", &wait);
        #[expect(clippy::cast_precision_loss, reason = "a plot")]
        let bar = |(size, count): (&u64, &u64)| Bar {
            label: format!("{size} {unit}"),
            value: *count as f64,
            text: if *count == 1 { "1 batch".to_owned() } else { format!("{count} batches") },
        };
        let mut bars: Vec<_> = self.sizes.iter().map(bar).collect();
        // Sizes differ where tokens or buckets fill a batch; the most frequent ones say enough.
        bars.sort_by(|a, b| b.value.total_cmp(&a.value));
        bars.truncate(8);
        page.bars("Batch sizes", &bars);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(timeline: &Timeline) -> Interval {
        let samples = timeline.intervals.iter().map(|interval| interval.samples).sum();
        Interval { samples, wait: timeline.intervals.iter().map(|interval| interval.wait).sum() }
    }

    #[test]
    fn nothing_is_lost_when_intervals_are_joined() {
        let mut timeline = Timeline::new();
        for second in 0..1000 {
            timeline.add_at(Duration::from_secs(second), second + 1, Duration::from_millis(1));
        }
        assert!(timeline.intervals.len() <= INTERVALS);
        let Interval { samples, wait } = sums(&timeline);
        assert!(
            (samples - 500_500.0).abs() < 1e-3 && (wait - 1.0).abs() < 1e-6,
            "{samples} {wait}"
        );
        assert_eq!(timeline.sizes.len(), 1000);
        // The last batch is in the interval of its time.
        let last = timeline.index(Duration::from_secs(999));
        assert_eq!(timeline.intervals.len(), last + 1);
    }

    #[test]
    fn an_even_rate_is_a_flat_line_and_waiting_is_never_above_all_of_the_time() {
        let mut timeline = Timeline::new();
        let step = Duration::from_millis(100);
        for batch in 1..=40 {
            timeline.add_at(step * batch, 64, step);
        }
        let length = timeline.length.as_secs_f64();
        let whole = timeline.intervals.len() - 1;
        assert_eq!(whole, 400);
        for Interval { samples, wait } in &timeline.intervals[..whole] {
            assert!((samples / length - 640.0).abs() < 1e-6, "{samples}");
            assert!((wait / length - 1.0).abs() < 1e-6, "{wait}");
        }
    }
}
