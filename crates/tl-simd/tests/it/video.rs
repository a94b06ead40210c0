//! Every level of the conversion of video against the scalar one.

use crate::noise;
use tl_simd::Level;
use tl_simd::video::{Matrix, Parity, YuvToRgb};

#[test]
fn every_level_converts_rows_of_every_length() {
    let bytes = noise(3 * 300, 11);
    let matrices = [Matrix::Bt601, Matrix::Bt709, Matrix::Bt2020, Matrix::Fcc, Matrix::Smpte240];
    for matrix in matrices {
        for is_full_range in [false, true] {
            let conversion = YuvToRgb::new(matrix, is_full_range, 8, Parity::Ffmpeg);
            for len in 0..=258 {
                let planes = [0, 300, 600].map(|start| &bytes[start + len % 9..][..len]);
                let mut expected = vec![0; 3 * len];
                conversion.convert(Level::Scalar, planes, &mut expected);
                for level in Level::available() {
                    let mut out = vec![0; 3 * len];
                    conversion.convert(level, planes, &mut out);
                    assert_eq!(out, expected, "{level} {matrix:?} {is_full_range} {len}");
                }
            }
        }
    }
}

#[test]
fn grey_stays_grey() {
    for parity in [Parity::Ffmpeg, Parity::Exact] {
        let limited = YuvToRgb::new(Matrix::Bt709, false, 8, parity);
        let mut out = [7; 9];
        limited.convert(Level::detect(), [&[16, 235, 0], &[128; 3], &[128; 3]], &mut out);
        assert_eq!(out, [0, 0, 0, 255, 255, 255, 0, 0, 0]);
        let full = YuvToRgb::new(Matrix::Bt709, true, 8, parity);
        full.convert(Level::detect(), [&[0, 255, 8], &[128; 3], &[128; 3]], &mut out);
        // FFmpeg rounds products down.
        assert_eq!(out, [0, 0, 0, 255, 255, 255, 8, 8, 8]);
    }
}
