//! Components of vectors as bytes of their type.

use alloc::vec::Vec;

use half::{bf16, f16};

use super::regions::pad;
use crate::embedding::Dtype;

/// Appends `vector` to `out`, which ends at a multiple of 64, and zeros up to the next one. On an
/// error (the number of a component that the type cannot hold) `out` is as it was.
pub(super) fn append_vector(out: &mut Vec<u8>, vector: &[f32], dtype: Dtype) -> Result<(), usize> {
    if let Some(component) = vector.iter().position(|&value| !can_hold(dtype, value)) {
        return Err(component);
    }
    match dtype {
        _ if vector.is_empty() => {}
        Dtype::F32 => out.extend(vector.iter().flat_map(|value| value.to_le_bytes())),
        Dtype::F16 => {
            out.extend(vector.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()));
        }
        Dtype::Bf16 => {
            out.extend(vector.iter().flat_map(|&value| bf16::from_f32(value).to_le_bytes()));
        }
        Dtype::Int8 => append_codes(out, vector),
    }
    pad(out);
    Ok(())
}

/// Whether `value` keeps its magnitude in `dtype`: finite values must not become infinite, and 8
/// bits can hold only finite numbers.
fn can_hold(dtype: Dtype, value: f32) -> bool {
    match dtype {
        Dtype::F32 => true,
        Dtype::F16 => !value.is_finite() || f16::from_f32(value).is_finite(),
        Dtype::Bf16 => !value.is_finite() || bf16::from_f32(value).is_finite(),
        Dtype::Int8 => value.is_finite(),
    }
}

/// Symmetric quantization: the largest magnitude becomes 127 or -127.
fn append_codes(out: &mut Vec<u8>, vector: &[f32]) {
    const MAX_CODE: f32 = 127.0;
    let largest = vector.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    let scale = largest / MAX_CODE;
    // So small a magnitude that its 127th part is zero is zero as far as 8 bits can say.
    let scale = if scale > 0.0 { scale } else { 1.0 };
    out.extend(scale.to_le_bytes());
    out.extend(0.0f32.to_le_bytes());
    out.extend(vector.iter().flat_map(|value| {
        let code = libm::roundf(value / scale).clamp(-MAX_CODE, MAX_CODE);
        #[expect(clippy::cast_possible_truncation, reason = "a whole number of -127..=127")]
        let code = code as i8;
        code.to_le_bytes()
    }));
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn stored(vector: &[f32], dtype: Dtype) -> Result<Vec<u8>, usize> {
        let mut out = vec![9; 64];
        append_vector(&mut out, vector, dtype)?;
        assert_eq!(
            (out.len() as u64 - 64, &out[..64]),
            (dtype.stride(u32::try_from(vector.len()).unwrap()), &[9; 64][..],)
        );
        Ok(out.split_off(64))
    }

    #[test]
    fn halves_are_rounded_to_nearest_even() {
        // 1 + 2^-11 lies between 1 and 1 + 2^-10; 1 + 3 * 2^-11 between that and 1 + 2^-9.
        let ties = [1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 65519.0];
        assert_eq!(stored(&ties, Dtype::F16).unwrap()[..6], [0, 0x3c, 2, 0x3c, 0xff, 0x7b]);
        let ties = [1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0];
        assert_eq!(stored(&ties, Dtype::Bf16).unwrap()[..4], [0x80, 0x3f, 0x82, 0x3f]);
    }

    #[test]
    fn codes_are_rounded_half_away_from_zero() {
        let vector = [127.0, 0.5, -0.5, 1.49, -126.5, 0.0];
        let bytes = stored(&vector, Dtype::Int8).unwrap();
        assert_eq!(bytes[..8], [0, 0, 0x80, 0x3f, 0, 0, 0, 0]);
        assert_eq!(bytes[8..14], [127, 1, 255, 1, 129, 0]);
        assert_eq!(stored(&[0.0, -0.0], Dtype::Int8).unwrap()[..4], 1.0f32.to_le_bytes());
        assert_eq!(stored(&[1e-45], Dtype::Int8).unwrap()[..4], 1.0f32.to_le_bytes());
    }

    #[test]
    fn values_that_a_type_cannot_hold_are_named() {
        assert_eq!(stored(&[1.0, 65520.0], Dtype::F16), Err(1));
        assert_eq!(stored(&[f32::MAX], Dtype::Bf16), Err(0));
        assert_eq!(stored(&[1.0, 2.0, f32::NAN], Dtype::Int8), Err(2));
        assert!(stored(&[f32::INFINITY], Dtype::F16).is_ok());
        assert!(stored(&[f32::NAN, f32::MAX], Dtype::F32).is_ok());
    }
}
