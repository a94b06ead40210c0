//! Numbers as they lie in a file: little-endian and, as far as Rust knows, unaligned.

use core::fmt;

use zerocopy::little_endian::{F32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

mod sealed {
    pub trait Sealed {}
}

/// A number that columns hold. Implemented for `i8`, `u16`, `u32`, `u64`, `f32` and node ids.
pub trait Element: sealed::Sealed + Copy + fmt::Debug + 'static {
    /// The number as it lies in a file.
    type Stored: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Copy + fmt::Debug;

    /// The number itself.
    fn from_stored(stored: Self::Stored) -> Self;

    /// `stored` as a slice of numbers, where this machine has them in memory as files do.
    fn native(stored: &[Self::Stored]) -> Option<&[Self]>;
}

macro_rules! element {
    ($($native:ty, $stored:ty, $get:expr;)*) => {$(
        impl sealed::Sealed for $native {}

        impl Element for $native {
            type Stored = $stored;

            #[inline]
            fn from_stored(stored: $stored) -> Self {
                $get(stored)
            }

            #[inline]
            fn native(stored: &[$stored]) -> Option<&[Self]> {
                if cfg!(target_endian = "big") && align_of::<Self>() > 1 {
                    return None;
                }
                <[Self]>::ref_from_bytes(stored.as_bytes()).ok()
            }
        }
    )*};
}

element! {
    i8, i8, |stored| stored;
    u16, U16, |stored: U16| stored.get();
    u32, U32, |stored: U32| stored.get();
    u64, U64, |stored: U64| stored.get();
    f32, F32, |stored: F32| stored.get();
    [u8; 16], [u8; 16], |stored| stored;
}

/// A column of numbers in borrowed bytes.
///
/// [`as_slice`](Self::as_slice) lends them without a copy where the bytes happen to be aligned;
/// [`get`](Self::get) and [`iter`](Self::iter) read them wherever they are.
#[derive(Clone, Copy)]
pub struct Values<'a, T: Element> {
    stored: &'a [T::Stored],
}

impl<'a, T: Element> Values<'a, T> {
    /// No numbers.
    pub(crate) const EMPTY: Self = Self { stored: &[] };

    /// The first `count` numbers of `bytes`, if there are as many.
    pub(crate) fn prefix(bytes: &'a [u8], count: u64) -> Option<Self> {
        let count = usize::try_from(count).ok()?;
        let (stored, _) = <[T::Stored]>::ref_from_prefix_with_elems(bytes, count).ok()?;
        Some(Self { stored })
    }

    /// The numbers `range`, if there are as many.
    pub(crate) fn slice(self, range: core::ops::Range<usize>) -> Option<Self> {
        Some(Self { stored: self.stored.get(range)? })
    }

    /// How many numbers there are.
    pub fn len(self) -> usize {
        self.stored.len()
    }

    /// Whether the array has no values.
    pub fn is_empty(self) -> bool {
        self.stored.is_empty()
    }

    /// The number at `index`.
    #[inline]
    pub fn get(self, index: usize) -> Option<T> {
        self.stored.get(index).map(|&stored| T::from_stored(stored))
    }

    /// All numbers in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = T> + DoubleEndedIterator + 'a {
        self.stored.iter().map(|&stored| T::from_stored(stored))
    }

    /// The numbers without a copy: `None` where the bytes are not aligned for `T`, or the machine
    /// is not little-endian.
    #[inline]
    pub fn as_slice(self) -> Option<&'a [T]> {
        T::native(self.stored)
    }

    /// The bytes that hold the numbers.
    pub fn as_bytes(self) -> &'a [u8] {
        self.stored.as_bytes()
    }
}

impl<T: Element> fmt::Debug for Values<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::AlignedBytes;

    #[test]
    fn numbers_are_the_same_at_every_offset_and_lent_at_aligned_ones() {
        let numbers: Vec<u64> = (0..9).map(|i| 0x0102_0304_0506_0708 * i).collect();
        for offset in 0..16 {
            let mut bytes = AlignedBytes::zeroed(9 * 8 + 16);
            for (i, number) in numbers.iter().enumerate() {
                let at = offset + i * 8;
                bytes.as_mut_bytes()[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            let values = Values::<u64>::prefix(&bytes.as_bytes()[offset..], 9).unwrap();
            assert_eq!(values.iter().collect::<Vec<_>>(), numbers, "offset {offset}");
            assert_eq!(values.get(8), Some(numbers[8]));
            assert_eq!(values.get(9), None);
            let aligned = offset % align_of::<u64>() == 0 && cfg!(target_endian = "little");
            assert_eq!(values.as_slice(), aligned.then_some(&numbers[..]), "offset {offset}");
        }
    }

    #[test]
    fn a_column_longer_than_its_bytes_is_refused() {
        assert!(Values::<f32>::prefix(&[0; 7], 2).is_none());
        assert!(Values::<f32>::prefix(&[0; 8], u64::MAX).is_none());
        assert_eq!(Values::<f32>::prefix(&[0; 9], 2).unwrap().len(), 2);
    }

    #[test]
    fn ids_are_lent_on_every_machine() {
        let ids = Values::<[u8; 16]>::prefix(&[7; 33], 2).unwrap();
        assert_eq!(ids.as_slice(), Some(&[[7; 16]; 2][..]));
    }
}
