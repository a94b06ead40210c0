mod draws;
mod lanes;
mod mixtures;
mod properties;
mod refusals;
mod source_blocks;
mod vectors;

use super::*;
use crate::error::SamplerError;

fn samples(order: &Order) -> Vec<u64> {
    (0..order.len()).filter_map(|position| order.sample_at(position)).collect()
}

#[test]
fn every_sample_comes_once_and_the_inverse_finds_it() {
    let counts = if cfg!(miri) { vec![0, 1, 5, 33] } else { (0..300).chain([4_099]).collect() };
    for n in counts {
        for order in [Order::shuffled(n, 7, 3), Order::sequential(n)] {
            let mut seen = vec![false; usize::try_from(n).unwrap()];
            for position in 0..n {
                let sample = order.sample_at(position).unwrap();
                assert!(!std::mem::replace(&mut seen[usize::try_from(sample).unwrap()], true));
                assert_eq!(order.position_of(sample), Some(position));
            }
            assert!(seen.iter().all(|&seen| seen));
            assert_eq!((order.sample_at(n), order.position_of(n)), (None, None));
        }
    }
}

#[test]
fn huge_orders_invert() {
    for n in [(1 << 40) - 1, 1 << 40, (1 << 40) + 1, 1 << 63, u64::MAX] {
        let order = Order::shuffled(n, 1, 2);
        for position in [0, 1, n / 3, n - 1] {
            let sample = order.sample_at(position).unwrap();
            assert!(sample < n);
            assert_eq!(order.position_of(sample), Some(position));
        }
    }
}

#[test]
fn the_sequential_order_is_the_identity() {
    assert_eq!(samples(&Order::sequential(5)), [0, 1, 2, 3, 4]);
}

/// Sum of squared deviations from `expected`, in units of `expected`.
fn chi_square(counts: &[u32], expected: f64) -> f64 {
    counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
}

/// 99.99 % point of chi-square with `freedom` degrees, by Wilson and Hilferty's cube.
fn limit(freedom: f64) -> f64 {
    let ninth = 2.0 / (9.0 * freedom);
    freedom * (1.0 - ninth + 3.719 * ninth.sqrt()).powi(3)
}

#[test]
fn every_sample_is_as_likely_at_every_position() {
    for n in [2u64, 3, 10, 16, 17, 50] {
        let trials = if cfg!(miri) { 20 } else { 100_000 };
        let side = usize::try_from(n).unwrap();
        let mut counts = vec![0; side * side];
        for trial in 0..trials {
            let order = Order::shuffled(n, u64::from(trial) / 4, trial % 4);
            for (position, sample) in samples(&order).into_iter().enumerate() {
                counts[position * side + usize::try_from(sample).unwrap()] += 1;
            }
        }
        let chi = chi_square(&counts, f64::from(trials) / n as f64);
        // Every row and column sums to the number of trials, which takes freedom away and makes
        // the rest vary n / (n - 1) times as much.
        let chi = chi * (n - 1) as f64 / n as f64;
        assert!(cfg!(miri) || chi < limit(((n - 1) * (n - 1)) as f64), "{n}: {chi}");
    }
}

#[test]
fn small_orders_reach_every_permutation_evenly() {
    let trials = if cfg!(miri) { 10 } else { 240_000 };
    let mut counts = std::collections::HashMap::new();
    for seed in 0..trials {
        *counts.entry(samples(&Order::shuffled(4, seed, 0))).or_insert(0u32) += 1;
    }
    let counts: Vec<u32> = counts.into_values().collect();
    assert!(cfg!(miri) || counts.len() == 24, "{}", counts.len());
    assert!(cfg!(miri) || chi_square(&counts, 10_000.0) < limit(23.0), "{counts:?}");
}

#[test]
fn neighbours_in_the_data_are_not_neighbours_in_the_order() {
    let n = if cfg!(miri) { 100 } else { 100_000u64 };
    const BINS: u64 = 64;
    let order = samples(&Order::shuffled(n, 42, 0));
    let mut counts = vec![0; usize::try_from(BINS).unwrap()];
    for pair in order.windows(2) {
        // The distance between successive samples, around the circle, is uniform on 1..n.
        let distance = (pair[1] + n - pair[0]) % n;
        counts[usize::try_from((distance - 1) * BINS / (n - 1)).unwrap()] += 1;
    }
    let chi = chi_square(&counts, (n - 1) as f64 / BINS as f64);
    assert!(cfg!(miri) || chi < limit(63.0), "{chi}");
    // Fixed points and kept neighbours: about one of each is expected in a random permutation.
    let fixed = order.iter().zip(0..).filter(|&(&sample, position)| sample == position).count();
    let kept = order.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!(fixed < 10 && kept < 10, "{fixed} {kept}");
}

/// Epochs and seeds one apart must be unrelated, and must not be exchangeable: `(42, 1)` is not
/// `(43, 0)`.
#[test]
fn seeds_and_epochs_give_unrelated_orders() {
    let n = if cfg!(miri) { 64 } else { 4_096u64 };
    let keys = [(42, 0), (42, 1), (43, 0), (41, 2), (42 << 32, 0), (0, 42), (42 | 1 << 63, 0)];
    let orders: Vec<Vec<u64>> =
        keys.iter().map(|&(seed, epoch)| samples(&Order::shuffled(n, seed, epoch))).collect();
    for (i, a) in orders.iter().enumerate() {
        for (j, b) in orders.iter().enumerate().skip(i + 1) {
            // One agreement is expected by chance.
            let agreements = a.iter().zip(b).filter(|(a, b)| a == b).count();
            assert!(agreements < 10, "{:?} {:?}: {agreements}", keys[i], keys[j]);
        }
    }
}
