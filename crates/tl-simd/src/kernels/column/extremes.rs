//! The smallest and the largest number of a column.

use crate::Level;

/// A type of number that columns have, with an order of all its values but NaN.
pub trait Number: Copy + private::Key {}

mod private {
    /// Numbers by keys with the same order.
    pub trait Key: Sized {
        type Key: Copy + Ord;

        const SMALLEST: Self::Key;
        const LARGEST: Self::Key;

        /// None for NaN.
        fn bounds(self) -> (Self::Key, Self::Key);

        fn from_key(key: Self::Key) -> Self;
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {
        $(
            impl private::Key for $integer {
                type Key = Self;

                const SMALLEST: Self = Self::MIN;
                const LARGEST: Self = Self::MAX;

                #[inline(always)]
                fn bounds(self) -> (Self, Self) {
                    (self, self)
                }

                #[inline(always)]
                fn from_key(key: Self) -> Self {
                    key
                }
            }

            impl Number for $integer {}
        )*
    };
}

integers! { i8 u8 i16 u16 i32 u32 i64 u64 }

macro_rules! floats {
    ($($float:ty, $key:ty, $bits:ty;)*) => {
        $(
            impl private::Key for $float {
                type Key = $key;

                const SMALLEST: $key = <$key>::MIN;
                const LARGEST: $key = <$key>::MAX;

                /// The bits of negative numbers but the sign are turned round.
                #[inline(always)]
                fn bounds(self) -> ($key, $key) {
                    let bits = self.to_bits().cast_signed();
                    let key = bits ^ (bits >> (<$key>::BITS - 1)) & <$key>::MAX;
                    let is_number = bits & <$key>::MAX <= Self::INFINITY.to_bits().cast_signed();
                    if is_number { (key, key) } else { (<$key>::MAX, <$key>::MIN) }
                }

                #[inline(always)]
                fn from_key(key: $key) -> Self {
                    let bits = key ^ (key >> (<$key>::BITS - 1)) & <$key>::MAX;
                    Self::from_bits(bits.cast_unsigned())
                }
            }

            impl Number for $float {}
        )*
    };
}

floats! {
    f32, i32, u32;
    f64, i64, u64;
}

/// The smallest and the largest value, where -0 is below 0. NaN is ignored. `None` when `values`
/// has no number.
#[must_use]
pub fn extremes<T: Number>(level: Level, values: &[T]) -> Option<(T, T)> {
    let (least, most) = level.vectorize(
        #[inline(always)]
        || {
            let mut least = T::LARGEST;
            let mut most = T::SMALLEST;
            for value in values {
                let (lower, upper) = value.bounds();
                least = least.min(lower);
                most = most.max(upper);
            }
            (least, most)
        },
    );
    (least <= most).then(|| (T::from_key(least), T::from_key(most)))
}
