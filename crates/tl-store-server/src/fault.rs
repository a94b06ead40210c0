//! Faults of answers.

/// A fault of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Status 503 `SlowDown`.
    SlowDown,
    /// Status 429 with `Retry-After: 1`.
    TooMany,
    /// No answer ever.
    Silence,
    /// The connection breaks off after half of the body.
    Reset,
    /// The body ends after half of it, as if that were all.
    Short,
    /// The body has 7 bytes more than the range.
    Long,
    /// Status 200 and the whole object in place of the range.
    Whole,
    /// A range that begins a byte later.
    OtherRange,
    /// Another `ETag`.
    OtherTag,
    /// Status 403 `AccessDenied`.
    Forbidden,
    /// Status 404 `NoSuchKey`.
    Missing,
    /// A redirect to the same URL.
    Redirect,
    /// The body stops for ever after half of it.
    Stall,
    /// `Content-Encoding: gzip`.
    Gzip,
    /// A request that writes is carried out, and its answer never comes.
    Lost,
}

impl Fault {
    /// All faults of reads.
    pub const ALL: [Self; 14] = [
        Self::SlowDown,
        Self::TooMany,
        Self::Silence,
        Self::Reset,
        Self::Short,
        Self::Long,
        Self::Whole,
        Self::OtherRange,
        Self::OtherTag,
        Self::Forbidden,
        Self::Missing,
        Self::Redirect,
        Self::Stall,
        Self::Gzip,
    ];

    /// Whether another request may have better luck.
    #[must_use]
    pub fn may_pass(self) -> bool {
        match self {
            Self::SlowDown
            | Self::TooMany
            | Self::Silence
            | Self::Reset
            | Self::Short
            | Self::Stall
            | Self::Lost => true,
            Self::Long
            | Self::Whole
            | Self::OtherRange
            | Self::OtherTag
            | Self::Forbidden
            | Self::Missing
            | Self::Redirect
            | Self::Gzip => false,
        }
    }
}

/// Chooses the faults of answers, by the number of the request.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Faults {
    /// None.
    #[default]
    None,
    /// One fault, of the requests with these numbers.
    Numbered {
        /// The fault.
        fault: Fault,
        /// The first request that has it, from 0.
        first: u64,
        /// How many requests have it in sequence.
        count: u64,
    },
    /// Each with a probability, by a seed.
    Random {
        /// The seed.
        seed: u64,
        /// Faults, and the probability of each from 0 to 1.
        chances: Vec<(Fault, f64)>,
    },
}

impl Faults {
    pub(crate) fn of(&self, number: u64) -> Option<Fault> {
        match self {
            Self::None => None,
            Self::Numbered { fault, first, count } => {
                let is_faulty = number >= *first && number - first < *count;
                is_faulty.then_some(*fault)
            }
            Self::Random { seed, chances } => {
                let mut left = unit(*seed, number);
                chances.iter().find_map(|(fault, chance)| {
                    left -= chance;
                    (left < 0.0).then_some(*fault)
                })
            }
        }
    }
}

/// A number from 0 to 1 that depends on a seed and a counter alone: `SplitMix64` (Steele, Lea
/// and Flood 2014).
pub(crate) fn unit(seed: u64, counter: u64) -> f64 {
    let mut x = seed.wrapping_add(counter.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    f64::from(u32::try_from((x ^ (x >> 31)) >> 32).unwrap_or(u32::MAX)) / 4_294_967_296.0
}
