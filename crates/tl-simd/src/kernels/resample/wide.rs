//! Resizing pixels of 16 bits and of floats with the bits of Pillow's modes `I;16` and `F`.
//!
//! Sums and coefficients are doubles, and rows between the passes have the type of the pixels.
//! Channels are resampled one by one, as Pillow has no such modes of several.
//! The definition runs over eight rows at once and is compiled for each level: no product is fused
//! with a sum, so all levels give the same bits.

use super::axis::{Axis, Taps};
use super::ring::Ring;
use super::{ImageView, Resize, ResizeArea, Source, grown};
use crate::Level;
use crate::kernels::normalize::PixelType;
use core::array;

/// The rows that the horizontal pass makes at once.
const LANES: usize = 8;

/// A sample of all rows of a group.
type Lanes = [f64; LANES];

/// Coefficients and scratch rows, reused from one image to the next.
#[derive(Debug, Default)]
pub struct WideResampler {
    columns: Axis<f64>,
    rows: Axis<f64>,
    /// The samples of a group of source rows.
    lanes: Vec<Lanes>,
    /// Rows between the passes.
    between: Vec<u8>,
    sums: Vec<f64>,
    out: Vec<u8>,
}

impl WideResampler {
    /// A resampler without any memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The most bytes that [`WideResampler::run`] takes for rows and coefficients of such a resize of
    /// pixels of `pixel_bytes`, whose samples are of type `pixels`.
    ///
    /// # Panics
    ///
    /// As [`Resize::source`].
    #[must_use]
    pub fn bytes(pixels: PixelType, pixel_bytes: usize, resize: &Resize) -> u64 {
        let area = ResizeArea::from(*resize);
        let Some([columns, rows]) = area.axes() else { return 0 };
        let source = u64::from(columns.source(&rows).width) * pixel_bytes as u64;
        let columns = &columns.key;
        let rows = &rows.key;
        let out = u64::from(columns.count) * pixel_bytes as u64;
        let tables = columns.table_bytes() + rows.table_bytes();
        if columns.filter.copies() || columns.is_identity() && rows.is_identity() {
            return tables + out;
        }
        let samples = |bytes: u64| bytes / pixels.bytes() as u64;
        let group = LANES as u64;
        let lanes = samples(source) * size_of::<Lanes>() as u64;
        let sums = size_of::<f64>() as u64;
        tables
            + if columns.is_identity() {
                source + samples(source) * sums
            } else if rows.is_identity() {
                lanes + group * out
            } else if area.vertical_first() {
                lanes + group * (source + out) + samples(source) * sums
            } else {
                let slots = (rows.most_taps() + group - 1).next_multiple_of(group);
                lanes + (slots + 1) * out + samples(out) * sums
            }
    }

    /// Gives back buffers larger than `bytes`.
    pub fn trim(&mut self, bytes: usize) {
        for buffer in [&mut self.between, &mut self.out] {
            if buffer.capacity() > bytes {
                *buffer = Vec::new();
            }
        }
        if self.lanes.capacity() * size_of::<Lanes>() > bytes {
            self.lanes = Vec::new();
        }
        if self.sums.capacity() * size_of::<f64>() > bytes {
            self.sums = Vec::new();
        }
    }

    /// Hands each row of the window, counted from 0, to `sink`, in order. The samples of `src` are of
    /// type `pixels`, in the machine's byte order.
    ///
    /// # Panics
    ///
    /// As [`Resize::source`]; when `src` does not hold all of it or has pixels of another size; for
    /// samples of 8 bits, and for torch's filters other than `nearest` and `nearest-exact`.
    pub fn run(
        &mut self,
        level: Level,
        pixels: PixelType,
        src: ImageView<'_>,
        resize: &Resize,
        sink: impl FnMut(u32, &[u8]),
    ) {
        assert!(src.channels.is_multiple_of(pixels.bytes()), "pixels of {} bytes", src.channels);
        assert!(pixels != PixelType::U8, "samples of 8 bits are resampled by `Resampler`");
        match pixels {
            PixelType::U8 => {}
            PixelType::U16 => self.run_of::<u16>(level, src, resize, sink),
            PixelType::F32 => self.run_of::<f32>(level, src, resize, sink),
        }
    }

    fn run_of<N: Number>(
        &mut self,
        level: Level,
        src: ImageView<'_>,
        resize: &Resize,
        mut sink: impl FnMut(u32, &[u8]),
    ) {
        let resize: ResizeArea = (*resize).into();
        let Some([mut columns, mut rows]) = resize.axes() else { return };
        columns.key.multiplies = N::MULTIPLIES;
        rows.key.multiplies = N::MULTIPLIES;
        let rect = columns.source(&rows);
        let source = Source {
            data: src.from(&rect),
            stride: src.row_bytes,
            len: rect.width as usize * src.channels,
            channels: src.channels,
        };
        let columns = columns.key;
        let rows = rows.key;
        self.rows.prepare_wide(rows);
        self.columns.prepare_wide(columns);
        if columns.filter.copies() || columns.is_identity() && rows.is_identity() {
            return self.pick(source, sink);
        }
        if columns.is_identity() {
            let out = grown(&mut self.out, source.len);
            for (y, taps) in (0..).zip(self.rows.iter()) {
                let inputs = taps_of(taps, |row| source.row(row));
                combine::<N>(level, inputs, &mut self.sums, out);
                sink(y, out);
            }
        } else if rows.is_identity() {
            let stride = self.columns.len() * source.channels;
            let out = grown(&mut self.out, LANES * stride);
            for y in (0..self.rows.len()).step_by(LANES) {
                let count = LANES.min(self.rows.len() - y);
                let group = array::from_fn(|lane| source.row(y + lane.min(count - 1)));
                let narrowing = Narrowing { axis: &self.columns, channels: source.channels };
                narrowing.run::<N>(level, group, &mut self.lanes, out);
                (y..y + count).zip(out.chunks_exact(stride)).for_each(|(y, row)| {
                    sink(row_number(y), row);
                });
            }
        } else if resize.vertical_first() {
            self.vertical_then_horizontal::<N>(level, source, sink);
        } else {
            self.horizontal_then_vertical::<N>(level, source, sink);
        }
    }

    /// Copies pixels.
    fn pick(&mut self, source: Source<'_>, mut sink: impl FnMut(u32, &[u8])) {
        let pixel = source.channels;
        let out = grown(&mut self.out, self.columns.len() * pixel);
        for (y, taps) in (0..).zip(self.rows.iter()) {
            let row = source.row(taps.start);
            for (out, taps) in out.chunks_exact_mut(pixel).zip(self.columns.iter()) {
                out.copy_from_slice(&row[taps.start * pixel..][..pixel]);
            }
            sink(y, out);
        }
    }

    /// Keeps the last rows out of the horizontal pass in a ring for the vertical one.
    fn horizontal_then_vertical<N: Number>(
        &mut self,
        level: Level,
        source: Source<'_>,
        mut sink: impl FnMut(u32, &[u8]),
    ) {
        let stride = self.columns.len() * source.channels;
        let mut ring = Ring::new(&self.rows, stride);
        let between = grown(&mut self.between, ring.len());
        let out = grown(&mut self.out, stride);
        let narrowing = Narrowing { axis: &self.columns, channels: source.channels };
        for (y, taps) in (0..).zip(self.rows.iter()) {
            while let Some((rows, offset)) = ring.next_group(taps) {
                let rows = rows.map(|row| source.row(row));
                let out = &mut between[offset..][..LANES * stride];
                narrowing.run::<N>(level, rows, &mut self.lanes, out);
            }
            let inputs = taps_of(taps, |row| &between[ring.offset(row)..][..stride]);
            combine::<N>(level, inputs, &mut self.sums, out);
            sink(y, out);
        }
    }

    /// Makes a few whole rows by the vertical pass and narrows them.
    fn vertical_then_horizontal<N: Number>(
        &mut self,
        level: Level,
        source: Source<'_>,
        mut sink: impl FnMut(u32, &[u8]),
    ) {
        let stride = self.columns.len() * source.channels;
        let rows = grown(&mut self.between, LANES * source.len);
        let out = grown(&mut self.out, LANES * stride);
        let narrowing = Narrowing { axis: &self.columns, channels: source.channels };
        for y in (0..self.rows.len()).step_by(LANES) {
            let count = LANES.min(self.rows.len() - y);
            for (row, y) in rows.chunks_exact_mut(source.len).zip(y..y + count) {
                let inputs = taps_of(self.rows.taps(y), |row| source.row(row));
                combine::<N>(level, inputs, &mut self.sums, row);
            }
            let group =
                array::from_fn(|lane| &rows[lane.min(count - 1) * source.len..][..source.len]);
            narrowing.run::<N>(level, group, &mut self.lanes, out);
            for (y, row) in (y..y + count).zip(out.chunks_exact(stride)) {
                sink(row_number(y), row);
            }
        }
    }
}

/// A row of a window, whose rows are counted in 32 bits.
fn row_number(y: usize) -> u32 {
    u32::try_from(y).unwrap_or(u32::MAX)
}

/// Each source row of an output row with its coefficient.
fn taps_of<'a>(
    taps: Taps<'a, f64>,
    row: impl Fn(usize) -> &'a [u8],
) -> impl Iterator<Item = (&'a [u8], f64)> {
    (taps.start..).zip(taps.weights).map(move |(source, weight)| (row(source), *weight))
}

/// Writes the weighted sum of rows.
fn combine<'a, N: Number>(
    level: Level,
    rows: impl Iterator<Item = (&'a [u8], f64)>,
    sums: &mut Vec<f64>,
    out: &mut [u8],
) {
    sums.clear();
    sums.resize(out.len() / N::SIZE, 0.0);
    level.vectorize(
        #[inline(always)]
        || define_combine::<N>(rows, sums, out),
    );
}

#[inline(always)]
fn define_combine<'a, N: Number>(
    rows: impl Iterator<Item = (&'a [u8], f64)>,
    sums: &mut [f64],
    out: &mut [u8],
) {
    for (row, weight) in rows {
        for (sum, sample) in sums.iter_mut().zip(row.chunks_exact(N::SIZE)) {
            *sum += N::load(sample) * weight;
        }
    }
    for (out, sum) in out.chunks_exact_mut(N::SIZE).zip(sums) {
        N::store(*sum, out);
    }
}

/// The horizontal pass.
struct Narrowing<'a> {
    axis: &'a Axis<f64>,
    /// Bytes of a pixel.
    channels: usize,
}

impl Narrowing<'_> {
    /// Narrows `rows` into `out`, which has as many rows without gaps.
    fn run<N: Number>(
        &self,
        level: Level,
        rows: [&[u8]; LANES],
        lanes: &mut Vec<Lanes>,
        out: &mut [u8],
    ) {
        lanes.resize(rows[0].len() / N::SIZE, [0.0; LANES]);
        level.vectorize(
            #[inline(always)]
            || self.define::<N>(rows, lanes, out),
        );
    }

    #[inline(always)]
    fn define<N: Number>(&self, rows: [&[u8]; LANES], lanes: &mut [Lanes], out: &mut [u8]) {
        for (lane, row) in rows.into_iter().enumerate() {
            for (samples, sample) in lanes.iter_mut().zip(row.chunks_exact(N::SIZE)) {
                samples[lane] = N::load(sample);
            }
        }
        let channels = self.channels / N::SIZE;
        let stride = self.axis.len() * self.channels;
        let mut at = 0;
        for taps in self.axis.iter() {
            let source = &lanes[taps.start * channels..];
            for channel in 0..channels {
                let mut sums = [0.0; LANES];
                let samples = source[channel..].iter().step_by(channels);
                for (samples, weight) in samples.zip(taps.weights) {
                    for (sum, sample) in sums.iter_mut().zip(samples) {
                        *sum += sample * weight;
                    }
                }
                for (row, sum) in out.chunks_exact_mut(stride).zip(sums) {
                    N::store(sum, &mut row[at..at + N::SIZE]);
                }
                at += N::SIZE;
            }
        }
    }
}

/// A type of samples.
trait Number {
    /// Its bytes.
    const SIZE: usize;

    /// Whether the nearest pixel is found by multiplying the step.
    const MULTIPLIES: bool;

    fn load(bytes: &[u8]) -> f64;

    /// Writes a sum as a sample.
    fn store(sum: f64, out: &mut [u8]);
}

impl Number for u16 {
    const SIZE: usize = 2;
    const MULTIPLIES: bool = true;

    #[inline(always)]
    fn load(bytes: &[u8]) -> f64 {
        Self::from_ne_bytes([bytes[0], bytes[1]]).into()
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn store(sum: f64, out: &mut [u8]) {
        out.copy_from_slice(&((sum + 0.5) as Self).to_ne_bytes());
    }
}

impl Number for f32 {
    const SIZE: usize = 4;
    const MULTIPLIES: bool = false;

    #[inline(always)]
    fn load(bytes: &[u8]) -> f64 {
        Self::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).into()
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "rounds as Pillow does")]
    fn store(sum: f64, out: &mut [u8]) {
        out.copy_from_slice(&(sum as Self).to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::{Filter, Rect};

    /// The bytes in use.
    fn held(resampler: &WideResampler) -> u64 {
        let WideResampler { columns, rows, lanes, between, sums, out } = resampler;
        let buffers = size_of_val(&lanes[..]) + between.len() + size_of_val(&sums[..]) + out.len();
        (buffers + columns.bytes() + rows.bytes()) as u64
    }

    #[test]
    fn bytes_are_a_close_bound() {
        let filters = [
            Filter::Nearest,
            Filter::Box,
            Filter::Bilinear,
            Filter::Hamming,
            Filter::Bicubic,
            Filter::Lanczos,
        ];
        let sizes = [1, 2, 7, 40, 131];
        for (pixels, channels) in [(PixelType::U16, 1), (PixelType::U16, 4), (PixelType::F32, 3)] {
            let pixel = channels * pixels.bytes();
            let source = vec![0; 131 * 131 * pixel];
            for filter in filters {
                for at in 0..sizes.len().pow(4) {
                    let side = |power| sizes[at / sizes.len().pow(power) % sizes.len()];
                    let region = Rect::of_size(side(0), side(1));
                    let resized = (side(2), side(3));
                    let window = Rect { x: resized.0 / 3, y: resized.1 / 2, width: 1, height: 1 };
                    for window in [Rect::of_size(resized.0, resized.1), window] {
                        let resize = Resize { region, resized, window, filter };
                        let src = ImageView::of_pixels(&source, 131, 131, 131 * pixel, pixel);
                        let mut resampler = WideResampler::new();
                        resampler.run(Level::detect(), pixels, src, &resize, |_, _| {});
                        let most = WideResampler::bytes(pixels, pixel, &resize);
                        let held = held(&resampler);
                        assert!(held <= most, "{held} of {most} bytes: {resize:?}");
                        assert!(most <= 3 * held + 2048, "{held} of {most} bytes: {resize:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn large_buffers_are_given_back() {
        let source = vec![0; 400 * 300 * 2];
        let src = ImageView::of_pixels(&source, 400, 300, 800, 2);
        let mut resampler = WideResampler::new();
        let resize = Resize {
            region: Rect::of_size(400, 300),
            resized: (40, 30),
            window: Rect::of_size(40, 30),
            filter: Filter::Bilinear,
        };
        resampler.run(Level::detect(), PixelType::U16, src, &resize, |_, _| {});
        resampler.trim(1 << 20);
        assert!(resampler.lanes.capacity() >= 400 && resampler.out.capacity() >= 80);
        resampler.trim(64);
        let WideResampler { lanes, between, sums, out, .. } = resampler;
        let kept = [lanes.capacity(), between.capacity(), sums.capacity(), out.capacity()];
        assert_eq!(kept, [0; 4]);
    }
}
