//! Lanes: which blocks a global batch and a rank read, against counting the whole epoch.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const CASES: u32 = if cfg!(miri) { 4 } else { 400 };

fn lanes(lanes: u64, samples: u64, window: u64, deal: Deal) -> Sampler {
    Shuffle::Lanes { lanes, blocks: Blocks::Samples(samples), window, deal }.into()
}

fn deals() -> impl Strategy<Value = Deal> {
    prop_oneof![Just(Deal::Run), Just(Deal::Epoch)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lanes_are_a_permutation_with_an_inverse(
        n in 0u64..600, count in 1u64..9, rows in 1u64..9, block in 1u64..50, window in 1u64..9,
        deal in deals(), seed: u64, epoch: u32,
    ) {
        let sampler = lanes(count, block, window, deal);
        let order = sampler.resolve_over(n, count * rows, &[], |_| None).unwrap().order(seed, epoch);
        let mut seen = vec![false; index(n)];
        for position in 0..n {
            let sample = order.sample_at(position).unwrap();
            prop_assert!(!std::mem::replace(&mut seen[index(sample)], true));
            prop_assert_eq!(order.position_of(sample), Some(position));
        }
        prop_assert_eq!((order.sample_at(n), order.position_of(n)), (None, None));
    }

    /// Each block has its samples in the same lane of all global batches that have rows of each lane,
    /// and soon after each other.
    #[test]
    fn a_block_stays_in_its_lane_and_its_window(
        n in 1u64..900, count in 1u64..9, rows in 1u64..9, block in 1u64..30, window in 1u64..9,
        deal in deals(), seed: u64, epoch: u32,
    ) {
        let global_batch = count * rows;
        let sampler = lanes(count, block, window, deal);
        let order = sampler.resolve_over(n, global_batch, &[], |_| None).unwrap().order(seed, epoch);
        // Fewer than a block and the rows of a turn are left of every lane; a lane may have a block
        // more than another.
        let whole = n.saturating_sub(count * (2 * block + rows)) / global_batch * global_batch;
        let mut places: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for position in 0..whole {
            let within = position % global_batch;
            let place = position / global_batch * rows + within % rows;
            let sample = order.sample_at(position).unwrap();
            places.entry(sample / block).or_default().push((within / rows, place));
        }
        for places in places.values() {
            let lanes: BTreeSet<_> = places.iter().map(|(lane, _)| lane).collect();
            prop_assert_eq!(lanes.len(), 1);
            let place = |(_, place): &(u64, u64)| *place;
            let first = places.iter().map(place).min().unwrap();
            let last = places.iter().map(place).max().unwrap();
            prop_assert!(last - first < block * window);
        }
    }

    #[test]
    fn huge_lanes_invert(
        n in (1u64 << 40)..(1 << 63), block in 1u64..1 << 20, window in 1u64..1 << 20, at: u64,
    ) {
        let sampler = lanes(8, block, window, Deal::Run);
        let order = sampler.resolve_over(n, 1024, &[], |_| None).unwrap().order(1, 2);
        for position in [0, at % n, n - 1] {
            let sample = order.sample_at(position).unwrap();
            prop_assert!(sample < n);
            prop_assert_eq!(order.position_of(sample), Some(position));
        }
    }
}

/// The blocks that ranks read together, counted once for each rank that reads them, as a part of all.
fn blocks_read(shuffle: Shuffle, ranks: u64) -> f64 {
    let n = 64_000;
    let global_batch = 256;
    let block = 16;
    let sampler = Sampler::from(shuffle);
    let order = sampler.resolve_over(n, global_batch, &[], |_| None).unwrap().order(3, 4);
    let rank = |position: u64| position % global_batch / (global_batch / ranks);
    let read: BTreeSet<(u64, u64)> = (0..n)
        .map(|position| (rank(position), order.sample_at(position).unwrap() / block))
        .collect();
    read.len() as f64 / (n / block) as f64
}

#[test]
fn ranks_read_every_block_once() {
    let samples = 16;
    let window = 32;
    for deal in [Deal::Run, Deal::Epoch] {
        let shuffle = Shuffle::Lanes { lanes: 8, blocks: Blocks::Samples(samples), window, deal };
        for ranks in [1, 2, 4, 8] {
            // The rows that are left after all turns go to any rank.
            assert!(blocks_read(shuffle, ranks) < 1.02, "{ranks} ranks");
        }
    }
    assert!(blocks_read(Shuffle::Block { blocks: Blocks::Samples(samples), window }, 8) > 6.0);
}

#[test]
fn a_lane_keeps_its_blocks_for_the_run_or_the_epoch() {
    let lane_of = |deal, epoch| {
        let sampler = lanes(4, 8, 2, deal);
        let order = sampler.resolve_over(4_000, 16, &[], |_| None).unwrap().order(9, epoch);
        let lane = |sample| order.position_of(sample).unwrap() % 16 / 4;
        (0..4_000).step_by(8).map(lane).collect::<Vec<_>>()
    };
    let same = |deal| {
        let pairs = lane_of(deal, 1).into_iter().zip(lane_of(deal, 5));
        pairs.filter(|(one, other)| one == other).count()
    };
    assert!(same(Deal::Run) > 490, "{}", same(Deal::Run));
    assert!((90..160).contains(&same(Deal::Epoch)), "{}", same(Deal::Epoch));
    let samples = |epoch| {
        let sampler = lanes(4, 8, 2, Deal::Run);
        samples(&sampler.resolve_over(4_000, 16, &[], |_| None).unwrap().order(9, epoch))
    };
    let agreements = samples(1).into_iter().zip(samples(5)).filter(|(one, other)| one == other);
    assert!(agreements.count() < 20, "in another order");
}

#[test]
fn samples_are_as_likely_at_every_position() {
    let n = 12u64;
    let trials = if cfg!(miri) { 20 } else { 60_000 };
    for deal in [Deal::Run, Deal::Epoch] {
        let sequence = lanes(2, 2, 2, deal).resolve_over(n, 4, &[], |_| None).unwrap();
        let mut counts = vec![0; index(n * n)];
        for trial in 0..trials {
            let order = sequence.order(u64::from(trial), trial % 4);
            for (position, sample) in (0..n).zip(samples(&order)) {
                counts[index(position * n + sample)] += 1;
            }
        }
        let chi = chi_square(&counts, f64::from(trials) / n as f64);
        let chi = chi * (n - 1) as f64 / n as f64;
        assert!(cfg!(miri) || chi < limit(((n - 1) * (n - 1)) as f64), "{deal:?}: {chi}");
    }
}

#[test]
fn lanes_that_cannot_be_are_refused() {
    let refused = |sampler: Sampler, global_batch| {
        sampler.resolve_over(10, global_batch, &[], |_| Some(0)).unwrap_err()
    };
    let shuffle =
        Shuffle::Lanes { lanes: 3, blocks: Blocks::Samples(4), window: 2, deal: Deal::Run };
    let sampler = Sampler::from(shuffle);
    let lanes = 3;
    assert_eq!(refused(sampler.clone(), 8), SamplerError::Lanes { lanes, global_batch: 8 });
    assert_eq!(refused(sampler.clone(), 0), SamplerError::Lanes { lanes, global_batch: 0 });
    let of = SamplerError::LanesOf { shuffle };
    assert_eq!(refused(Sampler { repeat: 2, ..sampler.clone() }, 9), of);
    let samples = Samples::ClassBalanced { of: None, length: Length::Samples };
    assert_eq!(refused(Sampler { samples, ..sampler }, 9), of);
    for text in ["lanes:0/4x2", "lanes:4", "lanes:4/0x2", "lanes:4/4x2/run", "lanes:a/4x2"] {
        assert_eq!(text.parse::<Shuffle>(), Err(SamplerError::Shuffle { text: text.into() }));
    }
    for text in ["lanes:4/4x2", "lanes:8/16x256/epoch"] {
        assert_eq!(text.parse::<Shuffle>().unwrap().to_string(), text);
    }
    let too_many =
        Shuffle::Lanes { lanes: 1 << 17, blocks: Blocks::Samples(1), window: 1, deal: Deal::Run };
    let expected = "1 to 65536";
    let setting = SamplerError::Setting { setting: "lanes", value: 1 << 17, expected };
    assert_eq!(refused(too_many.into(), 1 << 17), setting);
}
