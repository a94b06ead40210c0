//! Loops over tokens in bytes, which the compiler turns into vector instructions.

use crate::number::TokenType;

/// Calls `$convert` with the Rust types of two token types.
macro_rules! with_types {
    ($from:expr, $to:expr, $convert:ident($($arg:expr),*)) => {
        match $from {
            TokenType::U8 => with_types!(@to u8, $to, $convert($($arg),*)),
            TokenType::I8 => with_types!(@to i8, $to, $convert($($arg),*)),
            TokenType::U16 => with_types!(@to u16, $to, $convert($($arg),*)),
            TokenType::I16 => with_types!(@to i16, $to, $convert($($arg),*)),
            TokenType::U32 => with_types!(@to u32, $to, $convert($($arg),*)),
            TokenType::I32 => with_types!(@to i32, $to, $convert($($arg),*)),
            TokenType::U64 => with_types!(@to u64, $to, $convert($($arg),*)),
            TokenType::I64 => with_types!(@to i64, $to, $convert($($arg),*)),
        }
    };
    (@to $from:ty, $to:expr, $convert:ident($($arg:expr),*)) => {
        match $to {
            TokenType::U8 => $convert!($from, u8, $($arg),*),
            TokenType::I8 => $convert!($from, i8, $($arg),*),
            TokenType::U16 => $convert!($from, u16, $($arg),*),
            TokenType::I16 => $convert!($from, i16, $($arg),*),
            TokenType::U32 => $convert!($from, u32, $($arg),*),
            TokenType::I32 => $convert!($from, i32, $($arg),*),
            TokenType::U64 => $convert!($from, u64, $($arg),*),
            TokenType::I64 => $convert!($from, i64, $($arg),*),
        }
    };
}

/// Converts each token. A cast that loses something is found by casting back and by the sign: no
/// branch, so the loop becomes vector instructions.
macro_rules! each {
    ($from:ty, $to:ty, $stored:expr, $out:expr) => {{
        let (stored, _) = $stored.as_chunks::<{ size_of::<$from>() }>();
        let (out, _) = $out.as_chunks_mut::<{ size_of::<$to>() }>();
        let mut fits = true;
        for (out, stored) in out.iter_mut().zip(stored) {
            let token = <$from>::from_le_bytes(*stored);
            #[allow(
                clippy::allow_attributes,
                clippy::cast_possible_truncation,
                clippy::cast_possible_wrap,
                clippy::cast_sign_loss,
                clippy::unnecessary_cast,
                unused_comparisons,
                reason = "what a cast loses is found here"
            )]
            {
                let number = token as $to;
                fits &= number as $from == token && (number < 0) == (token < 0);
                *out = number.to_ne_bytes();
            }
        }
        if fits {
            return Ok(());
        }
        let misfit = stored.iter().map(|stored| i128::from(<$from>::from_le_bytes(*stored)));
        let misfit = misfit.enumerate().find(|(_, token)| <$to>::try_from(*token).is_err());
        Err(misfit.expect("a token was lost above"))
    }};
}

/// As [`TokenType::convert`].
pub(crate) fn convert(
    from: TokenType,
    stored: &[u8],
    to: TokenType,
    out: &mut [u8],
) -> Result<(), (usize, i128)> {
    if from == to && cfg!(target_endian = "little") {
        out.copy_from_slice(stored);
        return Ok(());
    }
    with_types!(from, to, each(stored, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens of `bytes`, which are little-endian.
    fn values(kind: TokenType, bytes: &[u8]) -> Vec<i128> {
        let signed = kind.name().starts_with('i');
        let value = |token: &[u8]| {
            let negative = signed && token.last().is_some_and(|&byte| byte >= 0x80);
            let fill = if negative { 0xff } else { 0 };
            let mut wide = [fill; 16];
            wide[..token.len()].copy_from_slice(token);
            i128::from_le_bytes(wide)
        };
        bytes.chunks_exact(kind.bytes()).map(value).collect()
    }

    fn range(kind: TokenType) -> std::ops::RangeInclusive<i128> {
        let bits = 8 * kind.bytes();
        match kind.name().starts_with('i') {
            true => -(1 << (bits - 1))..=(1 << (bits - 1)) - 1,
            false => 0..=(1 << bits) - 1,
        }
    }

    #[test]
    fn every_conversion_keeps_every_value_or_names_the_first_that_it_cannot() {
        // A linear congruential generator, with extremes in between.
        let mut state = 1u64;
        let mut stored = Vec::new();
        for place in 0..300 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = [state, 0, u64::MAX, 1 << 63, 0x7fff_ffff, 0x8000, state >> 40][place % 7];
            stored.extend_from_slice(&word.to_le_bytes());
        }
        for from in TokenType::ALL {
            let expected = values(from, &stored);
            for to in TokenType::ALL {
                let lost = expected.iter().position(|value| !range(to).contains(value));
                let kept = lost.unwrap_or(expected.len());
                for count in [0, 1, 2, 3, 7, kept] {
                    let count = count.min(kept);
                    let mut out = vec![0; count * to.bytes()];
                    from.convert(&stored[..count * from.bytes()], to, &mut out).unwrap();
                    let mut out: Vec<u8> = out;
                    if cfg!(target_endian = "big") {
                        out.chunks_exact_mut(to.bytes()).for_each(<[u8]>::reverse);
                    }
                    assert_eq!(values(to, &out), expected[..count], "{from:?} {to:?}");
                }
                if let Some(lost) = lost {
                    let mut out = vec![0; expected.len() * to.bytes()];
                    let error = from.convert(&stored, to, &mut out).unwrap_err();
                    assert_eq!(error, (lost, expected[lost]), "{from:?} {to:?}");
                }
            }
        }
    }

    #[test]
    fn types_have_two_names() {
        for kind in TokenType::ALL {
            assert_eq!(TokenType::named(kind.name()), Some(kind));
        }
        assert_eq!(TokenType::named("uint16"), Some(TokenType::U16));
        assert_eq!(TokenType::named("int64"), Some(TokenType::I64));
        assert_eq!(TokenType::named("float32"), None);
    }
}
