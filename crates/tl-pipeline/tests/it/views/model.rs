//! Views over lists of numbers, written from docs/pipeline/views.md.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tl_pipeline::{DatasetView, PipelineError, Split};
use tl_transform::Rng;
use tl_transform::rng::EPOCH_STREAM;

use super::Stored;

/// A view of a view.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Take(u64),
    Skip(u64),
    Slice(u64, u64),
    Subset(Vec<prop::sample::Index>),
    Shard(u64, u64),
    Split {
        billionths: Vec<u64>,
        part: usize,
        split: Split,
    },
    Fold {
        fold: u32,
        of: u32,
        split: Split,
        validates: bool,
    },
    Select(Vec<i64>),
    Filter(usize),
    /// The view, and before it some of its samples.
    Twice(u64),
}

/// True if a sample meets a condition.
type Meets = fn(&Stored, u64) -> bool;

/// Conditions, and the samples that meet them.
const FILTERS: [(&str, Meets); 5] = [
    ("index >= 5 and not index in (7, 16, 17)", |_, sample| {
        sample >= 5 && ![7, 16, 17].contains(&sample)
    }),
    ("label == 0 or label > 1", |stored, sample| label(stored, sample) != 1),
    ("width * height >= 700", |stored, sample| {
        let (width, height) = stored.size(sample);
        width * height >= 700
    }),
    ("class != 'bee' and key like '*1?.bmp'", |stored, sample| {
        label(stored, sample) != 1 && (10..20).contains(&sample)
    }),
    ("bytes > 2000 and format == 'bmp'", |stored, sample| {
        let (width, height) = stored.size(sample);
        54 + (width * 3).next_multiple_of(4) * height > 2000
    }),
];

fn label(stored: &Stored, sample: u64) -> i64 {
    stored.labels.as_ref().unwrap()[usize::try_from(sample).unwrap()]
}

pub(super) fn ops() -> impl Strategy<Value = Op> {
    let split = || (0..4_u64, any::<bool>()).prop_map(|(seed, stratify)| Split { seed, stratify });
    let billionths = prop::sample::select(vec![
        vec![900_000_000, 100_000_000],
        vec![333_333_333, 333_333_333, 333_333_333],
        vec![250_000_000, 0, 600_000_000],
        vec![500_000_000],
    ]);
    prop_oneof![
        (0..30_u64).prop_map(Op::Take),
        (0..12_u64).prop_map(Op::Skip),
        (0..20_u64, 0..30_u64).prop_map(|(start, end)| Op::Slice(start, end)),
        prop::collection::vec(any::<prop::sample::Index>(), 0..12).prop_map(Op::Subset),
        (1..5_u64, 0..5_u64).prop_map(|(of, number)| Op::Shard(number % of, of)),
        (billionths, 0..3_usize, split()).prop_map(|(billionths, part, split)| Op::Split {
            part: part % billionths.len(),
            billionths,
            split
        }),
        (2..6_u32, 0..6_u32, split(), any::<bool>()).prop_map(|(of, fold, split, validates)| {
            Op::Fold { fold: fold % of, of, split, validates }
        }),
        prop::collection::vec(0..3_i64, 0..3).prop_map(Op::Select),
        (0..FILTERS.len()).prop_map(Op::Filter),
        (0..5_u64).prop_map(Op::Twice),
    ]
}

impl Op {
    /// True for parts, which a view that has a sample twice does not have.
    pub(super) fn divides(&self) -> bool {
        matches!(self, Self::Split { .. } | Self::Fold { .. })
    }

    pub(super) fn applies_to(&self, stored: &Stored) -> bool {
        let is_labelled = stored.labels.is_some();
        match self {
            Self::Filter(0)
            | Self::Take(_)
            | Self::Skip(_)
            | Self::Slice(..)
            | Self::Subset(_)
            | Self::Shard(..)
            | Self::Twice(_) => true,
            Self::Filter(1) | Self::Select(_) => is_labelled,
            Self::Filter(_) => !stored.is_table,
            Self::Split { split, .. } | Self::Fold { split, .. } => is_labelled || !split.stratify,
        }
    }

    pub(super) fn apply(
        &self,
        view: &DatasetView,
        stored: &Stored,
    ) -> Result<DatasetView, PipelineError> {
        match self {
            Self::Take(count) => view.take(*count),
            Self::Skip(count) => view.skip(*count),
            Self::Slice(start, end) => view.slice(*start..*end),
            Self::Subset(places) => view.subset(places_of(places, view.len())),
            Self::Shard(number, of) => view.shard(*number, *of),
            Self::Split { billionths, part, split } => {
                let fraction = |&billionths: &u64| billionths as f64 / 1e9;
                let fractions: Vec<f64> = billionths.iter().map(fraction).collect();
                Ok(view.split(&fractions, *split)?.remove(*part))
            }
            Self::Fold { fold, of, split, validates } => {
                let parts = view.fold(*fold, *of, *split)?;
                Ok(if *validates { parts.validation } else { parts.train })
            }
            Self::Select(labels) if stored.is_table => view.select_labels(labels),
            Self::Select(labels) => {
                let name = |&label: &i64| ["ant", "bee", "cat"][usize::try_from(label).unwrap()];
                view.select_classes(&labels.iter().map(name).collect::<Vec<_>>())
            }
            Self::Filter(number) => view.filter(&FILTERS[*number].0.parse()?),
            Self::Twice(count) => DatasetView::concat(&[view.take(*count)?, view.clone()]),
        }
    }
}

fn places_of(places: &[prop::sample::Index], len: u64) -> Vec<u64> {
    if len == 0 {
        return Vec::new();
    }
    places.iter().map(|place| place.index(usize::try_from(len).unwrap()) as u64).collect()
}

/// The samples that a view should have.
pub(super) struct Model<'a> {
    pub(super) stored: &'a Stored,
    pub(super) samples: Vec<u64>,
}

impl Model<'_> {
    pub(super) fn has_repeats(&self) -> bool {
        let distinct: BTreeSet<u64> = self.samples.iter().copied().collect();
        distinct.len() < self.samples.len()
    }

    pub(super) fn apply(mut self, op: &Op) -> Self {
        let stored = self.stored;
        let len = self.samples.len();
        let at = |place: u64| usize::try_from(place).unwrap().min(len);
        self.samples = match op {
            Op::Take(count) => self.samples[..at(*count)].to_vec(),
            Op::Skip(count) => self.samples[at(*count)..].to_vec(),
            Op::Slice(start, end) => self.samples[at(*start).min(at(*end))..at(*end)].to_vec(),
            Op::Subset(places) => {
                places_of(places, len as u64).into_iter().map(|p| self.samples[at(p)]).collect()
            }
            Op::Shard(number, of) => {
                let start = |part: u64| at(len as u64 * part / of);
                self.samples[start(*number)..start(number + 1)].to_vec()
            }
            Op::Split { billionths, part, split } => {
                let parts = self.dealt(&deadlines(&sizes(billionths, len)), *split);
                self.keep(|place| parts[place] == *part)
            }
            Op::Fold { fold, of, split, validates } => {
                let of = *of as usize;
                let turns: Vec<usize> = (0..len).map(|turn| turn % of).collect();
                let parts = self.dealt(&turns, *split);
                self.keep(|place| (parts[place] == *fold as usize) == *validates)
            }
            Op::Select(labels) => {
                self.keep(|place| labels.contains(&label(stored, self.samples[place])))
            }
            Op::Filter(number) => {
                self.keep(|place| FILTERS[*number].1(stored, self.samples[place]))
            }
            Op::Twice(count) => [&self.samples[..at(*count)], &self.samples].concat(),
        };
        self
    }

    fn keep(&self, is_kept: impl Fn(usize) -> bool) -> Vec<u64> {
        (0..self.samples.len()).filter(|&place| is_kept(place)).map(|p| self.samples[p]).collect()
    }

    /// The part of each place, where the places in line go to the parts in `turns`.
    fn dealt(&self, turns: &[usize], split: Split) -> Vec<usize> {
        let mut classes: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (place, &sample) in self.samples.iter().enumerate() {
            let class = if split.stratify { label(self.stored, sample) } else { 0 };
            classes.entry(class).or_default().push(place);
        }
        let mut rng = Rng::new(split.seed, 0, EPOCH_STREAM, 2);
        let keys: [u64; 8] = std::array::from_fn(|_| rng.next_u64());
        let mut line = Vec::new();
        for (class, places) in classes {
            let keys = keys.map(|key| {
                let first = mix(key.wrapping_add(0x9E37_79B9_7F4A_7C15));
                mix(first.wrapping_add(class.cast_unsigned()))
            });
            let keys = if split.stratify { keys } else { plain_keys(split.seed) };
            line.extend((0..places.len()).map(|at| places[full(places.len(), &keys, at)]));
        }
        let mut parts = vec![0; self.samples.len()];
        for (place, &part) in line.into_iter().zip(turns) {
            parts[place] = part;
        }
        parts
    }
}

/// The parts with these sizes in turn: the earliest deadline first among turns that may come.
fn deadlines(sizes: &[usize]) -> Vec<usize> {
    let len: usize = sizes.iter().sum();
    let mut had = vec![0; sizes.len()];
    let turn = |at| {
        let may_come =
            |&part: &usize| had[part] < sizes[part] && had[part] * len / sizes[part] <= at;
        let deadline = |&part: &usize| ((had[part] + 1) * len).div_ceil(sizes[part]);
        let part = (0..sizes.len()).filter(may_come).min_by_key(deadline).unwrap();
        had[part] += 1;
        part
    };
    (0..len).map(turn).collect()
}

fn plain_keys(seed: u64) -> [u64; 8] {
    let mut rng = Rng::new(seed, 0, EPOCH_STREAM, 2);
    std::array::from_fn(|_| rng.next_u64())
}

fn sizes(billionths: &[u64], len: usize) -> Vec<usize> {
    let mut shares = billionths.to_vec();
    let sum: u64 = shares.iter().sum();
    if sum + (shares.len() as u64) < 1_000_000_000 {
        shares.push(1_000_000_000 - sum);
    }
    let whole: u64 = shares.iter().sum();
    let share = |part: usize| shares[part] * len as u64;
    let mut sizes: Vec<u64> = (0..shares.len()).map(|part| share(part) / whole).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|&part| std::cmp::Reverse(share(part) % whole));
    let missing = len as u64 - sizes.iter().sum::<u64>();
    order.iter().take(usize::try_from(missing).unwrap()).for_each(|&part| sizes[part] += 1);
    sizes.into_iter().map(|size| usize::try_from(size).unwrap()).collect()
}

/// `full(n, keys)` of docs/order.md, at a place.
fn full(n: usize, keys: &[u64; 8], place: usize) -> usize {
    let mut half = 3;
    while 1_usize << (2 * half) < n {
        half += 1;
    }
    let mut x = place as u64;
    loop {
        let (mut left, mut right) = (x >> half, x & ((1 << half) - 1));
        for &key in keys {
            (left, right) = (right, left ^ (mix(right.wrapping_add(key)) >> (64 - half)));
        }
        x = left << half | right;
        if x < n as u64 {
            return usize::try_from(x).unwrap();
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z ^= z >> 30;
    z = z.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^= z >> 27;
    z = z.wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}
