//! Columns of numbers in few bits: blocks of 64 values, each as the distance from a straight line.
//!
//! Times of a constant rate take no bits besides the block's line, sizes and offsets what they vary
//! by. Every number can be stored: the arithmetic wraps in both directions alike.

/// Values of a block.
const BLOCK: usize = 64;

/// Bytes of a block that is stored: base, slope and width.
const STORED_BLOCK: usize = 17;

/// The most bits of a distance.
const MAX_WIDTH: u8 = 64;

/// A column of numbers that is read at any position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column {
    blocks: Vec<Block>,
    words: Vec<u64>,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    /// The line is `base + slope * position`.
    base: i64,
    slope: i64,
    /// The first of the block's words.
    start: u32,
    /// Bits of a distance.
    width: u8,
}

impl Column {
    /// Packs numbers.
    pub(crate) fn pack(numbers: impl Iterator<Item = i64>) -> Self {
        let mut column = Self::default();
        let mut block = [0; BLOCK];
        let mut filled = 0;
        for number in numbers {
            block[filled] = number;
            filled += 1;
            if filled == BLOCK {
                column.push(&block);
                filled = 0;
            }
        }
        if filled > 0 {
            column.push(&block[..filled]);
        }
        column.blocks.shrink_to_fit();
        column.words.shrink_to_fit();
        column
    }

    fn push(&mut self, numbers: &[i64]) {
        let first = numbers[0];
        let last = numbers[numbers.len() - 1];
        let slope = last.wrapping_sub(first) / (numbers.len() as i64 - 1).max(1);
        let from_line = |(at, number): (usize, &i64)| number.wrapping_sub(line(first, slope, at));
        let distances = || numbers.iter().enumerate().map(from_line);
        let lowest = distances().min().unwrap_or(0);
        let highest = distances().fold(0, |highest, distance| highest | offset(distance, lowest));
        let width = u64::BITS.saturating_sub(highest.leading_zeros()) as usize;
        // A block has at most as many words as numbers, of which `Limits` allows 2^32.
        let start = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        let words = (width * numbers.len()).div_ceil(64);
        self.words.resize(self.words.len() + words, 0);
        let base = first.wrapping_add(lowest);
        let stored_width = u8::try_from(width).unwrap_or(u8::MAX);
        self.blocks.push(Block { base, slope, start, width: stored_width });
        for (at, distance) in distances().enumerate() {
            let bit = at * width;
            let word = start as usize + bit / 64;
            let value = offset(distance, lowest);
            if width > 0 {
                self.words[word] |= value << (bit % 64);
                if bit % 64 + width > 64 {
                    self.words[word + 1] |= value >> (64 - bit % 64);
                }
            }
        }
        self.len += numbers.len();
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number at a position, if the column has it.
    pub(crate) fn get(&self, at: usize) -> Option<i64> {
        if at >= self.len {
            return None;
        }
        let block = self.blocks.get(at / BLOCK)?;
        let place = at % BLOCK;
        let line = line(block.base, block.slope, place);
        let width = usize::from(block.width);
        if width == 0 {
            return Some(line);
        }
        let bit = place * width;
        let word = block.start as usize + bit / 64;
        let mut value = self.words.get(word)? >> (bit % 64);
        if bit % 64 + width > 64 {
            value |= self.words.get(word + 1)? << (64 - bit % 64);
        }
        let value = value & (u64::MAX >> (64 - width));
        Some(line.wrapping_add(value.cast_signed()))
    }

    /// All numbers from front to end.
    pub(crate) fn iter(&self) -> impl Iterator<Item = i64> {
        (0..self.len).filter_map(|at| self.get(at))
    }

    /// Appends the column as bytes: the number of values, the blocks, and the words of all blocks.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        // `Limits` allows no more packets than that.
        out.extend_from_slice(&u32::try_from(self.len).unwrap_or(u32::MAX).to_le_bytes());
        for block in &self.blocks {
            out.extend_from_slice(&block.base.to_le_bytes());
            out.extend_from_slice(&block.slope.to_le_bytes());
            out.push(block.width);
        }
        out.extend(self.words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// The bytes of the blocks of a column of `len` values.
    pub(crate) fn block_bytes(len: u32) -> u64 {
        u64::from(len).div_ceil(BLOCK as u64) * STORED_BLOCK as u64
    }

    /// The bytes of the words that these blocks need; `None` for blocks that no column has.
    pub(crate) fn word_bytes(blocks: &[u8], len: u32) -> Option<u64> {
        let mut left = u64::from(len);
        let mut words = 0;
        for block in blocks.chunks_exact(STORED_BLOCK) {
            let width = block.last().copied().filter(|width| *width <= MAX_WIDTH)?;
            let values = left.min(BLOCK as u64);
            words += (u64::from(width) * values).div_ceil(64);
            left -= values;
        }
        Some(words * 8)
    }

    /// Reads a column that [`write`](Self::write) wrote: `len` values, with as many bytes of blocks and
    /// of words as these need.
    pub(crate) fn read(len: u32, blocks: &[u8], words: &[u8]) -> Self {
        let len = len as usize;
        let mut start = 0;
        let mut left = len;
        let read = |block: &[u8]| {
            let base = number(block);
            let slope = number(block.get(8..).unwrap_or_default());
            let width = block.last().copied().unwrap_or(0);
            let read = Block { base: base.cast_signed(), slope: slope.cast_signed(), start, width };
            let values = left.min(BLOCK);
            start += u32::try_from((usize::from(width) * values).div_ceil(64)).unwrap_or(0);
            left -= values;
            read
        };
        let blocks = blocks.chunks_exact(STORED_BLOCK).map(read).collect();
        Self { blocks, words: words.chunks_exact(8).map(number).collect(), len }
    }

    /// The bytes that the column takes.
    pub(crate) fn memory(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.words.capacity() * size_of::<u64>()
    }
}

/// The number at the front of `bytes`.
fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn line(base: i64, slope: i64, at: usize) -> i64 {
    base.wrapping_add(slope.wrapping_mul(at as i64))
}

fn offset(distance: i64, lowest: i64) -> u64 {
    distance.wrapping_sub(lowest).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[i64]) -> Column {
        let column = Column::pack(numbers.iter().copied());
        assert_eq!(column.len(), numbers.len());
        let read: Vec<i64> = (0..numbers.len()).filter_map(|at| column.get(at)).collect();
        assert_eq!(read, numbers);
        assert_eq!(column.get(numbers.len()), None);
        column
    }

    #[test]
    fn numbers_of_any_size_are_kept() {
        for len in [0, 1, 2, 63, 64, 65, 128, 200] {
            let mut state = len as u64 + 1;
            let mut next = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e);
                state.cast_signed()
            };
            for shift in [0, 1, 31, 47, 60, 63] {
                check(&(0..len).map(|_| next() >> shift).collect::<Vec<_>>());
            }
            check(&(0..len).map(|at| [i64::MIN, i64::MAX][at % 2]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn times_of_a_constant_rate_take_no_bits() {
        let column = check(&(0..6400).map(|number| 1000 + number * 512).collect::<Vec<_>>());
        assert!(column.words.is_empty());
        assert_eq!(column.memory(), 100 * size_of::<Block>());
    }
}
