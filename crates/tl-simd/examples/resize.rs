//! Resizes a generated image at every level and prints how long an image takes.

use std::error::Error;
use std::io::{Write, stdout};
use std::time::Instant;
use tl_simd::Level;
use tl_simd::resample::{Filter, ImageView, Rect, Resampler, Resize};

const REPEATS: u32 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let pixels: Vec<u8> =
        (0..500 * 375 * 3_u32).map(|i| (i.wrapping_mul(i) >> 7).to_le_bytes()[0]).collect();
    let image = ImageView::packed(&pixels, 500, 375, 3);
    let resize = Resize {
        region: Rect::of_size(500, 375),
        resized: (224, 224),
        window: Rect::of_size(224, 224),
        filter: Filter::Bilinear,
    };
    for level in Level::available() {
        let mut resampler = Resampler::new();
        let mut sum = 0_u64;
        let start = Instant::now();
        for _ in 0..REPEATS {
            resampler.run(level, image, &resize, |_, row| {
                sum += row.iter().map(|&sample| u64::from(sample)).sum::<u64>();
            });
        }
        let time = start.elapsed() / REPEATS;
        writeln!(stdout(), "{level}: {time:?} an image, samples add up to {sum}")?;
    }
    Ok(())
}
