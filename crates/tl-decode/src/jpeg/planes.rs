//! The components of an image as they are stored: each at its own resolution.

pub use super::frame::PlaneColor;
use super::request::Decoded;
use super::scan::MAX_COMPONENTS;

/// The components of a decoded region, not upsampled and not converted to RGB.
///
/// They hold every sample that the region touches, so that its area can be resampled, and more only
/// where blocks have it. A filter that reaches over the region's edge needs a larger region.
#[derive(Clone, Copy, Debug)]
pub struct Planes<'a> {
    pub(super) color: PlaneColor,
    pub(super) planes: [Plane<'a>; MAX_COMPONENTS],
    pub(super) count: usize,
    pub(super) decoded: Decoded,
}

impl<'a> Planes<'a> {
    /// The colour space of the planes.
    pub fn color(&self) -> PlaneColor {
        self.color
    }

    /// The planes, in the order in which [`PlaneColor`] names them.
    pub fn planes(&self) -> &[Plane<'a>] {
        &self.planes[..self.count]
    }

    /// Orientation and damage of the image.
    pub fn decoded(&self) -> Decoded {
        self.decoded
    }
}

/// One component of a region.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plane<'a> {
    /// Rows of samples, `stride` bytes from one to the next.
    pub data: &'a [u8],
    /// Bytes from the start of a row to the start of the next.
    pub stride: usize,
    /// Samples in a row of `data`.
    pub width: u32,
    /// Rows in `data`.
    pub height: u32,
    /// Column and row of the first sample of `data` in the whole scaled component.
    pub first: (u32, u32),
    /// Width and height of the whole scaled component.
    pub size: (u32, u32),
    /// Pixels of the scaled image per sample, across and down: 1, 2, 4, 4/3 and so on.
    pub step: (f64, f64),
}
