//! Drawing by weight: frequencies, and what is never drawn.

use super::*;

const WEIGHTS: [u32; 6] = [1, 0, 2, 3, 4, 0];

fn drawn(weights: &[u32], replacement: Replacement, count: u64) -> Sequence {
    let samples =
        Samples::Weighted { weights: weights.to_vec().into(), replacement, count: Some(count) };
    let sampler = Sampler { samples, ..Sampler::from(Shuffle::Full) };
    sampler.resolve_over(weights.len() as u64, 64, &[], |_| None).unwrap()
}

#[test]
fn samples_are_drawn_as_often_as_their_weights_say() {
    let count = if cfg!(miri) { 50 } else { 100_000u32 };
    let order = drawn(&WEIGHTS, Replacement::With, count.into()).order(42, 3);
    let mut counts = [0u32; 6];
    for sample in samples(&order) {
        counts[index(sample)] += 1;
    }
    assert_eq!((counts[1], counts[5]), (0, 0));
    let deviation = |(&count_of, weight): (&u32, u32)| {
        let expected = f64::from(count) * f64::from(weight) / 10.0;
        if weight == 0 { 0.0 } else { (f64::from(count_of) - expected).powi(2) / expected }
    };
    let chi: f64 = counts.iter().zip(WEIGHTS).map(deviation).sum();
    assert!(cfg!(miri) || chi < limit(3.0), "{counts:?}");
    // Successive draws are independent: all pairs come as often as the product of their weights.
    let order = drawn(&[1; 8], Replacement::With, count.into()).order(42, 3);
    let mut pairs = [0u32; 64];
    for pair in samples(&order).chunks_exact(2) {
        pairs[index(pair[0] * 8 + pair[1])] += 1;
    }
    assert!(cfg!(miri) || chi_square(&pairs, f64::from(count) / 128.0) < limit(63.0), "{pairs:?}");
}

/// Enormous sums of weights: the draw must not favour either end.
#[test]
fn large_weights_are_drawn_evenly() {
    let weights = [u32::MAX; 5];
    let count = if cfg!(miri) { 20 } else { 50_000u32 };
    let order = drawn(&weights, Replacement::With, count.into()).order(1, 0);
    let mut counts = [0u32; 5];
    for sample in samples(&order) {
        counts[index(sample)] += 1;
    }
    assert!(cfg!(miri) || chi_square(&counts, f64::from(count) / 5.0) < limit(4.0), "{counts:?}");
}

/// The probability of a whole order without replacement is a product of the shares of what is
/// left: `w / sum`, then the next `w` over the rest, and so on.
#[test]
fn orders_without_replacement_have_their_probabilities() {
    let weights = [1u32, 2, 4];
    let sequence = drawn(&weights, Replacement::Without, 3);
    let trials = if cfg!(miri) { 10 } else { 60_000u32 };
    let mut counts = std::collections::HashMap::new();
    for seed in 0..trials {
        *counts.entry(samples(&sequence.order(seed.into(), 0))).or_insert(0u32) += 1;
    }
    let probability = |order: &[u64]| {
        let weight = |sample: u64| f64::from(weights[index(sample)]);
        let first = weight(order[0]);
        let second = weight(order[1]);
        first / 7.0 * second / (7.0 - first)
    };
    let mut chi = 0.0;
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let expected = f64::from(trials) * probability(&order);
        let count = counts.get(&order[..]).copied().unwrap_or(0);
        chi += (f64::from(count) - expected).powi(2) / expected;
    }
    assert!(cfg!(miri) || chi < limit(5.0), "{counts:?}");
}

#[test]
fn without_replacement_nothing_comes_twice_and_positions_are_found() {
    let n = if cfg!(miri) { 40 } else { 1_000u32 };
    let weights: Vec<u32> = (0..n).map(|sample| sample % 5).collect();
    for count in [0, 1, n / 2, n - n / 5] {
        let order = drawn(&weights, Replacement::Without, count.into()).order(7, 7);
        let drawn = samples(&order);
        assert_eq!(drawn.len() as u64, u64::from(count));
        for (position, &sample) in (0..).zip(&drawn) {
            assert_ne!(weights[index(sample)], 0);
            assert_eq!(order.position_of(sample), Some(position));
        }
        let found = (0..u64::from(n)).filter(|&sample| order.position_of(sample).is_some());
        assert_eq!(found.count(), drawn.len());
        assert_eq!(order.position_of(n.into()), None);
    }
}

/// Fewer draws are the first ones of more.
#[test]
fn few_draws_are_the_start_of_many() {
    let weights: Vec<u32> = (1..200).collect();
    let all = samples(&drawn(&weights, Replacement::Without, 199).order(3, 1));
    let few = samples(&drawn(&weights, Replacement::Without, 20).order(3, 1));
    assert_eq!(few, all[..20]);
}

#[test]
fn with_replacement_no_sample_has_one_position() {
    let order = drawn(&WEIGHTS, Replacement::With, 4).order(0, 0);
    assert!((0..7).all(|sample| order.position_of(sample).is_none()));
}

#[test]
fn no_weight_and_nothing_to_draw_is_an_empty_order() {
    for replacement in [Replacement::With, Replacement::Without] {
        let order = drawn(&[0, 0], replacement, 0).order(0, 0);
        assert_eq!((order.len(), order.sample_at(0), order.position_of(0)), (0, None, None));
    }
}

#[test]
fn real_weights_become_the_nearest_integers() {
    let check = |weights: &[f64], expected: &[u32]| {
        assert_eq!(Weights::from_floats(weights).unwrap(), Weights::from(expected.to_vec()));
    };
    check(&[], &[]);
    check(&[0.0], &[0]);
    check(&[3.5, 1.75], &[u32::MAX, 1 << 31]);
    check(&[1.0, 1e-300, 0.0], &[u32::MAX, 1, 0]);
    check(&[f64::MAX, f64::MIN_POSITIVE], &[u32::MAX, 1]);
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let error = Weights::from_floats(&[1.0, bad]).unwrap_err();
        assert!(matches!(error, SamplerError::Weight { sample: 1, .. }), "{error}");
    }
}
