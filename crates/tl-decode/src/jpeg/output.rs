//! From blocks to planes of samples, and from those to rows of pixels as soon as they are complete.

use std::ops::Range;

use tl_simd::Level;
use tl_simd::jpeg::idct;

use super::frame::Process;
use super::geometry::{ComponentGeometry, Geometry};
use super::planes::Plane;
use super::rows::RowWriter;
use super::scan::{Block, BlockSink, MAX_COMPONENTS, OnDamaged};
use super::scans::{FrameSink, Opened};
use super::tables::Quantizer;
use crate::error::DecodeError;
use crate::limits::Limits;

/// Rows begin this many bytes apart, or a multiple: a cache line.
const STRIDE_UNIT: usize = 64;

/// The sample of zero coefficients.
const MID_GREY: u8 = 128;

/// How much of the region the planes hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// A ring of this many MCU rows: those that are decoded at once, and the one before for the
    /// filters that reach over its lower edge. Rows of all components come in order.
    Ring { mcu_rows: u32 },
    /// All of it.
    Whole,
}

impl Extent {
    /// That of planes that pixels are made of.
    pub(super) fn of_pixels(opened: &Opened<'_>, on_damaged: OnDamaged) -> Self {
        // Damage may leave out blocks, and the rows of a ring would show those of other rows.
        let in_order = opened.frame.process == Process::Progressive
            || opened.is_one_scan() && on_damaged == OnDamaged::Error;
        if in_order { Self::Ring { mcu_rows: 2 } } else { Self::Whole }
    }
}

/// The samples of one component: a ring of rows that may be as long as the region is high.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaneBuffer {
    data: Vec<u8>,
    stride: usize,
    /// Rows held; a multiple of the side of a block.
    rows: u32,
    /// Column and row of the first sample that is held.
    first: (u32, u32),
}

impl PlaneBuffer {
    /// Takes on the shape that a component needs, without memory for it.
    fn shape(&mut self, component: &ComponentGeometry, extent: Extent) {
        let side = component.side();
        self.stride = stride(component);
        self.rows = rows(component, extent);
        self.first = (component.block_columns().start * side, component.block_rows().start * side);
    }

    fn allocate(&mut self) {
        let need = self.stride * self.rows as usize;
        if need > self.data.len() {
            // The contents are not kept, so growing must not copy them.
            self.data.clear();
            self.data.reserve_exact(need);
            self.data.resize(need, MID_GREY);
        }
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.data.capacity()
    }

    /// The start of the component's row `row` in `data`.
    fn row_at(&self, row: u32) -> usize {
        ((row - self.first.1) % self.rows) as usize * self.stride
    }

    /// The samples of a row of the component in these columns.
    pub(super) fn row(&self, row: u32, columns: &Range<u32>) -> &[u8] {
        let at = self.row_at(row);
        let from = at + (columns.start - self.first.0) as usize;
        &self.data[from..from + columns.len()]
    }
}

fn length(range: &Range<u32>) -> u32 {
    range.end - range.start
}

/// Bytes from row to row of a component.
fn stride(component: &ComponentGeometry) -> usize {
    let row_bytes = (length(&component.block_columns()) * component.side()) as usize;
    row_bytes.next_multiple_of(STRIDE_UNIT)
}

/// Rows of a component that are held.
fn rows(component: &ComponentGeometry, extent: Extent) -> u32 {
    let block_rows = length(&component.block_rows());
    let block_rows = match extent {
        Extent::Whole => block_rows,
        Extent::Ring { mcu_rows } => block_rows.min(mcu_rows * component.block_rows_per_mcu()),
    };
    block_rows * component.side()
}

/// Bytes of the samples of a region.
pub(super) fn bytes(geometry: &Geometry, extent: Extent) -> u64 {
    let components = geometry.components().iter();
    let bytes =
        components.map(|component| stride(component) as u64 * u64::from(rows(component, extent)));
    bytes.sum()
}

/// Takes the blocks of an image.
pub(super) struct Output<'a> {
    pub(super) level: Level,
    pub(super) geometry: &'a Geometry,
    pub(super) extent: Extent,
    /// By component; set when its first scan begins.
    pub(super) quantizers: [Quantizer; MAX_COMPONENTS],
    pub(super) planes: &'a mut [PlaneBuffer; MAX_COMPONENTS],
    /// The bytes of the planes.
    pub(super) plane_bytes: u64,
    /// The writer of pixels from the planes, if there is one.
    pub(super) rows: Option<RowWriter<'a>>,
}

/// Makes room for the samples of a region, if `limits` allow it. Returns how many bytes that is.
pub(super) fn prepare(
    planes: &mut [PlaneBuffer; MAX_COMPONENTS],
    geometry: &Geometry,
    extent: Extent,
    limits: &Limits,
) -> Result<u64, DecodeError> {
    let bytes = bytes(geometry, extent);
    limits.charge_working(bytes)?;
    for (plane, component) in planes.iter_mut().zip(geometry.components()) {
        plane.shape(component, extent);
        plane.allocate();
    }
    Ok(bytes)
}

/// Makes the samples mid grey for which there is room: for images of which not every block may
/// come.
pub(super) fn clear(planes: &mut [PlaneBuffer; MAX_COMPONENTS], geometry: &Geometry) {
    for plane in &mut planes[..geometry.components().len()] {
        plane.data[..plane.stride * plane.rows as usize].fill(MID_GREY);
    }
}

/// The planes of a geometry for the caller.
pub(super) fn views<'a>(
    planes: &'a [PlaneBuffer; MAX_COMPONENTS],
    geometry: &Geometry,
) -> [Plane<'a>; MAX_COMPONENTS] {
    let mut views = [Plane::default(); MAX_COMPONENTS];
    for ((view, plane), component) in views.iter_mut().zip(planes).zip(geometry.components()) {
        let side = component.side();
        let right = (component.block_columns().end * side).min(component.size.0);
        let bottom = (component.block_rows().end * side).min(component.size.1);
        *view = Plane {
            data: &plane.data[..plane.stride * plane.rows as usize],
            stride: plane.stride,
            width: right - plane.first.0,
            height: bottom - plane.first.1,
            first: plane.first,
            size: component.size,
            step: component.step(),
        };
    }
    views
}

impl Output<'_> {
    fn write_rows(&mut self, complete: u32) {
        if let Some(rows) = &mut self.rows {
            rows.write_until(complete, self.geometry, self.planes);
        }
    }
}

impl FrameSink for Output<'_> {
    fn geometry(&self) -> &Geometry {
        self.geometry
    }

    fn bytes(&self) -> u64 {
        self.plane_bytes
    }

    fn quantizers(&mut self) -> &mut [Quantizer; MAX_COMPONENTS] {
        &mut self.quantizers
    }

    /// Converts the remaining samples into pixels.
    fn finish(&mut self) {
        self.write_rows(u32::MAX);
    }
}

impl BlockSink for Output<'_> {
    fn blocks(
        &mut self,
        component: usize,
        block_row: u32,
        block_column: u32,
        blocks: &mut [Block],
    ) {
        let geometry = &self.geometry.components()[component];
        let Some((from, blocks)) = geometry.clip(block_row, block_column, blocks) else { return };
        let plane = &mut self.planes[component];
        let side = geometry.side();
        let at = plane.row_at(block_row * side) + (from * side - plane.first.0) as usize;
        let quantizer = &self.quantizers[component];
        idct(self.level, geometry.scale, quantizer, blocks, &mut plane.data[at..], plane.stride);
    }

    fn mcu_row_done(&mut self, mcu_row: u32) {
        if matches!(self.extent, Extent::Ring { .. }) {
            let complete = self.geometry.components().iter().map(|component| {
                let block_rows = (mcu_row + 1) * component.block_rows_per_mcu();
                component.complete_rows(block_rows * component.side())
            });
            self.write_rows(complete.min().unwrap_or(0));
        }
    }
}
