//! Batches over time, for the plots of a page.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::page::{Bar, Page, Point};

/// The number of intervals; when they are full, two become one.
const INTERVALS: usize = 512;

/// The first length of an interval.
const SHORTEST: Duration = Duration::from_millis(10);

/// The batches of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Interval {
    samples: u64,
    /// The consumer's waiting.
    wait: Duration,
}

/// Batches as they arrived, in intervals of equal length: its memory does not grow.
#[derive(Debug)]
pub(super) struct Timeline {
    start: Instant,
    length: Duration,
    intervals: Vec<Interval>,
    /// The number of batches of each size.
    sizes: BTreeMap<u64, u64>,
}

impl Timeline {
    pub(super) fn new() -> Self {
        let intervals = Vec::with_capacity(INTERVALS);
        Self { start: Instant::now(), length: SHORTEST, intervals, sizes: BTreeMap::new() }
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
        self.intervals[index].samples += samples;
        self.intervals[index].wait += wait;
    }

    fn index(&self, at: Duration) -> usize {
        usize::try_from(at.as_nanos() / self.length.as_nanos()).unwrap_or(usize::MAX)
    }

    /// Adds plots of samples a second, waiting and sizes of batches.
    pub(super) fn plot(&self, page: &mut Page, unit: &str) {
        let length = self.length.as_secs_f64();
        let points = |value: fn(&Interval) -> f64| -> Vec<Point> {
            let number = |index: usize| f64::from(u32::try_from(index).unwrap_or(u32::MAX));
            let intervals = self.intervals.iter().enumerate();
            intervals
                .map(|(index, interval)| Point {
                    x: (number(index) + 0.5) * length,
                    y: value(interval) / length,
                })
                .collect()
        };
        #[expect(clippy::cast_precision_loss, reason = "a plot")]
        let rate = points(|interval| interval.samples as f64);
        page.line("Throughput", &format!("{unit} per second, over the measured epochs"), &rate);
        let wait = points(|interval| 100.0 * interval.wait.as_secs_f64());
        page.line("Waiting", "% of the time in which the consumer waited for a batch", &wait);
        #[expect(clippy::cast_precision_loss, reason = "a plot")]
        let bar = |(size, count): (&u64, &u64)| Bar {
            label: format!("{size} {unit}"),
            value: *count as f64,
            text: format!("{count} batches"),
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

    #[test]
    fn nothing_is_lost_when_intervals_are_joined() {
        let mut timeline = Timeline::new();
        for second in 0..1000 {
            let wait = Duration::from_millis(1);
            timeline.add_at(Duration::from_secs(second), second + 1, wait);
        }
        assert!(timeline.intervals.len() <= INTERVALS);
        let samples: u64 = timeline.intervals.iter().map(|interval| interval.samples).sum();
        let wait: Duration = timeline.intervals.iter().map(|interval| interval.wait).sum();
        assert_eq!((samples, wait), (500_500, Duration::from_secs(1)));
        assert_eq!(timeline.sizes.len(), 1000);
        // The last batch is in the interval of its time.
        let last = timeline.index(Duration::from_secs(999));
        assert_eq!(timeline.intervals.len(), last + 1);
    }
}
