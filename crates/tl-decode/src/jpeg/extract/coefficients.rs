//! The coefficients of a region, packed as they come from the entropy decoders.

use tl_simd::resample::Rect;

use super::described;
use crate::jpeg::geometry::{ComponentGeometry, Geometry};
use crate::jpeg::parts::{JpegCoefficients, JpegComponent};
use crate::jpeg::scan::{Block, BlockSink, MAX_COMPONENTS};
use crate::jpeg::scans::FrameSink;
use crate::jpeg::tables::Quantizer;

/// Rows of a block.
const ROWS: usize = 8;

/// Places of rows have 24 bits.
const MOST_ROWS: u64 = 1 << 24;

/// Takes the blocks of an image.
pub(super) struct CoefficientSink<'a> {
    geometry: &'a Geometry,
    quantizers: [Quantizer; MAX_COMPONENTS],
    /// By component, the number of its first block.
    first: [usize; MAX_COMPONENTS],
    /// Rows if none is left out.
    most_rows: usize,
    /// Bytes of the planes that the host needs. As many are charged at least, so that an image that is
    /// too large for the host is not decoded here.
    plane_bytes: u64,
    coefficients: &'a mut JpegCoefficients,
}

impl<'a> CoefficientSink<'a> {
    /// A sink of the blocks of `geometry`, which makes no room for rows yet; `None` for more rows than
    /// have places.
    pub(super) fn new(
        geometry: &'a Geometry,
        plane_bytes: u64,
        coefficients: &'a mut JpegCoefficients,
    ) -> Option<Self> {
        let mut first = [0; MAX_COMPONENTS];
        let mut blocks = 0u64;
        for (first, component) in first.iter_mut().zip(geometry.components()) {
            *first = usize::try_from(blocks).ok()?;
            let Rect { width, height, .. } = held(component);
            blocks += u64::from(width) * u64::from(height);
        }
        let most_rows = blocks * ROWS as u64;
        if most_rows > MOST_ROWS {
            return None;
        }
        let most_rows = usize::try_from(most_rows).ok()?;
        let quantizers = [[1; 64]; MAX_COMPONENTS];
        Some(Self { geometry, quantizers, first, most_rows, plane_bytes, coefficients })
    }

    /// Makes room for the blocks, which are all zero until they come. The memory is charged before.
    pub(super) fn allocate(&mut self) {
        self.coefficients.blocks.clear();
        self.coefficients.blocks.resize(self.most_rows / ROWS, 0);
        self.coefficients.rows.clear();
    }

    /// Adds the components to `out`, after the last scan.
    pub(super) fn describe(&self, out: &mut Vec<JpegComponent>) {
        let components = self.geometry.components().iter().zip(&self.quantizers);
        out.extend(
            components
                .map(|(component, quantizer)| described(component, held(component), quantizer)),
        );
    }
}

/// The blocks of a component that are kept.
fn held(component: &ComponentGeometry) -> Rect {
    let columns = component.block_columns();
    let rows = component.block_rows();
    let width = columns.end - columns.start;
    Rect { x: columns.start, y: rows.start, width, height: rows.end - rows.start }
}

impl FrameSink for CoefficientSink<'_> {
    fn geometry(&self) -> &Geometry {
        self.geometry
    }

    fn bytes(&self) -> u64 {
        let of_rows = self.most_rows * size_of::<[i16; ROWS]>();
        let own = (of_rows + self.most_rows / ROWS * size_of::<u32>()) as u64;
        own.max(self.plane_bytes)
    }

    fn quantizers(&mut self) -> &mut [Quantizer; MAX_COMPONENTS] {
        &mut self.quantizers
    }

    fn finish(&mut self) {}
}

impl BlockSink for CoefficientSink<'_> {
    #[inline]
    fn blocks(
        &mut self,
        component: usize,
        block_row: u32,
        block_column: u32,
        blocks: &mut [Block],
    ) {
        let geometry = &self.geometry.components()[component];
        let Some((from, blocks)) = geometry.clip(block_row, block_column, blocks) else { return };
        let Rect { x, y, width, .. } = held(geometry);
        let place = (block_row - y) as usize * width as usize + (from - x) as usize;
        let place = self.first[component] + place;
        let JpegCoefficients { blocks: packed, rows } = &mut *self.coefficients;
        make_room(rows, blocks.len() * ROWS, self.most_rows);
        for (packed, block) in packed[place..].iter_mut().zip(blocks) {
            *packed = pack(block, rows);
            *block = Block::ZERO;
        }
    }

    fn mcu_row_done(&mut self, _: u32) {}
}

/// Makes room for `more` rows: for twice the rows, but never for more than `most`.
#[inline]
fn make_room(rows: &mut Vec<[i16; ROWS]>, more: usize, most: usize) {
    let need = rows.len() + more;
    if need > rows.capacity() {
        let room = need.max((2 * rows.capacity()).min(most));
        rows.reserve_exact(room - rows.len());
    }
}

/// Adds the rows of a block that are not all zero to `rows`. Returns which they are, and above these
/// 8 bits the place of the first.
#[inline(always)]
fn pack(block: &Block, rows: &mut Vec<[i16; ROWS]>) -> u32 {
    let (source, _) = block.0.as_chunks::<ROWS>();
    let at = rows.len();
    // All rows first, so that room is looked for once. Those that stay then move together without a
    // branch: it could not be predicted.
    rows.extend_from_slice(source);
    let Some(target) = rows.last_chunk_mut::<ROWS>() else { return 0 };
    let mut kept = 0;
    let mut mask = 0;
    for (bit, row) in source.iter().enumerate() {
        target[kept % ROWS] = *row;
        let is_kept = *row != [0; ROWS];
        mask |= u32::from(is_kept) << bit;
        kept += usize::from(is_kept);
    }
    rows.truncate(at + kept);
    u32::try_from(at).unwrap_or_default() << 8 | mask
}
