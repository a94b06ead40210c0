//! Pixels against FFmpeg's (`testdata/tools/video_colors.py`), and regions against whole pictures.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::info::Color;
use crate::picture::Chroma;

/// Bytes of `SplitMix64` in counter mode.
fn noise(seed: u64) -> impl Iterator<Item = u8> {
    (1_u64..).flat_map(move |counter| {
        let z = seed.wrapping_add(counter.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)).to_le_bytes()
    })
}

/// A picture of noise in a pixel format of FFmpeg's.
fn picture(format: &str, width: u32, height: u32, seed: u64) -> Picture {
    let (chroma, bit_depth) = match format {
        "yuv420p" => (Chroma::Yuv420, 8),
        "yuv422p" => (Chroma::Yuv422, 8),
        "yuv420p10le" => (Chroma::Yuv420, 10),
        "yuv422p10le" => (Chroma::Yuv422, 10),
        "yuv444p" => (Chroma::Yuv444, 8),
        "yuv444p10le" => (Chroma::Yuv444, 10),
        "yuv420p12le" => (Chroma::Yuv420, 12),
        "yuv444p12le" => (Chroma::Yuv444, 12),
        "gray" => (Chroma::Monochrome, 8),
        "gray10le" => (Chroma::Monochrome, 10),
        "gray12le" => (Chroma::Monochrome, 12),
        _ => unreachable!("{format}"),
    };
    let color = Color::default();
    let planes = Default::default();
    let mut picture = Picture { width, height, bit_depth, chroma, color, planes };
    let mut samples = noise(seed);
    let size = picture.sample_bytes();
    let sizes = picture.views().map(|plane| plane.width as usize * plane.height as usize * size);
    picture.planes = sizes.map(|len| samples.by_ref().take(len).collect());
    if size == 2 {
        let high = (1_u8 << (bit_depth - 8)) - 1;
        for pair in picture.planes.iter_mut().flat_map(|plane| plane.as_chunks_mut::<2>().0) {
            pair[1] &= high;
        }
    }
    assert!(picture.is_whole());
    picture
}

fn pixels(picture: &Picture, region: Region, parity: Parity) -> Vec<u8> {
    let mut out = vec![0; 3 * region.width as usize * region.height as usize];
    picture.rgb(region, parity, &mut out).unwrap();
    out
}

#[test]
fn pixels_are_those_of_ffmpeg() {
    let path = tl_testdata::shipped!("video_colors/cases.txt");
    let path = std::env::var_os("TL_VIDEO_COLORS").map_or(path, PathBuf::from);
    let mut count = 0;
    for case in fs::read_to_string(path).unwrap().lines() {
        let (format, numbers) = case.split_once(' ').unwrap();
        let numbers: Vec<u32> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
        let &[width, height, matrix, range, seed, checksum] = numbers.as_slice() else {
            panic!("six numbers: {case}");
        };
        let mut picture = picture(format, width, height, seed.into());
        picture.color =
            Color { matrix: Color::specified(matrix.into()), full_range: Some(range == 2) };
        let made = pixels(&picture, Region::whole(&picture), Parity::Ffmpeg);
        assert_eq!(crc32fast::hash(&made), checksum, "{case}");
        count += 1;
    }
    assert!(count >= 1056, "{count} cases");
}

#[test]
fn a_region_has_the_pixels_of_the_whole_picture() {
    for format in
        ["yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "yuv422p10le", "gray", "gray10le"]
    {
        let picture = picture(format, 67, 21, 5);
        for parity in [Parity::Ffmpeg, Parity::Exact] {
            let whole = pixels(&picture, Region::whole(&picture), parity);
            for (left, top, width, height) in
                [(0, 0, 67, 21), (1, 1, 1, 1), (66, 20, 1, 1), (3, 2, 40, 7), (10, 5, 57, 16)]
            {
                let region = Region { left, top, width, height };
                let part = pixels(&picture, region, parity);
                let rows = part.chunks_exact(3 * width as usize);
                for (row, part) in (top..).zip(rows) {
                    let start = 3 * (row * 67 + left) as usize;
                    assert_eq!(part, &whole[start..][..part.len()], "{format} {region:?} {row}");
                }
            }
        }
    }
}

#[test]
fn colours_that_are_not_luma_and_chroma_are_refused() {
    let mut picture = picture("yuv420p", 8, 8, 1);
    for matrix in [0, 8] {
        picture.color.matrix = Some(matrix);
        let error = picture.rgb(Region::whole(&picture), Parity::Exact, &mut [0; 192]).unwrap_err();
        let expected = format!(
            "matrix coefficients {matrix}: expected a matrix of luma and chroma, such as 1 or 6"
        );
        assert_eq!(error.to_string(), expected);
    }
}
