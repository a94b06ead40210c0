//! Random parts of a view: which part every place belongs to.
//!
//! `docs/pipeline/views.md` specifies the outcome. The places are put in a random order, class by
//! class if the parts are stratified, and dealt to the parts in turn, so that every stretch of that
//! order, and with it every class, is divided as the whole is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::error::ViewError;
use crate::order::{Network, class_keys, split_keys};

/// The random choice of the parts of [`DatasetView::split`](super::DatasetView::split) and
/// [`DatasetView::fold`](super::DatasetView::fold).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Split {
    /// The seed.
    pub seed: u64,
    /// Divides every class as the whole is divided. Every sample needs a label then.
    pub stratify: bool,
}

/// The unit of fractions: they count in billionths.
const UNITS: u64 = 1_000_000_000;

/// The sizes of the parts that `fractions` take of `len` places, by largest remainder; if the
/// fractions sum to less than 1, the size of the rest follows.
pub(super) fn sizes(fractions: &[f64], len: u64) -> Result<Vec<u64>, ViewError> {
    if fractions.is_empty() {
        return Err(ViewError::NoFraction);
    }
    let is_bad = |&&fraction: &&f64| !(0.0..=1.0).contains(&fraction);
    if let Some(&fraction) = fractions.iter().find(is_bad) {
        return Err(ViewError::Fraction { fraction });
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to a billion")]
    let units = |&fraction: &f64| (fraction * UNITS as f64 + 0.5).floor() as u64;
    let mut shares: Vec<u64> = fractions.iter().map(units).collect();
    let sum: u64 = shares.iter().sum();
    // Each was rounded to a unit.
    let slack = fractions.len() as u64;
    if sum > UNITS + slack {
        return Err(ViewError::FractionSum { sum: fractions.iter().sum() });
    }
    if sum + slack < UNITS {
        shares.push(UNITS - sum);
    }
    let whole: u128 = shares.iter().map(|&share| u128::from(share)).sum();
    let share_of = |share: u64| u128::from(share) * u128::from(len);
    let floor = |&share: &u64| {
        let size = share_of(share) / whole;
        u64::try_from(size).expect("a part of `len`")
    };
    let mut sizes: Vec<u64> = shares.iter().map(floor).collect();
    let missing = len - sizes.iter().sum::<u64>();
    let mut by_remainder: Vec<usize> = (0..shares.len()).collect();
    by_remainder.sort_by_key(|&part| Reverse(share_of(shares[part]) % whole));
    for &part in by_remainder.iter().take(usize::try_from(missing).unwrap_or(usize::MAX)) {
        sizes[part] += 1;
    }
    Ok(sizes)
}

/// The part of each of `len` places that are dealt by `next`, a call for each place in line.
/// `labels` are those of the places, if the parts are stratified.
pub(super) fn deal(
    len: usize,
    seed: u64,
    labels: Option<&[i64]>,
    mut next: impl FnMut() -> u32,
) -> Vec<u32> {
    let mut parts = vec![0; len];
    let keys = split_keys(seed);
    let Some(labels) = labels else {
        let network = Network::new(len as u64, keys);
        for turn in 0..len as u64 {
            parts[index(network.at(turn))] = next();
        }
        return parts;
    };
    let mut classes: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (place, &label) in labels.iter().enumerate() {
        classes.entry(label).or_default().push(place);
    }
    for (label, places) in classes {
        let network = Network::new(places.len() as u64, class_keys(&keys, label));
        for turn in 0..places.len() as u64 {
            parts[places[index(network.at(turn))]] = next();
        }
    }
    parts
}

fn index(place: u64) -> usize {
    usize::try_from(place).expect("a place of a list in memory")
}

/// The parts in turn, so that after any number of turns each has had its share of them, less than
/// one turn more or less.
///
/// The earliest deadline first, for turns of which each has a window: with windows of this form no
/// deadline is missed (Baruah, Cohen, Plaxton and Varvel, "Proportionate progress", 1996).
pub(super) struct Dealer {
    /// All places.
    len: u64,
    /// Places dealt so far.
    dealt: u64,
    /// Turns that may come: deadline, part and number.
    open: BinaryHeap<Reverse<(u64, u32, u64)>>,
    /// Turns whose window starts later: start, part and number.
    waiting: BinaryHeap<Reverse<(u64, u32, u64)>>,
    sizes: Vec<u64>,
}

impl Dealer {
    pub(super) fn new(sizes: &[u64]) -> Self {
        let parts = sizes.iter().zip(0..).filter(|&(&size, _)| size > 0);
        Self {
            len: sizes.iter().sum(),
            dealt: 0,
            open: BinaryHeap::new(),
            waiting: parts.map(|(_, part)| Reverse((0, part, 0))).collect(),
            sizes: sizes.to_vec(),
        }
    }

    /// The part of the next place in line.
    pub(super) fn next(&mut self) -> u32 {
        while let Some(&Reverse((start, part, turn))) = self.waiting.peek() {
            if start > self.dealt {
                break;
            }
            self.waiting.pop();
            let deadline = self.place(part, turn + 1, u128::div_ceil);
            self.open.push(Reverse((deadline, part, turn)));
        }
        self.dealt += 1;
        let Some(Reverse((_, part, turn))) = self.open.pop() else { return 0 };
        if turn + 1 < self.sizes[part as usize] {
            let start = self.place(part, turn + 1, std::ops::Div::div);
            self.waiting.push(Reverse((start, part, turn + 1)));
        }
        part
    }

    /// `turn` turns of a part in places of all.
    fn place(&self, part: u32, turn: u64, divide: impl Fn(u128, u128) -> u128) -> u64 {
        let size = self.sizes[part as usize];
        let place = divide(u128::from(turn) * u128::from(self.len), size.into());
        u64::try_from(place).expect("at most all places, as the part has no more turns")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_by_largest_remainder() {
        let check = |fractions: &[f64], len, expected: &[u64]| {
            assert_eq!(sizes(fractions, len).unwrap(), expected, "{fractions:?} of {len}");
        };
        check(&[0.9, 0.1], 10, &[9, 1]);
        check(&[0.9, 0.1], 678, &[610, 68]);
        check(&[0.7, 0.2, 0.1], 11, &[8, 2, 1]);
        check(&[1.0 / 3.0; 3], 4_000_000_000, &[1_333_333_334, 1_333_333_333, 1_333_333_333]);
        check(&[0.5], 5, &[3, 2]);
        check(&[0.29, 0.71], 100, &[29, 71]);
        check(&[0.0, 1.0], 3, &[0, 3]);
        check(&[0.5, 0.5], 0, &[0, 0]);
        check(&[0.5, 0.5], 1 << 62, &[1 << 61, 1 << 61]);
        assert!(matches!(sizes(&[], 3), Err(ViewError::NoFraction)));
        for fraction in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(matches!(sizes(&[fraction], 3), Err(ViewError::Fraction { .. })));
        }
        assert!(matches!(sizes(&[0.9, 0.2], 3), Err(ViewError::FractionSum { .. })));
    }

    /// The cases of `testdata/order/splits.jsonl`, which `testdata/tools/reference.py` computes from
    /// the text of `docs/pipeline/views.md`.
    #[test]
    fn splits_are_those_of_the_second_implementation() {
        const VECTORS: &str = tl_testdata::shipped_text!("order/splits.jsonl");
        #[derive(serde::Deserialize)]
        struct Case {
            n: u64,
            fractions: Vec<f64>,
            seed: u64,
            labels: Option<Vec<i64>>,
            sizes: Vec<u64>,
            parts: Vec<u32>,
        }
        for line in VECTORS.lines() {
            let case: Case = serde_json::from_str(line).unwrap();
            let sizes = sizes(&case.fractions, case.n).unwrap();
            assert_eq!(sizes, case.sizes, "{line}");
            assert_eq!(dealt(&sizes, case.seed, case.labels.as_deref()), case.parts, "{line}");
        }
        assert_eq!(VECTORS.lines().count(), 7);
    }

    fn dealt(sizes: &[u64], seed: u64, labels: Option<&[i64]>) -> Vec<u32> {
        let mut dealer = Dealer::new(sizes);
        let len = usize::try_from(sizes.iter().sum::<u64>()).unwrap();
        deal(len, seed, labels, || dealer.next())
    }

    proptest::proptest! {
        #[test]
        fn after_any_turns_every_part_has_had_its_share(
            sizes in proptest::collection::vec(0..60_u64, 1..40),
        ) {
            let len: u64 = sizes.iter().sum();
            let mut dealer = Dealer::new(&sizes);
            let mut counts = vec![0; sizes.len()];
            for dealt in 1..=len {
                counts[dealer.next() as usize] += 1;
                for (&count, &size) in counts.iter().zip(&sizes) {
                    // | count - dealt * size / len | < 1
                    proptest::prop_assert!((count * len).abs_diff(dealt * size) < len);
                }
            }
            proptest::prop_assert_eq!(counts, sizes);
        }
    }

    #[test]
    fn every_class_is_divided_as_the_whole() {
        let labels: Vec<i64> = (0..1000).map(|place| (place * place) % 7 - 2).collect();
        let sizes = sizes(&[0.6, 0.3, 0.1], 1000).unwrap();
        let parts = dealt(&sizes, 3, Some(&labels));
        for (part, &size) in (0..).zip(&sizes) {
            assert_eq!(parts.iter().filter(|&&found| found == part).count() as u64, size);
            for label in -2..5 {
                let of_class = labels.iter().filter(|&&found| found == label).count();
                let in_part = labels.iter().zip(&parts);
                let in_part = in_part.filter(|&(&l, &p)| l == label && p == part).count();
                #[expect(clippy::cast_precision_loss, reason = "small numbers")]
                let away = in_part as f64 - of_class as f64 * size as f64 / 1000.0;
                assert!(away.abs() < 2.0, "{away} of class {label} in part {part}");
            }
        }
        assert_ne!(parts, dealt(&sizes, 4, Some(&labels)));
    }
}
