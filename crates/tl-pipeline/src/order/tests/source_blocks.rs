//! Blocks of the source, against counting the whole epoch and blocks of equal sizes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const CASES: u32 = if cfg!(miri) { 4 } else { 400 };

/// The sizes of blocks, as the samples after each.
fn block_ends() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1u64..30, 1..20).prop_map(|sizes| {
        let end = |sum: &mut u64, size: u64| {
            *sum += size;
            Some(*sum)
        };
        sizes.into_iter().scan(0, end).collect()
    })
}

fn block_of(ends: &[u64], sample: u64) -> usize {
    ends.partition_point(|&end| end <= sample)
}

fn label(sample: u64) -> Option<i64> {
    Some(i64::try_from(sample % 3).unwrap())
}

/// A shuffle of blocks, in lanes if there are any.
fn shuffle(lanes: u64, blocks: Blocks, window: u64) -> Shuffle {
    match lanes {
        0 => Shuffle::Block { blocks, window },
        lanes => Shuffle::Lanes { lanes, blocks, window, deal: Deal::Run },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_stay_within_their_window(
        ends in block_ends(), window in 1u64..6, seed: u64, epoch: u32,
    ) {
        let n = ends[ends.len() - 1];
        let sampler = Sampler::from(shuffle(0, Blocks::Source, window));
        let order = sampler.resolve_over(n, 64, &ends, label).unwrap().order(seed, epoch);
        let mut left = 0;
        let mut open = BTreeMap::new();
        for sample in samples(&order) {
            let block = block_of(&ends, sample);
            let start = block.checked_sub(1).map_or(0, |before| ends[before]);
            if open.is_empty() || left == 0 {
                // A window begins when the one before has come as a whole.
                prop_assert!(open.values().all(|&count| count == 0));
                open.clear();
            }
            let size = ends[block] - start;
            let of_block = open.entry(block).or_insert_with(|| {
                left += size;
                size
            });
            *of_block -= 1;
            left -= 1;
            prop_assert!(open.len() as u64 <= window);
        }
    }

    #[test]
    fn blocks_of_equal_sizes_are_those_of_that_many_samples(
        size in 1u64..20, blocks in 1u64..30, window in 1u64..6, lanes in 0u64..4, seed: u64,
    ) {
        let ends: Vec<u64> = (1..=blocks).map(|block| block * size).collect();
        let order = |blocks| {
            let sampler = Sampler::from(shuffle(lanes, blocks, window));
            let global_batch = 6 * lanes.max(1);
            sampler.resolve_over(size * ends.len() as u64, global_batch, &ends, label).unwrap()
        };
        let of_source = order(Blocks::Source);
        let of_samples = order(Blocks::Samples(size));
        prop_assert_ne!(of_source.fingerprint(), of_samples.fingerprint());
        let of_source = of_source.order(seed, 3);
        prop_assert_eq!(samples(&of_source), samples(&of_samples.order(seed, 3)));
        for sample in 0..of_source.len() {
            let position = of_source.position_of(sample).unwrap();
            prop_assert_eq!(of_source.sample_at(position), Some(sample));
        }
    }

    #[test]
    fn lanes_of_blocks_are_a_permutation_with_an_inverse(
        ends in block_ends(), lanes in 1u64..6, rows in 1u64..6, window in 1u64..6, seed: u64,
    ) {
        let n = ends[ends.len() - 1];
        let sampler = Sampler::from(shuffle(lanes, Blocks::Source, window));
        let order = sampler.resolve_over(n, lanes * rows, &ends, label).unwrap().order(seed, 1);
        let mut sorted = samples(&order);
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..n).collect::<Vec<_>>());
        for sample in 0..n {
            let position = order.position_of(sample).unwrap();
            prop_assert_eq!(order.sample_at(position), Some(sample));
        }
    }
}

/// An order depends on where blocks end, so a state of other ends is another order's.
#[test]
fn fingerprints_differ_by_the_ends_of_blocks() {
    let fingerprint = |ends: &[u64]| {
        let sampler = Sampler::from(shuffle(0, Blocks::Source, 2));
        sampler.resolve_over(9, 64, ends, label).unwrap().fingerprint()
    };
    assert_ne!(fingerprint(&[4, 9]), fingerprint(&[5, 9]));
    assert_eq!(fingerprint(&[5, 9]), fingerprint(&[5, 9]));
}
