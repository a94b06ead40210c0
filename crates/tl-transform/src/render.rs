//! The final pass: from decoded pixels to numbers in a batch, without an image in between.

use tl_simd::Level;
use tl_simd::normalize::{Dtype, ImageWriter, Layout, PixelFormat, Table};
use tl_simd::pad::frame;
use tl_simd::resample::{ImageView, Rect, Resampler, Resize};

use crate::output::OutputSpec;
use crate::pass::{Padding, Pass};

pub(crate) const CHANNELS: usize = 3;

/// Runs passes: resamples, flips, normalises, converts and lays out in one pass over the rows.
///
/// It owns the scratch memory of the pass and reuses it from image to image.
#[derive(Debug)]
pub struct Renderer {
    level: Level,
    table: Table,
    dtype: Dtype,
    layout: Layout,
    resampler: Resampler,
    /// One row of output pixels, coloured where the pass pads.
    padded: Vec<u8>,
}

impl Renderer {
    /// A renderer for results of this form, at the fastest level of this CPU. Floats are
    /// `(x * (1/255) - mean) / std`.
    ///
    /// # Panics
    /// When a mean is not finite, or a deviation is not finite or not above zero.
    #[must_use]
    pub fn new(output: OutputSpec, mean: [f32; CHANNELS], std: [f32; CHANNELS]) -> Self {
        Self {
            level: Level::detect(),
            table: Table::new(mean, std),
            dtype: output.dtype,
            layout: output.layout,
            resampler: Resampler::new(),
            padded: Vec::new(),
        }
    }

    /// The same renderer with the instructions of `level`; the results do not depend on it.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The instructions it uses.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Bytes of a result of this size.
    #[must_use]
    pub fn output_bytes(&self, size: (u32, u32)) -> usize {
        let (width, height) = size;
        width as usize * height as usize * CHANNELS * self.dtype.bytes()
    }

    /// Runs `pass` on an image of RGB pixels and writes the result to `out`. Of the image only
    /// [`Pass::source`] has to be there.
    ///
    /// # Panics
    /// When the pass is not for such an image, or when `out` is not exactly as long as a result of
    /// the pass's size.
    pub fn render(&mut self, pass: &Pass, source: ImageView<'_>, out: &mut [u8]) {
        let level = self.level;
        if self.copies() && !pass.resizes() {
            let source = source.part(pass.source());
            return frame(level, source, pass.padding.into(), &pass.fill, pass.flips(), out);
        }
        self.with_rows(pass, out, |mut rows, resampler| {
            resampler.run(level, source, &pass.resize(), |y, row| rows.write(y, row));
        });
    }

    /// Whether results have the numbers of pixels, in their order.
    fn copies(&self) -> bool {
        matches!((self.dtype, self.layout), (Dtype::U8, Layout::Hwc))
    }

    /// Calls `write` with the destination of the rows of `pass`'s window, and a resampler for it.
    ///
    /// # Panics
    /// If `out` is not exactly as long as a result of the pass's size.
    pub fn with_rows<R>(
        &mut self,
        pass: &Pass,
        out: &mut [u8],
        write: impl FnOnce(Rows<'_>, &mut Resampler) -> R,
    ) -> R {
        let Self { level, table, dtype, layout, resampler, padded } = self;
        let (width, height) = pass.output_size();
        let format = PixelFormat { dtype: *dtype, layout: *layout, flip: pass.flip };
        let writer = ImageWriter::new(out, width as usize, height as usize, format, table);
        let writer = if pass.flip_vertical { writer.upside_down() } else { writer };
        writer.stream(|writer| write(Rows::new(*level, writer, pass, padded), resampler))
    }
}

impl Pass {
    /// The pixels of the image that the result is computed from.
    #[must_use]
    pub fn source(&self) -> Rect {
        self.resize().source()
    }

    pub(crate) fn resize(&self) -> Resize {
        let Self { region, resized, window, .. } = *self;
        Resize { region, resized, window, filter: self.filter() }
    }
}

/// Writes the rows of a pass's window where they belong, with its colour around them.
#[derive(Debug)]
pub struct Rows<'a> {
    level: Level,
    writer: ImageWriter<'a>,
    padding: Padding,
    fill: [u8; CHANNELS],
    /// Samples of a row of the result, in all channels.
    padded: Option<&'a mut [u8]>,
}

impl<'a> Rows<'a> {
    /// Writes the rows of the padding already.
    fn new(
        level: Level,
        mut writer: ImageWriter<'a>,
        pass: &Pass,
        padded: &'a mut Vec<u8>,
    ) -> Self {
        let Pass { padding, fill, .. } = *pass;
        if padding == Padding::default() {
            return Self { level, writer, padding, fill, padded: None };
        }
        let (width, height) = pass.output_size();
        padded.clear();
        padded.resize(width as usize * CHANNELS, 0);
        padded.as_chunks_mut().0.fill(fill);
        for y in (0..padding.top).chain(height - padding.bottom..height) {
            writer.write_row(level, y, padded);
        }
        Self { level, writer, padding, fill, padded: Some(padded) }
    }

    /// Writes row `y` of the window, of interleaved pixels.
    ///
    /// # Panics
    /// When the window has no such row.
    pub fn write(&mut self, y: u32, row: &[u8]) {
        let Some(padded) = &mut self.padded else {
            return self.writer.write_row(self.level, y, row);
        };
        let left = self.padding.left as usize * CHANNELS;
        padded[left..][..row.len()].copy_from_slice(row);
        self.writer.write_row(self.level, self.padding.top + y, padded);
    }

    /// Writes row `y` of the window, given as red, green and blue.
    ///
    /// # Panics
    /// When the window has no such row.
    pub fn write_planes(&mut self, y: u32, planes: [&[u8]; CHANNELS]) {
        let Some(padded) = &mut self.padded else {
            return self.writer.write_planes(self.level, y, planes);
        };
        let width = padded.len() / CHANNELS;
        let left = self.padding.left as usize;
        for ((row, plane), fill) in padded.chunks_exact_mut(width).zip(planes).zip(self.fill) {
            row.fill(fill);
            row[left..][..plane.len()].copy_from_slice(plane);
        }
        let (red, rest) = padded.split_at(width);
        let (green, blue) = rest.split_at(width);
        self.writer.write_planes(self.level, self.padding.top + y, [red, green, blue]);
    }
}
