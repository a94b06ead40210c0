//! An image between the passes.

use tl_simd::resample::{ImageView, Rect};

use crate::render::CHANNELS;

/// RGB pixels, 8 bits each, rows without gaps, and memory that is used again.
#[derive(Clone, Debug, Default)]
pub struct Image {
    width: u32,
    height: u32,
    /// May be longer than the image.
    data: Vec<u8>,
}

impl Image {
    /// An image without pixels.
    #[must_use]
    pub const fn new() -> Self {
        Self { width: 0, height: 0, data: Vec::new() }
    }

    /// An image of these pixels.
    ///
    /// # Panics
    /// When there are not exactly `width * height * 3` bytes.
    #[must_use]
    pub fn from_pixels(width: u32, height: u32, pixels: Vec<u8>) -> Self {
        assert_eq!(pixels.len(), bytes(width, height), "three bytes a pixel");
        Self { width, height, data: pixels }
    }

    /// Width and height in pixels.
    #[must_use]
    pub const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The pixels, row by row.
    #[must_use]
    pub fn pixels(&self) -> &[u8] {
        &self.data[..bytes(self.width, self.height)]
    }

    /// The pixels, row by row.
    #[must_use]
    pub fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.data[..bytes(self.width, self.height)]
    }

    /// The image as the kernels take it.
    #[must_use]
    pub fn view(&self) -> ImageView<'_> {
        ImageView::packed(self.pixels(), self.width, self.height, CHANNELS)
    }

    /// Takes on another size; what the pixels are then is unspecified.
    ///
    /// # Panics
    /// When memory for this many pixels cannot be allocated.
    pub fn reshape(&mut self, width: u32, height: u32) {
        let need = bytes(width, height);
        if self.data.len() < need {
            self.data.resize(need, 0);
        }
        (self.width, self.height) = (width, height);
    }

    /// Keeps the pixels of `rect`, which lies within the image.
    pub(crate) fn crop(&mut self, rect: Rect) {
        if (rect.width, rect.height) == self.size() {
            return;
        }
        let stride = self.width as usize * CHANNELS;
        let row = rect.width as usize * CHANNELS;
        let first = rect.y as usize * stride + rect.x as usize * CHANNELS;
        for y in 0..rect.height as usize {
            let from = first + y * stride;
            self.data.copy_within(from..from + row, y * row);
        }
        (self.width, self.height) = (rect.width, rect.height);
    }

    /// Releases the memory if it is more than `bytes`; the image is empty then.
    pub fn trim(&mut self, bytes: usize) {
        if self.data.capacity() > bytes {
            *self = Self::new();
        }
    }
}

/// Bytes of an image that fits the address space, which a step's limits see to.
fn bytes(width: u32, height: u32) -> usize {
    let pixels = (width as usize).checked_mul(height as usize);
    pixels.and_then(|pixels| pixels.checked_mul(CHANNELS)).expect("an image that can be allocated")
}
