//! Mixtures and balanced classes: proportions, distribution, and orders that differ.

use super::*;

/// 40 samples of label 0, 8 of label 1, 2 of label 2.
fn label(sample: u64) -> Option<i64> {
    Some(if sample < 40 { 0 } else { i64::from(sample >= 48) + 1 })
}

fn balanced(length: Length, shuffle: Shuffle) -> Sequence {
    let samples = Samples::ClassBalanced { of: None, length };
    Sampler { samples, shuffle, repeat: 1 }.resolve_over(50, 64, &[], label).unwrap()
}

#[test]
fn classes_are_balanced_within_one_in_every_prefix() {
    for shuffle in
        [Shuffle::None, Shuffle::Full, Shuffle::Block { blocks: Blocks::Samples(4), window: 2 }]
    {
        let order = balanced(Length::Positions(500), shuffle).order(42, 1);
        let mut counts = [0u64; 3];
        for sample in samples(&order) {
            counts[index(u64::try_from(label(sample).unwrap()).unwrap())] += 1;
            assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
        }
    }
}

#[test]
fn lengths_are_whole_rounds() {
    let len = |length| balanced(length, Shuffle::Full).len();
    assert_eq!(len(Length::Samples), 50);
    assert_eq!(len(Length::FirstUsedUp), 3 * 2);
    assert_eq!(len(Length::AllUsedUp), 3 * 40);
    assert_eq!(len(Length::Positions(7)), 7);
}

#[test]
fn nothing_repeats_until_the_first_is_used_up_and_everything_comes_when_all_are() {
    let mut first = samples(&balanced(Length::FirstUsedUp, Shuffle::Full).order(9, 0));
    first.sort_unstable();
    assert!(first.windows(2).all(|pair| pair[0] < pair[1]), "{first:?}");
    let mut all = samples(&balanced(Length::AllUsedUp, Shuffle::Full).order(9, 0));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all, (0..50).collect::<Vec<u64>>());
}

/// The two samples of class 2 take turns in pairs, and every pair has its own order.
#[test]
fn every_cycle_of_a_part_is_all_of_it_in_another_order() {
    let order = balanced(Length::Positions(3 * 2_000), Shuffle::Full).order(5, 0);
    // Within a round the turns come in order, because each class has one.
    let last: Vec<u64> = samples(&order).into_iter().filter(|&sample| sample >= 48).collect();
    assert_eq!(last.len(), 2_000);
    let swapped = last.chunks_exact(2).filter(|pair| {
        assert_ne!(pair[0], pair[1]);
        pair[0] > pair[1]
    });
    // 1000 fair coins: five deviations.
    let swapped = swapped.count();
    assert!((421..=579).contains(&swapped), "{swapped}");
}

#[test]
fn slots_and_samples_of_a_mixture_are_evenly_distributed() {
    // Weights 2 and 1 over parts of 4 and 3 samples: which sample comes at each of 6 positions.
    let part = |range, weight| Part { samples: Subset::from(range), weight };
    let parts = vec![part(0..4, 2), part(4..7, 1)];
    let samples = Samples::Mix { parts, length: Length::Positions(6), stages: vec![] };
    let sequence = Sampler { samples, ..Sampler::from(Shuffle::Full) }
        .resolve_over(7, 64, &[], label)
        .unwrap();
    let trials = if cfg!(miri) { 10 } else { 60_000u32 };
    let mut counts = [[0u32; 7]; 6];
    for seed in 0..trials {
        let order = sequence.order(seed.into(), 0);
        for (position, counts) in (0..).zip(&mut counts) {
            counts[index(order.sample_at(position).unwrap())] += 1;
        }
    }
    for counts in counts {
        // Two thirds of the positions are the first part's, a sixth for each of its samples.
        let first = chi_square(&counts[..4], f64::from(trials) / 6.0);
        let second = chi_square(&counts[4..], f64::from(trials) / 9.0);
        assert!(cfg!(miri) || first + second < limit(6.0), "{counts:?}");
    }
}

/// Consecutive rounds and cycles have keys one apart; their orders must not resemble each other.
#[test]
fn orders_of_successive_rounds_are_unrelated() {
    let n = if cfg!(miri) { 64 } else { 2_048u64 };
    let samples = Samples::Mix {
        parts: vec![Part { samples: Subset::from(0..n), weight: 1 }],
        length: Length::Positions(8 * n),
        stages: vec![],
    };
    let sequence = Sampler { samples, ..Sampler::from(Shuffle::Full) }
        .resolve_over(n, 64, &[], label)
        .unwrap();
    let repeated = Sampler { repeat: 8, ..Sampler::from(Shuffle::Full) }
        .resolve_over(n, 64, &[], label)
        .unwrap();
    for sequence in [sequence, repeated] {
        for (seed, epoch) in [(42, 0), (42, 1), (43, 0)] {
            let cycles = super::samples(&sequence.order(seed, epoch));
            let cycles: Vec<&[u64]> = cycles.chunks_exact(index(n)).collect();
            assert_eq!(cycles.len(), 8);
            for (number, a) in cycles.iter().enumerate() {
                for b in &cycles[..number] {
                    let agreements = a.iter().zip(*b).filter(|(a, b)| a == b).count();
                    assert!(agreements < 10, "{agreements}");
                }
            }
        }
    }
}

#[test]
fn all_combinations_of_seed_epoch_and_repetition_differ() {
    let mut seen = std::collections::HashSet::new();
    for shuffle in [Shuffle::Full, Shuffle::Block { blocks: Blocks::Samples(5), window: 2 }] {
        let sampler = Sampler { shuffle, repeat: 3, ..Sampler::default() };
        let sequence = sampler.resolve_over(60, 64, &[], label).unwrap();
        for (seed, epoch) in [(42, 0), (42, 1), (43, 0), (41, 2), (42 << 32, 0), (0, 42)] {
            for repetition in samples(&sequence.order(seed, epoch)).chunks_exact(60) {
                assert!(seen.insert(repetition.to_vec()), "{seed} {epoch}");
            }
        }
    }
}
