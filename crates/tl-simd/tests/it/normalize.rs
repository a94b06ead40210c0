//! Every level against the scalar one, at all lengths and offsets, and the table against its formula.

use crate::noise;
use tl_simd::Level;
use tl_simd::normalize::{Dtype, ImageWriter, Layout, PixelFormat, PixelType, Table, WideFormat};

const LONGEST: usize = 4 * 64 + 1;
const ELEMENTS: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::U8];
const LAYOUTS: [Layout; 2] = [Layout::Chw, Layout::Hwc];

/// Two rows of `pixels`, the second from a later part of `samples`, `offset` bytes after a place
/// that is aligned to 64.
fn write(
    level: Level,
    samples: &[u8],
    pixels: usize,
    offset: usize,
    format: PixelFormat,
    table: &Table,
) -> Vec<u8> {
    let bytes = offset + 2 * pixels * 3 * format.dtype.bytes();
    let mut out = vec![0xAA; bytes + 64];
    let aligned = out.as_ptr().align_offset(64);
    let image = &mut out[aligned..][offset..bytes];
    let writer = ImageWriter::new(image, pixels, 2, format, table);
    let rows = [0, 100].map(|first| &samples[offset + first..][..pixels * 3]);
    let write = |mut writer: ImageWriter<'_>| {
        for (y, row) in (0..).zip(rows) {
            writer.write_row(level, y, row);
        }
    };
    if level == Level::Scalar {
        write(writer);
    } else {
        writer.stream(write);
    }
    out.drain(..aligned);
    out.truncate(bytes);
    out
}

#[test]
fn every_level_writes_the_bytes_of_the_scalar_one() {
    let samples = noise(LONGEST * 3 + 200, 3);
    let table = Table::imagenet();
    for level in Level::available() {
        for (pixels, offset) in (0..=LONGEST).flat_map(|n| (0..=8).map(move |o| (n, o))) {
            for (dtype, layout) in ELEMENTS.iter().flat_map(|&e| LAYOUTS.map(|l| (e, l))) {
                for flip in [false, true] {
                    let format = PixelFormat { dtype, layout, flip };
                    let expected = write(Level::Scalar, &samples, pixels, offset, format, &table);
                    let out = write(level, &samples, pixels, offset, format, &table);
                    assert!(out == expected, "{level} {pixels} {offset} {format:?}");
                }
            }
        }
    }
}

#[test]
fn planes_and_interleaved_rows_of_the_same_pixels_are_written_alike() {
    let samples = noise(LONGEST * 3, 9);
    let table = Table::imagenet();
    for (level, pixels) in Level::available().flat_map(|l| (0..=LONGEST).map(move |n| (l, n))) {
        let row = &samples[..pixels * 3];
        let plane = |channel: usize| row.iter().skip(channel).step_by(3).copied().collect();
        let planes: [Vec<u8>; 3] = [plane(0), plane(1), plane(2)];
        let planes = [&planes[0][..], &planes[1], &planes[2]];
        for (dtype, layout) in ELEMENTS.iter().flat_map(|&e| LAYOUTS.map(|l| (e, l))) {
            for flip in [false, true] {
                let format = PixelFormat { dtype, layout, flip };
                let bytes = pixels * 3 * dtype.bytes();
                let mut out = [vec![0; bytes], vec![1; bytes]];
                let [interleaved, planar] = &mut out;
                ImageWriter::new(interleaved, pixels, 1, format, &table).write_row(level, 0, row);
                ImageWriter::new(planar, pixels, 1, format, &table).write_planes(level, 0, planes);
                assert!(out[0] == out[1], "{level} {pixels} {format:?}");
            }
        }
    }
}

/// All samples in all channels, with means and deviations of every size.
#[test]
fn every_level_computes_what_the_table_holds() {
    let ramp: Vec<u8> = (0..=255).flat_map(|sample: u8| [sample, sample, sample]).collect();
    let random = noise(3 * 8 * 400, 4);
    for parameters in random.chunks_exact(3 * 8) {
        let [mean, std] = [0, 12].map(|at| {
            [0, 4, 8].map(|channel| {
                let bytes = &parameters[at + channel..][..4];
                let bits = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
                // A number between 2^-16 and 2^16.
                let exponent = 127 - 16 + bits % 32;
                f32::from_bits((exponent << 23) | (bits >> 9))
            })
        });
        let table = Table::new(mean, std);
        for level in Level::available() {
            for dtype in ELEMENTS {
                let format = PixelFormat { dtype, layout: Layout::Chw, flip: false };
                let mut out = vec![0; 256 * 3 * dtype.bytes()];
                ImageWriter::new(&mut out, 256, 1, format, &table).write_row(level, 0, &ramp);
                let expected: Vec<u8> = (0..3)
                    .flat_map(|channel| (0..=255).map(move |sample| (channel, sample)))
                    .flat_map(|(channel, sample)| number(&table, dtype, channel, sample))
                    .collect();
                assert!(out == expected, "{level} {dtype:?} {mean:?} {std:?}");
            }
        }
    }
}

fn number(table: &Table, dtype: Dtype, channel: usize, sample: u8) -> Vec<u8> {
    let value = table.channel(channel)[usize::from(sample)];
    match dtype {
        Dtype::F32 => value.to_ne_bytes().to_vec(),
        Dtype::F16 => half::f16::from_f32(value).to_ne_bytes().to_vec(),
        Dtype::Bf16 => half::bf16::from_f32(value).to_ne_bytes().to_vec(),
        Dtype::U8 | Dtype::U16 => vec![sample],
    }
}

#[test]
fn the_first_row_can_be_the_lowest() {
    let samples = noise(5 * 3 * 4, 10);
    let table = Table::imagenet();
    for (dtype, layout) in ELEMENTS.iter().flat_map(|&e| LAYOUTS.map(|l| (e, l))) {
        let format = PixelFormat { dtype, layout, flip: true };
        let write = |upside_down: bool| {
            let mut out = vec![0; 5 * 4 * 3 * dtype.bytes()];
            let mut writer = ImageWriter::new(&mut out, 5, 4, format, &table);
            if upside_down {
                writer = writer.upside_down();
            }
            for (y, row) in (0..4_u32).zip(samples.chunks_exact(15)) {
                let y = if upside_down { y } else { 3 - y };
                writer.write_row(Level::detect(), y, row);
            }
            out
        };
        assert!(write(true) == write(false), "{format:?}");
    }
}

#[test]
fn wide_pixels_become_the_same_numbers_at_every_level() {
    let bytes = noise(7 * 5 * 16, 11);
    let value = |pixels: PixelType, sample: &[u8]| match pixels {
        PixelType::U8 => f32::from(sample[0]) * (1.0 / 255.0),
        PixelType::U16 => f32::from(u16::from_ne_bytes([sample[0], sample[1]])) * (1.0 / 65535.0),
        PixelType::F32 => f32::from_ne_bytes(sample.try_into().unwrap()),
    };
    let (mean, std) = ([0.5, 0.25, 0.0, -1.5], [0.5, 1.0, 2.0, 0.1]);
    for pixels in [PixelType::U8, PixelType::U16, PixelType::F32] {
        for (channels, layout) in [1, 3, 4].into_iter().flat_map(|c| LAYOUTS.map(|l| (c, l))) {
            let size = pixels.bytes();
            let image = &bytes[..35 * channels * size];
            let place = |index: usize| match layout {
                Layout::Hwc => index,
                Layout::Chw => index % channels * 35 + index / channels,
            };
            for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, pixels.dtype()] {
                let mut expected = vec![0; 35 * channels * dtype.bytes()];
                for (index, sample) in image.chunks_exact(size).enumerate() {
                    let channel = index % channels;
                    let float = (value(pixels, sample) - mean[channel]) / std[channel];
                    let number = match dtype {
                        Dtype::F32 => float.to_ne_bytes().to_vec(),
                        Dtype::F16 => half::f16::from_f32(float).to_ne_bytes().to_vec(),
                        Dtype::Bf16 => half::bf16::from_f32(float).to_ne_bytes().to_vec(),
                        Dtype::U8 | Dtype::U16 => sample.to_vec(),
                    };
                    expected[place(index) * number.len()..][..number.len()]
                        .copy_from_slice(&number);
                }
                let (mean, std) = (&mean[..channels], &std[..channels]);
                let format = WideFormat { pixels, channels, dtype, layout, mean, std };
                for level in Level::available() {
                    let mut out = vec![0; expected.len()];
                    format.write(level, image, &mut out);
                    assert!(out == expected, "{level} {format:?}");
                }
            }
        }
    }
}
