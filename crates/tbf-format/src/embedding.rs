//! The embedding region: one vector for each node, each starting at a multiple of 64.

use half::{bf16, f16};

use crate::aligned::align_up;
use crate::error::FormatError;
use crate::region::Region;
use crate::values::Values;

/// The type of the stored components of vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dtype {
    /// 32-bit floating point (0).
    #[default]
    F32,
    /// IEEE 754 half precision (1).
    F16,
    /// The upper half of 32-bit floating point (2).
    Bf16,
    /// 8-bit codes with a scale and a zero point for each vector (3).
    Int8,
}

impl Dtype {
    /// The type that `code` stands for.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::F32),
            1 => Some(Self::F16),
            2 => Some(Self::Bf16),
            3 => Some(Self::Int8),
            _ => None,
        }
    }

    /// The code in headers.
    pub const fn code(self) -> u8 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Bf16 => 2,
            Self::Int8 => 3,
        }
    }

    /// Bytes of a vector of `dim` components, without padding. A vector of no components has none.
    pub(crate) fn vector_bytes(self, dim: u32) -> u64 {
        let dim = u64::from(dim);
        match self {
            _ if dim == 0 => 0,
            Self::F32 => 4 * dim,
            Self::F16 | Self::Bf16 => 2 * dim,
            Self::Int8 => QUANTIZATION_BYTES + dim,
        }
    }

    /// Bytes from the start of one vector to the start of the next: the vector's own, rounded up
    /// to a multiple of 64.
    ///
    /// ```
    /// use tbf_format::Dtype;
    /// assert_eq!(Dtype::F32.stride(384), 1536);
    /// assert_eq!(Dtype::Int8.stride(384), 448);
    /// ```
    pub fn stride(self, dim: u32) -> u64 {
        // At most 4 * (2^32 - 1) before rounding.
        align_up(self.vector_bytes(dim)).unwrap_or(u64::MAX)
    }
}

/// Scale and zero point in front of the codes of a vector.
pub(crate) const QUANTIZATION_BYTES: u64 = 8;

/// The vectors of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Embeddings<'a> {
    bytes: &'a [u8],
    len: usize,
    dim: usize,
    dtype: Dtype,
    stride: usize,
    vector_bytes: usize,
}

impl<'a> Embeddings<'a> {
    /// The vectors of `node_count` nodes in the bytes of an embedding region.
    ///
    /// # Errors
    /// [`FormatError::Truncated`].
    pub fn parse(
        region: &'a [u8],
        node_count: u64,
        dim: u32,
        dtype: Dtype,
    ) -> Result<Self, FormatError> {
        let stride = dtype.stride(dim);
        let need = stride.saturating_mul(node_count);
        let have = region.len() as u64;
        let truncated = FormatError::Truncated { region: Region::Embeddings, need, have };
        let parts = || {
            Some(Self {
                bytes: region.get(..usize::try_from(need).ok()?)?,
                len: usize::try_from(node_count).ok()?,
                dim: usize::try_from(dim).ok()?,
                dtype,
                stride: usize::try_from(stride).ok()?,
                vector_bytes: usize::try_from(dtype.vector_bytes(dim)).ok()?,
            })
        };
        parts().ok_or(truncated)
    }

    /// How many vectors there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the matrix has no vectors.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Components of each vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The type of stored components.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Bytes from the start of one vector to the start of the next, a multiple of 64.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// All vectors with their padding: vector `row` starts at `row * stride`.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes of a vector, padding left out.
    #[inline]
    pub fn vector_bytes(&self, row: usize) -> Option<&'a [u8]> {
        let start = row.checked_mul(self.stride).filter(|_| row < self.len)?;
        self.bytes.get(start..)?.get(..self.vector_bytes)
    }

    /// The vector of a node, as it is stored.
    #[inline]
    pub fn vector(&self, row: usize) -> Option<Vector<'a>> {
        let bytes = self.vector_bytes(row)?;
        let dim = self.dim as u64;
        Some(match self.dtype {
            Dtype::F32 => Vector::F32(Values::prefix(bytes, dim)?),
            Dtype::F16 => Vector::F16(Values::prefix(bytes, dim)?),
            Dtype::Bf16 => Vector::Bf16(Values::prefix(bytes, dim)?),
            Dtype::Int8 if dim == 0 => {
                Vector::Int8 { scale: 1.0, zero_point: 0.0, codes: Values::EMPTY }
            }
            Dtype::Int8 => {
                let quantization = Values::<f32>::prefix(bytes, 2)?;
                let codes = bytes.get(usize::try_from(QUANTIZATION_BYTES).ok()?..)?;
                Vector::Int8 {
                    scale: quantization.get(0)?,
                    zero_point: quantization.get(1)?,
                    codes: Values::prefix(codes, dim)?,
                }
            }
        })
    }

    /// The vectors of all nodes, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Vector<'a>> + use<'a> {
        let all = *self;
        (0..self.len).map(move |row| all.vector(row).unwrap_or(Vector::F32(Values::EMPTY)))
    }

    /// Writes the components of a node's vector into `components`, whatever they are stored as.
    ///
    /// # Errors
    /// [`FormatError::NoRow`].
    ///
    /// # Panics
    /// When `components` has not [`dim`](Self::dim) places.
    pub fn read_into(&self, row: usize, components: &mut [f32]) -> Result<(), FormatError> {
        assert_eq!(components.len(), self.dim, "one place for each component");
        let vector = self
            .vector(row)
            .ok_or(FormatError::NoRow { row: row as u64, node_count: self.len as u64 })?;
        vector.read_into(components);
        Ok(())
    }
}

/// One vector, as it is stored.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Vector<'a> {
    /// 32-bit floating point.
    F32(Values<'a, f32>),
    /// Bits of half precision.
    F16(Values<'a, u16>),
    /// The upper 16 bits of 32-bit floating point.
    Bf16(Values<'a, u16>),
    /// A component is `scale * (code - zero_point)`.
    Int8 {
        /// The value of a code's unit.
        scale: f32,
        /// The code that stands for zero.
        zero_point: f32,
        /// The codes.
        codes: Values<'a, i8>,
    },
}

impl Vector<'_> {
    /// Writes the components into `components`, up to the shorter length.
    fn read_into(self, components: &mut [f32]) {
        let places = components.iter_mut();
        match self {
            Self::F32(values) => {
                places.zip(values.iter()).for_each(|(place, value)| *place = value);
            }
            Self::F16(bits) => {
                places.zip(bits.iter()).for_each(|(place, bits)| {
                    *place = f16::from_bits(bits).to_f32();
                });
            }
            Self::Bf16(bits) => {
                places.zip(bits.iter()).for_each(|(place, bits)| {
                    *place = bf16::from_bits(bits).to_f32();
                });
            }
            Self::Int8 { scale, zero_point, codes } => {
                places.zip(codes.iter()).for_each(|(place, code)| {
                    *place = scale * (f32::from(code) - zero_point);
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn strides_are_multiples_of_64() {
        let strides = |dtype: Dtype| [0, 1, 16, 17, 56, 57, 384].map(|dim| dtype.stride(dim));
        assert_eq!(strides(Dtype::F32), [0, 64, 64, 128, 256, 256, 1536]);
        assert_eq!(strides(Dtype::F16), [0, 64, 64, 64, 128, 128, 768]);
        assert_eq!(strides(Dtype::Bf16), [0, 64, 64, 64, 128, 128, 768]);
        assert_eq!(strides(Dtype::Int8), [0, 64, 64, 64, 64, 128, 448]);
        assert_eq!(Dtype::F32.stride(u32::MAX), (1 << 34));
    }

    /// Reads the second of two vectors of two components.
    fn second(dtype: Dtype, vector: &[u8]) -> Vec<f32> {
        let mut region = vec![0xff; 128];
        region[64..64 + vector.len()].copy_from_slice(vector);
        let embeddings = Embeddings::parse(&region, 2, 2, dtype).unwrap();
        let mut components = vec![0.0; 2];
        embeddings.read_into(1, &mut components).unwrap();
        assert_eq!(embeddings.vector_bytes(1).unwrap(), vector);
        assert!(embeddings.vector(2).is_none());
        components
    }

    #[test]
    fn every_type_is_read_as_numbers() {
        assert_eq!(second(Dtype::F32, &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]), [1.0, -2.0]);
        assert_eq!(second(Dtype::F16, &[0, 0x3c, 1, 0]), [1.0, 5.960_464_5e-8]);
        assert_eq!(second(Dtype::Bf16, &[0x80, 0x3f, 0x49, 0x40]), [1.0, 3.140_625]);
        // Scale 0.5, zero point 3, codes -1 and 127.
        let vector = [0, 0, 0, 0x3f, 0, 0, 0x40, 0x40, 0xff, 0x7f];
        assert_eq!(second(Dtype::Int8, &vector), [-2.0, 62.0]);
    }

    #[test]
    fn regions_too_short_are_refused() {
        let region = vec![0; 192];
        assert!(Embeddings::parse(&region, 3, 16, Dtype::F32).is_ok());
        let need = |count, dim| match Embeddings::parse(&region, count, dim, Dtype::F32) {
            Err(FormatError::Truncated { need, have: 192, .. }) => need,
            other => panic!("{other:?}"),
        };
        assert_eq!(need(4, 16), 256);
        assert_eq!(need(2, 17), 256);
        assert_eq!(need(u64::MAX, 16), u64::MAX);
    }

    #[test]
    fn vectors_of_no_components_take_no_bytes() {
        let embeddings = Embeddings::parse(&[], 7, 0, Dtype::Int8).unwrap();
        assert_eq!((embeddings.len(), embeddings.stride()), (7, 0));
        embeddings.read_into(6, &mut []).unwrap();
    }
}
