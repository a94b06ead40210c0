//! Erasing parts of finished images: rectangles, and the squares of a grid.
//!
//! An image is a slice in any type of number and order; what is written is a value per channel,
//! or normal deviates. All exact.

mod grid;

use crate::Level;
use crate::kernels::normal::{GROUP, normals};
use crate::kernels::normalize::{Dtype, Layout};
use crate::kernels::resample::Rect;
use crate::vector::RGB;
use core::ops::Range;
use half::{bf16, f16};

pub use grid::Grid;

/// Channels are filled with these numbers; a fourth one has that of the third.
pub type Value = [f32; RGB];

/// The most channels of an image.
const MOST_CHANNELS: usize = 4;

/// An image to be erased in.
#[derive(Debug)]
pub struct Canvas<'a> {
    out: &'a mut [u8],
    width: usize,
    height: usize,
    channels: usize,
    dtype: Dtype,
    layout: Layout,
}

impl<'a> Canvas<'a> {
    /// The image of red, green and blue in `out`, which holds `width * height * 3` numbers in the
    /// machine's byte order.
    ///
    /// # Panics
    ///
    /// If `out` is not exactly that long.
    #[must_use]
    pub fn new(out: &'a mut [u8], size: (usize, usize), dtype: Dtype, layout: Layout) -> Self {
        Self::with_channels(out, size, RGB, dtype, layout)
    }

    /// [`Canvas::new`] of an image of 1 to 4 channels.
    ///
    /// # Panics
    ///
    /// If `out` does not hold exactly that many numbers.
    #[must_use]
    pub fn with_channels(
        out: &'a mut [u8],
        size: (usize, usize),
        channels: usize,
        dtype: Dtype,
        layout: Layout,
    ) -> Self {
        let (width, height) = size;
        assert!((1..=MOST_CHANNELS).contains(&channels), "{channels} channels");
        let need = [width, height, channels, dtype.bytes()];
        let need = need.into_iter().try_fold(1_usize, usize::checked_mul);
        assert_eq!(Some(out.len()), need, "bytes of a {width}x{height} image");
        Self { out, width, height, channels, dtype, layout }
    }

    /// Writes a value per channel into `rect`: torchvision's `erase`.
    ///
    /// Halves are rounded to nearest even; integers lose their fraction and are
    /// held within their type.
    ///
    /// # Panics
    ///
    /// When `rect` leaves the image.
    pub fn fill(&mut self, rect: Rect, value: Value) {
        let colour = Colour::new(self.dtype, value);
        self.rows(rect, |_, channels, row| colour.repeat(&channels, row));
    }

    /// Writes normal deviates of mean 0 and deviation 1 into `rect`: what torchvision's
    /// `RandomErasing` does with `value="random"`.
    ///
    /// Row `y` of channel `c` of the rectangle has the deviates of `key` from group
    /// `(c * height + y) * ceil(width / 64)` on.
    ///
    /// # Panics
    ///
    /// When `rect` leaves the image.
    pub fn fill_normal(&mut self, level: Level, rect: Rect, key: u64) {
        let dtype = self.dtype;
        let groups = (rect.width as usize).div_ceil(GROUP);
        self.rows(rect, |y, channels, row| {
            let step = dtype.bytes() * channels.len();
            for (channel, offset) in channels.zip((0..).step_by(dtype.bytes())) {
                let first = (channel * rect.height as usize + y) * groups;
                let Some(row) = row.get_mut(offset..) else { continue };
                for (group, part) in (first..).zip(row.chunks_mut(step * GROUP)) {
                    let deviates = normals(level, key, low_word(group));
                    match dtype {
                        Dtype::F32 => scatter(part, step, &deviates, f32::to_ne_bytes),
                        Dtype::F16 => scatter(part, step, &deviates, |deviate| {
                            f16::from_f32(deviate).to_ne_bytes()
                        }),
                        Dtype::Bf16 => scatter(part, step, &deviates, |deviate| {
                            bf16::from_f32(deviate).to_ne_bytes()
                        }),
                        Dtype::U8 => {
                            scatter(part, step, &deviates, |deviate| [whole_byte(deviate)]);
                        }
                        Dtype::U16 => {
                            scatter(part, step, &deviates, |d| whole_word(d).to_ne_bytes());
                        }
                    }
                }
            }
        });
    }

    /// Writes a value per channel wherever `grid` covers the image.
    ///
    /// # Panics
    ///
    /// When `grid` is for an image of another size.
    pub fn fill_grid(&mut self, grid: &Grid, value: Value) {
        let (width, height) = grid.size();
        assert_eq!((self.width, self.height), (width as usize, height as usize), "the grid's size");
        let colour = Colour::new(self.dtype, value);
        let cells = grid.cells();
        self.rows(Rect::of_size(width, height), |y, channels, row| {
            let step = colour.pixel(&channels).len();
            cells.runs(y, |run| {
                colour.repeat(&channels, &mut row[run.start * step..run.end * step]);
            });
        });
    }

    /// Calls `write` with the bytes of every row of `rect`: the row's number in it, the channels
    /// that the bytes are of, and the bytes.
    fn rows(&mut self, rect: Rect, mut write: impl FnMut(usize, Range<usize>, &mut [u8])) {
        let [x, y, width, height] =
            [rect.x, rect.y, rect.width, rect.height].map(|side| side as usize);
        let inside =
            |start: usize, len, side| start.checked_add(len).is_some_and(|end| end <= side);
        assert!(
            inside(x, width, self.width) && inside(y, height, self.height),
            "{rect:?} in an image of {}x{}",
            self.width,
            self.height
        );
        if width == 0 || height == 0 {
            return;
        }
        let (planes, channels) = match self.layout {
            Layout::Hwc => (1, self.channels),
            Layout::Chw => (self.channels, 1),
        };
        let pixel = channels * self.dtype.bytes();
        let line = self.width * pixel;
        for (plane, first) in self.out.chunks_exact_mut(line * self.height).zip(0..planes) {
            let rows = plane.chunks_exact_mut(line).skip(y).take(height);
            for (row, y) in rows.zip(0..) {
                write(y, first..first + channels, &mut row[x * pixel..][..width * pixel]);
            }
        }
    }
}

/// The bytes of a value per channel.
struct Colour {
    bytes: [u8; MOST_BYTES * MOST_CHANNELS],
    size: usize,
}

/// The most bytes of a number.
const MOST_BYTES: usize = 4;

impl Colour {
    fn new(dtype: Dtype, value: Value) -> Self {
        let size = dtype.bytes();
        let mut bytes = [0; MOST_BYTES * MOST_CHANNELS];
        let [red, green, blue] = value;
        for (bytes, value) in bytes.chunks_exact_mut(size).zip([red, green, blue, blue]) {
            bytes.copy_from_slice(&encode(dtype, value)[..size]);
        }
        Self { bytes, size }
    }

    /// The bytes of those channels of a pixel.
    fn pixel(&self, channels: &Range<usize>) -> &[u8] {
        &self.bytes[channels.start * self.size..channels.end * self.size]
    }

    /// Fills `out` with those channels.
    fn repeat(&self, channels: &Range<usize>, out: &mut [u8]) {
        let pixel = self.pixel(channels);
        if pixel.iter().all(|byte| *byte == pixel[0]) {
            return out.fill(pixel[0]);
        }
        // Copies the finished part, which doubles each time.
        let mut done = pixel.len().min(out.len());
        out[..done].copy_from_slice(&pixel[..done]);
        while done < out.len() {
            let more = done.min(out.len() - done);
            out.copy_within(..more, done);
            done += more;
        }
    }
}

/// Writes every `step` bytes a number.
fn scatter<const SIZE: usize>(
    out: &mut [u8],
    step: usize,
    numbers: &[f32],
    encode: impl Fn(f32) -> [u8; SIZE],
) {
    if step == SIZE {
        for (out, &number) in out.as_chunks_mut::<SIZE>().0.iter_mut().zip(numbers) {
            *out = encode(number);
        }
    } else {
        for (out, &number) in out.chunks_mut(step).zip(numbers) {
            if let Some(out) = out.first_chunk_mut() {
                *out = encode(number);
            }
        }
    }
}

/// A number without its fraction, held in 0..=255.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate")]
fn whole_byte(value: f32) -> u8 {
    value as u8
}

/// A number without its fraction, held in 0..=65,535.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate")]
fn whole_word(value: f32) -> u16 {
    value as u16
}

/// The bytes of a number, at the front.
fn encode(dtype: Dtype, value: f32) -> [u8; MOST_BYTES] {
    let half = |[low, high]: [u8; 2]| [low, high, 0, 0];
    match dtype {
        Dtype::F32 => value.to_ne_bytes(),
        Dtype::F16 => half(f16::from_f32(value).to_ne_bytes()),
        Dtype::Bf16 => half(bf16::from_f32(value).to_ne_bytes()),
        Dtype::U8 => [whole_byte(value), 0, 0, 0],
        Dtype::U16 => half(whole_word(value).to_ne_bytes()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "groups are counted modulo 2^32")]
fn low_word(number: usize) -> u32 {
    number as u32
}
