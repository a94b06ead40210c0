//! The header: a magic number, width, height and, except in bitmaps, the largest sample.

use super::plain::number;
use crate::error::{DecodeError, Defect, Feature};
use crate::format::Format;

/// The storage of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// Decimal numbers.
    Plain,
    /// Bits, bytes or words.
    Raw,
}

/// Everything before the samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) width: u32,
    pub(super) height: u32,
    /// 1 or 3.
    pub(super) channels: u8,
    pub(super) coding: Coding,
    /// Whether samples are bits, of which 1 is black.
    pub(super) is_bitmap: bool,
    /// The largest sample, at least 1.
    pub(super) max: u16,
    pub(super) data_offset: usize,
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        const MAGIC_SIZE: usize = 2;
        let kind = bytes.get(1).copied().unwrap_or_default();
        let (coding, channels, is_bitmap) = match kind {
            b'1' => (Coding::Plain, 1, true),
            b'2' => (Coding::Plain, 1, false),
            b'3' => (Coding::Plain, 3, false),
            b'4' => (Coding::Raw, 1, true),
            b'5' => (Coding::Raw, 1, false),
            b'6' => (Coding::Raw, 3, false),
            other => return Err(Feature::PnmKind(other).into()),
        };
        let mut at = MAGIC_SIZE;
        let width = number(bytes, &mut at)?;
        let height = number(bytes, &mut at)?;
        if width == 0 || height == 0 {
            return Err(value("width or height", 0));
        }
        let stated_max = if is_bitmap { 1 } else { number(bytes, &mut at)? };
        let max = u16::try_from(stated_max).ok().filter(|max| *max > 0);
        let max = max.ok_or_else(|| value("maximum", stated_max.into()))?;
        Ok(Self { width, height, channels, coding, is_bitmap, max, data_offset: at })
    }

    /// Bits of the largest sample.
    pub(super) fn bit_depth(&self) -> u8 {
        (u16::BITS - self.max.leading_zeros()).to_le_bytes()[0]
    }

    /// Samples in a row.
    pub(super) fn row_samples(&self) -> usize {
        self.width as usize * usize::from(self.channels)
    }

    /// Bytes of a sample in memory, and in raw files that are not bitmaps.
    pub(super) fn sample_bytes(&self) -> usize {
        if self.max > u8::MAX.into() { 2 } else { 1 }
    }

    /// Bytes of a row of a raw file.
    pub(super) fn raw_row_bytes(&self) -> usize {
        if self.is_bitmap {
            self.row_samples().div_ceil(8)
        } else {
            self.row_samples() * self.sample_bytes()
        }
    }

    /// Checks that the file can hold all rows, before the image is allocated.
    pub(super) fn require_rows(&self, bytes: &[u8]) -> Result<(), DecodeError> {
        let row_bytes = match self.coding {
            Coding::Raw => self.raw_row_bytes(),
            // A digit, and white space except between bits.
            Coding::Plain if self.is_bitmap => self.row_samples(),
            Coding::Plain => 2 * self.row_samples(),
        };
        let need = (row_bytes as u64).saturating_mul(self.height.into());
        let have = bytes.len().saturating_sub(self.data_offset) as u64;
        if need > have {
            let offset = self.data_offset as u64;
            let what = "pixel data";
            return Err(Defect::Truncated { format: Format::Pnm, what, offset, need, have }.into());
        }
        Ok(())
    }
}

fn value(what: &'static str, found: u64) -> DecodeError {
    Defect::Value { format: Format::Pnm, what, found }.into()
}
