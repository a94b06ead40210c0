//! The statistics that tables are made from: the counts and the extremes of each channel.

use crate::Level;
use crate::vector::RGB;

/// The smallest and the largest sample of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extremes {
    /// The smallest sample.
    pub low: u8,
    /// The largest sample.
    pub high: u8,
}

/// Tables that count in turn, so that neighbours with one value do not wait for each other's store.
const TURNS: usize = 4;

/// Bytes after which the counts are added up: few enough for 32 bits, and whole groups of pixels.
const CHUNK: usize = (TURNS * RGB) << 24;

/// Counts each value in each channel, as Pillow's `Image.histogram` does.
///
/// Counting is bound by loads and stores of single words, at any level, so it takes none.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
#[must_use]
pub fn histograms(pixels: &[u8]) -> [[u64; 256]; RGB] {
    assert!(pixels.len().is_multiple_of(RGB), "whole pixels");
    let mut sums = [[0_u64; 256]; RGB];
    for chunk in pixels.chunks(CHUNK) {
        let mut counts = [[[0_u32; 256]; RGB]; TURNS];
        let (groups, rest) = chunk.as_chunks::<{ TURNS * RGB }>();
        for group in groups {
            for (pixel, counts) in group.as_chunks::<RGB>().0.iter().zip(&mut counts) {
                count(*pixel, counts);
            }
        }
        for pixel in rest.as_chunks::<RGB>().0 {
            count(*pixel, &mut counts[0]);
        }
        for turn in &counts {
            for (sum, &count) in sums.as_flattened_mut().iter_mut().zip(turn.as_flattened()) {
                *sum += u64::from(count);
            }
        }
    }
    sums
}

#[inline(always)]
fn count([red, green, blue]: [u8; RGB], [reds, greens, blues]: &mut [[u32; 256]; RGB]) {
    reds[usize::from(red)] += 1;
    greens[usize::from(green)] += 1;
    blues[usize::from(blue)] += 1;
}

/// Bytes that are compared at once; the channels come round after three vectors of any level.
const LANES: usize = 64 * RGB;

/// The extremes of each channel; of no pixels, 255 and 0.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
#[must_use]
pub fn extremes(level: Level, pixels: &[u8]) -> [Extremes; RGB] {
    assert!(pixels.len().is_multiple_of(RGB), "whole pixels");
    let (chunks, rest) = pixels.as_chunks::<LANES>();
    let mut low = [u8::MAX; LANES];
    let mut high = [u8::MIN; LANES];
    level.vectorize(
        #[inline(always)]
        || {
            for chunk in chunks {
                for (low, &sample) in low.iter_mut().zip(chunk) {
                    *low = sample.min(*low);
                }
                for (high, &sample) in high.iter_mut().zip(chunk) {
                    *high = sample.max(*high);
                }
            }
        },
    );
    let mut found = [Extremes { low: u8::MAX, high: u8::MIN }; RGB];
    let lanes = low.as_chunks::<RGB>().0.iter().chain(high.as_chunks::<RGB>().0);
    let lanes = lanes.filter(|_| !chunks.is_empty());
    for pixel in lanes.chain(rest.as_chunks::<RGB>().0) {
        for (found, &sample) in found.iter_mut().zip(pixel) {
            *found = Extremes { low: found.low.min(sample), high: found.high.max(sample) };
        }
    }
    found
}
