//! The requests that training made to stores, and what limits them.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tl_pipeline::{Limit, LoaderNote, Report};
use turboloader::StoreStats;

use super::change::Change;
use crate::figures::rounded;

/// One throttled answer in so many is meant: a store of many servers always refuses a few.
const MEANT: u64 = 20;

/// The limit of requests to stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoreLimit {
    /// The store asks for fewer requests.
    Throttling,
    /// Fewer bytes are requested ahead than the order needs.
    ReadAhead,
    /// More connections bring no more bytes.
    Network,
    /// The time that answers take.
    Store,
}

/// The loader of the training run.
pub(super) struct Loaded<'a> {
    pub(super) notes: &'a [LoaderNote],
    pub(super) is_full_shuffle: bool,
}

/// The requests of the training run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StoreFigures {
    gets_per_1000_samples: f64,
    mb_per_s: f64,
    connections: u64,
    first_byte_ms: Option<f64>,
    retries: u64,
    throttled: u64,
    hedges: u64,
    /// `None` where something else limits training.
    limit: Option<StoreLimit>,
    /// Whether neighbours are requested one by one.
    #[serde(skip)]
    is_full_shuffle: bool,
}

impl StoreFigures {
    /// The figures of a run; `None` without a request.
    #[expect(clippy::cast_precision_loss, reason = "figures for reading")]
    pub(super) fn new(stats: &StoreStats, training: &Report, loader: &Loaded<'_>) -> Option<Self> {
        if stats.gets == 0 {
            return None;
        }
        let is_short = |note: &LoaderNote| matches!(note, LoaderNote::ShortReadAhead { .. });
        let limits = training.limit() == Some(Limit::Readers);
        let limit = limits.then(|| {
            if stats.throttled * MEANT >= stats.gets {
                StoreLimit::Throttling
            } else if loader.notes.iter().any(is_short) {
                StoreLimit::ReadAhead
            } else if stats.saturated > 0 {
                StoreLimit::Network
            } else {
                StoreLimit::Store
            }
        });
        let seconds = training.elapsed().max(Duration::from_millis(1)).as_secs_f64();
        let thousands = training.stats().processed.max(1) as f64 / 1000.0;
        let milliseconds = |time: Duration| rounded(time.as_secs_f64() * 1e3, 1);
        Some(Self {
            gets_per_1000_samples: rounded(stats.gets as f64 / thousands, 1),
            mb_per_s: rounded(stats.received as f64 / 1e6 / seconds, 1),
            connections: stats.connections,
            first_byte_ms: stats.first_byte().map(milliseconds),
            retries: stats.retries,
            throttled: stats.throttled,
            hedges: stats.hedges,
            limit,
            is_full_shuffle: loader.is_full_shuffle,
        })
    }

    /// The change that helps against the limit. The workers could use `need` megabytes a second.
    pub(super) fn change(&self, need: f64) -> Option<Change> {
        let fewer = "--shuffle block:16x256";
        Some(match self.limit? {
            StoreLimit::Throttling if self.is_full_shuffle => {
                let what = "the store asks for fewer requests: request neighbours together";
                Change::advice(what).by(fewer)
            }
            StoreLimit::Throttling => Change::advice(
                "the store asks for fewer requests: spread the data over several prefixes or \
                 buckets, or ask its operator",
            ),
            StoreLimit::ReadAhead => {
                let what = "the shuffle needs more bytes read ahead than it has: see the note";
                Change::advice(what).by("--read-ahead SIZE")
            }
            StoreLimit::Network => Change::advice(format!(
                "a network of {need:.0} MB/s, which is what the workers could use: more connections \
                 bring no more bytes"
            )),
            StoreLimit::Store if self.is_full_shuffle => {
                let what = "the store's answers take their time: request neighbours together";
                Change::advice(what).by(fewer)
            }
            StoreLimit::Store => {
                Change::advice("the store's answers take their time: read ahead more bytes")
                    .by("--read-ahead SIZE")
            }
        })
    }
}

impl fmt::Display for StoreFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gets_per_1000_samples, mb_per_s, connections, retries, throttled, .. } = self;
        write!(f, "{mb_per_s} MB/s over at most {connections} connections, ")?;
        if let Some(first_byte) = self.first_byte_ms {
            write!(f, "first byte after {first_byte} ms, ")?;
        }
        write!(
            f,
            "{gets_per_1000_samples} GETs per 1000 samples, {retries} retries ({throttled} \
             throttled), {} hedges",
            self.hedges
        )
    }
}

#[cfg(test)]
mod tests {
    use tl_pipeline::LoaderStats;

    use super::*;

    /// A run of which the workers waited for requests most of the time.
    fn waiting() -> Report {
        let mut stats = LoaderStats::default();
        (stats.samples, stats.processed, stats.workers) = (100, 100, 1);
        stats.consumer_wait = Duration::from_secs(1);
        stats.readers.wait = Duration::from_secs(1);
        stats.readers.readers = 1;
        stats.readers.is_planned = true;
        Report::new(stats)
    }

    fn limit(change: impl Fn(&mut StoreStats), notes: &[LoaderNote]) -> Option<StoreLimit> {
        let mut stats = StoreStats::default();
        stats.gets = 100;
        change(&mut stats);
        let loader = Loaded { notes, is_full_shuffle: true };
        StoreFigures::new(&stats, &waiting(), &loader).and_then(|figures| figures.limit)
    }

    #[test]
    fn the_limit_is_what_the_counts_say() {
        let short = [LoaderNote::ShortReadAhead { bytes: 1, wanted: 2 }];
        assert_eq!(limit(|_| (), &[]), Some(StoreLimit::Store));
        assert_eq!(limit(|stats| stats.throttled = 4, &[]), Some(StoreLimit::Store));
        assert_eq!(limit(|stats| stats.throttled = 5, &short), Some(StoreLimit::Throttling));
        assert_eq!(limit(|stats| stats.saturated = 1, &short), Some(StoreLimit::ReadAhead));
        assert_eq!(limit(|stats| stats.saturated = 1, &[]), Some(StoreLimit::Network));
        assert_eq!(limit(|stats| stats.gets = 0, &[]), None, "local data");
        let idle = Report::new(LoaderStats::default());
        let mut stats = StoreStats::default();
        stats.gets = 1;
        let loader = Loaded { notes: &[], is_full_shuffle: true };
        let figures = StoreFigures::new(&stats, &idle, &loader).unwrap();
        assert_eq!((figures.limit, figures.change(1.0)), (None, None));
    }
}
