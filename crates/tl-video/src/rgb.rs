//! Pictures as RGB.

use tl_simd::Level;
use tl_simd::jpeg::replicate;
pub use tl_simd::video::Parity;
use tl_simd::video::{Matrix, YuvToRgb};

use crate::error::VideoError;
use crate::picture::{Chroma, Picture, Plane};

/// A rectangle of pixels of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the type says it")]
pub struct Region {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

impl Region {
    /// All of a picture.
    #[must_use]
    pub fn whole(picture: &Picture) -> Self {
        Self { left: 0, top: 0, width: picture.width, height: picture.height }
    }
}

impl Picture {
    /// Writes a region as RGB, three bytes a pixel, row by row. Only its pixels are converted, and
    /// they are those of the whole picture.
    ///
    /// Chroma is repeated, not interpolated. A picture whose matrix is not stated has BT.601's, and
    /// the limited range, as in FFmpeg.
    ///
    /// # Errors
    /// [`VideoError::NotLumaAndChroma`] for pictures that are stored as RGB or `YCgCo`.
    ///
    /// # Panics
    /// When the region is not inside the picture, or `out` does not have its size.
    pub fn rgb(&self, region: Region, parity: Parity, out: &mut [u8]) -> Result<(), VideoError> {
        let right = region.left.checked_add(region.width);
        let bottom = region.top.checked_add(region.height);
        assert!(right.is_some_and(|right| right <= self.width), "columns of the picture");
        assert!(bottom.is_some_and(|bottom| bottom <= self.height), "rows of the picture");
        let row_bytes = 3 * region.width as usize;
        assert_eq!(out.len(), row_bytes * region.height as usize, "three bytes a pixel");
        if out.is_empty() {
            return Ok(());
        }
        let code_point = self.color.matrix;
        let matrix = Matrix::from_code_point(code_point);
        let matrix = matrix.ok_or(VideoError::NotLumaAndChroma { code_point })?;
        let is_full_range = self.color.full_range.unwrap_or(false);
        let convert = YuvToRgb::new(matrix, is_full_range, self.bit_depth, parity);
        let level = Level::detect();
        let mut y = Rows::new(self, 0, region);
        if self.chroma == Chroma::Monochrome && parity == Parity::Ffmpeg {
            for (row, out) in (region.top..).zip(out.chunks_exact_mut(row_bytes)) {
                grey(y.at(level, row), self.bit_depth, out);
            }
            return Ok(());
        }
        let mut u = Rows::new(self, 1, region);
        let mut v = Rows::new(self, 2, region);
        for (row, out) in (region.top..).zip(out.chunks_exact_mut(row_bytes)) {
            let rows = [y.at(level, row), u.at(level, row), v.at(level, row)];
            if self.bit_depth > 8 {
                convert.convert_wide(rows.map(|row| row.as_chunks().0), out);
            } else {
                convert.convert(level, rows, out);
            }
        }
        Ok(())
    }
}

/// Luma alone, which FFmpeg takes for the full range whatever is stated.
fn grey(row: &[u8], bit_depth: u8, out: &mut [u8]) {
    let pixels = out.as_chunks_mut::<3>().0;
    if bit_depth == 8 {
        for (pixel, &sample) in pixels.iter_mut().zip(row) {
            *pixel = [sample; 3];
        }
        return;
    }
    let beyond = bit_depth - 8;
    for (pixel, &sample) in pixels.iter_mut().zip(row.as_chunks::<2>().0) {
        let rounded = (u32::from(u16::from_le_bytes(sample)) + (1 << (beyond - 1))) >> beyond;
        *pixel = [u8::try_from(rounded).unwrap_or(u8::MAX); 3];
    }
}

/// The rows of a plane with a sample for each pixel of a region.
struct Rows<'a> {
    plane: Plane<'a>,
    sample_bytes: usize,
    region: Region,
    /// Halvings of width and height. None if all samples are the same.
    shift: Option<[u32; 2]>,
    repeated: Vec<u8>,
    /// The row of the plane that `repeated` has.
    current: Option<u32>,
}

impl<'a> Rows<'a> {
    fn new(picture: &'a Picture, plane: usize, region: Region) -> Self {
        let shift = if plane == 0 { Some([0, 0]) } else { picture.chroma.shift() };
        let sample_bytes = picture.sample_bytes();
        let repeated = if shift.is_none() {
            let middle = (128_u16 << (picture.bit_depth - 8)).to_le_bytes();
            middle[..sample_bytes].repeat(region.width as usize)
        } else {
            Vec::new()
        };
        let plane = picture.views()[plane];
        Self { plane, sample_bytes, region, shift, repeated, current: None }
    }

    /// The samples for a row of the picture.
    fn at(&mut self, level: Level, row: u32) -> &[u8] {
        let Some([columns, rows]) = self.shift else { return &self.repeated };
        let row = row >> rows;
        let left = (self.region.left >> columns) as usize;
        let skipped = (self.region.left & ((1 << columns) - 1)) as usize;
        let width = self.region.width as usize;
        let samples = (skipped + width).div_ceil(1 << columns);
        let start = row as usize * self.plane.width as usize + left;
        let size = self.sample_bytes;
        let stored = &self.plane.samples[start * size..][..samples * size];
        if columns == 0 {
            return stored;
        }
        if self.current != Some(row) {
            self.current = Some(row);
            self.repeated.resize(2 * stored.len(), 0);
            if size == 1 {
                replicate(level, stored, 2, &mut self.repeated);
            } else {
                let pairs = self.repeated.as_chunks_mut::<4>().0;
                for (pair, &[low, high]) in pairs.iter_mut().zip(stored.as_chunks::<2>().0) {
                    *pair = [low, high, low, high];
                }
            }
        }
        &self.repeated[skipped * size..][..width * size]
    }
}

#[cfg(test)]
mod tests;
