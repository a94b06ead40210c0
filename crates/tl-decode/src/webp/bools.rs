//! The boolean decoder of VP8 (RFC 6386 section 7).

/// The probability of a bit that is as likely 0 as 1.
const EVEN: u8 = 128;

/// The bytes of a partition of which no bit was taken up.
#[derive(Clone, Copy, Debug)]
struct Rest<'a> {
    bytes: &'a [u8],
    /// Bytes of zeros that were taken up after the end.
    beyond: u32,
}

/// The place in a partition.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The next bits, most significant first.
    window: u64,
    /// Bits in `window`, as far as they are those of the partition or of zeros after it.
    valid: u32,
    /// The width of the interval, 128 to 255, in the top byte.
    range: u32,
    /// The bits that the last boolean took.
    last: u32,
}

/// The bits of a partition. Those after its end are 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bools<'a> {
    rest: Rest<'a>,
    place: Place,
}

/// Reads the bits of a partition, each with its probability.
///
/// The interval is held at the top of a word and the bits of the file at the top of another, so that
/// the shift that makes the interval wide again is its number of leading zeros.
/// It owns the numbers that every boolean changes, for registers, and borrows the rest.
#[derive(Debug)]
pub(super) struct BoolReader<'b, 'a> {
    rest: &'b mut Rest<'a>,
    place: Place,
}

/// 256 less the probability, aligned with the interval. It is a table because adding it to the product
/// takes one step less than the product with the interval less 1.
static COMPLEMENTS: [u64; 256] = {
    let mut table = [0; 256];
    let mut probability = 0;
    while probability < 256 {
        table[probability] = (256 - probability as u64) << 24;
        probability += 1;
    }
    table
};

/// Bits that one boolean takes at most.
const MOST_BITS: u32 = 7;
/// Bits that a boolean looks at.
const LOOKED_AT: u32 = 8;

impl<'a> Bools<'a> {
    /// At the first bit of a partition.
    pub(super) fn new(partition: &'a [u8]) -> Self {
        // An empty one has ended before anything is read.
        let beyond = u32::from(partition.is_empty());
        let place = Place { window: 0, valid: 0, range: 255 << 24, last: 0 };
        Self { rest: Rest { bytes: partition, beyond }, place }
    }

    /// Lets `read` read from here on.
    #[inline(always)]
    pub(super) fn read<R>(&mut self, read: impl FnOnce(&mut BoolReader<'_, 'a>) -> R) -> R {
        let mut reader = BoolReader { rest: &mut self.rest, place: self.place };
        let result = read(&mut reader);
        self.place = reader.place;
        result
    }

    /// True if a boolean has looked at bits after the end of the partition, as libwebp counts: where
    /// it calls the data too short.
    pub(super) fn is_past_end(&self) -> bool {
        // The bits that are left before the last boolean, without the zeros after the end.
        let Place { valid, last, .. } = self.place;
        self.rest.beyond > 0 && valid + last < 8 * self.rest.beyond + LOOKED_AT
    }
}

impl Rest<'_> {
    /// Adds bytes to the `valid` bits of a window, and returns both.
    #[cold]
    #[inline(never)]
    fn fill(&mut self, window: u64, valid: u32) -> (u64, u32) {
        if let Some((word, _)) = self.bytes.split_first_chunk::<8>() {
            let taken = (64 - valid) / 8;
            self.bytes = &self.bytes[taken as usize..];
            // Bits of a byte that is not taken up whole come again.
            return (window | u64::from_be_bytes(*word) >> valid, valid + 8 * taken);
        }
        let mut window = window & !(u64::MAX >> valid);
        let mut valid = valid;
        while valid <= 56 {
            let byte = match self.bytes.split_first() {
                Some((&byte, bytes)) => {
                    self.bytes = bytes;
                    byte
                }
                None => {
                    self.beyond = self.beyond.saturating_add(1);
                    0
                }
            };
            window |= u64::from(byte) << 56 >> valid;
            valid += 8;
        }
        (window, valid)
    }
}

impl BoolReader<'_, '_> {
    /// Fills the window, so that the next `BOOLEANS` need no more bits than it has.
    #[inline(always)]
    pub(super) fn refill<const BOOLEANS: u32>(&mut self) {
        const { assert!(BOOLEANS * MOST_BITS + LOOKED_AT <= 56) };
        let Place { window, valid, .. } = self.place;
        if valid < (BOOLEANS - 1) * MOST_BITS + LOOKED_AT {
            (self.place.window, self.place.valid) = self.rest.fill(window, valid);
        }
    }

    /// The number of the interval's lower part for a boolean of this probability: 1 + ((range - 1) *
    /// probability >> 8) of section 7.3.
    #[inline(always)]
    fn split(&self, probability: u8) -> u32 {
        let product = u64::from(self.place.range) * u64::from(probability);
        ((product + COMPLEMENTS[usize::from(probability)]) >> 32) as u32
    }

    /// A boolean that is 0 with a probability of `probability` / 256. The window has its bits.
    #[inline(always)]
    pub(super) fn bit(&mut self, probability: u8) -> bool {
        let split = self.split(probability);
        let threshold = u64::from(split) << 56;
        // The processor foretells the branch, and does not wait for the comparison.
        if self.place.window >= threshold {
            std::hint::cold_path();
            self.place.window -= threshold;
            self.narrow((self.place.range >> 24) - split);
            true
        } else {
            self.narrow(split);
            false
        }
    }

    #[inline(always)]
    fn narrow(&mut self, range: u32) {
        let zeros = range.leading_zeros();
        self.place.range = range << zeros;
        let shift = zeros - 24;
        self.place.window <<= shift;
        self.place.valid -= shift;
        self.place.last = shift;
    }

    /// `value` or `-value`, as the next boolean says, which is as likely 0 as 1.
    ///
    /// It always takes one bit, because the interval is 254 wide at most once a boolean was read, and
    /// it needs no branch, which would be foretold wrong every other time.
    #[inline(always)]
    pub(super) fn signed(&mut self, value: i32) -> i32 {
        const ONE: u32 = 1 << 24;
        let Place { window, valid, range, .. } = self.place;
        // Half of the interval, rounded up, is the lower part.
        let threshold = u64::from((range + ONE) >> 25) << 56;
        let is_lower = window < threshold;
        let taken = std::hint::select_unpredictable(is_lower, 0, threshold);
        let rounding = std::hint::select_unpredictable(is_lower, ONE, 0);
        self.place = Place {
            window: (window - taken) << 1,
            valid: valid - 1,
            range: (range + rounding) & !ONE,
            last: 1,
        };
        std::hint::select_unpredictable(is_lower, value, -value)
    }

    /// A flag of a header.
    pub(super) fn flag(&mut self) -> bool {
        self.refill::<1>();
        self.bit(EVEN)
    }

    /// A boolean of a header with a probability.
    pub(super) fn boolean(&mut self, probability: u8) -> bool {
        self.refill::<1>();
        self.bit(probability)
    }

    /// An unsigned number of a header, the most significant bit first.
    pub(super) fn number(&mut self, bits: u32) -> u32 {
        (0..bits).fold(0, |number, _| number << 1 | u32::from(self.flag()))
    }

    /// A number of a header with its sign after it.
    pub(super) fn signed_number(&mut self, bits: u32) -> i32 {
        let number = self.number(bits).cast_signed();
        if self.flag() { -number } else { number }
    }

    /// [`BoolReader::signed_number`] after a flag that says whether it is there.
    pub(super) fn optional_number(&mut self, bits: u32) -> Option<i32> {
        self.flag().then(|| self.signed_number(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The encoder of section 7.3, for tests.
    #[derive(Debug)]
    struct BoolEncoder {
        out: Vec<u8>,
        range: u32,
        bottom: u32,
        bits: u32,
    }

    impl BoolEncoder {
        fn new() -> Self {
            Self { out: Vec::new(), range: 255, bottom: 0, bits: 24 }
        }

        fn carry(&mut self) {
            for byte in self.out.iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    return;
                }
            }
        }

        fn put(&mut self, probability: u8, bit: bool) {
            let split = 1 + (((self.range - 1) * u32::from(probability)) >> 8);
            if bit {
                let (sum, over) = self.bottom.overflowing_add(split);
                (self.bottom, self.range) = (sum, self.range - split);
                if over {
                    self.carry();
                }
            } else {
                self.range = split;
            }
            while self.range < 128 {
                self.range <<= 1;
                if self.bottom >> 31 != 0 {
                    self.carry();
                }
                self.bottom <<= 1;
                self.bits -= 1;
                if self.bits == 0 {
                    self.out.push(self.bottom.to_be_bytes()[0]);
                    self.bottom &= 0xFF_FFFF;
                    self.bits = 8;
                }
            }
        }

        fn finish(mut self) -> Vec<u8> {
            for _ in 0..32 {
                self.put(EVEN, false);
            }
            self.out
        }
    }

    #[test]
    fn booleans_of_any_probability_come_back() {
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random.to_be_bytes()[2]
        };
        let booleans: Vec<_> = (0..20_000)
            .map(|_| {
                let probability = if next() < 64 { EVEN } else { next().max(1) };
                (probability, next() >= probability)
            })
            .collect();
        let mut encoder = BoolEncoder::new();
        booleans.iter().for_each(|&(probability, bit)| encoder.put(probability, bit));
        let bytes = encoder.finish();
        let mut bools = Bools::new(&bytes);
        for (i, &(probability, bit)) in booleans.iter().enumerate() {
            bools.read(|reader| {
                if probability == EVEN && i > 0 {
                    reader.refill::<1>();
                    assert_eq!(reader.signed(1), if bit { -1 } else { 1 }, "{i}");
                } else {
                    assert_eq!(reader.boolean(probability), bit, "{i}");
                }
            });
        }
        assert!(!bools.is_past_end());
    }

    #[test]
    fn the_end_is_where_a_boolean_would_look_after_it() {
        // Each even boolean but the first takes a bit, and looks at eight.
        let mut bools = Bools::new(&[0x55, 0xAA]);
        for i in 0..10 {
            bools.read(|reader| reader.flag());
            assert!(!bools.is_past_end(), "{i}");
        }
        bools.read(|reader| reader.flag());
        assert!(bools.is_past_end());
        assert!(Bools::new(&[]).is_past_end());
    }
}
