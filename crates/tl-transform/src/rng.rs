//! Counter-based random numbers: Philox4x32-10, so that every draw is a function of what it is for.
//!
//! The generator has no state to share, seed or skip. The numbers for one operation on one sample
//! follow from `(seed, epoch, sample, op)` alone, whichever thread asks and in whatever order.
//! Philox4x32-10 is the generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As
//! Easy as 1, 2, 3" (SC 2011). It is statistical, not cryptographic.
//!
//! # Layout
//!
//! The 64-bit key is the seed, low word first. The 128-bit counter is, word by word:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0 | 0..24 | block number within the stream |
//! | 0 | 24..32 | op: the operation's place in the recipe |
//! | 1 | all | epoch |
//! | 2 | all | sample index, low word |
//! | 3 | all | sample index, high word |
//!
//! The fields do not overlap, so no two streams of one seed share a block. Sample index
//! [`EPOCH_STREAM`] is set aside for numbers that belong to a whole epoch: the sample order. Those
//! below it, downwards, are for whole batches: [`batch_stream`].
//!
//! A block is four `u32` words, given out in order. Conversions are exact:
//!
//! - `u64`: two words, the first is the low half;
//! - [`Rng::unit_f64`]: the top 53 bits of a `u64` times 2^-53; [`Rng::unit_f32`]: the top 24 bits
//!   of a word times 2^-24; both in `[0, 1)`;
//! - [`Rng::uniform`]: `low + (high - low) * unit_f64()`, rounded at each step;
//! - [`Rng::below`]: Lemire's multiplication with rejection, so that every value is equally likely;
//! - [`Rng::log_uniform`]: `exp(uniform(ln(low), ln(high)))` with the `libm` crate's functions,
//!   because the platforms' own differ in the last bit;
//! - [`Rng::normal`], [`Rng::beta`]: see there.

mod dirichlet;

/// The sample number whose streams belong to an epoch as a whole, such as its order.
pub const EPOCH_STREAM: u64 = u64::MAX;

/// The sample number whose streams belong to batch `number` of an epoch as a whole: downwards from
/// the one below [`EPOCH_STREAM`], where no data set has samples.
#[must_use]
pub const fn batch_stream(number: u64) -> u64 {
    (EPOCH_STREAM - 1).wrapping_sub(number)
}

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// The golden ratio and sqrt(3) - 1 as fractions of 2^32: the paper's key increments.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;
const BLOCK_BITS: u32 = 24;

/// One block of Philox4x32-10: four words from a counter and a key.
#[must_use]
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut words = counter;
    let mut key = key;
    for _ in 0..ROUNDS {
        let [low0, high0] = halves(u64::from(words[0]) * u64::from(MULTIPLIERS[0]));
        let [low1, high1] = halves(u64::from(words[2]) * u64::from(MULTIPLIERS[1]));
        words = [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    words
}

/// The random numbers of one operation on one sample.
///
/// ```
/// use tl_transform::Rng;
///
/// let mut rng = Rng::new(42, 0, 7, 1);
/// let (crop, coin) = (rng.below(33), rng.unit_f64());
/// let mut again = Rng::new(42, 0, 7, 1);
/// assert_eq!((crop, coin), (again.below(33), again.unit_f64()));
/// ```
#[derive(Clone, Debug)]
pub struct Rng {
    key: [u32; 2],
    /// The counter of block 0.
    counter: [u32; 4],
    next_block: u32,
    words: [u32; 4],
    given: usize,
}

impl Rng {
    /// The stream of operation `op` on `sample` in `epoch`.
    #[must_use]
    pub fn new(seed: u64, epoch: u32, sample: u64, op: u8) -> Self {
        let [low, high] = halves(sample);
        let counter = [u32::from(op) << BLOCK_BITS, epoch, low, high];
        Self { key: halves(seed), counter, next_block: 0, words: [0; 4], given: 4 }
    }

    /// The same stream from the start of block `block`: four words further for each.
    #[must_use]
    pub const fn at_block(mut self, block: u32) -> Self {
        (self.next_block, self.given) = (block, self.words.len());
        self
    }

    /// The next 32 random bits.
    ///
    /// # Panics
    /// After 2^26 words: the stream's block numbers are used up, and the next block is another
    /// operation's.
    pub fn next_u32(&mut self) -> u32 {
        if self.given == self.words.len() {
            assert!(self.next_block < 1 << BLOCK_BITS, "a stream has 2^26 words");
            let [op, epoch, low, high] = self.counter;
            self.words = philox4x32_10([op | self.next_block, epoch, low, high], self.key);
            self.next_block += 1;
            self.given = 0;
        }
        let word = self.words[self.given];
        self.given += 1;
        word
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let low = self.next_u32();
        u64::from(low) | u64::from(self.next_u32()) << 32
    }

    /// A number in `[0, 1)` with 24 random bits.
    pub fn unit_f32(&mut self) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "24 bits fit the significand")]
        let bits = (self.next_u32() >> 8) as f32;
        bits * (1.0 / (1u32 << 24) as f32)
    }

    /// A number in `[0, 1)` with 53 random bits.
    pub fn unit_f64(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit the significand")]
        let bits = (self.next_u64() >> 11) as f64;
        bits * (1.0 / (1u64 << 53) as f64)
    }

    /// A number in `[low, high)`; `low` itself when the two are equal.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit_f64()
    }

    /// A number between `low` and `high`, both positive, whose logarithm is uniform.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        libm::exp(self.uniform(libm::log(low), libm::log(high)))
    }

    /// A normal deviate of mean 0 and deviation 1, by the method of Box and Muller:
    /// `sqrt(-2 ln(1 - u)) cos(2 pi v)` of two reals, with the `libm` crate's functions.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.unit_f64())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.unit_f64())
    }

    /// A number in `[0, 1]` from the Beta distribution with these parameters, positive numbers.
    ///
    /// It is `X / (X + Y)` of two numbers from Gamma distributions, `X` first. A number of the Gamma
    /// distribution with shape `a >= 1` is drawn by the rejection method of Marsaglia and Tsang
    /// (2000), which is exact: with `d = a - 1/3`, [`Rng::normal`] gives `x` until
    /// `v = (1 + x / sqrt(9 d))^3` is positive and `ln(1 - u) < x^2 / 2 + d - d v + d ln v` for a real
    /// `u`, and the number is `d v`. For `a < 1` it is one with `a + 1` times `(1 - u)^(1 / a)`.
    /// The quotient is taken of logarithms, because numbers of small shapes are below every `f64`.
    pub fn beta(&mut self, a: f64, b: f64) -> f64 {
        let x = self.log_gamma_deviate(a);
        let y = self.log_gamma_deviate(b);
        1.0 / (1.0 + libm::exp(y - x))
    }

    /// The logarithm of a number from the Gamma distribution of this shape and scale 1.
    fn log_gamma_deviate(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let larger = self.log_gamma_deviate(shape + 1.0);
            return larger + libm::log(1.0 - self.unit_f64()) / shape;
        }
        let d = shape - 1.0 / 3.0;
        let scale = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let root = 1.0 + x * scale;
            if root <= 0.0 {
                continue;
            }
            let v = root * root * root;
            let log_v = libm::log(v);
            if libm::log(1.0 - self.unit_f64()) < 0.5 * x * x + d - d * v + d * log_v {
                return libm::log(d) + log_v;
            }
        }
    }

    /// An integer in `0..bound`, each equally likely; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        // Lemire, "Fast Random Integer Generation in an Interval" (2019): products whose low half
        // is under 2^32 mod bound are one too many for some values, and are drawn again.
        let surplus = if bound == 0 { 0 } else { bound.wrapping_neg() % bound };
        loop {
            let [low, high] = halves(u64::from(self.next_u32()) * u64::from(bound));
            if low >= surplus {
                return high;
            }
        }
    }

    /// A place in a list of `length` items, each equally likely; 0 when it is empty. Lists have fewer
    /// than 2^32 items.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.below(u32::try_from(length).unwrap_or(u32::MAX)) as usize
    }

    /// Puts `items` into any order, each equally likely (Fisher and Yates, from the last one).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit_f64() < p
    }
}

/// The low and the high word.
#[expect(clippy::cast_possible_truncation, reason = "splitting a word in two is the purpose")]
fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kat_vectors` of the Random123 distribution, lines `philox4x32 10`.
    #[test]
    fn philox_gives_the_published_answers() {
        let check = |counter, key, expected| assert_eq!(philox4x32_10(counter, key), expected);
        check([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        check([!0; 4], [!0; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        check(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        );
    }

    #[test]
    fn a_stream_is_the_blocks_of_its_counter() {
        let mut rng = Rng::new(0xA409_3822_299F_31D0, 3, 0x0000_0005_0000_0009, 2);
        let key = [0x299F_31D0, 0xA409_3822];
        for block in 0..3 {
            let expected = philox4x32_10([2 << 24 | block, 3, 9, 5], key);
            assert_eq!(std::array::from_fn(|_| rng.next_u32()), expected);
            let mut later = Rng::new(0xA409_3822_299F_31D0, 3, 0x0000_0005_0000_0009, 2);
            later.next_u32();
            let mut later = later.at_block(block);
            assert_eq!(std::array::from_fn(|_| later.next_u32()), expected);
        }
    }

    #[test]
    fn neighbouring_streams_share_no_word() {
        let mut seen = std::collections::HashSet::new();
        for (epoch, sample, op) in
            [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1 << 32, 0), (0, EPOCH_STREAM, 0)]
        {
            let mut rng = Rng::new(42, epoch, sample, op);
            for _ in 0..64 {
                assert!(seen.insert(rng.next_u64()), "{epoch} {sample} {op}");
            }
        }
    }

    #[test]
    fn a_stream_ends_before_the_next_one_starts() {
        let mut rng = Rng { next_block: (1 << 24) - 1, ..Rng::new(0, 0, 0, 0) };
        let last: Vec<u32> = (0..4).map(|_| rng.next_u32()).collect();
        assert_eq!(last, philox4x32_10([(1 << 24) - 1, 0, 0, 0], [0, 0]));
        assert!(std::panic::catch_unwind(move || rng.next_u32()).is_err());
    }

    #[test]
    fn bounded_integers_are_within_bounds_and_even() {
        let mut rng = Rng::new(1, 0, 0, 0);
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - 1e4).powi(2) / 1e4).sum();
        // 99.9 % point of chi-square with 6 degrees of freedom.
        assert!(chi < 22.46, "{counts:?}");
        // With a bound just over half the range a plain remainder would favour the low half.
        let bound = (1 << 31) + (1 << 30);
        let low = (0..40_000).filter(|_| rng.below(bound) < bound / 2).count();
        assert!((19_400..20_600).contains(&low), "{low}");
    }

    #[test]
    fn normal_and_beta_numbers_have_their_moments() {
        const COUNT: i32 = 40_000;
        let count = f64::from(COUNT);
        let mut rng = Rng::new(6, 0, 0, 0);
        let draws: Vec<f64> = (0..COUNT).map(|_| rng.normal()).collect();
        let moment = |power| draws.iter().map(|x| x.powi(power)).sum::<f64>() / count;
        assert!(moment(1).abs() < 4.0 / count.sqrt(), "{}", moment(1));
        assert!((moment(2) - 1.0).abs() < 4.0 * (2.0 / count).sqrt(), "{}", moment(2));
        assert!((moment(4) - 3.0).abs() < 4.0 * (96.0 / count).sqrt(), "{}", moment(4));
        for (a, b) in [(1.0, 1.0), (0.2, 0.2), (0.01, 0.01), (0.4, 0.4), (8.0, 8.0), (2.0, 0.5)] {
            let draws: Vec<f64> = (0..COUNT).map(|_| rng.beta(a, b)).collect();
            assert!(draws.iter().all(|x| (0.0..=1.0).contains(x)), "{a} {b}");
            let mean = draws.iter().sum::<f64>() / count;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let expected = a / (a + b);
            let spread = a * b / ((a + b).powi(2) * (a + b + 1.0));
            assert!((mean - expected).abs() < 4.0 * (spread / count).sqrt(), "{a} {b}: {mean}");
            // The variance of a square of something in 0..=1 is at most its mean.
            assert!(
                (variance - spread).abs() < 4.0 * (spread / count).sqrt(),
                "{a} {b}: {variance}"
            );
        }
        // Beta(1, 1) is even: Kolmogorov-Smirnov at 0.1 %.
        let mut even: Vec<f64> = (0..COUNT).map(|_| rng.beta(1.0, 1.0)).collect();
        even.sort_by(f64::total_cmp);
        let gaps = even.iter().zip(0..COUNT).map(|(x, i)| (x - f64::from(i) / count).abs());
        assert!(gaps.fold(0.0, f64::max) * count.sqrt() < 1.95);
        // Beta(2, 2) has the distribution function 3 x^2 - 2 x^3.
        let mut hump: Vec<f64> = (0..COUNT).map(|_| rng.beta(2.0, 2.0)).collect();
        hump.sort_by(f64::total_cmp);
        let gaps = hump
            .iter()
            .zip(0..COUNT)
            .map(|(x, i)| (x * x * (3.0 - 2.0 * x) - f64::from(i) / count).abs());
        assert!(gaps.fold(0.0, f64::max) * count.sqrt() < 1.95);
    }

    #[test]
    fn reals_fill_their_interval() {
        let mut rng = Rng::new(5, 0, 0, 0);
        let draws: Vec<f64> = (0..20_000).map(|_| rng.log_uniform(0.75, 4.0 / 3.0)).collect();
        assert!(draws.iter().all(|r| (0.75..=4.0 / 3.0).contains(r)));
        let mean_log = draws.iter().map(|r| r.ln()).sum::<f64>() / 20_000.0;
        assert!(mean_log.abs() < 0.005, "{mean_log}");
        let mean = (0..20_000).map(|_| f64::from(rng.unit_f32())).sum::<f64>() / 20_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert_eq!(rng.uniform(0.5, 0.5), 0.5);
    }
}
