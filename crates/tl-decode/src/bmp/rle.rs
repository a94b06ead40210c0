//! Run-length coded rows, RLE4 and RLE8.

use super::header::{Coding, Header};
use super::target_row;
use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::image::Image;
use crate::options::Color;
use crate::pixel::Layout;

const END_OF_LINE: u8 = 0;
const END_OF_BITMAP: u8 = 1;
const DELTA: u8 = 2;

/// Decodes `data` into `image`. Pixels that a delta skips have index 0; an image that ends before
/// its last pixel is an error, and what a run has beyond the end of its row is dropped.
pub(super) fn decode(
    header: &Header,
    data: &[u8],
    color: Color,
    row: &mut Vec<u8>,
    image: &mut Image,
) -> Result<(), DecodeError> {
    let width = image.width as usize;
    row.clear();
    row.resize(width, 0);
    let mut rows = Rows { header, color, row, image, x: 0, y: 0 };
    let mut input = data;
    while !rows.is_full() {
        let Some((&[count, value], rest)) = input.split_first_chunk() else {
            return Err(rows.ends_early(data.len()));
        };
        input = rest;
        match (count, value) {
            (0, END_OF_LINE) => rows.next_row(),
            (0, END_OF_BITMAP) => return Err(rows.ends_early(data.len() - input.len())),
            (0, DELTA) => {
                let Some((&[right, up], rest)) = input.split_first_chunk() else {
                    return Err(rows.ends_early(data.len()));
                };
                input = rest;
                rows.skip(right.into(), up.into());
            }
            (0, literal) => {
                let bytes = match header.coding {
                    Coding::Rle4 => usize::from(literal).div_ceil(2),
                    Coding::Rle8 | Coding::Plain => usize::from(literal),
                };
                let Some((literals, rest)) = input.split_at_checked(bytes) else {
                    return Err(rows.ends_early(data.len()));
                };
                rows.literal(literals, literal.into());
                // Padded to 16 bits; at the very end the padding may be missing.
                input = rest.get(bytes % 2..).unwrap_or_default();
            }
            (run, value) => rows.run(value, run.into()),
        }
    }
    Ok(())
}

struct Rows<'a> {
    header: &'a Header,
    color: Color,
    row: &'a mut [u8],
    image: &'a mut Image,
    x: usize,
    y: usize,
}

impl Rows<'_> {
    /// Whether the last pixel has been written. The end-of-bitmap code after it is not required.
    fn is_full(&mut self) -> bool {
        let last_row = self.y + 1 == self.image.height as usize;
        if last_row && self.x >= self.row.len() {
            self.next_row();
        }
        self.y >= self.image.height as usize
    }

    fn next_row(&mut self) {
        let to = self.image.row_mut(target_row(self.header, self.y));
        Layout::Index(&self.header.palette).convert(self.row, to, self.color);
        self.row.fill(0);
        self.y += 1;
        self.x = 0;
    }

    fn skip(&mut self, right: usize, up: usize) {
        let x = self.x + right;
        for _ in 0..up {
            if self.y >= self.image.height as usize {
                return;
            }
            self.next_row();
        }
        self.x = x;
    }

    fn run(&mut self, value: u8, count: usize) {
        let rle4 = self.header.coding == Coding::Rle4;
        let pair = if rle4 { [value >> 4, value & 0x0F] } else { [value; 2] };
        let room = self.row.get_mut(self.x..).unwrap_or_default();
        for (i, to) in room.iter_mut().take(count).enumerate() {
            *to = pair[i % 2];
        }
        self.x += count;
    }

    fn literal(&mut self, literals: &[u8], count: usize) {
        let room = self.row.get_mut(self.x..).unwrap_or_default();
        match self.header.coding {
            Coding::Rle4 => {
                let pairs = literals.iter().flat_map(|byte| [byte >> 4, byte & 0x0F]);
                for (to, index) in room.iter_mut().zip(pairs.take(count)) {
                    *to = index;
                }
            }
            Coding::Rle8 | Coding::Plain => {
                for (to, index) in room.iter_mut().zip(literals) {
                    *to = *index;
                }
            }
        }
        self.x += count;
    }

    fn ends_early(&self, at: usize) -> DecodeError {
        let width = self.row.len() as u64;
        let need = width * u64::from(self.image.height);
        let have = width * self.y as u64 + self.x as u64;
        let offset = (self.header.data_offset + at) as u64;
        let format = Format::Bmp;
        let what = "run-length coded image (in pixels)";
        Defect::Truncated { format, what, offset, need, have }.into()
    }
}
