//! How far fast decoding is from exact decoding, over a data set.
//!
//! ```text
//! tolerance DATA RECIPE [SIZE [EPOCHS]]
//! ```
//!
//! RECIPE is `imagenet-train` or `imagenet-eval`. Prints one line for every margin: the mean and the
//! 99.9th percentile of the absolute differences of 8-bit samples, the largest one, and PSNR; the
//! mean over all samples, and PSNR of the worst image. `docs/jpeg.md` has the results.

#![expect(clippy::print_stdout, reason = "the table is the output")]

use std::error::Error;

use tl_pipeline::{Dataset, Loader, LoaderConfig, Work};
use tl_transform::{DecodeMode, Layout, Recipe};

const MARGINS: [f32; 6] = [1.0, 1.25, 1.5, 2.0, 3.0, 65_536.0];

/// How often each absolute difference occurs.
struct Differences([u64; 256]);

impl Differences {
    fn between(left: &[u8], right: &[u8]) -> Self {
        let mut counts = [0; 256];
        for (&left, &right) in left.iter().zip(right) {
            counts[usize::from(left.abs_diff(right))] += 1;
        }
        Self(counts)
    }

    fn add(&mut self, other: &Self) {
        for (count, other) in self.0.iter_mut().zip(other.0) {
            *count += other;
        }
    }

    fn sum(&self, of: impl Fn(u64) -> u64) -> u64 {
        (0..).zip(self.0).map(|(difference, count)| of(difference) * count).sum()
    }

    #[expect(clippy::cast_precision_loss, reason = "sums of bytes, to be printed")]
    fn mean(&self, of: impl Fn(u64) -> u64) -> f64 {
        self.sum(of) as f64 / self.sum(|_| 1) as f64
    }

    fn psnr(&self) -> f64 {
        10.0 * (255.0 * 255.0 / self.mean(|difference| difference * difference)).log10()
    }

    /// The smallest difference that all but one in `rarity` samples do not exceed.
    fn percentile(&self, rarity: u64) -> usize {
        let (all, mut seen) = (self.sum(|_| 1), 0);
        let reached = self.0.iter().position(|count| {
            seen += count;
            seen >= all - all / rarity
        });
        reached.unwrap_or(0)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, recipe, rest @ ..] = &arguments[..] else {
        println!("usage: tolerance DATA RECIPE [SIZE [EPOCHS]]");
        return Ok(());
    };
    let size = rest.first().map_or(Ok(224), |size| size.parse())?;
    let epochs: u32 = rest.get(1).map_or(Ok(1), |epochs| epochs.parse())?;
    let recipe = match recipe.as_str() {
        "imagenet-train" => Recipe::imagenet_train(size)?,
        "imagenet-eval" => Recipe::imagenet_eval(size)?,
        other => return Err(format!("unknown recipe {other}").into()),
    };
    let recipe = recipe.into_pixels(Layout::Hwc);
    let loader = |decode| -> Result<Loader, Box<dyn Error>> {
        let work = Work::Images(recipe.clone().with_decode(decode)?);
        let config = LoaderConfig { seed: 42, batch_size: 8, ..LoaderConfig::new(work) };
        Ok(Loader::new(Dataset::open(&[data])?, config)?)
    };
    let exact = loader(DecodeMode::Exact)?;
    println!("margin  mean   99.9 %  largest  PSNR dB  worst image");
    for decode_margin in MARGINS {
        let fast = loader(DecodeMode::Fast { decode_margin })?;
        let (mut all, mut worst) = (Differences([0; 256]), f64::INFINITY);
        for epoch in 0..epochs {
            for (exact, fast) in exact.epoch(epoch).zip(fast.epoch(epoch)) {
                let (exact, fast) = (exact?, fast?);
                let bytes = exact.images().len() / exact.len();
                let images = exact.images().chunks_exact(bytes);
                for (exact, fast) in images.zip(fast.images().chunks_exact(bytes)) {
                    let differences = Differences::between(exact, fast);
                    worst = worst.min(differences.psnr());
                    all.add(&differences);
                }
            }
        }
        println!(
            "{decode_margin:6} {:6.3} {:6} {:8} {:9.2} {worst:9.2}",
            all.mean(|difference| difference),
            all.percentile(1000),
            all.percentile(u64::MAX),
            all.psnr(),
        );
    }
    Ok(())
}
