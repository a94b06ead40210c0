//! Loaders of many machines that read from one store, in simulated time.
//!
//! The order of samples, the rows of a rank and the requests for them are those of a
//! [`Loader`](crate::Loader). A request waits for its first byte, whose time is log-normal, and then
//! shares its machine's link and the store with all others under way: each gets the same rate, at most
//! that of a connection. Not simulated are decoding, which is fast enough or not with any store, faults
//! and second requests for what is late, the search for the number of connections, and the opening of
//! files.

mod engine;

use std::time::Duration;

use crate::error::PipelineError;
use crate::order::Shuffle;
use engine::Engine;

/// Machines, their links and a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// The number of machines.
    pub nodes: u32,
    /// The number of machines that are simulated. Others read as these do, and share the store.
    pub simulated: u32,
    /// Ranks on a machine: processes with a loader each.
    pub ranks: u32,
    /// The median time from a request to the first byte of its answer.
    pub first_byte: Duration,
    /// The standard deviation of that time's logarithm.
    pub sigma: f64,
    /// Bytes a second of one request.
    pub connection: f64,
    /// Bytes a second of a machine.
    pub link: f64,
    /// Bytes a second of the store, for all machines together.
    pub store: f64,
    /// Requests of a rank that may be under way at once.
    pub connections: usize,
    /// The part of the data, from 0 to 1, that every machine has on its disk, in blocks.
    pub cached: f64,
    /// The time between two batches: all ranks take their next one together, so that the slowest counts.
    /// `None` for ranks that take each as soon as it is there, whatever the others do.
    pub step: Option<Duration>,
}

/// A data set of samples of one size, and how it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number of samples.
    pub samples: u64,
    /// Bytes of a sample.
    pub sample_bytes: u64,
    /// Samples of an object.
    pub object_samples: u64,
    /// The order of the samples.
    pub shuffle: Shuffle,
    /// Samples of a rank's batch.
    pub batch_size: usize,
    /// Bytes that are requested ahead of the rows that are taken; 0 for what a loader with enough
    /// memory takes by itself.
    pub read_ahead_bytes: u64,
    /// Batches that are ready before they are taken.
    pub prefetch: u64,
    /// Batches of each rank after which the simulation ends, or the epoch's if these are fewer.
    pub batches: u64,
    /// The seed of the order and of the times of first bytes.
    pub seed: u64,
}

/// The results for all simulated ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Simulated {
    /// The number of simulated ranks.
    pub ranks: u64,
    /// The time until every rank had its first batch.
    pub first_batch: Duration,
    /// The time until every rank had its last batch, and its step was over.
    pub time: Duration,
    /// The part of that time, without the wait for the first batch, in which training waited for a batch.
    pub waited: Duration,
    /// Samples in batches.
    pub rows: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Bytes that were received, with what lies between samples.
    pub received: u64,
    /// Bytes of samples in batches that came from a disk.
    pub from_disk: u64,
    /// The most bytes that a rank had read ahead.
    pub read_ahead: u64,
    /// Bytes that a rank may read ahead.
    pub read_ahead_bytes: u64,
}

/// Simulates the first batches of an epoch.
///
/// # Errors
/// As for [`Loader::new`](crate::Loader::new), of the settings of `job`.
pub fn simulate(cluster: &Cluster, job: &Job) -> Result<Simulated, PipelineError> {
    Ok(Engine::new(cluster, job)?.run())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Blocks, Deal};

    /// Each rank has blocks of its own.
    const LANES: Shuffle =
        Shuffle::Lanes { lanes: 2, blocks: Blocks::Samples(16), window: 16, deal: Deal::Run };

    fn cluster() -> Cluster {
        Cluster {
            nodes: 1,
            simulated: 1,
            ranks: 2,
            first_byte: Duration::from_millis(10),
            sigma: 0.5,
            connection: 10e6,
            link: 50e6,
            store: f64::INFINITY,
            connections: 32,
            cached: 0.0,
            step: None,
        }
    }

    fn job() -> Job {
        Job {
            samples: 20_000,
            sample_bytes: 50_000,
            object_samples: 1000,
            shuffle: LANES,
            batch_size: 64,
            read_ahead_bytes: 0,
            prefetch: 2,
            batches: u64::MAX,
            seed: 1,
        }
    }

    #[test]
    fn an_epoch_takes_as_long_as_its_bytes_on_the_link() {
        let found = simulate(&cluster(), &job()).unwrap();
        // The last global batch is filled up.
        assert_eq!((found.rows, found.ranks), (20_096, 2));
        assert_eq!(found.received, 20_096 * 50_000, "samples lie side by side");
        assert!((20.0..21.0).contains(&found.time.as_secs_f64()), "{found:?}");
        assert!(found.requests < 20_096 / 8, "{found:?}");
        assert!(found.first_batch < Duration::from_millis(400), "{found:?}");
        assert!(found.read_ahead <= found.read_ahead_bytes, "{found:?}");
        assert_eq!(simulate(&cluster(), &job()).unwrap(), found, "by the seed alone");
    }

    #[test]
    fn a_cache_takes_its_part_off_the_network() {
        let half = Cluster { cached: 0.5, ..cluster() };
        let found = simulate(&half, &job()).unwrap();
        let all = 20_096 * 50_000;
        assert_eq!(found.received + found.from_disk, all);
        assert!((all * 45 / 100..all * 55 / 100).contains(&found.received), "{found:?}");
        let whole = simulate(&Cluster { cached: 1.0, ..cluster() }, &job()).unwrap();
        assert_eq!((whole.requests, whole.from_disk, whole.time), (0, all, Duration::ZERO));
        let step = Some(Duration::from_millis(16));
        let trained = simulate(&Cluster { step, cached: 1.0, ..cluster() }, &job()).unwrap();
        assert_eq!((trained.rows, trained.waited), (20_096, Duration::ZERO));
        assert_eq!(trained.time.as_secs_f64().round(), 3.0, "157 steps");
    }

    #[test]
    fn training_waits_for_what_the_link_does_not_bring() {
        // Two ranks take 64 samples of 50 KB each.
        let after = |step| {
            let step = Some(Duration::from_millis(step));
            let job = Job { batches: 100, ..job() };
            simulate(&Cluster { step, ..cluster() }, &job).unwrap()
        };
        let fast = after(64);
        let needed = 2.0 * 100.0 * 64.0 * 50_000.0 / 50e6;
        // Rows of later batches come with their neighbours, so that steps are left at the end.
        assert!((needed..needed * 1.2).contains(&fast.time.as_secs_f64()), "{fast:?}");
        let part = fast.waited.as_secs_f64() / fast.time.as_secs_f64();
        assert!((0.4..0.6).contains(&part), "{fast:?}");
        // Of 32 MB/s that it takes the link has 50: it waits while the first windows arrive.
        let slow = after(200);
        let part = slow.waited.as_secs_f64() / slow.time.as_secs_f64();
        assert!(part < 0.15, "{slow:?}");
    }

    #[test]
    fn a_store_is_shared_with_machines_that_are_not_simulated() {
        let many = Cluster { nodes: 10, link: 1e12, store: 500e6, ..cluster() };
        let job = Job { batches: 100, samples: 2_000_000, ..job() };
        let found = simulate(&many, &job).unwrap();
        let needed = 2.0 * 100.0 * 64.0 * 50_000.0 / 50e6;
        assert!((needed..needed * 1.1).contains(&found.time.as_secs_f64()), "{found:?}");
    }
}
