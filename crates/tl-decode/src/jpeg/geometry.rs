//! The samples and blocks of each component that a region needs, and their way to pixels.
//!
//! Sizes, the scale of each component and the choice of upsampling follow libjpeg's `jdmaster.c`
//! and `jdsample.c`, because the pixels depend on them.

use std::ops::Range;

use tl_simd::jpeg::Scale;
use tl_simd::resample::Rect;

use super::frame::{Component, Frame};
pub(super) use super::parts::Upsampling;
use super::scan::{Block, MAX_COMPONENTS, Scan, Window};
use crate::error::{DecodeError, Feature};

/// The side of a block in samples, at full size.
const BLOCK_SIDE: u32 = 8;

impl Upsampling {
    /// Pixels that a sample becomes across.
    pub(super) fn across(self) -> u32 {
        match self {
            Self::None | Self::H1V2 | Self::Fractional => 1,
            Self::H2V1 | Self::H2V2 => 2,
            Self::Replicate(across, _) => across,
        }
    }

    /// Samples that a filter reads besides those under a pixel, on every side: across and down.
    pub(super) fn margin(self) -> [u32; 2] {
        match self {
            Self::None | Self::Replicate(..) => [0, 0],
            Self::H2V1 => [1, 0],
            Self::H1V2 => [0, 1],
            Self::H2V2 | Self::Fractional => [1, 1],
        }
    }
}

/// One component of a scaled image.
#[derive(Clone, Debug, Default)]
pub(super) struct ComponentGeometry {
    /// The side of its blocks, which is that of the image or more.
    pub(super) scale: Scale,
    /// Blocks of an MCU of an interleaved scan, across and down.
    factors: (u32, u32),
    /// Samples of the whole component, across and down.
    pub(super) size: (u32, u32),
    /// Pixels per sample, as a fraction: numerators and denominators across and down.
    ratio: [(u32, u32); 2],
    pub(super) upsampling: Upsampling,
    /// Columns and rows of samples that are needed.
    pub(super) columns: Range<u32>,
    pub(super) rows: Range<u32>,
}

/// The source of a region of a scaled image.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    /// Width and height of the whole scaled image.
    pub(super) size: (u32, u32),
    pub(super) region: Rect,
    components: [ComponentGeometry; MAX_COMPONENTS],
    count: usize,
}

impl Geometry {
    /// The geometry of `region`; of the whole image without one.
    pub(super) fn new(
        frame: &Frame,
        scale: Scale,
        region: Option<Rect>,
    ) -> Result<Self, DecodeError> {
        let (width, height) = frame.size();
        let width = scale.apply(width);
        let height = scale.apply(height);
        let region = region.unwrap_or(Rect::of_size(width, height));
        if region.width == 0 || region.height == 0 || !region.fits(width, height) {
            return Err(DecodeError::Region { region, width, height });
        }
        let mut components: [ComponentGeometry; MAX_COMPONENTS] = Default::default();
        for (to, component) in components.iter_mut().zip(frame.components()) {
            *to = ComponentGeometry::new(frame, component, scale);
            to.require(&region);
        }
        Ok(Self { size: (width, height), region, components, count: frame.components().len() })
    }

    pub(super) fn components(&self) -> &[ComponentGeometry] {
        &self.components[..self.count]
    }

    /// Makes every component hold just the samples that the region touches, for callers that
    /// upsample by themselves.
    pub(super) fn leave_out_margin(&mut self) {
        let region = self.region;
        for component in &mut self.components[..self.count] {
            component.reserve(&region, [0, 0]);
        }
    }

    /// Refuses what cannot be upsampled.
    pub(super) fn require_upsampling(&self) -> Result<(), DecodeError> {
        if self.components().iter().any(|c| c.upsampling == Upsampling::Fractional) {
            return Err(Feature::JpegSampling.into());
        }
        Ok(())
    }

    /// The MCUs of a scan that hold what is needed.
    pub(super) fn window(&self, scan: &Scan) -> Window {
        let parts = scan.components().iter().map(|part| {
            let needed = &self.components[part.component];
            (needed.block_columns(), needed.block_rows(), part.across, part.down)
        });
        window_of(parts)
    }

    /// The MCUs that hold what is needed, as if all components were in one scan.
    pub(super) fn frame_window(&self) -> Window {
        window_of(self.components().iter().map(|component| {
            let (across, down) = component.factors;
            (component.block_columns(), component.block_rows(), across, down)
        }))
    }
}

/// The MCUs around blocks of several components, given with their blocks per MCU.
fn window_of(parts: impl Iterator<Item = (Range<u32>, Range<u32>, u32, u32)>) -> Window {
    let windows = parts.map(|(columns, rows, across, down)| Window {
        rows: rows.start / down..rows.end.div_ceil(down),
        columns: columns.start / across..columns.end.div_ceil(across),
    });
    let around =
        |a: &Range<u32>, b: &Range<u32>| -> Range<u32> { a.start.min(b.start)..a.end.max(b.end) };
    let both = |a: Window, b: Window| Window {
        rows: around(&a.rows, &b.rows),
        columns: around(&a.columns, &b.columns),
    };
    windows.reduce(both).unwrap_or_default()
}

impl ComponentGeometry {
    fn new(frame: &Frame, component: &Component, scale: Scale) -> Self {
        let single = frame.components().len() == 1;
        // The factors of an only component cancel out.
        let of = |factor: u8| if single { 1 } else { u32::from(factor) };
        let factors = (of(component.across), of(component.down));
        let most = (of(frame.max_sampling.0), of(frame.max_sampling.1));
        let side = scale.apply(BLOCK_SIDE);

        // Subsampled components are scaled down less, as far as that leaves them subsampled.
        let mut own_scale = scale;
        let divides =
            |most: u32, own: u32, side_own: u32| (most * side).is_multiple_of(own * side_own);
        while let Some(larger) = larger(own_scale) {
            let doubled = larger.apply(BLOCK_SIDE);
            if !divides(most.0, factors.0, doubled) || !divides(most.1, factors.1, doubled) {
                break;
            }
            own_scale = larger;
        }
        let own_side = own_scale.apply(BLOCK_SIDE);
        let (width, height) = frame.size();
        let samples =
            |length: u32, factor: u32, most: u32| (length * factor * own_side).div_ceil(most * 8);
        let size = (samples(width, factors.0, most.0), samples(height, factors.1, most.1));
        let ratio = [(most.0 * side, factors.0 * own_side), (most.1 * side, factors.1 * own_side)];
        Self {
            scale: own_scale,
            factors,
            size,
            ratio,
            upsampling: upsampling(ratio, scale, size.0),
            columns: 0..0,
            rows: 0..0,
        }
    }

    /// Says which samples the region needs: those under its pixels and, for a filter, one more on
    /// every side.
    fn require(&mut self, region: &Rect) {
        self.reserve(region, self.upsampling.margin());
    }

    /// Asks for the samples that the region touches and `margin` more on every side.
    fn reserve(&mut self, region: &Rect, margin: [u32; 2]) {
        let span = |from: u32, length: u32, ratio: (u32, u32), margin, size: u32| {
            let (pixels, samples) = ratio;
            let scaled = |pixel: u32| u64::from(pixel) * u64::from(samples);
            let first = scaled(from) / u64::from(pixels);
            let end = scaled(from + length).div_ceil(u64::from(pixels));
            let [first, end] = [first, end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
            first.saturating_sub(margin)..end.saturating_add(margin).min(size)
        };
        let [across, down] = self.ratio;
        self.columns = span(region.x, region.width, across, margin[0], self.size.0);
        self.rows = span(region.y, region.height, down, margin[1], self.size.1);
    }

    /// The side of a block in samples.
    pub(super) fn side(&self) -> u32 {
        self.scale.apply(BLOCK_SIDE)
    }

    pub(super) fn block_columns(&self) -> Range<u32> {
        self.columns.start / self.side()..self.columns.end.div_ceil(self.side())
    }

    pub(super) fn block_rows(&self) -> Range<u32> {
        self.rows.start / self.side()..self.rows.end.div_ceil(self.side())
    }

    /// Those of a run of neighbouring blocks that are needed, with the column of the first. The others
    /// become zero.
    #[inline]
    pub(super) fn clip<'a>(
        &self,
        block_row: u32,
        block_column: u32,
        blocks: &'a mut [Block],
    ) -> Option<(u32, &'a mut [Block])> {
        let wanted = self.block_columns();
        let end = block_column.saturating_add(u32::try_from(blocks.len()).unwrap_or(u32::MAX));
        let from = block_column.max(wanted.start);
        let to = end.min(wanted.end);
        if from >= to || !self.block_rows().contains(&block_row) {
            blocks.fill(Block::ZERO);
            return None;
        }
        let (before, rest) = blocks.split_at_mut((from - block_column) as usize);
        let (inside, after) = rest.split_at_mut((to - from) as usize);
        before.fill(Block::ZERO);
        after.fill(Block::ZERO);
        Some((from, inside))
    }

    /// Block rows in an MCU row of an interleaved scan.
    pub(super) fn block_rows_per_mcu(&self) -> u32 {
        self.factors.1
    }

    /// Pixels of the scaled image per sample, across and down.
    pub(super) fn step(&self) -> (f64, f64) {
        let [across, down] =
            self.ratio.map(|(pixels, samples)| f64::from(pixels) / f64::from(samples));
        (across, down)
    }

    /// Pixel rows that are complete once the first `samples` rows of the component are decoded.
    pub(super) fn complete_rows(&self, samples: u32) -> u32 {
        if samples >= self.size.1 {
            return u32::MAX;
        }
        match self.upsampling {
            Upsampling::H1V2 | Upsampling::H2V2 => (2 * samples).saturating_sub(1),
            Upsampling::Replicate(_, down) => samples * down,
            Upsampling::None | Upsampling::H2V1 | Upsampling::Fractional => samples,
        }
    }
}

/// As libjpeg chooses it, with its exception for narrow components.
fn upsampling([across, down]: [(u32, u32); 2], scale: Scale, width: u32) -> Upsampling {
    let whole =
        |(pixels, samples): (u32, u32)| pixels.is_multiple_of(samples).then(|| pixels / samples);
    let (Some(across), Some(down)) = (whole(across), whole(down)) else {
        return Upsampling::Fractional;
    };
    let fancy = scale != Scale::EIGHTH;
    let wide = width > 2;
    match (across, down) {
        (1, 1) => Upsampling::None,
        (2, 1) if fancy && wide => Upsampling::H2V1,
        (1, 2) if fancy => Upsampling::H1V2,
        (2, 2) if fancy && wide => Upsampling::H2V2,
        (across, down) => Upsampling::Replicate(across, down),
    }
}

/// Twice the scale, unless it is the full one or more.
fn larger(scale: Scale) -> Option<Scale> {
    let eighths = scale.eighths();
    (eighths < Scale::FULL.eighths()).then(|| Scale::from_eighths(2 * eighths)).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::marker::{SOF0, Segment};
    use super::*;

    fn frame(size: (u16, u16), factors: &[u8]) -> Frame {
        let (width, height) = size;
        let w = width.to_be_bytes();
        let h = height.to_be_bytes();
        let mut data = vec![8, h[0], h[1], w[0], w[1], u8::try_from(factors.len()).unwrap()];
        data.extend((1..).zip(factors).flat_map(|(id, &factors)| [id, factors, 0]));
        Frame::parse(&Segment { marker: SOF0, at: 0, data: &data }).unwrap()
    }

    #[test]
    fn components_are_scaled_and_upsampled_as_libjpeg_does() {
        use Upsampling::{Fractional, H1V2, H2V1, H2V2, None, Replicate};
        let eighths = |eighths| Scale::from_eighths(eighths).unwrap();
        // The scale, size and upsampling of the second component.
        let check = |size, factors: &[u8], scale, expected| {
            let geometry = Geometry::new(&frame(size, factors), scale, Option::None).unwrap();
            let component = &geometry.components()[1];
            let found = (component.scale, component.size, component.upsampling);
            assert_eq!(found, expected, "{size:?}, {factors:x?} at {scale}");
        };
        let of_420 = [0x22, 0x11, 0x11];
        let of_411 = [0x41, 0x11, 0x11];
        check((35, 29), &of_420, Scale::FULL, (Scale::FULL, (18, 15), H2V2));
        check((35, 29), &of_420, Scale::HALF, (Scale::FULL, (18, 15), None));
        check((35, 29), &of_420, Scale::EIGHTH, (Scale::QUARTER, (5, 4), None));
        check((35, 29), &of_411, Scale::FULL, (Scale::FULL, (9, 29), Replicate(4, 1)));
        // Twice 3/8, and 4 * 3/8 in both directions.
        check((35, 29), &of_420, eighths(3), (eighths(6), (14, 11), None));
        check((35, 29), &of_411, eighths(3), (eighths(3), (4, 11), Replicate(4, 1)));
        check((35, 29), &[0x44, 0x11, 0x11], eighths(3), (eighths(12), (14, 11), None));
        check((35, 29), &of_420, eighths(9), (eighths(9), (20, 17), H2V2));
        // It could only be larger in both directions.
        check((35, 29), &of_411, Scale::QUARTER, (Scale::QUARTER, (3, 8), Replicate(4, 1)));
        check((35, 29), &[0x21, 0x11, 0x11], Scale::HALF, (Scale::HALF, (9, 15), H2V1));
        check(
            (35, 29),
            &[0x21, 0x11, 0x11],
            Scale::EIGHTH,
            (Scale::EIGHTH, (3, 4), Replicate(2, 1)),
        );
        check((4, 29), &[0x21, 0x11, 0x11], Scale::FULL, (Scale::FULL, (2, 29), Replicate(2, 1)));
        check((4, 4), &[0x12, 0x11, 0x11], Scale::FULL, (Scale::FULL, (4, 2), H1V2));
        check((4, 4), &of_420, Scale::FULL, (Scale::FULL, (2, 2), Replicate(2, 2)));
        check((30, 8), &[0x31, 0x21, 0x11], Scale::FULL, (Scale::FULL, (20, 8), Fractional));
    }

    #[test]
    fn a_region_needs_a_sample_more_where_a_filter_reaches_over_its_edge() {
        let frame = frame((64, 64), &[0x22, 0x11, 0x11]);
        let region = Rect { x: 16, y: 32, width: 16, height: 16 };
        let geometry = Geometry::new(&frame, Scale::FULL, Some(region)).unwrap();
        let [luma, chroma, _] = geometry.components() else { panic!("three components") };
        assert_eq!((luma.columns.clone(), luma.rows.clone()), (16..32, 32..48));
        assert_eq!((chroma.columns.clone(), chroma.rows.clone()), (7..17, 15..25));
        assert_eq!((luma.block_columns(), luma.block_rows()), (2..4, 4..6));
        assert_eq!((chroma.block_columns(), chroma.block_rows()), (0..3, 1..4));
        assert_eq!(geometry.frame_window(), Window { rows: 1..4, columns: 0..3 });
        // At half the size each sample is a pixel.
        let geometry = Geometry::new(&frame, Scale::HALF, Some(Rect::of_size(8, 8))).unwrap();
        assert_eq!(geometry.frame_window(), Window { rows: 0..1, columns: 0..1 });
    }

    #[test]
    fn an_only_component_is_not_subsampled() {
        let frame = frame((35, 29), &[0x24]);
        let geometry = Geometry::new(&frame, Scale::HALF, None).unwrap();
        let [only] = geometry.components() else { panic!("one component") };
        assert_eq!((only.scale, only.size), (Scale::HALF, (18, 15)));
        assert_eq!(only.upsampling, Upsampling::None);
        assert_eq!(frame.blocks(&frame.components()[0]), (5, 4));
    }
}
