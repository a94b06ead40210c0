//! Random displacements, smoothed: torchvision's `ElasticTransform.make_params`.

use tl_simd::Level;
use tl_simd::gaussian::weights;
use tl_simd::warp::Smoother;

use super::Elastic;
use crate::bounds::area;

/// Words of a stream; larger images, beyond 33 million pixels, use them again.
const STREAM_WORDS: usize = 1 << 26;

/// The displacements of every pixel of an image, in planes: to the right, then down.
#[derive(Debug, Default)]
pub(super) struct Displacements {
    planes: Vec<f32>,
    pixels: usize,
    smoother: Smoother,
    weights: [Weights; 2],
}

/// The weights of a blur, kept as long as its deviations are the same.
#[derive(Debug, Default)]
struct Weights {
    taps: usize,
    sigma: (f64, f64),
    across: Vec<f32>,
    down: Vec<f32>,
}

impl Elastic {
    /// Whether a deviation is in the range of [`Elastic::SIGMA`].
    pub(crate) fn smooths(sigma: f64) -> bool {
        (Self::SIGMA.0..=Self::SIGMA.1).contains(&sigma)
    }

    /// Bytes of the displacements of an image of this size, and of what smooths them.
    pub(in crate::step) fn bytes(&self, size: (u32, u32)) -> u64 {
        let planes = 2 * area(size) * size_of::<f32>() as u64;
        planes + if both_smooth(self.sigma) { Smoother::bytes(size) } else { 0 }
    }
}

impl Displacements {
    /// Draws them for an image of `size`: uniform numbers from -1 to 1, blurred, times alpha, in
    /// units of half the image.
    pub(super) fn draw(&mut self, level: Level, elastic: &Elastic, size: (u32, u32)) {
        self.pixels = size.0 as usize * size.1 as usize;
        self.planes.resize(2 * self.pixels, 0.0);
        for part in self.planes.chunks_mut(STREAM_WORDS) {
            let mut rng = elastic.stream.rng();
            part.fill_with(|| rng.unit_f32() * 2.0 - 1.0);
        }
        let (right, down) = self.planes.split_at_mut(self.pixels);
        let axes = [
            (right, elastic.sigma.0, elastic.alpha.0, size.0),
            (down, elastic.sigma.1, elastic.alpha.1, size.1),
        ];
        for ((plane, own_sigma, alpha, side), weights) in axes.into_iter().zip(&mut self.weights) {
            if let Some(taps) = taps(own_sigma).filter(|_| both_smooth(elastic.sigma)) {
                weights.prepare(taps, elastic.sigma);
                self.smoother.set_weights(&weights.across, &weights.down);
                self.smoother.run(level, plane, size);
            }
            scale(plane, alpha, side);
        }
    }

    pub(super) fn planes(&self) -> [&[f32]; 2] {
        let (right, down) = self.planes.split_at(self.pixels);
        [right, down]
    }

    /// Releases the memory if the planes take more than `bytes`.
    pub(super) fn trim(&mut self, bytes: usize) {
        if self.planes.capacity() * size_of::<f32>() > bytes {
            *self = Self::default();
        }
    }
}

impl Weights {
    fn prepare(&mut self, taps: usize, sigma: (f64, f64)) {
        if (self.taps, self.sigma) != (taps, sigma) {
            let across = weights(taps, sigma.0);
            let down = weights(taps, sigma.1);
            *self = Self { taps, sigma, across, down };
        }
    }
}

/// torchvision's size of the kernel, made odd; none where nothing is smoothed.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limited before")]
fn taps(sigma: f64) -> Option<usize> {
    if Elastic::smooths(sigma) { Some((8.0 * sigma + 1.0) as usize | 1) } else { None }
}

fn both_smooth(sigma: (f64, f64)) -> bool {
    Elastic::smooths(sigma.0) && Elastic::smooths(sigma.1)
}

#[expect(clippy::cast_possible_truncation, reason = "torch works in f32")]
fn scale(plane: &mut [f32], alpha: f64, side: u32) {
    let alpha = alpha as f32;
    let side = f64::from(side) as f32;
    for value in plane {
        *value = *value * alpha / side;
    }
}
