//! Every level against the bytes of torch, torchvision and Pillow (`testdata/filter/generate.py`).

use crate::noise;
use half::{bf16, f16};
use tl_simd::Level;
use tl_simd::erase::{Canvas, Grid};
use tl_simd::gaussian::GaussianBlur;
use tl_simd::mix::blend;
use tl_simd::normalize::{Dtype, Layout};

const CASES: &str = tl_testdata::shipped_text!("filter/cases.txt");
const SEED: u64 = 3;

/// The cases of a kind: their fields, and the CRC-32 at their ends.
fn cases<const CRCS: usize>(kind: &str) -> Vec<(Vec<f64>, [u32; CRCS])> {
    let lines = CASES.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let (numbers, crcs) = fields.split_at(fields.len() - CRCS);
        let crc = |at: usize| u32::from_str_radix(crcs[at], 16).expect("a CRC");
        let numbers = numbers.iter().map(|field| field.parse().expect("a number"));
        (numbers.collect(), std::array::from_fn(crc))
    };
    lines.map(parse).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small integers")]
fn integer(field: f64) -> u32 {
    field as u32
}

#[test]
fn images_are_blurred_with_the_bytes_of_torchvision() {
    let cases = cases::<1>("blur");
    assert_eq!(cases.len(), 20, "cases");
    for (fields, [crc]) in cases {
        let [width, height, columns, rows] = [0, 1, 2, 3].map(|at| integer(fields[at]) as usize);
        let mut blur = GaussianBlur::default();
        blur.set((columns, rows), (fields[4], fields[4]));
        for level in Level::available() {
            let mut image = noise(width * height * 3, SEED);
            blur.run(level, &mut image, width, height);
            assert_eq!(crc32fast::hash(&image), crc, "{level} {fields:?}");
        }
    }
}

#[test]
fn rows_are_mixed_with_the_bits_of_torchvision() {
    let cases = cases::<3>("mix");
    assert_eq!(cases.len(), 12, "cases");
    let numbers = noise(2000, SEED).into_iter().map(|byte| (f32::from(byte) - 128.0) / 64.0);
    let numbers: Vec<f32> = numbers.collect();
    for (fields, crcs) in cases {
        let elements = [Dtype::F32, Dtype::F16, Dtype::Bf16];
        for (dtype, crc) in elements.into_iter().zip(crcs) {
            let bytes: Vec<u8> = numbers.iter().flat_map(|&number| encode(dtype, number)).collect();
            let (row, other) = bytes.split_at(bytes.len() / 2);
            for level in Level::available() {
                let mut row = row.to_vec();
                blend(level, dtype, fields[0], &mut row, other);
                assert_eq!(crc32fast::hash(&row), crc, "{level} {dtype:?} {fields:?}");
            }
        }
    }
}

fn encode(dtype: Dtype, number: f32) -> Vec<u8> {
    if dtype == Dtype::F16 {
        f16::from_f32(number).to_ne_bytes().to_vec()
    } else if dtype == Dtype::Bf16 {
        bf16::from_f32(number).to_ne_bytes().to_vec()
    } else {
        number.to_ne_bytes().to_vec()
    }
}

#[test]
fn grids_lie_where_their_authors_code_puts_them() {
    let cases = cases::<1>("grid");
    assert_eq!(cases.len(), 40, "cases");
    for (fields, [crc]) in cases {
        let [width, height, distance, length, x, y] =
            [0, 1, 2, 3, 4, 5].map(|at| integer(fields[at]));
        // In f64, the sines of whole and quarter turns are not whole numbers.
        let (sine, cosine) = match integer(fields[6]) {
            0 => (0.0, 1.0),
            90 => (1.0, 0.0),
            180 => (0.0, -1.0),
            270 => (-1.0, 0.0),
            _ => fields[6].to_radians().sin_cos(),
        };
        let mut grid = Grid::new((width, height), distance, length, (x, y)).rotated(cosine, sine);
        if fields[7] == 1.0 {
            grid = grid.squares();
        }
        let (width, height) = (width as usize, height as usize);
        let mut image = vec![0; width * height * 3];
        let mut canvas = Canvas::new(&mut image, (width, height), Dtype::U8, Layout::Chw);
        canvas.fill_grid(&grid, [255.0; 3]);
        for plane in image.chunks_exact(width * height) {
            assert_eq!(crc32fast::hash(plane), crc, "{fields:?}");
        }
    }
}
