//! Reading bits of entropy-coded data, the first bit of a byte being its highest.

use super::entropy_data::EntropyData;

/// A position in an [`EntropyData`], and the bits that follow it.
///
/// After the data there are zeros without end. Who decodes asks [`BitReader::is_past_end`] in
/// time, which is before anything is believed that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitReader<'a> {
    /// The bytes that have not been taken into `bits`.
    rest: &'a [u8],
    /// The next bits, the first one on top. Those after `held` are right as well.
    bits: u64,
    /// How many of `bits` are counted; only the value modulo 64 means anything.
    held: u32,
    /// Bytes of the data with its padding.
    padded_len: usize,
    /// Bytes of the data.
    len: usize,
}

impl<'a> BitReader<'a> {
    /// Bits there are after [`BitReader::refill`].
    pub(super) const REFILLED: u32 = 56;

    /// Reads from the first bit on.
    pub(super) fn new(data: &'a EntropyData) -> Self {
        let rest = data.padded();
        let mut reader = Self { rest, bits: 0, held: 0, padded_len: rest.len(), len: data.len() };
        reader.refill();
        reader
    }

    /// Reads from bit `position` on, at the latest from the end.
    pub(super) fn at(data: &'a EntropyData, position: usize) -> Self {
        let mut reader = Self::new(data);
        reader.rest = &data.padded()[(position / 8).min(data.len())..];
        (reader.bits, reader.held) = (0, 0);
        reader.refill();
        if position / 8 < data.len() {
            reader.consume(u32::from(position.to_le_bytes()[0] % 8));
        }
        reader
    }

    /// Makes [`BitReader::REFILLED`] bits or more available.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        let Some(&next) = self.rest.first_chunk::<8>() else {
            // The reader is past the end of the data by some bytes of padding, and stays there.
            self.held |= Self::REFILLED;
            return;
        };
        self.bits |= u64::from_be_bytes(next).wrapping_shr(self.held);
        // Whole bytes that fit after the bits already held.
        self.rest = &self.rest[((!self.held >> 3) & 7) as usize..];
        self.held |= Self::REFILLED;
    }

    /// The next 64 bits, of which those that were refilled and not consumed are right.
    #[inline(always)]
    pub(super) fn bits(&self) -> u64 {
        self.bits
    }

    /// The next `count` bits as a number, 1..=64.
    #[inline(always)]
    pub(super) fn peek(&self, count: u32) -> u64 {
        self.bits >> (64 - count)
    }

    /// Passes over the number of bits that the low 6 bits of `count` say.
    #[inline(always)]
    pub(super) fn consume(&mut self, count: u32) {
        self.bits = self.bits.wrapping_shl(count);
        self.held = self.held.wrapping_sub(count);
    }

    /// Bits from the beginning of the data to the next one.
    #[inline(always)]
    pub(super) fn position(&self) -> usize {
        (self.padded_len - self.rest.len()) * 8 - (self.held & 63) as usize
    }

    /// Whether more bits were consumed than there are.
    #[inline(always)]
    pub(super) fn is_past_end(&self) -> bool {
        self.position() > self.len * 8
    }

    /// Bytes of which no bit was consumed.
    pub(super) fn whole_bytes_left(&self) -> usize {
        self.len.saturating_sub(self.position().div_ceil(8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(bytes: &[u8]) -> EntropyData {
        let mut data = EntropyData::default();
        data.load(bytes, 0);
        data
    }

    #[test]
    fn any_steps_read_the_same_bits() {
        let bytes: Vec<u8> = (0..97u8).map(|i| i.wrapping_mul(37) & 0xFE).collect();
        let bit = |i: usize| u64::from(bytes.get(i / 8).is_some_and(|b| b >> (7 - i % 8) & 1 == 1));
        let data = data(&bytes);
        for step in 1..=25u8 {
            for start in 0..17 {
                let mut reader = BitReader::at(&data, start);
                let mut position = start;
                while position <= bytes.len() * 8 {
                    assert_eq!((reader.position(), reader.is_past_end()), (position, false));
                    reader.refill();
                    for _ in 0..2 {
                        let expected =
                            (0..usize::from(step)).fold(0, |n, i| n << 1 | bit(position + i));
                        assert_eq!(reader.peek(step.into()), expected);
                        reader.consume(step.into());
                        position += usize::from(step);
                    }
                }
                assert!(reader.is_past_end());
            }
        }
    }

    #[test]
    fn the_end_stays_passed() {
        let data = data(&[1, 2, 3]);
        let mut reader = BitReader::new(&data);
        reader.consume(17);
        assert_eq!(reader.whole_bytes_left(), 0);
        reader.consume(7);
        assert!(!reader.is_past_end());
        for _ in 0..100 {
            reader.consume(31);
            assert!(reader.is_past_end());
            assert_eq!(reader.bits(), 0);
            reader.refill();
        }
    }
}
