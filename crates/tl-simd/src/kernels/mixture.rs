//! Weighted sums of 8-bit images, in `f32` with every product and every sum rounded: bit for bit as
//! torch adds tensors up.

use crate::Level;

/// The samples times `weight`.
///
/// # Panics
///
/// When the lengths differ.
pub fn weigh(level: Level, weight: f32, samples: &[u8], sums: &mut [f32]) {
    assert_eq!(samples.len(), sums.len(), "one sum per sample");
    level.vectorize(
        #[inline(always)]
        || {
            for (sum, sample) in sums.iter_mut().zip(samples) {
                *sum = weight * f32::from(*sample);
            }
        },
    );
}

/// Adds the samples times `weight`.
///
/// # Panics
///
/// When the lengths differ.
pub fn add_weighted(level: Level, weight: f32, samples: &[u8], sums: &mut [f32]) {
    assert_eq!(samples.len(), sums.len(), "one sum per sample");
    level.vectorize(
        #[inline(always)]
        || {
            for (sum, sample) in sums.iter_mut().zip(samples) {
                *sum += weight * f32::from(*sample);
            }
        },
    );
}

/// Truncates the sums to integers and clamps them to 0 to 255.
///
/// # Panics
///
/// When the lengths differ.
pub fn truncate(level: Level, sums: &[f32], samples: &mut [u8]) {
    assert_eq!(samples.len(), sums.len(), "one sum per sample");
    level.vectorize(
        #[inline(always)]
        || {
            for (sample, sum) in samples.iter_mut().zip(sums) {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "saturates"
                )]
                let whole = *sum as u8;
                *sample = whole;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_agree_with_the_definition_for_all_lengths() {
        for length in 0..200usize {
            let samples: Vec<u8> = (0..length).map(|i| (i * 97 % 256).to_le_bytes()[0]).collect();
            let a = 0.301_234_5_f32;
            let b = 0.698_765_4_f32;
            let expected: Vec<f32> = samples
                .iter()
                .map(|sample| a * f32::from(*sample) + b * f32::from(255 - *sample))
                .collect();
            let others: Vec<u8> = samples.iter().map(|sample| 255 - sample).collect();
            for level in Level::available() {
                let mut sums = vec![f32::NAN; length];
                weigh(level, a, &samples, &mut sums);
                add_weighted(level, b, &others, &mut sums);
                assert_eq!(sums, expected, "{level:?}");
                let mut whole = vec![0; length];
                truncate(level, &sums, &mut whole);
                assert!(whole.iter().zip(&sums).all(|(w, sum)| f32::from(*w) == sum.trunc()));
            }
        }
        let mut ends = [0; 4];
        truncate(Level::detect(), &[-1.0, 255.99, 256.0, 1e9], &mut ends);
        assert_eq!(ends, [0, 255, 255, 255]);
    }
}
