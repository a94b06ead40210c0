//! Warps on pixels, over the kernels.

use tl_simd::Level;
use tl_simd::resample::{ImageView, premultiply, unpremultiply};
use tl_simd::warp::{Filter, Grid, GridWarp, Map, Warper};

use super::elastic::Displacements;
use super::{Affine, Elastic, Perspective, Rotate, Warp};
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::output::{Channels, PixelType};
use crate::parity::Parity;

/// The pixels a warp works on.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) level: Level,
    pub(crate) view: ImageView<'a>,
    /// Their type, for pixels that are not 8-bit RGB or grey.
    pub(crate) wide: Option<PixelType>,
    pub(crate) size: (u32, u32),
}

/// The target of a warp.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) size: (u32, u32),
    pub(super) interpolation: Interpolation,
    pub(super) fill: Option<Fill>,
}

/// Whether Pillow's arithmetic applies: torchvision has no bicubic warps of tensors.
pub(super) fn is_pil(parity: Parity, interpolation: Interpolation) -> bool {
    parity == Parity::Pil || interpolation == Interpolation::Bicubic
}

/// Whether Pillow multiplies colours by alpha before it interpolates: of wide pixels those of 8 bits
/// have it.
fn multiplies(pixels: PixelType, filter: Filter) -> bool {
    pixels == PixelType::U8 && filter != Filter::Nearest
}

impl Warp {
    /// Bytes that a warp takes besides the images before and after it, of wide pixels of this type.
    pub(crate) fn wide_bytes(&self, pixels: PixelType, parity: Parity, size: (u32, u32)) -> u64 {
        let image = u64::from(size.0) * u64::from(size.1) * u64::from(Channels::Rgba.count());
        let target = match self {
            Self::Rotate(Rotate { interpolation, fill, .. })
            | Self::Affine(Affine { interpolation, fill, .. })
            | Self::Perspective(Perspective { interpolation, fill, .. }) => {
                Target { size, interpolation: *interpolation, fill: *fill }
            }
            Self::Elastic(elastic) => return elastic.bytes(size),
        };
        let multiplies = target.is_pil(parity) && multiplies(pixels, target.filter());
        if multiplies { image } else { 0 }
    }
}

impl Target {
    pub(super) fn is_pil(&self, parity: Parity) -> bool {
        is_pil(parity, self.interpolation)
    }

    const fn filter(&self) -> Filter {
        if matches!(self.interpolation, Interpolation::Nearest | Interpolation::NearestExact) {
            Filter::Nearest
        } else if matches!(self.interpolation, Interpolation::Bicubic) {
            Filter::Bicubic
        } else {
            Filter::Bilinear
        }
    }
}

/// Memory that warps use again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    warper: Warper,
    displacements: Displacements,
    /// An image with its colours multiplied by alpha.
    multiplied: Vec<u8>,
    row: Vec<u8>,
}

impl Scratch {
    /// Releases buffers larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.displacements.trim(bytes);
        for buffer in [&mut self.multiplied, &mut self.row] {
            if buffer.capacity() > bytes {
                *buffer = Vec::new();
            }
        }
    }

    /// With Pillow's arithmetic; without a colour torchvision gives it black.
    pub(super) fn pil(&mut self, source: Source<'_>, map: Map, target: Target, out: &mut [u8]) {
        let fill = target.fill.unwrap_or_default().pil();
        let warp = tl_simd::warp::Warp { map, size: target.size, filter: target.filter(), fill };
        let Source { level, view, wide, .. } = source;
        let Some(pixels) = wide else { return self.warper.pil(level, view, &warp, out) };
        if !multiplies(pixels, target.filter()) {
            return self.warper.pil_wide(level, pixels, view, &warp, out);
        }
        let columns = view.size().0 as usize * view.channels();
        self.multiplied.resize(columns * view.size().1 as usize, 0);
        for (y, row) in (0..).zip(self.multiplied.chunks_exact_mut(columns)) {
            premultiply(level, view.row(y), row);
        }
        let (width, height) = view.size();
        let multiplied = ImageView::packed(&self.multiplied, width, height, view.channels());
        self.warper.pil_wide(level, pixels, multiplied, &warp, out);
        for row in out.chunks_exact_mut(target.size.0 as usize * view.channels()) {
            self.row.clear();
            self.row.extend_from_slice(row);
            unpremultiply(level, &self.row, row);
        }
    }

    /// With torch's arithmetic, which has no bicubic filter.
    pub(super) fn tensor(
        &mut self,
        source: Source<'_>,
        grid: Grid<'_>,
        target: Target,
        out: &mut [u8],
    ) {
        let nearest = target.filter() == Filter::Nearest;
        let filter = if nearest { Filter::Nearest } else { Filter::Bilinear };
        let fill = target.fill.map(Fill::tensor);
        let warp = GridWarp { grid, size: target.size, filter, fill };
        let Source { level, view, wide, .. } = source;
        match wide {
            None => self.warper.tensor(level, view, &warp, out),
            Some(pixels) => self.warper.tensor_wide(level, pixels, view, &warp, out),
        }
    }

    /// Moves every pixel by its displacement: torch's arithmetic also for Pillow images.
    pub(super) fn displace(
        &mut self,
        source: Source<'_>,
        elastic: &Elastic,
        target: Target,
        out: &mut [u8],
    ) {
        let mut displacements = std::mem::take(&mut self.displacements);
        displacements.draw(source.level, elastic, target.size);
        self.tensor(source, Grid::Displaced(displacements.planes()), target, out);
        self.displacements = displacements;
    }
}
