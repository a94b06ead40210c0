//! The weights of FFmpeg's bilinear filter, whose rounding decides bits.

/// For each output the samples that it is a sum of.
#[derive(Clone, Debug)]
pub(super) struct Taps {
    taps: Vec<Tap>,
    /// Taps of an output.
    each: usize,
}

/// A sample and its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tap {
    pub(super) place: usize,
    pub(super) weight: i32,
}

/// The weight of a sample that is where the output is, before weights are scaled to their sum.
const WHOLE: i64 = 1 << 54;

/// Weights at the ends of a filter whose sum is at most this are left out: two thousandths.
const NEGLIGIBLE: i64 = WHOLE / 500;

impl Taps {
    /// From `source` samples to `target` outputs, neither zero and not fewer than samples, whose
    /// centres have the middle in common. Weights add up to `one`.
    pub(super) fn bilinear(source: u32, target: u32, one: i32) -> Self {
        let outputs = target as usize;
        let step = ((i64::from(source) << 16) + (i64::from(target) >> 1)) / i64::from(target);
        if (step - (1 << 16)).abs() < 10 {
            let taps = (0..outputs).map(|place| Tap { place, weight: one }).collect();
            return Self { taps, each: 1 };
        }
        let width = 3.min(i64::from(source) - 2).max(1);
        let mut at = step - (1 << 16);
        let mut filters = Vec::with_capacity(outputs);
        for _ in 0..target {
            // As C divides: to zero.
            let first = (at - ((width - 2) << 16)) / (1 << 17);
            let weight = |place: i64| {
                let distance = ((place << 17) - at).abs() << 13;
                ((1 << 30) - distance).max(0) * (WHOLE >> 30)
            };
            filters.push(Filter { first, weights: (first..first + width).map(weight).collect() });
            at += 2 * step;
        }
        Self::of_filters(filters, source as usize, one)
    }

    fn of_filters(mut filters: Vec<Filter>, source: usize, one: i32) -> Self {
        let mut each = 0;
        let mut next = None;
        for filter in filters.iter_mut().rev() {
            each = each.max(filter.shorten(next));
            next = Some(filter.first);
        }
        let mut taps = Vec::with_capacity(filters.len() * each);
        for filter in &mut filters {
            filter.weights.truncate(each);
            filter.weights.resize(each, 0);
            taps.extend(filter.taps(source, one));
        }
        Self { taps, each }
    }

    fn of(&self, output: usize) -> &[Tap] {
        &self.taps[output * self.each..][..self.each]
    }

    /// The weighted sum of an output.
    pub(super) fn sum(&self, output: usize, sample: impl Fn(usize) -> i32) -> i32 {
        self.of(output).iter().map(|tap| tap.weight * sample(tap.place)).sum()
    }

    /// The taps of an output, one or two. A bilinear filter that enlarges has no more.
    pub(super) fn pair(&self, output: usize) -> [Tap; 2] {
        let taps = self.of(output);
        let [first, second] = [0, 1].map(|tap| taps.get(tap).copied());
        let first = first.unwrap_or_default();
        [first, second.unwrap_or(Tap { place: first.place, weight: 0 })]
    }
}

/// Weights of samples from `first` on, which can lie before the picture.
#[derive(Clone, Debug)]
struct Filter {
    first: i64,
    weights: Vec<i64>,
}

impl Filter {
    /// Leaves negligible weights at the left out, as long as filters do not overtake `next`, the
    /// place of the one after it. Returns how many weights are left without those at the right.
    fn shorten(&mut self, next: Option<i64>) -> usize {
        let mut left_out = 0;
        for _ in 0..self.weights.len() {
            left_out += self.weights[0];
            if left_out > NEGLIGIBLE || next.is_some_and(|next| self.first >= next) {
                break;
            }
            self.weights.rotate_left(1);
            if let Some(last) = self.weights.last_mut() {
                *last = 0;
            }
            self.first += 1;
        }
        let mut left_out = 0;
        let mut len = self.weights.len();
        while len > 1 {
            left_out += self.weights[len - 1];
            if left_out > NEGLIGIBLE {
                break;
            }
            len -= 1;
        }
        len
    }

    /// The taps, those outside the picture moved to its edges, with weights that add up to `one`.
    fn taps(&self, source: usize, one: i32) -> impl Iterator<Item = Tap> {
        let len = self.weights.len();
        let sum: i64 = self.weights.iter().sum();
        let sum = ((sum + i64::from(one) / 2) / i64::from(one)).max(1);
        // The first place that all weights have room from.
        let start = usize::try_from(self.first).unwrap_or(0).min(source.saturating_sub(len));
        let mut moved = vec![0; len];
        for (place, &weight) in (self.first..).zip(&self.weights) {
            let place = usize::try_from(place).unwrap_or(0).min(source - 1);
            moved[place - start] += weight;
        }
        let mut error = 0;
        let scaled = moved.into_iter().enumerate().map(move |(tap, weight)| {
            let exact = weight + error;
            let nearest = (exact.abs() + (sum >> 1)) / sum;
            let weight = if exact < 0 { -nearest } else { nearest };
            error = exact - weight * sum;
            let place = (start + tap).min(source - 1);
            Tap { place, weight: i32::try_from(weight).unwrap_or(one) }
        });
        scaled.collect::<Vec<_>>().into_iter()
    }
}
