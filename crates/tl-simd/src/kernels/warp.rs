//! Moving every pixel of an image by a map from output pixels to places in the source.
//!
//! [`Warper::pil`] is Pillow's `Image.transform` with `AFFINE` and `PERSPECTIVE` data
//! (`Geometry.c`): nearest in 16.16 fixed point, bilinear and bicubic in double precision, truncated.
//! [`Warper::tensor`] is what torchvision v2 does with a tensor: a grid of `f32` coordinates and
//! torch's `grid_sample(padding_mode="zeros", align_corners=False)`, whose sums of products are
//! fused, then blending with the fill colour and rounding half to even.
//! [`turn`] moves pixels by multiples of 90 degrees.
//! [`Warper::pil_wide`] and [`Warper::tensor_wide`] take samples of 16 bits and floats.
//!
//! A row is made in pieces of 64 pixels: places, then the pixels around them, then blending. Each
//! step is a separate loop over arrays that stay in the nearest cache. The loops are plain Rust
//! that the compiler vectorises; only reading and packing pixels are written for the levels.

mod cells;
mod grid;
mod map;
mod nearest;
mod pil;
mod smooth;
mod tensor;
mod turn;
mod wide;

use crate::Level;
use crate::kernels::resample::ImageView;
use crate::vector::gather::Plain;
use crate::vector::{RGB, dispatch};
use cells::{Rows, Source};
pub use grid::Grid;
pub use map::Map;
pub use smooth::Smoother;
pub use turn::{Turn, turn};

/// Pixels of a piece of a row.
const PIECE: usize = 64;

/// The interpolation of a pixel from those around its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// The pixel that the place lies in.
    Nearest,
    /// Four pixels, weighted by their distances.
    Bilinear,
    /// Sixteen pixels by Pillow's cubic (a = -1); not for tensors.
    Bicubic,
}

/// The warp that [`Warper::pil`] computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warp {
    /// From output pixels to the source.
    pub map: Map,
    /// Width and height of the output.
    pub size: (u32, u32),
    /// The filter.
    pub filter: Filter,
    /// The colour where the map leaves the source; a grey image takes the first channel.
    pub fill: [u8; RGB],
}

/// The warp that [`Warper::tensor`] computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridWarp<'a> {
    /// The place that each output pixel is taken from.
    pub grid: Grid<'a>,
    /// Width and height of the output.
    pub size: (u32, u32),
    /// The filter, nearest or bilinear.
    pub filter: Filter,
    /// The colour outside the source, with which edges are blended; without one torchvision leaves
    /// what the sampling gives, black.
    pub fill: Option<[f32; RGB]>,
}

impl GridWarp<'_> {
    /// Refuses what torch does not compute.
    fn check(&self, source: Source<'_>) {
        assert_ne!(self.filter, Filter::Bicubic, "torchvision warps tensors without a cubic");
        let side = source.width.max(source.height);
        assert!(side < 1 << 23, "a side of {side} pixels; torch counts them in f32");
        self.grid.check(self.size);
    }
}

/// Scratch rows of warps, reused from one image to the next.
#[derive(Debug, Default)]
pub struct Warper {
    /// A row of each channel, in whole pieces.
    planes: Vec<u8>,
    /// The source column of each output column, when a map only scales.
    columns: Vec<u32>,
}

impl Warper {
    /// Without any memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Pillow's `src.transform(size, map, resample=filter, fillcolor=fill)`, packed into `out`.
    ///
    /// # Panics
    ///
    /// When `src` has 4 channels, or when `out` does not hold exactly the output.
    pub fn pil(&mut self, level: Level, src: ImageView<'_>, warp: &Warp, out: &mut [u8]) {
        let source = Source::of_bytes(src, warp.size, out);
        let [red, ..] = warp.fill;
        match src.channels {
            1 => self.pil_of(level, source, warp, [red], out),
            _ => self.pil_of(level, source, warp, warp.fill, out),
        }
    }

    fn pil_of<const C: usize>(
        &mut self,
        level: Level,
        source: Source<'_>,
        warp: &Warp,
        fill: [u8; C],
        out: &mut [u8],
    ) {
        if out.is_empty() || source.is_empty() {
            out.as_chunks_mut().0.fill(fill);
        } else if warp.filter == Filter::Nearest {
            let columns = &mut self.columns;
            dispatch!(
                level,
                scalar => nearest::pil(Plain, source, warp, fill, columns, out),
                simd => nearest::pil(simd, source, warp, fill, columns, out),
            );
        } else {
            let rows = Rows::new(&mut self.planes, level, warp.size.0, out);
            dispatch!(
                level,
                scalar => pil::smooth(Plain, source, warp, fill, rows),
                simd => pil::smooth(simd, source, warp, fill, rows),
            );
        }
    }

    /// Warps the tensor `src` as torchvision v2 does, packed into `out`.
    ///
    /// # Panics
    ///
    /// When `src` has 4 channels or 2^23 rows or columns, when the filter is bicubic, when `out`
    /// does not hold exactly the output, or when a grid of displacements is not as large as that.
    pub fn tensor(
        &mut self,
        level: Level,
        src: ImageView<'_>,
        warp: &GridWarp<'_>,
        out: &mut [u8],
    ) {
        let source = Source::of_bytes(src, warp.size, out);
        warp.check(source);
        match src.channels {
            1 => self.tensor_of(level, source, warp, warp.fill.map(|[red, ..]| [red]), out),
            _ => self.tensor_of(level, source, warp, warp.fill, out),
        }
    }

    fn tensor_of<const C: usize>(
        &mut self,
        level: Level,
        source: Source<'_>,
        warp: &GridWarp<'_>,
        fill: Option<[f32; C]>,
        out: &mut [u8],
    ) {
        let bytes = fill.unwrap_or([0.0; C]).map(tensor::round);
        if out.is_empty() || source.is_empty() {
            out.as_chunks_mut().0.fill(bytes);
        } else if warp.filter == Filter::Nearest {
            dispatch!(
                level,
                scalar => nearest::tensor(Plain, source, warp, bytes, out),
                simd => nearest::tensor(simd, source, warp, bytes, out),
            );
        } else {
            let rows = Rows::new(&mut self.planes, level, warp.size.0, out);
            dispatch!(
                level,
                scalar => tensor::bilinear(Plain, source, warp, fill, rows),
                simd => tensor::bilinear(simd, source, warp, fill, rows),
            );
        }
    }
}
