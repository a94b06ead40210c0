//! Warps on pixels, over the kernels.

use tl_simd::Level;
use tl_simd::resample::ImageView;
use tl_simd::warp::{Filter, Grid, GridWarp, Map, Warp, Warper};

use super::Elastic;
use super::elastic::Displacements;
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::parity::Parity;

/// The pixels a warp works on.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) level: Level,
    pub(super) view: ImageView<'a>,
    pub(super) size: (u32, u32),
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
}

impl Scratch {
    /// Releases buffers larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.displacements.trim(bytes);
    }

    /// With Pillow's arithmetic; without a colour torchvision gives it black.
    pub(super) fn pil(&mut self, source: Source<'_>, map: Map, target: Target, out: &mut [u8]) {
        let fill = target.fill.unwrap_or_default().pil();
        let warp = Warp { map, size: target.size, filter: target.filter(), fill };
        self.warper.pil(source.level, source.view, &warp, out);
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
        self.warper.tensor(source.level, source.view, &warp, out);
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
