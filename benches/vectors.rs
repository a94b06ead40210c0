//! Rows of numbers as TBF segments have them, and the speed at which memory can be read.

use half::{bf16, f16};
use tl_simd::Level;
use tl_simd::similarity::{Element, Matrix};

use crate::split_mix;

/// Rows begin at multiples of this.
const ALIGNMENT: usize = 64;

/// Rows of one type and dimension.
#[derive(Debug)]
pub struct Rows {
    element: Element,
    dim: usize,
    rows: usize,
    stride: usize,
    buffer: Vec<u8>,
    start: usize,
}

impl Rows {
    /// The rows of `values`, which has `dim` numbers for each.
    #[must_use]
    pub fn new(element: Element, dim: usize, values: &[f32]) -> Self {
        let mut rows = Self::zeros(element, dim, values.len() / dim);
        for (row, values) in values.chunks_exact(dim).enumerate() {
            rows.encode(row, values);
        }
        rows
    }

    /// `rows` rows of numbers between -1 and 1, the same in every run.
    #[must_use]
    pub fn random(element: Element, dim: usize, rows: usize) -> Self {
        let mut drawn = Self::zeros(element, dim, rows);
        for row in 0..rows {
            drawn.encode(row, &random_values(dim, 1000 + row as u64));
        }
        drawn
    }

    fn zeros(element: Element, dim: usize, rows: usize) -> Self {
        let stride = element.row_bytes(dim).next_multiple_of(ALIGNMENT);
        let buffer = vec![0; rows * stride + ALIGNMENT];
        let start = buffer.as_ptr().align_offset(ALIGNMENT);
        Self { element, dim, rows, stride, buffer, start }
    }

    fn encode(&mut self, row: usize, values: &[f32]) {
        let out = &mut self.buffer[self.start + row * self.stride..][..self.stride];
        match self.element {
            Element::F16 => {
                write(out, values.iter().map(|&value| f16::from_f32(value).to_le_bytes()));
            }
            Element::Bf16 => {
                write(out, values.iter().map(|&value| bf16::from_f32(value).to_le_bytes()));
            }
            Element::I8 => {
                let largest =
                    values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
                let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
                write(out, [scale, 0.0].into_iter().map(f32::to_le_bytes));
                #[expect(clippy::cast_possible_truncation, reason = "at most 127")]
                let byte = |value: &f32| [((value / scale).round() as i8).cast_unsigned()];
                write(&mut out[8..], values.iter().map(byte));
            }
            Element::F32 | _ => write(out, values.iter().map(|value| value.to_le_bytes())),
        }
    }

    /// The rows with their padding.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..][..self.rows * self.stride]
    }

    /// The rows for a scan.
    #[must_use]
    pub fn matrix(&self) -> Matrix<'_> {
        Matrix::new(self.bytes(), self.element, self.dim, self.stride, self.rows)
    }
}

fn write<const N: usize>(out: &mut [u8], numbers: impl Iterator<Item = [u8; N]>) {
    for (out, bytes) in out.as_chunks_mut().0.iter_mut().zip(numbers) {
        *out = bytes;
    }
}

/// Numbers between -1 and 1, the same in every run.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "any number will do")]
pub fn random_values(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed << 32;
    let word = |state: &mut u64| (split_mix(state) >> 32) as i32 as f32;
    (0..len).map(|_| word(&mut state) / 2_147_483_648.0).collect()
}

/// Does nothing but read: four streams, which on the machine of `docs/benchmarks.md` are faster
/// than one. Returns all words combined by "or".
#[must_use]
pub fn read(level: Level, bytes: &[u8]) -> u64 {
    let words = bytes.as_chunks().0;
    let (a, b) = words.split_at(words.len() / 4);
    let (b, c) = b.split_at(a.len());
    let (c, d) = c.split_at(a.len());
    level.vectorize(
        #[inline(always)]
        || {
            let mut seen = [0; 4];
            for (((&a, &b), &c), &d) in a.iter().zip(b).zip(c).zip(d) {
                seen[0] |= u64::from_ne_bytes(a);
                seen[1] |= u64::from_ne_bytes(b);
                seen[2] |= u64::from_ne_bytes(c);
                seen[3] |= u64::from_ne_bytes(d);
            }
            seen.into_iter().fold(0, |all, word| all | word)
        },
    )
}
