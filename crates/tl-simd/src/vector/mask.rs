//! The operation that scans over columns need from a vector unit.

/// Values that a scan takes at once: one for each bit of a word.
pub(crate) const WORD: usize = 64;

/// A type of integer that columns have.
///
/// Every bit pattern is a value, and every byte belongs to it. Implemented here alone.
pub(crate) trait Column: Copy + Default + PartialOrd {
    /// The distance of a number above `first`, modulo 2 to the number of its bits.
    fn above(self, first: Self) -> u64;
}

macro_rules! columns {
    ($($signed:ty, $unsigned:ty;)*) => {
        $(
            impl Column for $signed {
                #[inline(always)]
                fn above(self, first: Self) -> u64 {
                    self.wrapping_sub(first).cast_unsigned().into()
                }
            }

            impl Column for $unsigned {
                #[inline(always)]
                fn above(self, first: Self) -> u64 {
                    self.wrapping_sub(first).into()
                }
            }
        )*
    };
}

columns! {
    i8, u8;
    i16, u16;
    i32, u32;
    i64, u64;
}

/// A level's way to compare a word of values. The method without vectors is the definition.
pub(crate) trait MaskSimd: Copy {
    /// The values that are at most `span` above `first`, the first value in the lowest bit.
    #[inline(always)]
    fn within<T: Column>(self, values: &[T; WORD], first: T, span: u64) -> u64 {
        let mut flags = [0_u8; WORD];
        for (flag, value) in flags.iter_mut().zip(values) {
            *flag = u8::from(value.above(first) <= span);
        }
        let mut word = 0;
        for (place, bytes) in flags.as_chunks().0.iter().enumerate() {
            // Bytes are 0 or 1; the product has all eight side by side on top.
            let byte = u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            word |= byte << (8 * place);
        }
        word
    }
}

/// Without vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

impl MaskSimd for Plain {}
