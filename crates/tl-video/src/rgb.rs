//! Pictures as RGB.

use tl_simd::Level;
use tl_simd::jpeg::replicate;
pub use tl_simd::video::Parity;
use tl_simd::video::{Matrix, Sample, Scaler, YuvToRgb};

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
    /// With the parity of FFmpeg chroma is repeated or interpolated as FFmpeg 8 does for
    /// progressive frames without a chroma location, by the bits, the chroma and the size of the
    /// picture; an exact conversion repeats it. A picture whose matrix is not stated has BT.601's,
    /// and the limited range, as in FFmpeg.
    ///
    /// # Errors
    /// [`VideoError::NotLumaAndChroma`] for pictures that are stored as RGB or `YCgCo`.
    ///
    /// # Panics
    /// If the region is not inside the picture, or `out` does not have its size.
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
        match (parity, self.chroma.shift()) {
            (Parity::Ffmpeg, None) => self.grey(region, out),
            (Parity::Ffmpeg, Some(shift)) if !self.is_simple() => {
                let size = [self.width, self.height];
                let scaler = Scaler::new(matrix, is_full_range, self.bit_depth, size, shift);
                if self.bit_depth == 8 {
                    self.scaled(&scaler, region, |row| row, out);
                } else {
                    self.scaled(&scaler, region, |row| row.as_chunks::<2>().0, out);
                }
            }
            (Parity::Ffmpeg | Parity::Exact, _) => {
                let convert = YuvToRgb::new(matrix, is_full_range, self.bit_depth, parity);
                self.repeated(&convert, region, out);
            }
        }
        Ok(())
    }

    /// Whether FFmpeg repeats chroma, and converts without its scaler.
    fn is_simple(&self) -> bool {
        let is_halved = matches!(self.chroma, Chroma::Yuv420 | Chroma::Yuv422);
        self.bit_depth == 8 && is_halved && self.height.is_multiple_of(2)
    }

    /// Converts each pixel with the chroma that it lies in.
    fn repeated(&self, convert: &YuvToRgb, region: Region, out: &mut [u8]) {
        let level = Level::detect();
        let mut y = Rows::new(self, 0, region);
        let mut u = Rows::new(self, 1, region);
        let mut v = Rows::new(self, 2, region);
        let pixels = out.chunks_exact_mut(3 * region.width as usize);
        for (row, out) in (region.top..).zip(pixels) {
            let rows = [y.at(level, row), u.at(level, row), v.at(level, row)];
            if self.bit_depth > 8 {
                convert.convert_wide(rows.map(|row| row.as_chunks().0), out);
            } else {
                convert.convert(level, rows, out);
            }
        }
    }

    /// Converts with chroma that FFmpeg's scaler interpolates. `samples` are those of a row's bytes.
    fn scaled<T: Sample>(
        &self,
        scaler: &Scaler,
        region: Region,
        samples: impl Fn(&[u8]) -> &[T],
        out: &mut [u8],
    ) {
        let [y, of_u, of_v] = self.views();
        let row_of = |plane: Plane<'_>, row: usize| {
            let bytes = plane.width as usize * self.sample_bytes();
            row * bytes..(row + 1) * bytes
        };
        let [left, width] = [region.left, region.width].map(|columns| columns as usize);
        let columns = scaler.columns(left..left + width);
        let mut u = ScaledRows::new(columns.len());
        let mut v = ScaledRows::new(columns.len());
        for (row, out) in (region.top as usize..).zip(out.chunks_exact_mut(3 * width)) {
            let blend = scaler.blend(row);
            let scale = |plane: Plane<'_>, row: usize, out: &mut [i32]| {
                let stored = samples(&plane.samples[row_of(plane, row)]);
                scaler.scale_chroma(stored, columns.start, out);
            };
            let u = u.at(blend.rows, |row, out| scale(of_u, row, out));
            let v = v.at(blend.rows, |row, out| scale(of_v, row, out));
            let luma = &samples(&y.samples[row_of(y, row)])[left..][..width];
            scaler.convert(blend, luma, [u, v], left, out);
        }
    }

    /// Luma alone, which FFmpeg takes for the full range whatever is stated.
    fn grey(&self, region: Region, out: &mut [u8]) {
        let mut rows = Rows::new(self, 0, region);
        let pixels = out.chunks_exact_mut(3 * region.width as usize);
        for (row, out) in (region.top..).zip(pixels) {
            grey(rows.at(Level::detect(), row), self.bit_depth, out);
        }
    }
}

/// Two rows of scaled chroma, which the next row of the picture often has too.
struct ScaledRows {
    rows: [Vec<i32>; 2],
    current: [Option<usize>; 2],
}

impl ScaledRows {
    fn new(columns: usize) -> Self {
        Self { rows: [vec![0; columns], vec![0; columns]], current: [None; 2] }
    }

    fn at(&mut self, wanted: [usize; 2], mut scale: impl FnMut(usize, &mut [i32])) -> [&[i32]; 2] {
        if self.current[1] == Some(wanted[0]) {
            self.rows.swap(0, 1);
            self.current.swap(0, 1);
        }
        for ((row, current), wanted) in self.rows.iter_mut().zip(&mut self.current).zip(wanted) {
            if *current != Some(wanted) {
                scale(wanted, row);
                *current = Some(wanted);
            }
        }
        let [first, second] = &self.rows;
        [first, second]
    }
}

/// Luma as grey pixels.
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
