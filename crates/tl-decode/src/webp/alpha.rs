//! The alpha of lossy images: the ALPH chunk of the WebP container.

use super::lossless;
use super::riff::Chunk;
use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::limits::Limits;

/// Compression methods.
const RAW: u8 = 0;
const LOSSLESS: u8 = 1;

/// Bytes of memory per pixel for the alpha of an image: the plane, and a lossless image of it.
pub(super) const BYTES_PER_PIXEL: u64 = 1 + lossless::RGBA_BYTES_PER_PIXEL;

/// Decodes the alpha of an image of this size into `plane`.
pub(super) fn decode(
    chunk: Chunk<'_>,
    size: (u32, u32),
    limits: &Limits,
    plane: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let format = Format::WebP;
    let offset = chunk.offset as u64;
    let Some((&header, data)) = chunk.data.split_first() else {
        return Err(Defect::Missing { format, what: "a header in the ALPH chunk" }.into());
    };
    let width = size.0 as usize;
    let pixels = width * size.1 as usize;
    let value = |what, found: u8| {
        DecodeError::from(Defect::ValueAt { format, what, found: found.into(), offset })
    };
    if header >> 6 != 0 {
        return Err(value("reserved bits of alpha", header >> 6));
    }
    if header >> 4 & 3 > 1 {
        return Err(value("preprocessing of alpha", header >> 4 & 3));
    }
    plane.clear();
    match header & 3 {
        RAW => {
            let Some(samples) = data.get(..pixels) else {
                let need = pixels as u64;
                let have = data.len() as u64;
                let what = "raw alpha";
                return Err(Defect::Truncated { format, what, offset, need, have }.into());
            };
            plane.extend_from_slice(samples);
        }
        LOSSLESS => lossless::green_of(data, size, limits, plane)?,
        method => return Err(value("compression of alpha", method)),
    }
    restore(plane, width, header >> 2 & 3);
    Ok(())
}

/// Undoes the filter: each sample is the difference to a prediction.
fn restore(plane: &mut [u8], width: usize, filter: u8) {
    if filter == 0 {
        return;
    }
    let mut above: &[u8] = &[];
    for row in plane.chunks_exact_mut(width) {
        match (filter, above.first()) {
            (_, None) => restore_from_left(row, 0),
            (1, Some(&first)) => restore_from_left(row, first),
            (2, _) => {
                for (sample, &above) in row.iter_mut().zip(above) {
                    *sample = sample.wrapping_add(above);
                }
            }
            (_, Some(&first)) => restore_gradient(row, above, first),
        }
        above = row;
    }
}

fn restore_from_left(row: &mut [u8], first: u8) {
    let mut left = first;
    for sample in row {
        left = left.wrapping_add(*sample);
        *sample = left;
    }
}

fn restore_gradient(row: &mut [u8], above: &[u8], first: u8) {
    let mut left = i16::from(first);
    let mut corner = left;
    for (sample, &above) in row.iter_mut().zip(above) {
        let above = i16::from(above);
        let [prediction, _] = (left + above - corner).clamp(0, 255).to_le_bytes();
        *sample = sample.wrapping_add(prediction);
        (left, corner) = (i16::from(*sample), above);
    }
}
