//! The last step of a sample: RGB rows to the numbers of a batch, mirrored, normalised, converted
//! and laid out in one pass.
//!
//! The values are those of torchvision v2's `ToDtype(float32, scale=True)` and `Normalize`:
//! `(x * (1/255) - mean) / std` with every step rounded to `f32`.
//! A sample has 256 possible values, so a table of them is the definition.

mod row;
mod wide;

use std::{array, fmt};

use crate::Level;
use crate::kernels::interleave::flip_row;
use crate::vector::{Divisor, Fence, RGB};
use half::{bf16, f16};
use row::{Number, Row};
pub use wide::WideFormat;

/// The normalised value of every 8-bit sample of every channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    values: [[f32; 256]; RGB],
    /// The numbers that vectors compute the values from; none if that would give other bits.
    divisors: Option<[Divisor<f32>; RGB]>,
}

impl Table {
    /// The value of one step of an 8-bit sample: torchvision's `1.0 / 255`, rounded to `f32`.
    pub const SCALE: f32 = 1.0 / 255.0;

    /// The table of `(x * (1/255) - mean) / std`.
    ///
    /// # Panics
    ///
    /// When a mean is not finite, or a deviation is not finite or not above zero.
    #[must_use]
    pub fn new(mean: [f32; RGB], std: [f32; RGB]) -> Self {
        assert!(mean.iter().all(|mean| mean.is_finite()), "mean {mean:?} is not finite");
        let usable = |std: &f32| std.is_finite() && *std > 0.0;
        assert!(std.iter().all(usable), "std {std:?} is not finite and above zero");
        let mut values = [[0.0; 256]; RGB];
        for ((values, mean), std) in values.iter_mut().zip(mean).zip(std) {
            for (sample, value) in (0_u8..=u8::MAX).zip(values) {
                *value = (f32::from(sample) * Self::SCALE - mean) / std;
            }
        }
        let divisors: [_; RGB] = array::from_fn(|channel| Divisor {
            mean: mean[channel],
            std: std[channel],
            inverse: std[channel].recip(),
        });
        let is_exact = divisors.iter().zip(&values).all(|(by, values)| {
            let samples = (0_u8..=u8::MAX).zip(values);
            samples.into_iter().all(|(sample, value)| {
                by.normalized(sample, Self::SCALE).to_bits() == value.to_bits()
            })
        });
        Self { values, divisors: is_exact.then_some(divisors) }
    }

    /// The mean and deviation of ImageNet as torchvision's examples and weights use them.
    #[must_use]
    pub fn imagenet() -> Self {
        Self::new([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    }

    /// Samples scaled to 0..=1 and nothing more.
    #[must_use]
    pub fn unit() -> Self {
        Self::new([0.0; RGB], [1.0; RGB])
    }

    /// The values of one channel, by sample.
    ///
    /// # Panics
    ///
    /// When `channel` is not below 3.
    #[must_use]
    pub const fn channel(&self, channel: usize) -> &[f32; 256] {
        &self.values[channel]
    }
}

/// The type of the numbers of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// 32-bit floats: the table's values.
    F32,
    /// 16-bit IEEE floats: the table's values rounded to nearest, ties to even.
    F16,
    /// The upper halves of 32-bit floats: the table's values rounded to nearest, ties to even.
    Bf16,
    /// The samples as they are; the table is not used.
    U8,
    /// Samples of 16 bits as they are ([`WideFormat`]).
    U16,
}

impl Dtype {
    /// Bytes of one number.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 | Self::U16 => 2,
            Self::U8 => 1,
        }
    }

    /// The name, such as `bf16`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::U8 => "u8",
            Self::U16 => "u16",
        }
    }

    /// Whether the numbers are floats, and not samples as they are.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }
}

/// The type of the samples of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PixelType {
    /// 8 bits.
    #[default]
    U8,
    /// 16 bits, in the machine's byte order.
    U16,
    /// 32-bit floats, in the machine's byte order.
    F32,
}

impl PixelType {
    /// Bytes of a sample.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.dtype().bytes()
    }

    /// The numbers that the samples are.
    #[must_use]
    pub const fn dtype(self) -> Dtype {
        match self {
            Self::U8 => Dtype::U8,
            Self::U16 => Dtype::U16,
            Self::F32 => Dtype::F32,
        }
    }

    /// The name, such as `u16`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.dtype().name()
    }

    /// The samples in words, for messages to users who know other names of the type.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::U8 => "8-bit",
            Self::U16 => "16-bit",
            Self::F32 => "float",
        }
    }
}

impl fmt::Display for PixelType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The arrangement of the numbers of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Three planes, as in PyTorch.
    Chw,
    /// Interleaved pixels, as in TensorFlow and JAX.
    Hwc,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Chw => "CHW",
            Self::Hwc => "HWC",
        })
    }
}

/// The form in which an image is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PixelFormat {
    /// The type of the numbers.
    pub dtype: Dtype,
    /// The order of the numbers.
    pub layout: Layout,
    /// Whether every row is mirrored.
    pub flip: bool,
}

/// Writes rows of RGB pixels into one image of a batch.
#[derive(Debug)]
pub struct ImageWriter<'a> {
    out: &'a mut [u8],
    width: usize,
    height: usize,
    format: PixelFormat,
    table: &'a Table,
    /// Whether the first row is the lowest.
    upside_down: bool,
    /// The fence of floats that are written past the caches.
    fence: Option<&'a Fence>,
}

impl<'a> ImageWriter<'a> {
    /// A writer into `out`, which holds `width * height * 3` numbers in the machine's byte order.
    ///
    /// # Panics
    ///
    /// If `out` is not exactly that long, and for numbers of 16 bits.
    #[must_use]
    pub fn new(
        out: &'a mut [u8],
        width: usize,
        height: usize,
        format: PixelFormat,
        table: &'a Table,
    ) -> Self {
        assert!(format.dtype != Dtype::U16, "8-bit samples are not written as numbers of 16 bits");
        let need = [width, height, RGB, format.dtype.bytes()]
            .into_iter()
            .try_fold(1_usize, usize::checked_mul)
            .expect("the image fits into the address space");
        assert_eq!(out.len(), need, "bytes of a {width}x{height} image");
        Self { out, width, height, format, table, upside_down: false, fence: None }
    }

    /// The same, with the rows in the other order: row 0 is the lowest.
    #[must_use]
    pub fn upside_down(self) -> Self {
        Self { upside_down: true, ..self }
    }

    /// Calls `f` with a writer of the same image that writes `f32` past the caches, where rows are
    /// aligned. That pays for images that nobody reads before the caches have other data.
    pub fn stream<R>(self, f: impl FnOnce(ImageWriter<'_>) -> R) -> R {
        Fence::with(|fence| f(ImageWriter { fence: Some(fence), ..self }))
    }

    /// Writes row `y` from interleaved RGB.
    ///
    /// # Panics
    ///
    /// When `y` is not below the height, or `row` is not `width * 3` bytes long.
    pub fn write_row(&mut self, level: Level, y: u32, row: &[u8]) {
        assert_eq!(row.len(), self.width * RGB, "bytes of a row of {} pixels", self.width);
        self.write_any(level, y, Row::Interleaved(row));
    }

    /// Writes row `y` from its red, green and blue samples.
    ///
    /// # Panics
    ///
    /// When `y` is not below the height, or a plane is not `width` bytes long.
    pub fn write_planes(&mut self, level: Level, y: u32, planes: [&[u8]; RGB]) {
        let lengths = planes.map(<[u8]>::len);
        assert_eq!(lengths, [self.width; RGB], "samples of a row of {} pixels", self.width);
        self.write_any(level, y, Row::Planes(planes));
    }

    fn write_any(&mut self, level: Level, y: u32, row: Row<'_>) {
        let y = y as usize;
        assert!(y < self.height, "row {y} of {}", self.height);
        let y = if self.upside_down { self.height - 1 - y } else { y };
        if let (Dtype::U8, Layout::Hwc, Row::Interleaved(pixels)) =
            (self.format.dtype, self.format.layout, row)
        {
            return self.copy(level, y, pixels);
        }
        match self.format.dtype {
            Dtype::F32 => self.write::<f32>(level, y, row),
            Dtype::F16 => self.write::<f16>(level, y, row),
            Dtype::Bf16 => self.write::<bf16>(level, y, row),
            Dtype::U8 | Dtype::U16 => self.write::<u8>(level, y, row),
        }
    }

    /// Writes a row of pixels that stay what they are.
    fn copy(&mut self, level: Level, y: usize, pixels: &[u8]) {
        let out = &mut self.out[y * self.width * RGB..][..self.width * RGB];
        if self.format.flip {
            flip_row(level, pixels, RGB, out);
        } else {
            out.copy_from_slice(pixels);
        }
    }

    fn write<E: Number>(&mut self, level: Level, y: usize, row: Row<'_>) {
        let line = self.width * E::SIZE;
        match self.format.layout {
            Layout::Hwc => {
                let out = &mut self.out[y * line * RGB..][..line * RGB];
                self.table.interleaved::<E>(level, row, self.format.flip, out, self.fence);
            }
            Layout::Chw => {
                let planes = split_planes(self.out, self.height * line);
                let planes = planes.map(|plane| &mut plane[y * line..][..line]);
                self.table.planar::<E>(level, row, self.format.flip, planes, self.fence);
            }
        }
    }
}

fn split_planes(out: &mut [u8], bytes: usize) -> [&mut [u8]; RGB] {
    let (red, rest) = out.split_at_mut(bytes);
    let (green, blue) = rest.split_at_mut(bytes);
    [red, green, blue]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of other tables are written one by one, which takes several times as long.
    #[test]
    fn usual_deviations_need_no_division() {
        let usual = [
            ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ([0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_6, 0.275_777_1]),
            ([0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]),
            ([0.1307; RGB], [0.3081; RGB]),
            ([0.5; RGB], [0.5; RGB]),
            ([0.0; RGB], [1.0; RGB]),
            ([0.0; RGB], [1.0 / 255.0; RGB]),
        ];
        let many = (1_u16..2000).map(|step| {
            let part = f32::from(step) / 2000.0;
            ([part * 0.77, part, 1.0 - part], [part, 0.05 + part, 1.3 - part])
        });
        for (mean, std) in usual.into_iter().chain(many) {
            assert!(Table::new(mean, std).divisors.is_some(), "{mean:?} {std:?}");
        }
    }

    #[test]
    fn a_table_that_needs_divisions_has_them() {
        // The inverse of such a deviation is infinite.
        let table = Table::new([0.5; RGB], [1e-39; RGB]);
        assert!(table.divisors.is_none());
        let row: Vec<u8> = (0..=255).flat_map(|sample: u8| [sample, 255 - sample, 7]).collect();
        for layout in [Layout::Chw, Layout::Hwc] {
            let format = PixelFormat { dtype: Dtype::F32, layout, flip: true };
            let written = |level: Level| {
                let mut out = vec![0; row.len() * 4];
                let writer = ImageWriter::new(&mut out, 256, 1, format, &table);
                writer.stream(|mut writer| writer.write_row(level, 0, &row));
                out
            };
            let expected = written(Level::Scalar);
            assert!(Level::available().all(|level| written(level) == expected), "{layout}");
        }
    }
}
