//! The mixing of a batch, drawn from the batch's own random numbers.

use tl_simd::resample::Rect;

use super::{BatchOp, CutMix, MixUp, Mixing};
use crate::recipe::Recipe;
use crate::rng::{Rng, batch_stream};

impl Recipe {
    /// Draws how batch `number` of an epoch is mixed, a pure function of its arguments; `None` when
    /// it is left as it is, or when images have no size in common.
    ///
    /// The numbers are those of [`batch_stream`]: which of the ways, where there are several; whether
    /// it is done; then the weight, and the place of a rectangle (column, then row) or of the centre
    /// of a mosaic (column, then row).
    #[must_use]
    pub fn mixing(&self, seed: u64, epoch: u32, number: u64) -> Option<Mixing> {
        let size = self.output_size()?;
        let ways = self.batch_ops();
        let mut rng = Rng::new(seed, epoch, batch_stream(number), 0);
        let way = match ways {
            [] | [_] => 0,
            _ => rng.index(ways.len()),
        };
        let way = ways.get(way)?;
        rng.chance(way.p()).then(|| way.draw(size, &mut rng))
    }
}

impl BatchOp {
    fn draw(&self, size: (u32, u32), rng: &mut Rng) -> Mixing {
        match self {
            Self::MixUp(MixUp { alpha, .. }) => Mixing::MixUp { lambda: weight(*alpha, rng) },
            Self::CutMix(CutMix { alpha, .. }) => cut(size, weight(*alpha, rng), rng),
            Self::Mosaic(_) => {
                let [x, y] = [size.0, size.1].map(|side| {
                    let margin = side / 4;
                    margin + rng.below(side - 2 * margin + 1)
                });
                Mixing::Mosaic { centre: (x, y) }
            }
        }
    }
}

/// A weight from the Beta distribution, rounded to the `f32` that torch draws.
#[expect(clippy::cast_possible_truncation, reason = "the rounding is torch's")]
fn weight(alpha: f64, rng: &mut Rng) -> f64 {
    f64::from(rng.beta(alpha, alpha) as f32)
}

/// torchvision's `CutMix.make_params`.
fn cut(size: (u32, u32), lambda: f64, rng: &mut Rng) -> Mixing {
    let (width, height) = size;
    let x = rng.below(width);
    let y = rng.below(height);
    let half = 0.5 * (1.0 - lambda).sqrt();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "half a side")]
    let reach = |side: u32| (half * f64::from(side)) as u32;
    let span = |middle: u32, side: u32| {
        let start = middle.saturating_sub(reach(side));
        let end = side.min(middle + reach(side));
        (start, end - start)
    };
    let (x, width) = span(x, width);
    let (y, height) = span(y, height);
    Mixing::CutMix { rect: Rect { x, y, width, height } }
}
